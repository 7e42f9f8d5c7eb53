"""How a label and the crowd, the many negatives at the kink, come to rest together.

Where a label stands with the crowd left out, and how the crowd answers to an intercept above the
kink, are known (``solvers.crowd``). Of the sum of both two numbers are free: how far the intercept
is above the kink, and how much of the crowd's answer is added. They are found here, exactly, over
all rows.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel

_ONE = np.uint64(1)
_MAX_STEPS, _MAX_HALVINGS = 12, 12
#: The two derivatives are to be this share of the gradient at which the label rests.
_SHARE = 0.01
#: Below this share of its terms a determinant is taken for rounding.
_SINGULAR = 1e-12
#: Rounding of an objective, as a share of it.
_ROUNDING = 16 * np.finfo(np.float64).eps


@inlined
def score_by_features(by_feature, features, weights, scores):
    """Write the scores of all rows at a sparse vector, feature by feature."""
    indptr, rows, data = by_feature
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for t in range(features.shape[0]):
        j = np.uint32(features[t])
        w = np.float64(weights[t])
        if w != 0.0:
            for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
                scores[np.uint32(rows[s])] += w * np.float64(data[s])


@functools.cache
def balance_kernel(loss: Any) -> Any:
    """Return ``balance``, compiled for `loss` on its first call.

    Parameters
    ----------
    loss : CompiledLoss
        With a kink; see ``sklearn_xc.losses.margin``.
    """
    value, slope, curvature = loss.value, loss.slope, loss.curvature
    kink = -float(loss.active_below)

    @inlined
    def with_row(sums, cost, sign, score, z):
        """Return the sums of ``measure`` with those of one more row."""
        f, by_share, by_height, share2, both, height2 = sums
        margin = sign * score
        force = sign * cost * slope(margin)
        h = cost * curvature(margin)
        return (
            f + cost * value(margin), by_share + force * z, by_height + force,
            share2 + h * z * z, both + h * z, height2 + h,
        )  # fmt: skip

    @inlined
    def measure(own, answer, weight, positives, own_positives, costs, squares, point):
        """Return the objective at ``(share, height)``, its two derivatives, and the second ones."""
        plus, minus = costs
        own_squares, with_answer, answer_squares, ridge = squares
        share, height = point
        bias = kink + height
        f = 0.5 * (own_squares + share * (2.0 * with_answer + share * answer_squares))
        f += 0.5 * ridge * bias * bias
        sums = (f, with_answer + share * answer_squares, ridge * bias, answer_squares, 0.0, ridge)
        for i in range(own.shape[0]):
            score = bias + share * answer[i] + own[i]
            if score > kink:
                sums = with_row(sums, minus * np.float64(weight[i]), -1.0, score, answer[i])
        for r in range(positives.shape[0]):
            row = np.uint32(positives[r])
            score = bias + share * answer[row] + own_positives[r]
            sums = with_row(sums, plus * np.float64(weight[row]), 1.0, score, answer[row])
        return sums

    @kernel
    def balance(
        by_feature, weight, positives, costs, ridge, features, weights, crowd_weights, answer,
        share, tolerance, scores,
    ):  # fmt: skip
        """Find how much of the crowd's answer is added, and how far above the kink to stand.

        Parameters
        ----------
        by_feature : tuple of ndarray
            ``(indptr, rows, values)``: X by feature.
        weight : ndarray of shape (n,)
            Of the rows.
        positives : ndarray of int32
            Rows of the label.
        costs : tuple of float
            Weight of the loss of a positive, and of a negative.
        ridge : float
            1 or 0: whether the intercept is regularised.
        features, weights : ndarray of int32 and float
            Where the label stands without the crowd, intercept left out.
        crowd_weights, answer : ndarray of float64 of shape (d,) and (n,)
            The crowd's answer to an intercept of 1 above the kink, and the scores of all rows.
        share : float
            Where to begin: both numbers in the units of the answer.
        tolerance : float
            Gradient norm at which the label rests.
        scores : ndarray of float64 of shape (n,)
            Work space.

        Returns
        -------
        share, height : float
            How much of the answer to add, and the intercept above the kink, a number of X's dtype
            once the kink is added.
        """
        score_by_features(by_feature, features, weights, scores)
        own_positives = np.empty(positives.shape[0])
        for r in range(positives.shape[0]):
            i = np.uint32(positives[r])
            own_positives[r] = scores[i]
            scores[i] = -np.inf
        own_squares, with_answer, answer_squares = 0.0, 0.0, 0.0
        for t in range(features.shape[0]):
            w = np.float64(weights[t])
            own_squares += w * w
            with_answer += w * crowd_weights[np.uint32(features[t])]
        for j in range(crowd_weights.shape[0]):
            answer_squares += crowd_weights[j] * crowd_weights[j]
        squares = (own_squares, with_answer, answer_squares, ridge)
        enough = _SHARE * tolerance
        height = share
        for is_held in (False, True):
            if is_held:  # from now on the intercept is a number that X's dtype holds
                height = np.float64(weights.dtype.type(kink + height)) - kink
            found = measure(
                scores, answer, weight, positives, own_positives, costs, squares, (share, height)
            )
            for _ in range(_MAX_STEPS):
                f, by_share, by_height, share2, both, height2 = found
                is_flat = abs(by_share) <= enough * math.sqrt(answer_squares)
                if is_flat and (is_held or abs(by_height) <= enough):
                    break
                determinant = share2 * height2 - both * both
                if is_held:
                    share_step, height_step = -by_share / share2, 0.0
                elif determinant > _SINGULAR * share2 * height2:
                    share_step = (both * by_height - height2 * by_share) / determinant
                    height_step = (both * by_share - share2 * by_height) / determinant
                else:
                    break
                length = 1.0
                most = f + _ROUNDING * abs(f)
                for _ in range(_MAX_HALVINGS):
                    trial = share + length * share_step, height + length * height_step
                    found = measure(
                        scores, answer, weight, positives, own_positives, costs, squares, trial
                    )
                    if found[0] <= most:
                        break
                    length *= 0.5
                if not found[0] <= most:
                    break
                share, height = trial
        return share, height

    return balance

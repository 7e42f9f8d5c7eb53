"""How a label and the crowd, the many negatives at the kink, come to rest together.

Where a label stands with the crowd left out, and how the crowd answers to an intercept above the
kink, are known (``solvers.crowd``). Of the sum of both two numbers are free: how far the intercept
is above the kink, and how much of the crowd's answer is added. They are found here, exactly, over
all rows.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel

_ONE = np.uint64(1)
_MAX_STEPS, _MAX_HALVINGS = 12, 12
#: The two derivatives are to be this share of the gradient at which the label rests.
_SHARE = 0.01
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
def crowd_kernels(loss: Any) -> SimpleNamespace:
    """Return ``balance`` and ``certify``, compiled for `loss` on their first calls.

    Parameters
    ----------
    loss : CompiledLoss
        With a kink; see ``sklearn_xc.losses.margin``.
    """
    value, slope, curvature = loss.value, loss.slope, loss.curvature
    kink = -float(loss.active_below)

    @inlined
    def measure(own, answer, weight, positives, own_positives, costs, squares, point):
        """Return the objective at ``(share, height)``, its two derivatives, and the second ones."""
        plus, minus = costs
        own_squares, with_answer, answer_squares, ridge = squares
        share, height = point
        bias = kink + height
        f = 0.5 * (own_squares + share * (2.0 * with_answer + share * answer_squares))
        f += 0.5 * ridge * bias * bias
        by_share = with_answer + share * answer_squares
        by_height = ridge * bias
        share2, both, height2 = answer_squares, 0.0, ridge
        for i in range(own.shape[0]):
            z = answer[i]
            score = bias + share * z + own[i]
            if score > kink:
                cost = minus * np.float64(weight[i])
                f += cost * value(-score)
                force = -cost * slope(-score)
                h = cost * curvature(-score)
                by_share += force * z
                by_height += force
                share2 += h * z * z
                both += h * z
                height2 += h
        for r in range(positives.shape[0]):
            row = np.uint32(positives[r])
            z = answer[row]
            score = bias + share * z + own_positives[r]
            cost = plus * np.float64(weight[row])
            f += cost * value(score)
            force = cost * slope(score)
            h = cost * curvature(score)
            by_share += force * z
            by_height += force
            share2 += h * z * z
            both += h * z
            height2 += h
        return f, by_share, by_height, share2, both, height2

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
        is_rounded = False
        f, by_share, by_height, share2, both, height2 = measure(
            scores, answer, weight, positives, own_positives, costs, squares, (share, height)
        )
        for _ in range(_MAX_STEPS):
            is_flat = abs(by_share) <= enough * math.sqrt(answer_squares)
            if is_flat and (is_rounded or abs(by_height) <= enough):
                if is_rounded:
                    break
                # From now on the intercept is a number that X's dtype holds.
                height = np.float64(weights.dtype.type(kink + height)) - kink
                is_rounded = True
                f = np.inf
                share_step, height_step = 0.0, 0.0
            elif is_rounded:
                share_step, height_step = -by_share / share2, 0.0
            else:
                determinant = share2 * height2 - both * both
                if not determinant > 1e-12 * share2 * height2:
                    break
                share_step = (both * by_height - height2 * by_share) / determinant
                height_step = (both * by_share - share2 * by_height) / determinant
            length = 1.0
            for _ in range(_MAX_HALVINGS):
                trial = share + length * share_step, height + length * height_step
                found = measure(
                    scores, answer, weight, positives, own_positives, costs, squares, trial
                )
                if found[0] <= f + _ROUNDING * abs(f):
                    break
                length *= 0.5
            if not found[0] <= f + _ROUNDING * abs(f):
                break
            share, height = trial
            f, by_share, by_height, share2, both, height2 = found
        return share, np.float64(weights.dtype.type(kink + height)) - kink

    @kernel
    def certify(X, weight, positives, costs, ridge, point, prune, sign, gradient):
        """Return the objective at a point, its gradient's norm, and the objective once pruned.

        Parameters
        ----------
        X, weight
            All rows and their weights.
        positives : ndarray of int32
            Rows of the label.
        costs : tuple of float
            Weight of the loss of a positive, and of a negative.
        ridge : float
            1 or 0: whether the intercept is regularised.
        point : ndarray of shape (d + 1,)
            Intercept last.
        prune : float
            Smaller weights become 0.
        sign : ndarray of float64 of shape (n,)
            Work space.
        gradient : ndarray of float64 of shape (d + 1,)
            Overwritten, intercept last.

        Returns
        -------
        objective, gradient_norm, pruned_objective : float
        """
        indptr, indices, data = X
        plus, minus = costs
        d = point.shape[0] - 1
        bias = np.float64(point[d])
        sign[:] = -1.0
        for r in range(positives.shape[0]):
            sign[np.uint32(positives[r])] = 1.0
        norm2, pruned_norm2 = 0.0, 0.0
        for j in range(d):
            w = np.float64(point[j])
            gradient[j] = w
            norm2 += w * w
            pruned_norm2 += w * w if abs(point[j]) >= prune else 0.0
        gradient[d] = ridge * bias
        f = 0.5 * (norm2 + ridge * bias * bias)
        pruned = 0.5 * (pruned_norm2 + ridge * bias * bias)
        for i in range(sign.shape[0]):
            start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
            score, pruned_score = bias, bias
            for t in range(start, stop):
                w = point[np.uint32(indices[t])]
                kept = w if abs(w) >= prune else w - w
                score += np.float64(data[t]) * np.float64(w)
                pruned_score += np.float64(data[t]) * np.float64(kept)
            cost = (plus if sign[i] > 0.0 else minus) * np.float64(weight[i])
            margin = sign[i] * score
            if margin < -kink:
                f += cost * value(margin)
                force = sign[i] * cost * slope(margin)
                gradient[d] += force
                for t in range(start, stop):
                    gradient[np.uint32(indices[t])] += force * np.float64(data[t])
            margin = sign[i] * pruned_score
            if margin < -kink:
                pruned += cost * value(margin)
        norm2 = 0.0
        for j in range(d + 1):
            norm2 += gradient[j] * gradient[j]
        return f, math.sqrt(norm2), pruned

    return SimpleNamespace(balance=balance, certify=certify)

"""Balance of a label at the kink with the shared negatives.

The label's solution without them and their response to an intercept above the kink are known
(``solvers.shared_negatives``). Two numbers of the sum of both are free: the height of the intercept
above the kink, and the share of the response. They are found here, exactly, over all rows. Where
negatives have features of the label, they respond otherwise than elsewhere: the weights of some
features are free too, one after the other.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel

_ONE = np.uint64(1)
_MAX_STEPS, _MAX_HALVINGS = 12, 12
#: The two derivatives are to be this share of the gradient tolerance, and those by
#: the weights of features that one.
_SHARE, _SHARE_OF_FEATURES = 0.01, 0.05
#: How often all free features have their turn.
_ROUNDS = 2
#: Below this share of its terms a determinant is taken for rounding.
_SINGULAR = 1e-12
#: Rounding of an objective, as a share of it.
_ROUNDING = 16 * np.finfo(np.float64).eps


@kernel
def score_alone(by_feature, features, own, positives, scores, of_positives):
    """Write the scores of all rows at a sparse vector, feature by feature.

    Parameters
    ----------
    by_feature : tuple of ndarray
        ``(indptr, rows, values)``: X by feature.
    features : ndarray of int32
        Where the vector is not 0.
    own : ndarray of float64 of shape (d,)
        The vector.
    positives : ndarray of int32
        Rows of the label.
    scores : ndarray of float64 of shape (n,)
        Overwritten; -inf for the positives.
    of_positives : ndarray of float64 of shape (n_positives,)
        Overwritten by theirs.
    """
    indptr, rows, data = by_feature
    for i in range(scores.shape[0]):
        scores[i] = 0.0
    for t in range(features.shape[0]):
        j = np.uint32(features[t])
        w = own[j]
        if w != 0.0:
            for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
                scores[np.uint32(rows[s])] += w * np.float64(data[s])
    for r in range(positives.shape[0]):
        row = np.uint32(positives[r])
        of_positives[r] = scores[row]
        scores[row] = -np.inf


@inlined
def add_to_scores(j, step, by_feature, own, positives, own_positives):
    """Add the step of a feature's weight to the scores of its rows."""
    indptr, rows, data = by_feature
    for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
        i = np.uint32(rows[s])
        own[i] += step * np.float64(data[s])  # -inf stays
        if own[i] == -np.inf:
            own_positives[np.searchsorted(positives, np.int32(i))] += step * np.float64(data[s])


@functools.cache
def _point_search(loss: Any) -> Any:
    """Return ``find_point``."""
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
            f + cost * value(margin),
            by_share + force * z,
            by_height + force,
            share2 + h * z * z,
            both + h * z,
            height2 + h,
        )

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

    @inlined
    def find_point(
        own, answer, weight, positives, own_positives, costs, squares, start, enough, is_held
    ):
        """Return the share and the height that minimise the objective; held, the share alone."""
        share, height = start
        answer_squares = squares[2]
        found = measure(own, answer, weight, positives, own_positives, costs, squares, start)
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
                    own, answer, weight, positives, own_positives, costs, squares, trial
                )
                if found[0] <= most:
                    break
                length *= 0.5
            if not found[0] <= most:
                break
            share, height = trial
        return share, height

    return find_point


@functools.cache
def _feature_step(loss: Any) -> Any:
    """Return ``find_step``."""
    slope, curvature, kink = loss.slope, loss.curvature, -float(loss.active_below)

    @inlined
    def find_step(
        j, w, by_feature, own, answer, weight, positives, own_positives, costs, point, enough
    ):
        """Return the Newton step of a feature's weight, 0 where its derivative is small enough."""
        indptr, rows, data = by_feature
        plus, minus = costs
        share, height = point
        bias = kink + height
        gradient, second = w, 1.0
        for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
            i, x = np.uint32(rows[s]), np.float64(data[s])
            score = bias + share * answer[i] + own[i]
            if score > kink:
                cost = minus * np.float64(weight[i])
                gradient -= x * cost * slope(-score)
                second += x * x * cost * curvature(-score)
            elif own[i] == -np.inf:
                score = bias + share * answer[i]
                score += own_positives[np.searchsorted(positives, np.int32(i))]
                cost = plus * np.float64(weight[i])
                gradient += x * cost * slope(score)
                second += x * x * cost * curvature(score)
        return -gradient / second if abs(gradient) > enough else 0.0

    return find_step


@functools.cache
def balance_kernel(loss: Any) -> Any:
    """Return ``balance``, compiled for `loss` on its first call.

    Parameters
    ----------
    loss : CompiledLoss
        With a kink; see ``sklearn_xc.one_vs_all.losses.margin``.
    """
    find_point, find_step = _point_search(loss), _feature_step(loss)
    kink = -float(loss.active_below)

    @kernel
    def balance(
        by_feature,
        weight,
        positives,
        costs,
        ridge,
        free,
        own,
        negatives_weights,
        answer,
        share,
        height,
        tolerance,
        scores,
        of_positives,
    ):
        """Find the share of the negatives' response to add, and the height above the kink.

        Parameters
        ----------
        by_feature : tuple of ndarray
            ``(indptr, rows, values)``: X by feature.
        weight : ndarray of shape (n,)
            Of the rows.
        positives : ndarray of int32
            Rows of the label, in rising order.
        costs : tuple of float
            Weight of the loss of a positive, and of a negative.
        ridge : float
            1 or 0: whether the intercept is regularised.
        free : ndarray of int32
            Features whose weights may change.
        own : ndarray of float64 of shape (d,)
            The label's weights without the negatives, intercept left out. Changed in place.
        negatives_weights, answer : ndarray of float64 of shape (d,) and (n,)
            The negatives' answer to an intercept of 1 above the kink, and the scores of all rows.
        share, height : float
            Where to begin, in the units of the answer.
        tolerance : float
            Gradient tolerance.
        scores, of_positives : ndarray of float64
            Of ``score_alone`` at `own`, and kept so.

        Returns
        -------
        share, height : float
            The share of the response, and the intercept above the kink, a number of X's dtype
            once the kink is added.
        """
        own_squares, with_answer, answer_squares = 0.0, 0.0, 0.0
        for k in range(own.shape[0]):
            own_squares += own[k] * own[k]
            with_answer += own[k] * negatives_weights[k]
            answer_squares += negatives_weights[k] * negatives_weights[k]
        point = share, height
        enough = _SHARE * tolerance
        rounds = _ROUNDS if free.shape[0] > 0 else 0
        for turn in range(rounds + 2):
            is_held = turn == rounds + 1
            if is_held:  # from now on the intercept is a number that X's dtype holds
                dtype = by_feature[2].dtype.type
                point = point[0], np.float64(dtype(kink + point[1])) - kink
            point = find_point(
                scores,
                answer,
                weight,
                positives,
                of_positives,
                costs,
                (own_squares, with_answer, answer_squares, ridge),
                point,
                enough,
                is_held,
            )
            if turn >= rounds:
                continue
            for t in range(free.shape[0]):
                j = np.uint32(free[t])
                step = find_step(
                    j,
                    own[j] + point[0] * negatives_weights[j],
                    by_feature,
                    scores,
                    answer,
                    weight,
                    positives,
                    of_positives,
                    costs,
                    point,
                    _SHARE_OF_FEATURES * tolerance,
                )
                if step != 0.0:
                    own_squares += step * (2.0 * own[j] + step)
                    with_answer += step * negatives_weights[j]
                    own[j] += step
                    add_to_scores(j, step, by_feature, scores, positives, of_positives)
        return point

    return balance

"""Labels at the kink: the best share of the shared negatives' response, and their certificates.

``solver.shared_negatives`` has the method. Known are a label's weights without the negatives, and
the response of the negatives to an intercept above the kink. ``balance`` finds two numbers exactly,
over all rows: the height of the intercept above the kink, and the share of the response. Negatives
that have features of the label respond differently, so the weights of some features are free, too,
one after the other. ``evaluate`` computes objective and gradient over all rows: as scores are known
but for the rounding of the point to the dtype of X, it reads only rows that may have a loss.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc.one_vs_all.kernels.newton_step import ROUNDING

_ONE = np.uint64(1)
_MAX_STEPS, _MAX_HALVINGS = 12, 12
#: Tolerances of the two derivatives, and of those by the weights of features, as shares of the
#: gradient tolerance.
_SHARE, _SHARE_OF_FEATURES = 0.01, 0.05
#: Rounds of steps over all free features.
_ROUNDS = 2
#: Below this share of its terms a determinant counts as rounding.
_SINGULAR = 1e-12


@kernel
def score_alone(by_feature, features, own, positives, scores, of_positives):
    """Write the scores of all rows at a sparse vector, feature by feature.

    Parameters
    ----------
    by_feature : tuple of ndarray
        ``(indptr, rows, values)``: X by feature.
    features : ndarray of int32
        Features of its non-zero weights.
    own : ndarray of float64 of shape (d,)
        The vector.
    positives : ndarray of int32
        Rows of the label.
    scores : ndarray of float64 of shape (n,)
        Overwritten; -inf for the positives.
    of_positives : ndarray of float64 of shape (n_positives,)
        Overwritten with their scores.
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
def _objective_function(loss: Any) -> Any:
    """Compile the objective, with its derivatives, for a loss."""
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
    def measure(data, own, own_positives, squares, point):
        """Return the objective at ``(share, height)``, its two derivatives, and the second ones."""
        weight, positives, (plus, minus), response = data
        own_squares, with_response, response_squares = squares
        share, height = point
        bias = kink + height
        f = 0.5 * (own_squares + share * (2.0 * with_response + share * response_squares))
        f += 0.5 * bias * bias
        sums = (f, with_response + share * response_squares, bias, response_squares, 0.0, 1.0)
        for i in range(own.shape[0]):
            score = bias + share * response[i] + own[i]
            if score > kink:
                sums = with_row(sums, minus * np.float64(weight[i]), -1.0, score, response[i])
        for r in range(positives.shape[0]):
            row = np.uint32(positives[r])
            score = bias + share * response[row] + own_positives[r]
            sums = with_row(sums, plus * np.float64(weight[row]), 1.0, score, response[row])
        return sums

    return measure


@functools.cache
def _point_search(loss: Any) -> Any:
    """Compile the search for a share and height for a loss."""
    measure = _objective_function(loss)

    @inlined
    def find_point(data, own, own_positives, squares, start, enough, is_held):
        """Minimise the objective by share and height, or by the share alone if `is_held`."""
        share, height = start
        response_squares = squares[2]
        found = measure(data, own, own_positives, squares, start)
        for _ in range(_MAX_STEPS):
            f, by_share, by_height, share2, both, height2 = found
            is_flat = abs(by_share) <= enough * math.sqrt(response_squares)
            if is_flat and (is_held or abs(by_height) <= enough):
                break
            determinant = share2 * height2 - both * both
            if is_held:
                share_step = -by_share / share2
                height_step = 0.0
            elif determinant > _SINGULAR * share2 * height2:
                share_step = (both * by_height - height2 * by_share) / determinant
                height_step = (both * by_share - share2 * by_height) / determinant
            else:
                break
            length = 1.0
            most = f + ROUNDING * abs(f)
            for _ in range(_MAX_HALVINGS):
                trial = share + length * share_step, height + length * height_step
                found = measure(data, own, own_positives, squares, trial)
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
    """Compile the Newton step of one feature for a loss."""
    slope = loss.slope
    curvature = loss.curvature
    kink = -float(loss.active_below)

    @inlined
    def find_step(j, w, by_feature, data, own, own_positives, point, enough):
        """Return the Newton step of a feature's weight, 0 if its derivative is small enough."""
        indptr, rows, values = by_feature
        weight, positives, (plus, minus), response = data
        share, height = point
        bias = kink + height
        gradient, second = w, 1.0
        for s in range(np.uint64(indptr[j]), np.uint64(indptr[j + _ONE])):
            i = np.uint32(rows[s])
            x = np.float64(values[s])
            score = bias + share * response[i] + own[i]
            if score > kink:
                cost = minus * np.float64(weight[i])
                gradient -= x * cost * slope(-score)
                second += x * x * cost * curvature(-score)
            elif own[i] == -np.inf:
                score = bias + share * response[i]
                score += own_positives[np.searchsorted(positives, np.int32(i))]
                cost = plus * np.float64(weight[i])
                gradient += x * cost * slope(score)
                second += x * x * cost * curvature(score)
        return -gradient / second if abs(gradient) > enough else 0.0

    return find_step


@functools.cache
def balance_kernel(loss: Any) -> Any:
    """Return ``balance`` for a ``CompiledLoss`` with a kink."""
    find_point = _point_search(loss)
    find_step = _feature_step(loss)
    kink = -float(loss.active_below)

    @kernel
    def balance(by_feature, data, free, own, weights, start, tolerance, scores, of_positives):
        """Find the share of the negatives' response to add, and the height above the kink.

        Parameters
        ----------
        by_feature : tuple of ndarray
            ``(indptr, rows, values)``: X by feature.
        data : tuple
            ``(weight, positives, (plus, minus), response)``: weights of the rows, rows of the label
            (ascending), weights of the losses of a positive and of a negative, and scores of all
            rows by the response.
        free : ndarray of int32
            Features whose weights may change.
        own : ndarray of float64 of shape (d,)
            The label's weights without the response and the intercept. Changed in place.
        weights : ndarray of float64 of shape (d,)
            The response: weights for an intercept of 1 above the kink.
        start : tuple of float
            Share and height to start from.
        tolerance : float
            Gradient tolerance.
        scores, of_positives : ndarray of float64
            Results of ``score_alone`` for `own`; updated with it.

        Returns
        -------
        share, height : float
            The share of the response, and the intercept above the kink, a number of X's dtype
            once the kink is added.
        """
        own_squares, with_response, response_squares = 0.0, 0.0, 0.0
        for k in range(own.shape[0]):
            own_squares += own[k] * own[k]
            with_response += own[k] * weights[k]
            response_squares += weights[k] * weights[k]
        point = start
        rounds = _ROUNDS if free.shape[0] > 0 else 0
        for turn in range(rounds + 2):
            is_held = turn == rounds + 1
            if is_held:  # from now on the intercept is a number that X's dtype holds
                dtype = by_feature[2].dtype.type
                point = point[0], np.float64(dtype(kink + point[1])) - kink
            squares = own_squares, with_response, response_squares
            enough = _SHARE * tolerance
            point = find_point(data, scores, of_positives, squares, point, enough, is_held)
            if turn >= rounds:
                continue
            for t in range(free.shape[0]):
                j = np.uint32(free[t])
                w, enough = own[j] + point[0] * weights[j], _SHARE_OF_FEATURES * tolerance
                step = find_step(j, w, by_feature, data, scores, of_positives, point, enough)
                if step != 0.0:
                    own_squares += step * (2.0 * own[j] + step)
                    with_response += step * weights[j]
                    own[j] += step
                    add_to_scores(j, step, by_feature, scores, data[1], of_positives)
        return point

    return balance


@functools.cache
def full_gradient_kernel(loss: Any) -> Any:
    """Return ``evaluate`` for a ``CompiledLoss`` with a kink."""
    value = loss.value
    slope = loss.slope
    kink = -float(loss.active_below)

    @inlined
    def add_row(i, sign, cost, X, point, gradient):
        """Add the derivative of a row's loss to the gradient; return the loss."""
        indptr, indices, data = X
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[np.uint64(i) + _ONE])
        d = point.shape[0] - 1
        score = np.float64(point[d])
        for t in range(start, stop):
            score += np.float64(data[t]) * np.float64(point[np.uint32(indices[t])])
        margin = sign * score
        if margin >= -kink:
            return 0.0
        force = sign * cost * slope(margin)
        gradient[d] += force
        for t in range(start, stop):
            gradient[np.uint32(indices[t])] += force * np.float64(data[t])
        return cost * value(margin)

    @kernel
    def evaluate(X, weight, positives, costs, point, known, gradient):
        """Return the objective at a point, and the norm of its gradient.

        Parameters
        ----------
        X, weight
            All rows and their weights.
        positives : ndarray of int32
            Rows of the label.
        costs : tuple of float
            Weight of the loss of a positive, and of a negative.
        point : ndarray of shape (d + 1,)
            Intercept last.
        known : tuple
            ``(alone, response, share, slack)``: without its intercept the point scores row i at
            ``alone[i] + share * response[i]``, float64, to within `slack`. Positives have -inf.
        gradient : ndarray of float64 of shape (d + 1,)
            Overwritten, intercept last.

        Returns
        -------
        objective, gradient_norm : float
        """
        plus, minus = costs
        alone, response, share, slack = known
        d = point.shape[0] - 1
        bias = np.float64(point[d])
        norm2 = 0.0
        for j in range(d):
            w = np.float64(point[j])
            gradient[j] = w
            norm2 += w * w
        gradient[d] = bias
        f = 0.5 * (norm2 + bias * bias)
        least = kink - bias - slack
        for i in range(alone.shape[0]):
            if not alone[i] + share * response[i] <= least:
                f += add_row(i, -1.0, minus * np.float64(weight[i]), X, point, gradient)
        for r in range(positives.shape[0]):
            row = np.uint32(positives[r])
            f += add_row(row, 1.0, plus * np.float64(weight[row]), X, point, gradient)
        norm2 = 0.0
        for j in range(d + 1):
            norm2 += gradient[j] * gradient[j]
        return f, math.sqrt(norm2)

    return evaluate

"""Newton steps for a block of labels in lock step, compiled once for each loss.

A block has ``n_lanes`` columns, one label each, side by side in memory:

    W  (d + 1, n_lanes)   weights; the last row is the intercept
    P  (d + 1, n_lanes)   steps
    S  (n, n_lanes)       scores X W
    XP (n, n_lanes)       score changes X P

One iteration of the solver calls, in this order:

    try_full_step      XP = X P and the loss at S + XP        one product for all lanes
    try_step           the loss at S + lam XP                 only while a line search backtracks
    accept_step        S += lam XP, W += lam P, and the rows of each lane with a slope
    newton_directions  gradient and conjugate gradients of each lane over those rows; new P
    certify            objective and gradient in float64, for the lanes that have finished

During the steps all instances of a lane are first taken as negatives, which lets the loops run
straight down the rows; the few positives of each label are then corrected one by one. Losses are
summed in float64: where positives are many, what the correction leaves is far smaller than the sum,
and rounding of the sum would hide the decrease that the line search looks for. A lane's arithmetic
never depends on the other lanes.
"""

import functools
from types import ModuleType, SimpleNamespace

import numpy as np

from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.block_product import multiply_rows
from sklearn_xc.kernels.newton_direction import (
    add_gradient,
    compact_rows,
    conjugate_gradients,
)

#: Rows that are multiplied, and then gone through for their losses, while they are in the cache.
CHUNK = 128
#: Curvature that a free intercept gets, as a share of its own gradient: where all instances are far
#: out the loss has none, and the Newton step would be longer than any line search can repair.
DAMPING = 1e-3


@functools.cache
def block_newton_kernels(loss: ModuleType) -> SimpleNamespace:
    """Return the kernels of this file, compiled for `loss` on their first call."""
    value, slope, curvature, is_active = loss.value, loss.slope, loss.curvature, loss.is_active

    @kernel
    def try_full_step(indptr, indices, data, weight, keep, S, P, XP, loss_sum, n_active):
        """Set XP = X P; per lane, sum the loss at S + XP and count the rows with a slope.

        Parameters
        ----------
        indptr, indices, data : ndarray
            CSR rows of X.
        weight : ndarray of shape (n,)
            Weight of each row.
        keep : ndarray of shape (n_lanes,)
            1, or 0 for a lane that starts anew, whose scores in S are first set to 0.
        S, P, XP : ndarray
            Scores, steps and, overwritten, score changes.
        loss_sum : ndarray of float64 of shape (n_lanes,)
            Overwritten by the weighted sum of losses, every row taken as negative.
        n_active : ndarray of int64 of shape (n_lanes,)
            Overwritten.
        """
        n, n_lanes = S.shape
        counts = np.empty(n_lanes, np.int32)
        for k in range(n_lanes):
            loss_sum[k] = 0.0
            n_active[k] = 0
        for first in range(0, n, CHUNK):
            last = min(first + CHUNK, n)
            multiply_rows(indptr, indices, data, P, first, last, XP[first:last])
            for k in range(n_lanes):
                counts[k] = 0
            for i in range(first, last):
                w = np.float64(weight[i])
                scores = S[i]
                changes = XP[i]
                for k in range(n_lanes):
                    score = scores[k] if keep[k] != 0 else keep[k]
                    scores[k] = score
                    margin = -(score + changes[k])
                    loss_sum[k] += w * np.float64(value(margin))
                    counts[k] += np.int32(is_active(margin))
            for k in range(n_lanes):
                n_active[k] += counts[k]

    @kernel
    def try_step(weight, S, XP, lam, loss_sum, n_active):
        """Per lane, sum the loss at ``S + lam * XP`` and count rows as ``try_full_step`` does."""
        n, n_lanes = S.shape
        counts = np.empty(n_lanes, np.int32)
        for k in range(n_lanes):
            loss_sum[k] = 0.0
            n_active[k] = 0
        for first in range(0, n, CHUNK):
            last = min(first + CHUNK, n)
            for k in range(n_lanes):
                counts[k] = 0
            for i in range(first, last):
                w = np.float64(weight[i])
                scores = S[i]
                changes = XP[i]
                for k in range(n_lanes):
                    margin = -(scores[k] + lam[k] * changes[k])
                    loss_sum[k] += w * np.float64(value(margin))
                    counts[k] += np.int32(is_active(margin))
            for k in range(n_lanes):
                n_active[k] += counts[k]

    @kernel
    def correct_positives(y_indptr, y_rows, labels, weight, S, XP, lam, plus, minus, loss_sum):
        """Turn sums over "all rows negative" into each lane's weighted loss.

        Parameters
        ----------
        y_indptr, y_rows : ndarray of int64 and int32
            Positive rows of each label, in CSC form.
        labels : ndarray of int64 of shape (n_lanes,)
            Label of each lane, -1 for an empty lane.
        weight, S, XP, lam : ndarray
            As for ``try_step``.
        plus, minus : ndarray of float64 of shape (n_lanes,)
            Weight of a positive's and of a negative's loss.
        loss_sum : ndarray of float64 of shape (n_lanes,)
            Changed in place.
        """
        for k in range(labels.shape[0]):
            if labels[k] < 0:
                continue
            as_negative = 0.0
            as_positive = 0.0
            for t in range(y_indptr[labels[k]], y_indptr[labels[k] + 1]):
                i = np.uint32(y_rows[t])
                score = S[i, k] + lam[k] * XP[i, k]
                as_negative += weight[i] * np.float64(value(-score))
                as_positive += weight[i] * np.float64(value(score))
            loss_sum[k] = minus[k] * (loss_sum[k] - as_negative) + plus[k] * as_positive

    @kernel
    def accept_step(S, XP, W, P, lam, list_start, list_stop, lists, norm2):
        """Move scores and weights by `lam`, list active rows, and square the norms.

        Parameters
        ----------
        S, XP, W, P, lam : ndarray
            ``S += lam * XP`` and ``W += lam * P``, in place.
        list_start, list_stop : ndarray of int64 of shapes (n_lanes + 1,) and (n_lanes,)
            Where in `lists` the active rows of each lane (every row taken as negative) may stand;
            `list_stop` is overwritten by where they end. No room, no list.
        lists : ndarray of int32
            Overwritten.
        norm2 : ndarray of float64 of shape (n_lanes,)
            Overwritten by the squared norm of the weights, intercept excluded.
        """
        n, n_lanes = S.shape
        for k in range(n_lanes):
            list_stop[k] = list_start[k]
        for i in range(n):
            scores = S[i]
            changes = XP[i]
            any_active = np.int32(0)
            for k in range(n_lanes):
                score = scores[k] + lam[k] * changes[k]
                scores[k] = score
                any_active += np.int32(is_active(-score))
            if any_active > 0:
                for k in range(n_lanes):
                    if list_stop[k] < list_start[k + 1] and is_active(-scores[k]):
                        lists[list_stop[k]] = i
                        list_stop[k] += 1
        d = W.shape[0] - 1
        for k in range(n_lanes):
            norm2[k] = 0.0
        for j in range(d):
            weights = W[j]
            steps = P[j]
            for k in range(n_lanes):
                w = weights[k] + lam[k] * steps[k]
                weights[k] = w
                norm2[k] += np.float64(w) * np.float64(w)
        for k in range(n_lanes):
            W[d, k] += lam[k] * P[d, k]

    @kernel
    def newton_directions(
        indptr, indices, data, y_indptr, y_rows, labels, weight, W, S, P, norm2, running, fill,
        list_start, list_stop, lists, plus, minus, intercept, ridge, cg, threshold, sign,
        position, touched, rows, local_indptr, local_indices, local_data, derivatives,
        local_derivatives, work, out,
    ):  # fmt: skip
        """Replace P by the Newton direction of each running lane.

        Parameters
        ----------
        indptr, indices, data, y_indptr, y_rows, labels, weight, W, S, P, norm2
            As above.
        running : ndarray of bool of shape (n_lanes,)
            Lanes to work on; the others' columns of P become 0.
        fill, list_start, list_stop, lists
            Whether a lane has a list of active rows from ``accept_step``, and the lists; a lane
            without one uses all rows.
        plus, minus : ndarray of float64 of shape (n_lanes,)
            Weight of a positive's and of a negative's loss.
        intercept, ridge : float
            1 or 0: whether there is an intercept, and whether it is regularised.
        cg : tuple
            As for ``conjugate_gradients``.
        threshold : ndarray of float64 of shape (n_lanes,)
            A lane whose gradient norm is not above it gets no direction.
        sign : ndarray of int8 of shape (n,)
            All 0, and left so: marks the positives of the lane at work.
        position, touched : ndarray of int32 of shape (d,)
            `position` all -1, and left so.
        rows, local_indptr, local_indices, local_data, derivatives, local_derivatives, work
            Space for the active rows of the largest lane, its derivatives by score (2, n) and by
            local coordinate (2, d + 2), and the vectors of conjugate gradients (5, d + 2).
        out : ndarray of float64 of shape (5, n_lanes)
            Overwritten: gradient norm, ``g.p``, ``w.p`` and ``p.p`` (regularised coordinates
            only), and the number of products with the Hessian.
        """
        n, n_lanes = S.shape
        d = W.shape[0] - 1
        for r in range(out.shape[0]):
            for k in range(n_lanes):
                out[r, k] = 0.0
        for j in range(d + 1):
            for k in range(n_lanes):
                P[j, k] = 0
        carried = np.zeros(n_lanes, P.dtype)
        for k in range(n_lanes):
            if not running[k]:
                continue
            label = labels[k]
            y_start = y_indptr[label]
            y_stop = y_indptr[label + 1]
            for t in range(y_start, y_stop):
                sign[np.uint32(y_rows[t])] = 1

            # 1. Derivatives by score of the rows that take part.
            if fill[k]:
                n_rows = 0
                for t in range(list_start[k], list_stop[k]):
                    i = np.uint32(lists[t])
                    if sign[i] == 0:
                        rows[n_rows] = i
                        margin = -S[i, k]
                        scale = minus[k] * weight[i]
                        derivatives[0, n_rows] = -scale * slope(margin)
                        derivatives[1, n_rows] = scale * curvature(margin)
                        n_rows += 1
                for t in range(y_start, y_stop):
                    i = np.uint32(y_rows[t])
                    margin = S[i, k]
                    if is_active(margin):
                        rows[n_rows] = i
                        scale = plus[k] * weight[i]
                        derivatives[0, n_rows] = scale * slope(margin)
                        derivatives[1, n_rows] = scale * curvature(margin)
                        n_rows += 1
                n_local = compact_rows(
                    indptr, indices, data, rows[:n_rows], position,
                    local_indptr, local_indices, local_data, touched,
                )  # fmt: skip
            else:
                n_rows = n
                n_local = d
                for row in range(n):
                    if sign[row] == 0:
                        margin = -S[row, k]
                        scale = minus[k] * weight[row]
                        derivatives[0, row] = -scale * slope(margin)
                    else:
                        margin = S[row, k]
                        scale = plus[k] * weight[row]
                        derivatives[0, row] = scale * slope(margin)
                    derivatives[1, row] = scale * curvature(margin)
            for t in range(y_start, y_stop):
                sign[np.uint32(y_rows[t])] = 0

            # 2. Gradient and diagonal of the Hessian by local coordinate.
            m = n_local + 2
            gradient = local_derivatives[0, :m]
            diagonal = local_derivatives[1, :m]
            for j in range(m):
                gradient[j] = 0.0
                diagonal[j] = 1.0
            diagonal[n_local] = ridge
            if fill[k]:
                add_gradient(
                    local_indptr, local_indices, local_data,
                    derivatives[0, :n_rows], derivatives[1, :n_rows], gradient, diagonal,
                )  # fmt: skip
            else:
                add_gradient(
                    indptr, indices, data, derivatives[0, :n], derivatives[1, :n],
                    gradient, diagonal,
                )  # fmt: skip
            gradient[n_local] *= intercept
            diagonal[n_local] = intercept * (diagonal[n_local] - ridge) + ridge
            local2 = 0.0
            for j in range(n_local):
                w = np.float64(W[touched[j], k]) if fill[k] else np.float64(W[j, k])
                gradient[j] += w
                local2 += w * w
            gradient[n_local] += ridge * W[d, k]
            damping = ridge
            if ridge == 0.0:
                damping = intercept * DAMPING * abs(gradient[n_local])
                diagonal[n_local] += damping
            untouched = 0.0
            if fill[k]:
                untouched = np.sqrt(max(norm2[k] - local2, 0.0))
            gradient[n_local + 1] = untouched
            gradient2 = 0.0
            for j in range(m):
                gradient2 += gradient[j] * gradient[j]
            out[0, k] = np.sqrt(gradient2)

            # 3. Conjugate gradients, and the step back into its column.
            if out[0, k] > threshold[k]:
                if fill[k]:
                    out[4, k] = conjugate_gradients(
                        local_indptr, local_indices, local_data, derivatives[1, :n_rows],
                        intercept, damping, gradient, diagonal, cg, work,
                    )  # fmt: skip
                else:
                    out[4, k] = conjugate_gradients(
                        indptr, indices, data, derivatives[1, :n],
                        intercept, damping, gradient, diagonal, cg, work,
                    )  # fmt: skip
                step = work[0]
                for j in range(m):
                    out[1, k] += gradient[j] * np.float64(step[j])
                for j in range(n_local):
                    f = touched[j] if fill[k] else j
                    w = np.float64(W[f, k])
                    s = np.float64(step[j])
                    out[2, k] += w * s
                    out[3, k] += s * s
                    P[f, k] = step[j]
                s = np.float64(step[n_local])
                out[2, k] += ridge * W[d, k] * s
                out[3, k] += ridge * s * s
                P[d, k] = intercept * step[n_local]
                if untouched > 0.0:
                    s = np.float64(step[n_local + 1])
                    out[2, k] += untouched * s
                    out[3, k] += s * s
                    carried[k] = s / untouched
                    # Mark the touched coordinates so that the sweep below skips them.
                    for j in range(n_local):
                        P[touched[j], k] -= carried[k] * W[touched[j], k]
            if fill[k]:
                for j in range(n_local):
                    position[touched[j]] = -1

        # 4. The untouched coordinates move along w.
        for j in range(d):
            weights = W[j]
            steps = P[j]
            for k in range(n_lanes):
                steps[k] += carried[k] * weights[k]

    @kernel
    def certify(
        indptr, indices, data, y_indptr, y_rows, labels, weight, V, plus, minus, intercept, ridge,
        scores, gradient, out,
    ):  # fmt: skip
        """Evaluate finished labels in float64, before and after pruning.

        Parameters
        ----------
        indptr, indices, data, y_indptr, y_rows, labels, weight, plus, minus, intercept, ridge
            As above; one entry of `labels`, `plus` and `minus` for each finished label.
        V : ndarray of float64 of shape (d + 1, 2 n_labels)
            Weights before pruning, then the same after pruning.
        scores : ndarray of float64 of shape (CHUNK, 2 n_labels)
            Work space.
        gradient : ndarray of float64 of shape (d + 1, n_labels)
            Overwritten by the gradient before pruning.
        out : ndarray of float64 of shape (3, n_labels)
            Overwritten: objective, gradient norm, objective after pruning.
        """
        n = indptr.shape[0] - 1
        d = V.shape[0] - 1
        n_labels = labels.shape[0]
        losses = np.zeros((2, n_labels))
        norms2 = np.zeros((2, n_labels))
        gradient2 = np.zeros(n_labels)
        next_positive = np.empty(n_labels, np.int64)
        sign = np.empty((CHUNK, n_labels))
        cost = np.empty((CHUNK, n_labels))
        for k in range(n_labels):
            next_positive[k] = y_indptr[labels[k]]
        for j in range(d + 1):
            for k in range(n_labels):
                gradient[j, k] = 0.0

        # 1. Losses and their gradient. Positives are marked, not corrected afterwards: what is left
        # of two large sums would not be exact.
        for first in range(0, n, CHUNK):
            last = min(first + CHUNK, n)
            multiply_rows(indptr, indices, data, V, first, last, scores)
            for r in range(last - first):
                w = np.float64(weight[first + r])
                for k in range(n_labels):
                    sign[r, k] = -1.0
                    cost[r, k] = w * minus[k]
            for k in range(n_labels):
                stop_positive = y_indptr[labels[k] + 1]
                while next_positive[k] < stop_positive and y_rows[next_positive[k]] < last:
                    r = y_rows[next_positive[k]] - first
                    sign[r, k] = 1.0
                    cost[r, k] = weight[first + r] * plus[k]
                    next_positive[k] += 1
            for i in range(first, last):
                r = i - first
                for k in range(n_labels):
                    losses[0, k] += cost[r, k] * value(sign[r, k] * scores[r, k])
                    losses[1, k] += cost[r, k] * value(sign[r, k] * scores[r, n_labels + k])
                for k in range(n_labels):
                    margin = sign[r, k] * scores[r, k]
                    if is_active(margin):
                        s = sign[r, k] * cost[r, k] * slope(margin)
                        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                            gradient[np.uint32(indices[t]), k] += s * data[t]
                        gradient[d, k] += s

        # 2. The ridge.
        for j in range(d):
            for k in range(n_labels):
                g = gradient[j, k] + V[j, k]
                gradient2[k] += g * g
                norms2[0, k] += V[j, k] * V[j, k]
                norms2[1, k] += V[j, n_labels + k] * V[j, n_labels + k]
        for k in range(n_labels):
            bias2 = ridge * V[d, k] * V[d, k]
            g = intercept * (gradient[d, k] + ridge * V[d, k])
            out[0, k] = 0.5 * (norms2[0, k] + bias2) + losses[0, k]
            out[1, k] = np.sqrt(gradient2[k] + g * g)
            out[2, k] = 0.5 * (norms2[1, k] + bias2) + losses[1, k]

    return SimpleNamespace(
        try_full_step=try_full_step,
        try_step=try_step,
        correct_positives=correct_positives,
        accept_step=accept_step,
        newton_directions=newton_directions,
        certify=certify,
    )

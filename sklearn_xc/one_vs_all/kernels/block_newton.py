"""Newton steps for the labels of a block, compiled once for each loss and kind of rows.

Each label has a lane with two points: where it stands, and the trial point of its next step. One
iteration of the solver screens all rows for all trial points (``screen``), which gives each lane
the few rows that may have a loss there, and calls ``advance``, which takes each lane

    1. to the exact loss at the trial point, in float64;
    2. there, or by a line search to a point between;
    3. to the gradient, and the Newton direction from the rows with a loss;
    4. to the next trial point.

Scores are linear along a step. A row without a loss at both of its ends has none between, so that
the line search needs the active rows of the two ends and nothing else. As scores and gradient are
computed anew in float64 from the weights as they stand, the gradient norm that stops a label is its
certificate. A lane's arithmetic never depends on the other lanes.
"""

import functools
import math
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._input.kernels import csr_rows
from sklearn_xc._input.kernels.csr_rows import ROWS_AHEAD
from sklearn_xc.one_vs_all.kernels.lanes import NEWTON, PRUNED, Rows
from sklearn_xc.one_vs_all.kernels.newton_direction import direction_functions

#: Line search: halve the step until it gives this share of the decrease that the slope promises.
SUFFICIENT_DECREASE = 0.01
MAX_HALVINGS = 20
#: A trial point that may activate more than so many times the rows active before, and more than
#: this share of all (both by weight), is halved unseen, at most so often: on the way out of a start
#: with few active rows whole steps lead to where every row is active, and another screen costs less
#: than a look at all of them.
ACTIVE_FACTOR = 8
ACTIVE_SHARE = 0.02
MAX_UNSEEN = 4
#: Most instances are negatives, far from the kink at a good start, and a Newton step that sees only
#: the few active ones takes them all across it. A sample of the rows tells before any screen: a
#: step may take their mean score this share of the way to the kink, and this share of them (by
#: weight) across it, or ACTIVE_FACTOR times all rows active before; else it is shortened by this
#: factor repeatedly, but not below the least share: the minimum may lie across the kink.
APPROACH = 0.7
SAMPLE_SHARE = 0.01
SHORTER, LEAST_SHARE = 0.7, 0.06
#: Curvature that a free intercept gets, as a share of its own gradient: where all instances are far
#: out the loss has none, and the Newton step would be longer than any line search can repair.
DAMPING = 1e-3
#: A difference of squared norms that is a smaller share of them has lost too many digits.
_CANCELLED = 1e-8
#: Rounding of an objective, as a share of it: a rise within it is none.
ROUNDING = 16 * np.finfo(np.float64).eps
#: A label is left once so many of its steps no longer lowered the objective: they are rounding.
MAX_FLAT = 5
#: Powers of two up to here have an inverse in float64.
LARGEST_EXPONENT = 1000


@inlined
def merge_rows(a, b, out):
    """Write the union of two rising lists of rows and return its length; `out` may not be `b`."""
    i = 0
    j = 0
    n = 0
    while i < a.shape[0] or j < b.shape[0]:
        if j >= b.shape[0] or (i < a.shape[0] and a[i] < b[j]):
            out[n] = a[i]
            i += 1
        else:
            if i < a.shape[0] and a[i] == b[j]:
                i += 1
            out[n] = b[j]
            j += 1
        n += 1
    return n


@inlined
def mark_positives(rows, positives, sign):
    """Write 1 for the rows among `positives` and -1 for the others; both lists rise."""
    j = 0
    for r in range(rows.shape[0]):
        while j < positives.shape[0] and positives[j] < rows[r]:
            j += 1
        sign[r] = 1.0 if j < positives.shape[0] and positives[j] == rows[r] else -1.0


@inlined
def point_of(lanes, k, which):
    """Return one of the two points of a lane."""
    first = lanes.first[k] + which * lanes.width[k]
    return lanes.points[first : first + lanes.width[k]]


@inlined
def squared_norm(point):
    """Return the squared norm of a point without its intercept."""
    weights = point[: point.shape[0] - 1]
    return inner_product(weights, weights)


@inlined
def inverse_power_of_two(norm):
    """Return a power of two that times `norm` is in [0.5, 1)."""
    exponent = math.frexp(norm)[1]
    return math.ldexp(1.0, -min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT))


@kernel
def prune_point(point, prune, out):
    """Copy a point without its weights below `prune`; return the squared norm of the copy."""
    d = point.shape[0] - 1
    for j in range(d):
        out[j] = point[j] if abs(point[j]) >= prune else 0
    out[d] = point[d]
    return squared_norm(out)


@kernel
def list_weights(point, indices, values):
    """Write the weights of a point that are not zero, and their features; return their number."""
    n = np.uint32(0)
    for j in range(point.shape[0] - 1):
        indices[n] = j
        values[n] = point[j]
        n += np.uint32(point[j] != 0)
    return np.int64(n)


@kernel
def measure_start(point):
    """Return the squared norm of a start vector without its intercept."""
    return squared_norm(point)


@inlined
def is_done(lanes, k, max_iter):
    """Tell whether a lane is to leave its working set as it is, and count the step."""
    if lanes.purpose[k] == PRUNED:
        return True
    if lanes.step_length[k] < 0:
        return False
    lanes.n_iter[k] += 1
    return (
        lanes.gradient_norm[k] <= lanes.threshold[k]
        or lanes.step_length[k] == 0
        or lanes.n_flat[k] > MAX_FLAT
        or lanes.n_iter[k] >= max_iter
        or not lanes.objective[k] < np.inf
    )


@inlined
def sum_weights(data, rows):
    """Return the summed weight of some rows."""
    total = np.float64(0.0)
    for r in range(rows.shape[0]):
        total += np.float64(data.weight[np.uint32(rows[r])])
    return total


@inlined
def weight_at_work(data, lanes, k):
    """Return the weight of the active rows where a lane stands, and of its positives."""
    label = lanes.label[k]
    positives = data.y_rows[data.y_indptr[label] : data.y_indptr[label + 1]]
    active = lanes.active[k, : lanes.n_active[k]]
    return sum_weights(data, active) + sum_weights(data, positives)


@inlined
def activates_many(data, lanes, k, candidates):
    """Tell whether a Newton step's trial point is to be halved unseen."""
    if (
        lanes.purpose[k] != NEWTON
        or lanes.objective[k] == np.inf
        or lanes.n_unseen[k] >= MAX_UNSEEN
    ):
        return False
    before = weight_at_work(data, lanes, k)
    negatives = max(ACTIVE_FACTOR * before, ACTIVE_SHARE * data.total_weight)
    return sum_weights(data, candidates) > negatives


@functools.cache
def _row_functions(loss: Any, rows_of: ModuleType) -> SimpleNamespace:
    """Return scores, losses and derivatives of some rows."""
    value, slope, curvature = loss.value, loss.slope, loss.curvature
    active_below = float(loss.active_below)
    row_dot_double, prefetch_row = rows_of.row_dot_double, rows_of.prefetch_row

    @inlined
    def list_rows(data, point, out, scores):
        """Write all rows' scores; list the rows with a loss as negatives, return their number."""
        bias = np.float64(point[point.shape[0] - 1])
        n = np.uint32(0)
        for i in range(data.weight.shape[0]):
            scores[i] = row_dot_double(data.X, np.uint32(i), point) + bias
            out[n] = i
            n += np.uint32(not scores[i] <= -active_below)
        return np.int64(n)

    @inlined
    def score_rows(X, rows, point, out):
        """Write the scores of some rows at a point."""
        bias = np.float64(point[point.shape[0] - 1])
        for r in range(rows.shape[0]):
            prefetch_row(X, np.uint32(rows[min(r + ROWS_AHEAD, rows.shape[0] - 1)]))
            out[r] = row_dot_double(X, np.uint32(rows[r]), point) + bias

    @inlined
    def sum_losses(data, plus, minus, rows, sign, scores, changes, lam):
        """Return the loss of some rows at ``scores + lam * changes``."""
        total = np.float64(0.0)
        for r in range(rows.shape[0]):
            cost = (plus if sign[r] > 0 else minus) * np.float64(data.weight[np.uint32(rows[r])])
            total += cost * value(sign[r] * (scores[r] + lam * changes[r]))
        return total

    @inlined
    def keep_active(data, plus, minus, rows, sign, scores, slopes, curvatures):
        """Keep the rows with a loss, write its derivatives, return how many there are."""
        n = 0
        for r in range(rows.shape[0]):
            margin = sign[r] * scores[r]
            if margin < active_below:
                i = rows[r]
                cost = (plus if sign[r] > 0 else minus) * np.float64(data.weight[np.uint32(i)])
                slopes[n] = sign[r] * cost * slope(margin)
                curvatures[n] = cost * curvature(margin)
                rows[n] = i
                n += 1
        return n

    return SimpleNamespace(
        list_rows=list_rows, score_rows=score_rows, sum_losses=sum_losses, keep_active=keep_active
    )


@functools.cache
def _line_search(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``search_line``."""
    functions, screened = _row_functions(loss, rows_of), loss.has_kink
    score_rows, sum_losses = functions.score_rows, functions.sum_losses

    @inlined
    def search_line(data, lanes, k, w, v, positives, trial_active, scratch):
        """Move `v` back towards `w`; return the step length, 0 if none helps, and the rows used."""
        rows, sign = scratch.rows, scratch.sign
        scores, changes = scratch.scores, scratch.changes
        if screened:
            n = merge_rows(lanes.active[k, : lanes.n_active[k]], trial_active, rows)
        else:
            n = rows.shape[0]
            for r in range(n):
                rows[r] = r
        mark_positives(rows[:n], positives, sign)
        score_rows(data.X, rows[:n], w, scores)
        score_rows(data.X, rows[:n], v, changes)
        for r in range(n):
            changes[r] -= scores[r]
        d = w.shape[0] - 1
        w_p = np.float64(0.0)
        p_p = np.float64(0.0)
        for j in range(d + 1):
            ridge = data.ridge if j == d else 1.0
            p = np.float64(v[j]) - np.float64(w[j])
            w_p += ridge * np.float64(w[j]) * p
            p_p += ridge * p * p
        norm2 = lanes.norm2[k] + data.ridge * np.float64(w[d]) ** 2
        lam = 1.0
        for _ in range(MAX_HALVINGS):
            lam *= 0.5
            f = 0.5 * (norm2 + lam * (2.0 * w_p + lam * p_p))
            f += sum_losses(
                data, lanes.plus[k], lanes.minus[k], rows[:n], sign, scores, changes, lam
            )
            if f <= lanes.objective[k] + SUFFICIENT_DECREASE * lam * lanes.slope[k]:
                for j in range(d + 1):
                    v[j] = w[j] + lam * (v[j] - w[j])
                return lam, n
        return 0.0, n

    return search_line


@functools.cache
def _trial_step(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``step_to_trial``."""
    functions, screened = _row_functions(loss, rows_of), loss.has_kink
    active_below = float(loss.active_below)
    score_rows, sum_losses = functions.score_rows, functions.sum_losses
    keep_active, search_line = functions.keep_active, _line_search(loss, rows_of)

    @inlined
    def step_to_trial(data, lanes, k, candidates, n_candidates, has_scores, scratch):
        """Take the step, whole or in part; return the number of active rows, -1 if it did not.

        With `has_scores`, ``scratch.changes`` holds the scores of all rows.
        """
        w = point_of(lanes, k, lanes.current[k])
        v = point_of(lanes, k, 1 - lanes.current[k])
        rows, sign, scores = scratch.rows, scratch.sign, scratch.scores
        plus, minus = lanes.plus[k], lanes.minus[k]
        label = lanes.label[k]
        positives = data.y_rows[data.y_indptr[label] : data.y_indptr[label + 1]]
        d = w.shape[0] - 1

        # `candidates` has room for the positives too.
        if screened and activates_many(data, lanes, k, candidates[:n_candidates]):
            for j in range(d + 1):
                v[j] = w[j] + w.dtype.type(0.5) * (v[j] - w[j])
            lanes.trial_norm2[k] = squared_norm(v)
            lanes.slope[k] *= 0.5
            lanes.n_unseen[k] += 1
            lanes.step_length[k] = -1.0
            return -1

        if screened:
            n = merge_rows(candidates[:n_candidates], positives, rows)
        else:
            n = rows.shape[0]
            for r in range(n):
                rows[r] = r
        mark_positives(rows[:n], positives, sign)
        if has_scores:
            for r in range(n):
                scores[r] = scratch.changes[np.uint32(rows[r])]
        else:
            score_rows(data.X, rows[:n], v, scores)
        f = sum_losses(data, plus, minus, rows[:n], sign, scores, scores, 0.0)
        f += 0.5 * (lanes.trial_norm2[k] + data.ridge * np.float64(v[d]) ** 2)
        if lanes.purpose[k] == PRUNED:
            lanes.pruned_objective[k] = f
            return -1

        lanes.step_length[k] = 0.5 ** lanes.n_unseen[k]
        slack = ROUNDING * abs(f)
        if not f <= lanes.objective[k] + SUFFICIENT_DECREASE * lanes.slope[k] + slack:
            m = 0
            if screened:
                for r in range(n):
                    if sign[r] * scores[r] < active_below:
                        candidates[m] = rows[r]
                        m += 1
            lam, n = search_line(data, lanes, k, w, v, positives, candidates[:m], scratch)
            lanes.step_length[k] *= lam
            if lam == 0.0:
                return -1
            score_rows(data.X, rows[:n], v, scores)
            f = sum_losses(data, plus, minus, rows[:n], sign, scores, scores, 0.0)
            lanes.trial_norm2[k] = squared_norm(v)
            f += 0.5 * (lanes.trial_norm2[k] + data.ridge * np.float64(v[d]) ** 2)
        n = keep_active(
            data, plus, minus, rows[:n], sign, scores, scratch.slopes, scratch.curvatures
        )
        if screened:
            for r in range(n):
                lanes.active[k, r] = rows[r]
        lanes.n_active[k] = n
        lanes.n_flat[k] += not f < lanes.objective[k]
        lanes.objective[k] = f
        lanes.norm2[k] = lanes.trial_norm2[k]
        lanes.current[k] = 1 - lanes.current[k]
        lanes.n_unseen[k] = 0
        return n

    return step_to_trial


@functools.cache
def _step_limit(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``hold_back``."""
    score_rows, active_below = _row_functions(loss, rows_of).score_rows, float(loss.active_below)

    @inlined
    def hold_back(data, lanes, k, w, v, scratch):
        """Shorten a step that would take a sample of the rows too near to the kink, or beyond."""
        rows, scores, changes = data.sample, scratch.scores, scratch.changes
        before = weight_at_work(data, lanes, k)
        score_rows(data.X, rows, w, scores)
        score_rows(data.X, rows, v, changes)
        total = np.float64(0.0)
        to_kink = np.float64(0.0)
        rise = np.float64(0.0)
        for r in range(rows.shape[0]):
            cost = np.float64(data.weight[np.uint32(rows[r])])
            changes[r] -= scores[r]
            total += cost
            to_kink += cost * (-active_below - scores[r])
            rise += cost * changes[r]
        share = 1.0
        if 0.0 < APPROACH * to_kink < rise:
            share = max(APPROACH * to_kink / rise, LEAST_SHARE)
        negatives = total * max(ACTIVE_FACTOR * before / data.total_weight, SAMPLE_SHARE)
        while share > LEAST_SHARE:
            above = np.float64(0.0)
            for r in range(rows.shape[0]):
                if not scores[r] + share * changes[r] <= -active_below:
                    above += np.float64(data.weight[np.uint32(rows[r])])
            if above <= negatives:
                break
            share = max(SHORTER * share, LEAST_SHARE)
        if share < 1.0:
            for j in range(v.shape[0]):
                v[j] = w[j] + share * (v[j] - w[j])
            lanes.slope[k] *= share

    return hold_back


@functools.cache
def _direction(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``find_direction``."""
    functions, screened = direction_functions(rows_of), loss.has_kink
    add_gradient, conjugate_gradients = functions.add_gradient, functions.conjugate_gradients
    hold_back = _step_limit(loss, rows_of)

    @inlined
    def find_direction(data, lanes, k, X, rows, n_local, is_copy, cg, scratch):
        """Find the Newton direction over the active rows, and set the next trial point."""
        w = point_of(lanes, k, lanes.current[k])
        v = point_of(lanes, k, 1 - lanes.current[k])
        touched = scratch.touched
        dtype = w.dtype.type
        intercept, ridge = data.intercept, data.ridge
        d = w.shape[0] - 1
        m = n_local + 2
        gradient = scratch.derivatives[0, :m]
        diagonal = scratch.derivatives[1, :m]
        for j in range(m):
            gradient[j] = 0.0
            diagonal[j] = 1.0
        diagonal[n_local] = ridge
        add_gradient(X, rows, scratch.slopes, scratch.curvatures, gradient, diagonal)
        gradient[n_local] *= intercept
        diagonal[n_local] = intercept * (diagonal[n_local] - ridge) + ridge
        untouched = 0.0
        if is_copy:
            local2 = np.float64(0.0)
            for j in range(n_local):
                weight = np.float64(w[np.uint32(touched[j])])
                gradient[j] += weight
                local2 += weight * weight
            untouched2 = lanes.norm2[k] - local2
            if untouched2 < _CANCELLED * lanes.norm2[k]:
                untouched2 = 0.0
                for j in range(d):
                    if scratch.position[j] < 0:
                        untouched2 += np.float64(w[j]) * np.float64(w[j])
            untouched = np.sqrt(untouched2)
        else:
            for j in range(n_local):
                gradient[j] += np.float64(w[j])
        gradient[n_local] += ridge * np.float64(w[d])
        gradient[n_local + 1] = untouched
        norm2 = np.float64(0.0)
        for j in range(m):
            norm2 += gradient[j] * gradient[j]
        lanes.gradient_norm[k] = np.sqrt(norm2)
        certified = np.sqrt(2.0 * data.gap * lanes.objective[k])
        lanes.threshold[k] = min(lanes.threshold[k], certified)
        if lanes.gradient_norm[k] <= lanes.threshold[k]:
            return

        damping = ridge
        if ridge == 0.0:
            damping = intercept * DAMPING * abs(gradient[n_local])
            diagonal[n_local] += damping
        # A power of two changes no digit, and squares of the scaled gradient fit into float32.
        scale = inverse_power_of_two(lanes.gradient_norm[k])
        for j in range(m):
            gradient[j] *= scale
        lanes.n_products[k] += conjugate_gradients(
            X, rows, scratch.curvatures, intercept, damping, gradient, diagonal, cg, scratch.work
        )
        step = scratch.work[0]
        slope = np.float64(0.0)
        for j in range(m):
            slope += gradient[j] * np.float64(step[j])
        length = 1.0 / scale
        lanes.slope[k] = slope * length * length
        if is_copy:
            # The untouched coordinates move along w.
            factor = dtype(1.0)
            if dtype(scale * untouched) > 0.0:
                factor += step[n_local + 1] / dtype(scale * untouched)
            for j in range(d):
                v[j] = factor * w[j]
            for j in range(n_local):
                t = np.uint32(touched[j])
                v[t] = w[t] + dtype(length) * step[j]
        else:
            for j in range(d):
                v[j] = w[j] + dtype(length) * step[j]
        v[d] = w[d] + dtype(intercept * length) * step[n_local]
        if screened and data.sample.shape[0] > 0:
            hold_back(data, lanes, k, w, v, scratch)
        lanes.trial_norm2[k] = squared_norm(v)

    return find_direction


@functools.cache
def block_newton_kernels(loss: Any, rows_of: ModuleType) -> SimpleNamespace:
    """Return ``advance``, compiled for `loss` and `rows_of` on its first call.

    Parameters
    ----------
    loss : CompiledLoss
        See ``sklearn_xc.one_vs_all.losses.margin``.
    rows_of : module
        ``csr_rows`` or ``dense_rows``.
    """
    is_compactable, compact = rows_of.is_compactable, rows_of.compact
    list_rows = _row_functions(loss, rows_of).list_rows
    step_to_trial, find_direction = _trial_step(loss, rows_of), _direction(loss, rows_of)
    rows_of_lane = _working_set_of if rows_of is csr_rows else _all_rows

    @kernel
    def advance(data, sets, lanes, occupied, candidates, n_candidates, cg, scratch):
        """Take each occupied lane to its trial point, and set its next one.

        A lane with a working set goes on until it rests there. That needs sparse rows and a loss
        with a kink.

        Parameters
        ----------
        data : Rows
            The instances.
        sets : WorkingSets
            Of the lanes.
        lanes : Lanes
            Changed in place.
        occupied : ndarray of int64
            The lanes to work on.
        candidates, n_candidates : ndarray of int32 and int64
            For each of `occupied`, the rows that may have a loss at the trial point, in rising
            order (not read where every row has one), and how many they are. Overwritten. For a lane
            with a working set work space: one list with room for its rows.
        cg : tuple
            As for ``conjugate_gradients``.
        scratch : Scratch
            Work space.
        """
        for c in range(occupied.shape[0]):
            k = occupied[c]
            own = rows_of_lane(data, sets, k)
            has_set = sets.n_rows[k] >= 0
            listed = candidates[0 if has_set else c]
            n_listed = n_candidates[c]
            lanes.n_products[k] = 0
            d = lanes.width[k] - 1
            while True:
                if has_set:
                    trial = point_of(lanes, k, 1 - lanes.current[k])
                    n_listed = list_rows(own, trial, listed, scratch.changes)
                n = step_to_trial(own, lanes, k, listed, n_listed, has_set, scratch)
                if n >= 0:
                    X, rows, n_local = own.X, scratch.rows[:n], d
                    is_copy = is_compactable(X, rows, scratch.room)
                    if is_copy:
                        n_local = compact(X, rows, scratch.position, scratch.touched, scratch.local)
                        X, rows = scratch.local, scratch.every_row[:n]
                    find_direction(own, lanes, k, X, rows, n_local, is_copy, cg, scratch)
                    if is_copy:
                        for j in range(n_local):
                            scratch.position[np.uint32(scratch.touched[j])] = -1
                if not has_set or is_done(lanes, k, sets.max_iter):
                    break

    return SimpleNamespace(advance=advance)


@inlined
def _all_rows(data, sets, k):
    return data


@inlined
def _working_set_of(data, sets, k):
    """Return the rows that a lane reads."""
    n = sets.n_rows[k]
    if n < 0:
        return data
    row, entry = sets.first_row[k], sets.first_entry[k]
    indptr = sets.indptr[row + k : row + k + n + 1]
    end = entry + indptr[n]
    X = (indptr, sets.indices[entry:end], sets.data[entry:end])
    return Rows(
        X,
        sets.weight[row : row + n],
        data.total_weight,
        data.sample[:0],
        sets.y_indptr,
        sets.y_rows,
        data.intercept,
        data.ridge,
        sets.gap[k],
    )

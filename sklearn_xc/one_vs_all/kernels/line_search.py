"""Line search of the Newton steps: backtracking until the objective decreases enough.

* ``take_step`` evaluates the trial point at the end of a Newton step. It accepts the point if the
  objective falls by ``SUFFICIENT_DECREASE`` of what the slope promises.
* Otherwise ``line_search`` halves the step until that holds. Scores are linear along a step, so the
  scores at both ends give those between; a row without a loss at both ends has none between, so
  only the rows with a loss at an end are read.
* ``limit_step`` shortens a Newton step before it is evaluated, if a sample of the rows shows that
  it would give a loss to many rows.

Source: section 2 of Schultheis and Babbar (2022), after Galli and Lin (2021). ``limit_step`` and
``activates_many`` are additions.
"""

import functools
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import inner_product
from sklearn_xc._compile.jit import inlined
from sklearn_xc.one_vs_all.kernels.sparse_rows import ROWS_AHEAD

#: Purposes of a trial point: a Newton step, or the pruned solution, whose objective alone is
#: needed.
NEWTON, PRUNED = 0, 1

#: Share of the promised decrease that a step must reach, and the most halvings of a step.
SUFFICIENT_DECREASE = 0.01
MAX_HALVINGS = 20
#: A trial point with losses on more than this many times the rows active before, and on more than
#: this share of all rows (both by weight), is halved without evaluation, up to MAX_HALVED times:
#: another screen costs less than evaluating all of these rows.
ACTIVE_FACTOR = 8
ACTIVE_SHARE = 0.02
MAX_HALVED = 4
#: Limits of a Newton step, measured on a sample of rows: it may raise their mean score by this
#: share of its distance from the kink, and activate this share of them, or ACTIVE_FACTOR times the
#: rows active before. It is shortened by SHORTER until it does, but not below LEAST_SHARE: the
#: minimum may lie beyond the kink.
APPROACH = 0.7
MOST_ACTIVATED = 0.01
SHORTER, LEAST_SHARE = 0.7, 0.06
#: Relative rounding error of an objective.
ROUNDING = 16 * np.finfo(np.float64).eps


@inlined
def merge_rows(a, b, out):
    """Write the union of two ascending lists and return its length; `out` may not be `b`."""
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
    """Write 1 for the rows among `positives` and -1 for the others; both lists ascend."""
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
def positives_of(data, lanes, k):
    """Return the positive rows of a lane's label."""
    label = lanes.label[k]
    return data.y_rows[data.y_indptr[label] : data.y_indptr[label + 1]]


@inlined
def squared_norm(point):
    """Return the squared norm of a point without its intercept."""
    weights = point[: point.shape[0] - 1]
    return inner_product(weights, weights)


@inlined
def sum_weights(data, rows):
    """Return the summed weight of some rows."""
    total = np.float64(0.0)
    for r in range(rows.shape[0]):
        total += np.float64(data.weight[np.uint32(rows[r])])
    return total


@inlined
def active_weight(data, lanes, k):
    """Return the weight of the active rows of a lane, plus that of its positives."""
    active = lanes.active[k, : lanes.n_active[k]]
    return sum_weights(data, active) + sum_weights(data, positives_of(data, lanes, k))


@inlined
def activates_many(data, lanes, k, candidates):
    """Tell whether a Newton step is to be halved without evaluation."""
    if (
        lanes.purpose[k] != NEWTON
        or lanes.objective[k] == np.inf
        or lanes.n_halved[k] >= MAX_HALVED
    ):
        return False
    before = active_weight(data, lanes, k)
    negatives = max(ACTIVE_FACTOR * before, ACTIVE_SHARE * data.total_weight)
    return sum_weights(data, candidates) > negatives


@inlined
def halve_step(lanes, k, w, v):
    """Halve a step that is not evaluated; the next call of ``advance`` tries the shorter one."""
    for j in range(v.shape[0]):
        v[j] = w[j] + w.dtype.type(0.5) * (v[j] - w[j])
    lanes.trial_norm2[k] = squared_norm(v)
    lanes.slope[k] *= 0.5
    lanes.n_halved[k] += 1
    lanes.step_length[k] = -1.0


@functools.cache
def row_functions(loss: Any, rows_of: ModuleType) -> SimpleNamespace:
    """Return functions of the scores, losses and derivatives of some rows."""
    value, slope, curvature = loss.value, loss.slope, loss.curvature
    active_below = float(loss.active_below)
    row_dot_double, prefetch_row = rows_of.row_dot_double, rows_of.prefetch_row

    @inlined
    def list_active(data, point, out, scores):
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
    def sum_losses(data, lanes, k, rows, sign, scores, changes, lam):
        """Return the loss of some rows at ``scores + lam * changes``."""
        plus, minus = lanes.plus[k], lanes.minus[k]
        total = np.float64(0.0)
        for r in range(rows.shape[0]):
            cost = (plus if sign[r] > 0 else minus) * np.float64(data.weight[np.uint32(rows[r])])
            total += cost * value(sign[r] * (scores[r] + lam * changes[r]))
        return total

    @inlined
    def keep_active(data, lanes, k, rows, scratch):
        """Keep the rows with a loss, write its derivatives, return how many there are."""
        plus, minus = lanes.plus[k], lanes.minus[k]
        sign, scores = scratch.sign, scratch.scores
        n = 0
        for r in range(rows.shape[0]):
            margin = sign[r] * scores[r]
            if margin < active_below:
                i = rows[r]
                cost = (plus if sign[r] > 0 else minus) * np.float64(data.weight[np.uint32(i)])
                scratch.slopes[n] = sign[r] * cost * slope(margin)
                scratch.curvatures[n] = cost * curvature(margin)
                rows[n] = i
                n += 1
        return n

    return SimpleNamespace(
        list_active=list_active,
        score_rows=score_rows,
        sum_losses=sum_losses,
        keep_active=keep_active,
    )


@functools.cache
def _list_function(has_kink: bool) -> Any:
    """Compile the list of the rows that an objective reads."""

    @inlined
    def list_rows(data, lanes, k, some, others, scratch):
        """List the union of two ascending lists, or all rows without a kink; mark the positives."""
        rows = scratch.rows
        if has_kink:
            n = merge_rows(some, others, rows)
        else:
            n = rows.shape[0]
            for r in range(n):
                rows[r] = r
        mark_positives(rows[:n], positives_of(data, lanes, k), scratch.sign)
        return n

    return list_rows


@functools.cache
def _line_search(loss: Any, rows_of: ModuleType) -> Any:
    """Compile the line search for a loss and a layout of rows."""
    functions = row_functions(loss, rows_of)
    score_rows, sum_losses = functions.score_rows, functions.sum_losses
    list_rows = _list_function(loss.has_kink)

    @inlined
    def line_search(data, lanes, k, w, v, trial_active, scratch):
        """Move `v` back towards `w`; return the step length, 0 if none helps, and the rows read."""
        rows, sign = scratch.rows, scratch.sign
        scores, changes = scratch.scores, scratch.changes
        active = lanes.active[k, : lanes.n_active[k]]
        n = list_rows(data, lanes, k, active, trial_active, scratch)
        score_rows(data.X, rows[:n], w, scores)
        score_rows(data.X, rows[:n], v, changes)
        for r in range(n):
            changes[r] -= scores[r]
        d = w.shape[0] - 1
        w_p = np.float64(0.0)
        p_p = np.float64(0.0)
        for j in range(d + 1):
            p = np.float64(v[j]) - np.float64(w[j])
            w_p += np.float64(w[j]) * p
            p_p += p * p
        norm2 = lanes.norm2[k] + np.float64(w[d]) ** 2
        lam = 1.0
        for _ in range(MAX_HALVINGS):
            lam *= 0.5
            f = 0.5 * (norm2 + lam * (2.0 * w_p + lam * p_p))
            f += sum_losses(data, lanes, k, rows[:n], sign, scores, changes, lam)
            if f <= lanes.objective[k] + SUFFICIENT_DECREASE * lam * lanes.slope[k]:
                for j in range(d + 1):
                    v[j] = w[j] + lam * (v[j] - w[j])
                return lam, n
        return 0.0, n

    return line_search


@functools.cache
def _trial_functions(loss: Any, rows_of: ModuleType) -> tuple[Any, ...]:
    """Return ``objective``, ``keep_active_candidates`` and ``accept``."""
    functions = row_functions(loss, rows_of)
    has_kink = loss.has_kink
    active_below = float(loss.active_below)
    sum_losses, keep_active = functions.sum_losses, functions.keep_active

    @inlined
    def objective(data, lanes, k, v, n, scratch):
        """Return the objective at the trial point, from the scores of n rows."""
        rows, sign, scores = scratch.rows, scratch.sign, scratch.scores
        f = sum_losses(data, lanes, k, rows[:n], sign, scores, scores, 0.0)
        return f + 0.5 * (lanes.trial_norm2[k] + np.float64(v[v.shape[0] - 1]) ** 2)

    @inlined
    def keep_active_candidates(candidates, n, scratch):
        """Overwrite the candidates with the n rows that have a loss; return how many do."""
        m = 0
        if has_kink:
            for r in range(n):
                if scratch.sign[r] * scratch.scores[r] < active_below:
                    candidates[m] = scratch.rows[r]
                    m += 1
        return m

    @inlined
    def accept(data, lanes, k, n, f, scratch):
        """Make the trial point the current one; return the number of active rows."""
        n = keep_active(data, lanes, k, scratch.rows[:n], scratch)
        if has_kink:
            for r in range(n):
                lanes.active[k, r] = scratch.rows[r]
        lanes.n_active[k] = n
        lanes.n_flat[k] += not f < lanes.objective[k]
        lanes.objective[k] = f
        lanes.norm2[k] = lanes.trial_norm2[k]
        lanes.current[k] = 1 - lanes.current[k]
        lanes.n_halved[k] = 0
        return n

    return objective, keep_active_candidates, accept


@functools.cache
def step_function(loss: Any, rows_of: ModuleType) -> Any:
    """Compile the step from a trial point for a loss and a layout of rows."""
    score_rows, has_kink = row_functions(loss, rows_of).score_rows, loss.has_kink
    objective, keep_active_candidates, accept = _trial_functions(loss, rows_of)
    list_rows = _list_function(has_kink)
    line_search = _line_search(loss, rows_of)

    @inlined
    def take_step(data, lanes, k, candidates, n_candidates, has_scores, scratch):
        """Take the step, whole or in part; return the number of active rows, -1 if it did not.

        With `has_scores`, ``scratch.changes`` holds the scores of all rows. `candidates` has room
        for the positives, too.
        """
        w = point_of(lanes, k, lanes.current[k])
        v = point_of(lanes, k, 1 - lanes.current[k])
        if has_kink and activates_many(data, lanes, k, candidates[:n_candidates]):
            halve_step(lanes, k, w, v)
            return -1
        rows, scores = scratch.rows, scratch.scores
        positives = positives_of(data, lanes, k)
        n = list_rows(data, lanes, k, candidates[:n_candidates], positives, scratch)
        if has_scores:
            for r in range(n):
                scores[r] = scratch.changes[np.uint32(rows[r])]
        else:
            score_rows(data.X, rows[:n], v, scores)
        f = objective(data, lanes, k, v, n, scratch)
        if lanes.purpose[k] == PRUNED:
            lanes.pruned_objective[k] = f
            return -1
        lanes.step_length[k] = 0.5 ** lanes.n_halved[k]
        slack = ROUNDING * abs(f)
        if not f <= lanes.objective[k] + SUFFICIENT_DECREASE * lanes.slope[k] + slack:
            m = keep_active_candidates(candidates, n, scratch)
            lam, n = line_search(data, lanes, k, w, v, candidates[:m], scratch)
            lanes.step_length[k] *= lam
            if lam == 0.0:
                return -1
            score_rows(data.X, rows[:n], v, scores)
            lanes.trial_norm2[k] = squared_norm(v)
            f = objective(data, lanes, k, v, n, scratch)
        return accept(data, lanes, k, n, f, scratch)

    return take_step


@functools.cache
def step_limit(loss: Any, rows_of: ModuleType) -> Any:
    """Compile the limit on steps that cross the kink for a loss and a layout of rows."""
    score_rows = row_functions(loss, rows_of).score_rows
    active_below = float(loss.active_below)

    @inlined
    def limit_step(data, lanes, k, w, v, scratch):
        """Shorten a step that takes a sample of the rows too near to the kink, or beyond."""
        rows, scores, changes = data.sample, scratch.scores, scratch.changes
        before = active_weight(data, lanes, k)
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
        negatives = total * max(ACTIVE_FACTOR * before / data.total_weight, MOST_ACTIVATED)
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

    return limit_step

"""Newton-CG steps for the labels of a block, compiled once for each loss and kind of rows.

A label of the block has a lane: its current point, and the trial point of its next step. One
iteration of the solver screens all rows for all trial points (``screen``), which gives each lane
the few rows that may have a loss there, and calls ``advance``, which for each lane

1. evaluates the objective at the trial point in float64, and takes the step or a part of it
   (``line_search.take_step``);
2. computes gradient and certificate in float64, and the Newton direction, from the rows with a loss
   (``newton_direction.find_direction``);
3. sets the next trial point.

The arithmetic of a lane never depends on the other lanes.
"""

import functools
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc.one_vs_all.kernels import sparse_rows
from sklearn_xc.one_vs_all.kernels.line_search import (
    PRUNED,
    point_of,
    row_functions,
    squared_norm,
    step_function,
)
from sklearn_xc.one_vs_all.kernels.newton_direction import direction_function

#: A label ends after more steps than this that did not lower the objective.
MAX_FLAT = 5
#: Fields of ``Lanes`` that are integers.
_INTEGERS = {"purpose", "current", "n_halved", "n_flat", "n_active", "n_iter", "n_products"}


class Rows(NamedTuple):
    """The instances and which of them are positives.

    Attributes
    ----------
    X : tuple of ndarray
        As ``sparse_rows`` or ``dense_rows`` reads them.
    weight : ndarray of shape (n,)
    total_weight : float
        Its sum.
    sample : ndarray of int32
        A sample of the instances, for ``limit_step``; may be empty.
    y_indptr, y_rows : ndarray of int64 and int32
        Positive rows of each label.
    intercept : float
        1 or 0: whether there is an intercept.
    gap : float
        Relative suboptimality to certify; inf for no certificate.
    """

    X: Any
    weight: np.ndarray
    total_weight: float
    sample: np.ndarray
    y_indptr: np.ndarray
    y_rows: np.ndarray
    intercept: float
    gap: float


class Lanes(NamedTuple):
    """State of each lane; arrays of length n_lanes unless a shape is given.

    Attributes
    ----------
    label : ndarray of int64
    plus, minus : ndarray of float64
        Weight of the loss of a positive and of a negative.
    points : ndarray of shape (n,)
        The current and the trial point of each lane, one after the other, intercepts last.
    first, width : ndarray of int64
        Position in `points` of a lane's two points, and the length of each.
    current : ndarray of int64
        0 or 1: which of the two is the current point.
    purpose : ndarray of int64
        ``NEWTON``, or ``PRUNED`` for the pruned solution, whose objective alone is needed.
    objective, norm2 : ndarray of float64
        At the current point, inf before the first; squared norm without the intercept.
    trial_norm2 : ndarray of float64
        Squared norm of the trial point, without the intercept.
    slope : ndarray of float64
        Derivative of the objective towards the trial point.
    n_halved : ndarray of int64
        Number of halvings of the trial step without evaluation.
    n_flat : ndarray of int64
        Number of steps that lowered the objective by no more than rounding.
    active : ndarray of int32 of shape (n_lanes, capacity)
        Rows with a loss at the current point; empty for losses that are never zero.
    n_active : ndarray of int64
    step_length : ndarray of float64
        Length of the last step; 0 if none helped, -1 if it was halved without evaluation.
    gradient_norm : ndarray of float64
    threshold : ndarray of float64
        Gradient tolerance; lowered to what ``Rows.gap`` requires.
    n_iter, n_products : ndarray of int64
        Steps on a working set, -1 before its start is evaluated; Hessian products of the last call
        of ``advance``.
    pruned_objective : ndarray of float64
    """

    label: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    points: np.ndarray
    first: np.ndarray
    width: np.ndarray
    current: np.ndarray
    purpose: np.ndarray
    objective: np.ndarray
    norm2: np.ndarray
    trial_norm2: np.ndarray
    slope: np.ndarray
    n_halved: np.ndarray
    n_flat: np.ndarray
    active: np.ndarray
    n_active: np.ndarray
    step_length: np.ndarray
    gradient_norm: np.ndarray
    threshold: np.ndarray
    n_iter: np.ndarray
    n_products: np.ndarray
    pruned_objective: np.ndarray

    def iterate(self, k: int) -> np.ndarray:
        """Return the current point of a lane."""
        return self._point(k, int(self.current[k]))

    def trial(self, k: int) -> np.ndarray:
        """Return the trial point of a lane."""
        return self._point(k, 1 - int(self.current[k]))

    def _point(self, k: int, which: int) -> np.ndarray:
        first = self.first[k] + which * self.width[k]
        return self.points[first : first + self.width[k]]


def make_lanes(label: np.ndarray, capacity: int, **given: np.ndarray) -> Lanes:
    """Return lanes with room for `capacity` active rows; fields that are not given are 0."""
    m = len(label)
    fields = {
        name: np.zeros(m, np.int64 if name in _INTEGERS else np.float64) for name in Lanes._fields
    }
    active = np.empty((m, capacity), np.int32)
    return Lanes(**fields | {"label": label, "active": active} | given)


class WorkingSets(NamedTuple):
    """Copies of some rows for each lane, with features numbered from 0.

    Attributes
    ----------
    n_rows : ndarray of int64 of shape (n_lanes,)
        Number of rows; -1 for a lane that reads all of X.
    first_row, first_entry : ndarray of int64 of shape (n_lanes,)
        Position of a lane's rows and of their non-zeros in the arrays below.
    indptr : ndarray of int64 of shape (n_rows + n_lanes,)
        Row pointers of each lane, from 0.
    indices, data : ndarray of int32 and float
    weight : ndarray
        Weight of each row.
    y_indptr, y_rows : ndarray of int64 and int32
        Positives of each lane, as row numbers within the lane, where they come first.
    gap : ndarray of float64 of shape (n_lanes,)
        Replaces ``Rows.gap``.
    max_iter : int
        Maximum number of Newton steps.
    """

    n_rows: np.ndarray
    first_row: np.ndarray
    first_entry: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    weight: np.ndarray
    y_indptr: np.ndarray
    y_rows: np.ndarray
    gap: np.ndarray
    max_iter: int


class Scratch(NamedTuple):
    """Work space for one lane at a time.

    Attributes
    ----------
    rows, sign, scores, changes, slopes, curvatures : ndarray of shape (n,)
        Row numbers (int32), 1 or -1 for positives and negatives, scores, their change along a
        step, and derivatives of the loss by the score (float64).
    every_row : ndarray of int32 of shape (n,)
        0, 1, 2, ...
    position, touched : ndarray of int32 of shape (d,) and (d + 1,)
        `position` is -1 everywhere between calls.
    local : tuple of ndarray
        Room for a compact copy of rows.
    room : int
        Its capacity in non-zeros.
    derivatives : ndarray of float64 of shape (2, d + 2)
    work : ndarray of shape (6, d + 2)
        Of the dtype of X.
    """

    rows: np.ndarray
    sign: np.ndarray
    scores: np.ndarray
    changes: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray
    every_row: np.ndarray
    position: np.ndarray
    touched: np.ndarray
    local: Any
    room: int
    derivatives: np.ndarray
    work: np.ndarray


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
    """Write the non-zero weights of a point and their features; return their number."""
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
    """Count the step; tell whether a lane is solved on its working set, or to be left."""
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


@functools.cache
def block_newton_kernel(loss: Any, rows_of: ModuleType) -> Any:
    """Return ``advance``, compiled on its first call.

    Parameters
    ----------
    loss : CompiledLoss
        See ``sklearn_xc.one_vs_all.losses.margin``.
    rows_of : module
        ``sparse_rows`` or ``dense_rows``.
    """
    is_compactable, compact = rows_of.is_compactable, rows_of.compact
    list_active = row_functions(loss, rows_of).list_active
    take_step = step_function(loss, rows_of)
    find_direction = direction_function(loss, rows_of)
    rows_of_lane = _working_set_of if rows_of is sparse_rows else _all_rows

    @kernel
    def advance(data, sets, lanes, occupied, candidates, n_candidates, cg, scratch):
        """Take each occupied lane to its trial point, and set its next one.

        A lane with a working set takes all of its Newton steps in one call. That needs sparse rows
        and a loss with a kink.

        Parameters
        ----------
        data : Rows
            The instances.
        sets : WorkingSets
            Of the lanes.
        lanes : Lanes
            Changed in place.
        occupied : ndarray of int64
            Numbers of the lanes.
        candidates, n_candidates : ndarray of int32 and int64
            For each of `occupied`, the rows that may have a loss at the trial point, ascending (not
            read where every row has one), and their number. Overwritten. For lanes with working
            sets, one list as work space.
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
                    n_listed = list_active(own, trial, listed, scratch.changes)
                n = take_step(own, lanes, k, listed, n_listed, has_set, scratch)
                if n >= 0:
                    X = own.X
                    rows = scratch.rows[:n]
                    n_local = d
                    is_copy = is_compactable(X, rows, scratch.room)
                    if is_copy:
                        n_local = compact(X, rows, scratch.position, scratch.touched, scratch.local)
                        X = scratch.local
                        rows = scratch.every_row[:n]
                    find_direction(own, lanes, k, X, rows, n_local, is_copy, cg, scratch)
                    if is_copy:
                        for j in range(n_local):
                            scratch.position[np.uint32(scratch.touched[j])] = -1
                if not has_set or is_done(lanes, k, sets.max_iter):
                    break

    return advance


@inlined
def _all_rows(data, sets, k):
    return data


@inlined
def _working_set_of(data, sets, k):
    """Return the rows of a lane: those of its working set, if it has one."""
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
        sets.gap[k],
    )


@functools.cache
def row_sums_kernel(rows_of: ModuleType) -> Any:
    """Return ``add_rows`` for one kind of rows: ``sparse_rows`` or ``dense_rows``."""
    add_row = rows_of.add_row

    @kernel
    def add_rows(X, rows, weight, out):
        """Add the weighted sum of some rows, and of a constant feature behind them, to `out`.

        Parameters
        ----------
        X : tuple of ndarray
            Rows of length d, as `rows_of` reads them.
        rows : ndarray of int32
            Which of them.
        weight : ndarray of shape (n,)
            Weight of each row of X.
        out : ndarray of float64 of shape (d + 1,)
            Added to.
        """
        d = out.shape[0] - 1
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            w = np.float64(weight[i])
            add_row(X, i, w, out[:d])
            out[d] += w

    return add_rows


@functools.cache
def square_sums_kernel(rows_of: ModuleType) -> Any:
    """Return ``add_squares`` for one kind of rows: ``sparse_rows`` or ``dense_rows``."""
    add_row_and_squares = rows_of.add_row_and_squares

    @kernel
    def add_squares(X, weight, sums, squares):
        """Add the weighted sum of all rows, and of their squares, to `sums` and `squares`.

        Parameters
        ----------
        X : tuple of ndarray
            Rows of length d, as `rows_of` reads them.
        weight : ndarray of shape (n,)
            Weight of each row.
        sums, squares : ndarray of float64 of shape (d,)
            Added to.
        """
        for i in range(np.uint32(weight.shape[0])):
            w = np.float64(weight[i])
            add_row_and_squares(X, i, w, w, sums, squares)

    return add_squares


@kernel
def norm_of_difference(alpha, a, beta, b):
    """Return the norm of ``alpha * a - beta * b``."""
    total = np.float64(0.0)
    for j in range(a.shape[0]):
        x = alpha * a[j] - beta * b[j]
        total += x * x
    return np.sqrt(total)

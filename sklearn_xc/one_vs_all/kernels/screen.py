"""Which rows may have a loss at any of a block's trial points: one pass over X for all lanes.

The trial points are rounded to int16, one step size per lane, and stand side by side: a row-major
block of shape (d, 64). The rows of X are rounded to int16 too, once. Sums of their products are
exact in int32, and rounding has moved the score of row i by at most ``reach[i]`` steps of the two.
The sums begin there, so that no row above the kink is missed; exact scores are computed afterwards
for the few rows that pass.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc._compile.emitters.int16_lanes import lowest_bit, row_screen
from sklearn_xc._compile.jit import inlined, kernel

#: Numbers of lanes that a screen is compiled for.
WIDTHS = (16, 32, 64)
#: The norm after rounding, at most: so chosen that a row, whose norm may exceed its power of two by
#: SPARE, fits into int16, and by Cauchy and Schwarz no sum leaves int32.
LEVELS = 32735
SPARE = 1.0 + 2.0**-10
#: A number is rounded by half a step, and a little more where the steps are counted in float32.
_HALF = 0.505
#: Points shorter than so many steps of this size are rounded with it: its inverse is still finite.
LEAST_STEP = 1e-30
#: The square of a norm below which a row counts as one of zeros: such squares are short of digits.
_LEAST_NORM2 = 1e-280
#: Exponent of a row whose norm is not finite: in its steps, every limit is 0.
_ENDLESS = 2000
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
#: ``round_points`` rounds so many numbers of each point before it writes them across.
_TILE = 256
#: Between the tiles of two points, so that one number of each is never in the same cache set.
_GAP = 32
_ONE = np.uint64(1)


@kernel
def round_rows(indptr, data, values, exponents, reach):
    """Round rows to int16, each in steps of a power of two.

    Parameters
    ----------
    indptr, data : ndarray of int64 and float
        CSR rows.
    values : ndarray of int16 of shape (n_nonzeros,)
        Overwritten with ``data * LEVELS / 2**exponent``.
    exponents : ndarray of int16 of shape (n,)
        Overwritten: of the least power of two that is, SPARE aside, as long as the row.
    reach : ndarray of int32 of shape (n,)
        Overwritten with how many steps rounding, of row and point, can move a score. A row whose
        norm is not finite gets a number beyond all others, by which it passes every limit but that
        of an empty lane.
    """
    for i in range(reach.shape[0]):
        start = np.uint64(indptr[i])
        stop = np.uint64(indptr[i + 1])
        norm2 = 0.0
        for t in range(start, stop):
            norm2 += np.float64(data[t]) * np.float64(data[t])
        exponent = 0
        if norm2 > _LEAST_NORM2:
            exponent = math.frexp(np.sqrt(norm2) / SPARE)[1]
        if not norm2 < np.inf:
            for t in range(start, stop):
                values[t] = 0
            exponents[i] = _ENDLESS
            reach[i] = _INT32_MAX - 1
            continue
        scale = math.ldexp(float(LEVELS), -exponent)
        norm1 = 0.0
        for t in range(start, stop):
            value = np.rint(np.float64(data[t]) * scale)
            values[t] = np.int16(np.int32(value))
            norm1 += abs(value)
        exponents[i] = exponent
        reach[i] = np.int32(_HALF * (norm1 + np.sqrt(np.float64(stop - start)) * LEVELS) + 4.0)


@inlined
def larger_when_pruned(w, prune):
    """Return the larger of a weight and what pruning leaves of it."""
    return max(w, w - w) if abs(w) < prune else w


@kernel
def round_points(points, offsets, norm2, kink, block, to_pass):
    """Round trial points to int16 columns, and write the score that each has to pass, in steps.

    Parameters
    ----------
    points : ndarray of float
        Vectors of length d + 1, intercept last.
    offsets : ndarray of int64 of shape (n_points,)
        Where in `points` each begins.
    norm2 : ndarray of float64 of shape (n_points,)
        Squared norm of each without its intercept. The norm bounds the largest magnitude, is a few
        times larger, and is found faster.
    kink : float
        The score from which a negative has a loss.
    block : ndarray of int16 of shape (d, width)
        Overwritten in its first n_points columns.
    to_pass : ndarray of float64 of shape (width,)
        Overwritten; inf for the columns that stand empty.
    """
    d = block.shape[0]
    n_points = offsets.shape[0]
    inverse = np.empty(n_points, points.dtype)
    tiles = np.empty((n_points, _TILE + _GAP), np.int16)
    for c in range(block.shape[1]):
        to_pass[c] = np.inf
    for c in range(n_points):
        step = max(np.sqrt(norm2[c]) / LEVELS, LEAST_STEP)
        to_pass[c] = (kink - np.float64(points[offsets[c] + d])) / step
        inverse[c] = 1.0 / step
        if not norm2[c] < np.inf:
            to_pass[c] = -np.inf
            inverse[c] = 0.0
    for first in range(0, d, _TILE):
        length = min(_TILE, d - first)
        for c in range(n_points):
            tile = tiles[c]
            numbers = points[offsets[c] + first : offsets[c] + first + length]
            for j in range(length):
                tile[j] = np.int16(np.int32(np.rint(numbers[j] * inverse[c])))
        for j in range(length):
            row = block[first + j]
            for c in range(n_points):
                row[c] = tiles[c, j]


@kernel
def round_sparse_points(lanes_of, point_indptr, features, points, prune, kinks, block, to_pass):
    """Round sparse points to int16 columns, and write the score that each has to pass, in steps.

    Parameters
    ----------
    lanes_of : ndarray of int64 of shape (n_points,)
        Which points.
    point_indptr, features, points : ndarray of int64, int32 and float
        Sparse points, that of m from ``point_indptr[m] + m`` on, intercept last.
    prune : float
        Scores count before smaller weights become 0 and after.
    kinks : ndarray of float64
        The score that each has to pass.
    block : ndarray of int16 of shape (d, width)
        All 0; written in its first n_points columns.
    to_pass : ndarray of float64 of shape (width,)
        Overwritten; inf for the columns that stand empty.
    """
    for c in range(block.shape[1]):
        to_pass[c] = np.inf
    for c in range(lanes_of.shape[0]):
        m = lanes_of[c]
        first, last = point_indptr[m], point_indptr[m + 1]
        norm2 = 0.0
        for t in range(first, last):
            norm2 += np.float64(points[t + m]) ** 2
        if not norm2 < np.inf:
            to_pass[c] = -np.inf
            continue
        step = max(np.sqrt(norm2) / LEVELS, LEAST_STEP)
        to_pass[c] = (kinks[m] - np.float64(points[last + m])) / step
        inverse = points.dtype.type(1.0 / step)
        for t in range(first, last):
            number = larger_when_pruned(points[t + m], prune) * inverse
            block[np.uint32(features[t]), c] = np.int16(np.int32(np.rint(number)))


@kernel
def clear_points(lanes_of, point_indptr, features, block):
    """Write 0 again where ``round_sparse_points`` wrote."""
    for c in range(lanes_of.shape[0]):
        m = lanes_of[c]
        for t in range(point_indptr[m], point_indptr[m + 1]):
            block[np.uint32(features[t]), c] = 0


@inlined
def set_limits(to_pass, exponent, limits):
    """Write the sums, in steps, that rows of an exponent have to reach."""
    for c in range(limits.shape[0]):
        limit = np.floor(to_pass[c] * math.ldexp(float(LEVELS), -exponent))
        if to_pass[c] == np.inf or limit > _INT32_MAX:
            limits[c] = _INT32_MAX
        elif limit > _INT32_MIN:
            limits[c] = np.int32(limit)
        else:  # NaN too
            limits[c] = _INT32_MIN


@functools.cache
def screen_kernel(width: int) -> Any:
    """Return ``screen_rows`` for blocks of `width` columns, one of ``WIDTHS``."""
    screen = row_screen(width)

    @kernel
    def screen_rows(rounded, block, to_pass, first, last, rows, counts):
        """List the rows whose score may be above the kink.

        Parameters
        ----------
        rounded : tuple of ndarray
            ``(indptr, indices, values, exponents, reach)``: CSR rows from ``round_rows``.
        block, to_pass : ndarray
            From ``round_points``.
        first, last : int
            The range of rows.
        rows : ndarray of int32 of shape (>= width, >= last - first + largest count)
            The lists, one for each column.
        counts : ndarray of int64 of shape (width,)
            Their lengths, changed in place.
        """
        indptr, indices, values, exponents, reach = rounded
        end = np.uint64(indptr[last])
        limits = np.empty(width, np.int32)
        exponent = np.int64(exponents[first]) if first < last else 0
        set_limits(to_pass, exponent, limits)
        for i in range(first, last):
            if exponents[i] != exponent:
                exponent = np.int64(exponents[i])
                set_limits(to_pass, exponent, limits)
            start = np.uint64(indptr[i])
            stop = np.uint64(indptr[i + 1])
            passed = screen(indices, values, start, stop, end, block, reach[i], limits)
            while passed != np.uint64(0):
                c = lowest_bit(passed)
                rows[c, counts[c]] = i
                counts[c] += 1
                passed &= passed - _ONE

    return screen_rows


@kernel
def list_above(scores, norms, slack, threshold, first, rows, counts):
    """List the rows whose score, after a matrix product in floating point, may pass.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_points)
        Without the intercept.
    norms : ndarray of float64 of shape (n_rows,)
        Norm of each row.
    slack, threshold : ndarray of float64 of shape (n_points,)
        Rounding of a score for each unit of the norm, and the score to pass.
    first : int
        Number of the first row.
    rows, counts : ndarray of int32 (n_points, capacity) and int64
        As for ``screen_rows``.
    """
    n_points = scores.shape[1]
    for r in range(scores.shape[0]):
        row = scores[r]
        n_passed = 0
        for c in range(n_points):
            n_passed += not row[c] + slack[c] * norms[r] <= threshold[c]
        if n_passed > 0:
            for c in range(n_points):
                if not row[c] + slack[c] * norms[r] <= threshold[c]:
                    rows[c, counts[c]] = first + r
                    counts[c] += 1

"""Screen: lists the rows that may have a loss at the trial points of a block, in one pass over X.

The trial points are rounded to int16, one step size per lane, as columns of a row-major block of
shape (d, 64). The rows of X are rounded to int16 too, once. Sums of their products are exact in
int32, and rounding has moved the score of row i by at most ``reach[i]`` steps of the two. The sums
begin there, so no row above the kink is missed; exact scores are computed afterwards for the few
rows that pass.
"""

import functools
import math
from typing import Any

import numpy as np

from sklearn_xc._compile.emitters.int16_lanes import lowest_bit, row_screen
from sklearn_xc._compile.jit import inlined, kernel

#: Widths of a block that a screen is compiled for.
WIDTHS = (32, 64)
#: Largest norm after rounding: a row, whose norm may exceed its power of two by SPARE, fits into
#: int16, and by Cauchy and Schwarz every sum into int32.
LEVELS = 32735
SPARE = 1.0 + 2.0**-10
#: A number is rounded by half a step, and a little more where the steps are counted in float32.
_HALF = 0.505
#: Least step size: its inverse is still finite.
LEAST_STEP = 1e-30
#: Rows with a smaller squared norm count as zero: such squares lose digits.
_LEAST_NORM2 = 1e-280
#: Exponent of rows whose norm is not finite: in their steps, every limit is 0.
_ENDLESS = 2000
_INT32_MIN = -(2**31)
_INT32_MAX = 2**31 - 1
#: ``round_points`` rounds this many numbers of each point before it transposes them.
_TILE = 256
#: Gap between the tiles of two points, so that they do not share cache sets.
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
        Overwritten: exponent of the least power of two above the row's norm, up to SPARE.
    reach : ndarray of int32 of shape (n,)
        Overwritten: steps by which rounding of row and point can move a score. Rows whose norm is
        not finite get a number that passes every limit but that of an empty lane.
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


@kernel
def round_points(points, offsets, norm2, kink, block, to_pass):
    """Round trial points to int16 columns, and write the score to exceed for each, in steps.

    Parameters
    ----------
    points : ndarray of float
        Vectors of length d + 1, intercept last.
    offsets : ndarray of int64 of shape (n_points,)
        Position of each in `points`.
    norm2 : ndarray of float64 of shape (n_points,)
        Squared norm of each without its intercept, which bounds the largest magnitude.
    kink : float
        The score from which a negative has a loss.
    block : ndarray of int16 of shape (d, width)
        Overwritten in its first n_points columns.
    to_pass : ndarray of float64 of shape (width,)
        Overwritten; inf for empty columns.
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
def round_sparse_points(which, points, kinks, block, to_pass):
    """Round sparse points to int16 columns, and write the score to exceed for each, in steps.

    Parameters
    ----------
    which : ndarray of int64 of shape (n_points,)
        Numbers of the points.
    points : tuple of ndarray of int64, int32 and float
        Sparse points ``(indptr, features, weights)``, those of point m from ``indptr[m] + m`` on,
        intercept last.
    kinks : ndarray of float64
        The score to exceed for each.
    block : ndarray of int16 of shape (d, width)
        All 0; written in its first n_points columns.
    to_pass : ndarray of float64 of shape (width,)
        Overwritten; inf for empty columns.
    """
    point_indptr, features, weights = points
    for c in range(block.shape[1]):
        to_pass[c] = np.inf
    for c in range(which.shape[0]):
        m = which[c]
        first, last = point_indptr[m], point_indptr[m + 1]
        norm2 = 0.0
        for t in range(first, last):
            norm2 += np.float64(weights[t + m]) ** 2
        if not norm2 < np.inf:
            to_pass[c] = -np.inf
            continue
        step = max(np.sqrt(norm2) / LEVELS, LEAST_STEP)
        to_pass[c] = (kinks[m] - np.float64(weights[last + m])) / step
        inverse = weights.dtype.type(1.0 / step)
        for t in range(first, last):
            number = weights[t + m] * inverse
            block[np.uint32(features[t]), c] = np.int16(np.int32(np.rint(number)))


@kernel
def clear_points(which, points, block):
    """Write 0 again where ``round_sparse_points`` wrote."""
    point_indptr, features, _ = points
    for c in range(which.shape[0]):
        m = which[c]
        for t in range(point_indptr[m], point_indptr[m + 1]):
            block[np.uint32(features[t]), c] = 0


@inlined
def set_limits(to_pass, exponent, limits):
    """Write the limits of the sums, in steps, for rows of an exponent."""
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
            Range of the rows.
        rows : ndarray of int32 of shape (>= width, capacity)
            The lists, one for each column.
        counts : ndarray of int64 of shape (width,)
            Their lengths, changed in place; -1 for a list without room, which gets no more rows.
        """
        indptr, indices, values, exponents, reach = rounded
        capacity = rows.shape[1]
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
                passed &= passed - _ONE
                if counts[c] < capacity:
                    rows[c, counts[c]] = i
                    counts[c] += 1
                else:
                    counts[c] = -1
                    to_pass[c] = np.inf
                    limits[c] = _INT32_MAX

    return screen_rows


@kernel
def list_above(scores, norms, slack, threshold, first, rows, counts):
    """List the rows whose score, from a matrix product in floating point, may pass.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_points)
        Without the intercept.
    norms : ndarray of float64 of shape (n_rows,)
        Norm of each row.
    slack, threshold : ndarray of float64 of shape (n_points,)
        Rounding error of a score per unit of the norm, and the score to exceed.
    first : int
        Number of the first row.
    rows, counts : ndarray of int32 (n_points, capacity) and int64
        As for ``screen_rows``.
    """
    n_points, capacity = scores.shape[1], rows.shape[1]
    for r in range(scores.shape[0]):
        row = scores[r]
        n_passed = 0
        for c in range(n_points):
            n_passed += not row[c] + slack[c] * norms[r] <= threshold[c]
        if n_passed > 0:
            for c in range(n_points):
                if counts[c] < 0 or row[c] + slack[c] * norms[r] <= threshold[c]:
                    continue
                if counts[c] < capacity:
                    rows[c, counts[c]] = first + r
                    counts[c] += 1
                else:
                    counts[c] = -1

"""Which rows may have a loss at any of a block's trial points: one pass over X for all lanes.

The trial points are rounded to int16, one step size per lane, and stand side by side: a row-major
block of shape (d, 64), an eighth of the memory traffic of one float32 product per lane. Rounding
moves the score of row i by at most ``reach[i]`` steps, half of ``|x_i|_1`` and a little for the
float32 sum. The sums begin there, so that no row above the threshold is missed whatever the
rounding; exact scores are computed afterwards for the few rows that pass.
"""

import functools
from typing import Any

import numpy as np

from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.int16_lanes import lowest_bit, prefetch, row_screen

#: Numbers of lanes that a screen is compiled for.
WIDTHS = (16, 32, 64)
#: The largest magnitude after rounding.
LEVELS = 32767
#: Rounding of the float32 sums, in steps for each non-zero and each unit of |x|_1: LEVELS * 2**-23.
_SUM_ROUNDING = 0.004
#: ``round_points`` walks along all points at a time, more streams than a processor follows by
#: itself: how many numbers ahead they are fetched, a cache line at a time.
_AHEAD = 128
_LINE = 16
_ONE = np.uint64(1)


@kernel
def screening_reach(indptr, data, out):
    """Write how many steps rounding can move the score of each row.

    Parameters
    ----------
    indptr, data : ndarray of int64 and float
        CSR rows.
    out : ndarray of float32 of shape (n,)
        Overwritten.
    """
    for i in range(out.shape[0]):
        start = np.uint64(indptr[i])
        stop = np.uint64(indptr[i + 1])
        norm1 = 0.0
        for t in range(start, stop):
            norm1 += abs(np.float64(data[t]))
        out[i] = (0.5 + _SUM_ROUNDING * (np.float64(stop - start) + 4.0)) * norm1


@kernel
def round_points(points, offsets, norm2, kink, block, threshold):
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
    threshold : ndarray of float32 of shape (width,)
        Overwritten; inf for the columns that stand empty.
    """
    d = block.shape[0]
    n_points = offsets.shape[0]
    inverse = np.empty(n_points, points.dtype)
    for c in range(block.shape[1]):
        threshold[c] = np.inf
    for c in range(n_points):
        step = np.sqrt(norm2[c]) / LEVELS if norm2[c] > 0.0 else 1.0
        steps = (kink - np.float64(points[offsets[c] + d])) / step
        threshold[c] = np.float32(steps - 1e-6 * abs(steps))
        inverse[c] = 1.0 / step
    for first in range(0, d, _LINE):
        for c in range(n_points):
            prefetch(points, np.uint64(offsets[c] + first + _AHEAD))
        for j in range(first, min(first + _LINE, d)):
            row = block[j]
            for c in range(n_points):
                row[c] = np.int16(np.int32(np.rint(points[offsets[c] + j] * inverse[c])))


@functools.cache
def screen_kernel(width: int) -> Any:
    """Return ``screen_rows`` for blocks of `width` columns, one of ``WIDTHS``."""
    screen = row_screen(width)

    @kernel
    def screen_rows(indptr, indices, data, reach, block, threshold, first, last, rows, counts):
        """List the rows whose score may be above the threshold.

        Parameters
        ----------
        indptr, indices, data : ndarray of int64, int32 and float
            CSR rows of X.
        reach : ndarray of float32 of shape (n,)
            From ``screening_reach``.
        block, threshold : ndarray
            From ``round_points``.
        first, last : int
            The range of rows.
        rows : ndarray of int32 of shape (>= width, >= last - first + largest count)
            The lists, one for each column.
        counts : ndarray of int64 of shape (width,)
            Their lengths, changed in place.
        """
        end = np.uint64(indptr[last])
        for i in range(first, last):
            start = np.uint64(indptr[i])
            stop = np.uint64(indptr[i + 1])
            above = screen(indices, data, start, stop, end, block, reach[i], threshold)
            while above != np.uint64(0):
                c = lowest_bit(above)
                rows[c, counts[c]] = i
                counts[c] += 1
                above &= above - _ONE

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
        hits = 0
        for c in range(n_points):
            hits += not row[c] + slack[c] * norms[r] <= threshold[c]
        if hits > 0:
            for c in range(n_points):
                if not row[c] + slack[c] * norms[r] <= threshold[c]:
                    rows[c, counts[c]] = first + r
                    counts[c] += 1

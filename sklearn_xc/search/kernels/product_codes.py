"""Clusterings of blocks of W's columns: their centroids, the codes of labels, tables of a query.

The columns of W are cut into blocks of a few, and each block is clustered on its own, around 16
centroids. The code of a label in a block is the number of its nearest centroid there.
"""

import numpy as np

from sklearn_xc._compile.emitters.byte_lanes import LANES, TABLE
from sklearn_xc._compile.emitters.centroid_lanes import (
    WIDTH,
    nearest_centroid,
    score_centroids,
    write_entries,
)
from sklearn_xc._compile.jit import inlined, kernel

#: Table entries are bytes. A label whose score is lower than the best conceivable one by so many
#: steps is at the lower end of what is resolved.
_RESOLVED = 250.0
#: Where steps are less, in which case all scores tie, their inverse is no float32.
_LEAST_STEP = 1e-37
#: Standard deviations.
_BELOW_TAIL = 2.0


@inlined
def copy_row(A, row, first, last, values, at):
    """Copy some columns of a row to ``values[at:]``."""
    for j in range(last - first):
        values[np.uint64(at + j)] = A[np.uint64(row), np.uint64(first + j)]


@kernel
def cluster_blocks(W, rows, starts, first, last, width, n_rounds, centroids, halves):
    """Write the centroids of all blocks, by Lloyd's algorithm.

    Parameters
    ----------
    W : ndarray of float of shape (n_labels, dim)
    rows : ndarray of int64 of shape (n_sample,)
        The rows to cluster.
    starts : ndarray of int64 of shape (n_blocks, >= 16)
        Places in `rows` of the blocks that are the first centroids.
    first, last : int
        The columns of W that are cut into blocks.
    width : int
        Columns of a block, at most WIDTH.
    n_rounds : int
        Rounds of Lloyd's algorithm.
    centroids : ndarray of float32 of shape (n_blocks, WIDTH, 16)
        Overwritten; 0 in columns from `width` and from `last` on.
    halves : ndarray of float32 of shape (n_blocks, 16)
        Overwritten: half of the squared norms of the centroids.
    """
    n_blocks, n_sample = centroids.shape[0], rows.shape[0]
    values = np.zeros(n_sample * n_blocks * width + WIDTH, np.float32)
    for i in range(n_sample):
        copy_row(W, rows[i], first, last, values, i * n_blocks * width)
    sums, counts = np.empty(TABLE * WIDTH, np.float64), np.empty(TABLE, np.int64)
    for b in range(n_blocks):
        for c in range(TABLE):
            for j in range(WIDTH):
                value = values[(starts[b, c] * n_blocks + b) * width + j]
                centroids[b, j, c] = value if j < width else np.float32(0.0)
            write_half(centroids, b, c, halves)
        for _ in range(n_rounds):
            for c in range(TABLE):
                counts[c] = 0
                for j in range(WIDTH):
                    sums[c * WIDTH + j] = 0.0
            for i in range(n_sample):
                at = (i * n_blocks + b) * width
                best = nearest_centroid(
                    values, np.uint64(at), np.uint64(b), width, centroids, halves
                )
                counts[best] += 1
                for j in range(width):
                    sums[best * WIDTH + j] += values[at + j]
            for c in range(TABLE):
                if counts[c] > 0:
                    for j in range(width):
                        centroids[b, j, c] = sums[c * WIDTH + j] / counts[c]
                    write_half(centroids, b, c, halves)


@inlined
def write_half(centroids, block, c, halves):
    """Write half of the squared norm of a centroid."""
    half = np.float32(0.0)
    for j in range(WIDTH):
        half += np.float32(0.5) * centroids[block, j, c] * centroids[block, j, c]
    halves[block, c] = half


@kernel
def encode_rows(W, rows, first, last, width, centroids, halves, codes, frequencies, is_new):
    """Write the codes of some labels.

    Parameters
    ----------
    W : ndarray of float of shape (n_labels, dim)
    rows : ndarray of int32 of shape (m,)
        Labels.
    first, last : int
        The columns of W that are cut into blocks.
    width : int
        Columns of a block.
    centroids : ndarray of float32 of shape (n_blocks, WIDTH, 16)
    halves : ndarray of float32 of shape (n_blocks, 16)
        Half of the squared norms of the centroids.
    codes : ndarray of uint8 of shape (n_groups, n_blocks / 2, 64)
        As ``byte_lanes`` reads them; those of the labels are overwritten.
    frequencies : ndarray of int32 of shape (n_blocks, 16)
        Labels of each code; corrected.
    is_new : bool
        Whether the labels had no codes before.
    """
    n_blocks = centroids.shape[0]
    values = np.zeros(n_blocks * width + WIDTH, np.float32)
    for i in range(rows.shape[0]):
        label = rows[i]
        copy_row(W, label, first, last, values, 0)
        group, lane = label // LANES, label % LANES
        for b in range(n_blocks):
            at = np.uint64(b * width)
            code = nearest_centroid(values, at, np.uint64(b), width, centroids, halves)
            shift = 4 * (b % 2)
            old = codes[group, b // 2, lane]
            if not is_new:
                frequencies[b, (old >> shift) & (TABLE - 1)] -= 1
            frequencies[b, code] += 1
            codes[group, b // 2, lane] = (old & ~((TABLE - 1) << shift)) | (code << shift)


@kernel
def fill_tables(V, width, centroids, frequencies, n_labels, share, tables, tops, steps):
    """Write the tables of queries: by how much the score falls short with each code.

    The sum of a label's entries, times the step, is how far its score, computed from the centroids,
    is below the best conceivable one, ``top``.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Queries.
    width : int
        Columns of a block.
    centroids : ndarray of float32 of shape (n_blocks, WIDTH, 16)
    frequencies : ndarray of int32 of shape (n_blocks, 16)
        Labels of each code.
    n_labels : int
    share : float
        Of the labels that are asked for. The steps are such that the best of them are resolved.
    tables : ndarray of uint8 of shape (n, n_blocks, 16)
        Overwritten.
    tops, steps : ndarray of float64 of shape (n,)
        Overwritten.
    """
    n_blocks = centroids.shape[0]
    # Where normal scores have that share above them, roughly, less some for other tails.
    tail = np.sqrt(2.0 * np.log(1.0 / share)) - _BELOW_TAIL
    values = np.zeros(n_blocks * width + WIDTH, np.float32)
    falls = np.empty((n_blocks, TABLE), np.float32)
    for i in range(V.shape[0]):
        copy_row(V, i, 0, V.shape[1], values, 0)
        top, mean, variance = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        for b in range(n_blocks):
            at = np.uint64(b * width)
            largest, total, total_squares = score_centroids(
                values, at, np.uint64(b), centroids, frequencies, falls
            )
            top += largest
            mean_fall = np.float64(total) / n_labels
            mean += mean_fall
            variance += total_squares / n_labels - mean_fall * mean_fall
        above = min(tail * np.sqrt(max(variance, 0.0)), 0.5 * mean)
        step = max(mean - above, 0.0) / _RESOLVED
        tops[i], steps[i] = top, step
        scale = np.float32(1.0 / step) if step > _LEAST_STEP else np.float32(0.0)
        for b in range(n_blocks):
            write_entries(falls, scale, np.uint64(b), np.uint64(i), tables)

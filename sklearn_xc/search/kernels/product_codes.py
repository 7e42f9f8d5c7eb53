"""Clusterings of blocks of W's columns: their centroids, the codes of labels, tables of a query.

The columns of W are cut into blocks of two, and each block is clustered separately around 16
centroids. The code of a label in a block is the number of its nearest centroid there.
"""

import numpy as np

from sklearn_xc._compile.emitters.byte_lanes import LANES, TABLE
from sklearn_xc._compile.jit import inlined, kernel

#: Columns of a block.
WIDTH = 2
#: Table entries are bytes. A label whose score is this many steps below the best conceivable one is
#: at the lower end of the resolved range.
_RESOLVED = 250.0
#: Where steps are less, in which case all scores tie, their inverse is no float32.
_LEAST_STEP = 1e-37
#: Standard deviations.
_BELOW_TAIL = 2.0
#: The bits of a distance without the four that hold a centroid's number.
_UPPER_BITS = np.int32(-TABLE)
_LARGEST_KEY = np.int32(2**31 - 1)


@inlined
def nearest_centroid(first, second, centroids, halves, distances, bits):
    """Return the nearest centroid of a block to two values, the first of equals.

    Distances that agree to six digits are equal, and so are those that are lost next to the norms.

    Parameters
    ----------
    first, second : float32
    centroids : ndarray of float32 of shape (2, 16)
    halves : ndarray of float32 of shape (16,)
        Half of the squared norms of the centroids.
    distances, bits : ndarray of float32 and int32 of shape (16,)
        Work space, in the same memory.
    """
    half = np.float32(0.5) * (first * first + second * second)
    # Loops over a length that the compiler does not know become vector code; others are unrolled.
    for c in range(halves.shape[0]):
        distance = halves[c] - first * centroids[0, c] - second * centroids[1, c] + half
        distances[c] = max(distance, np.float32(0.0))
    # The bits of floats that are not negative grow with them. The last four give way to the number,
    # so that the least key holds it.
    least = _LARGEST_KEY
    for c in range(halves.shape[0]):
        least = min(least, (bits[c] & _UPPER_BITS) | np.int32(c))
    return np.int64(least & ~_UPPER_BITS)


@inlined
def copy_row(A, row, first, last, values):
    """Copy some columns of a row to the head of `values`."""
    for j in range(last - first):
        values[np.uint64(j)] = A[np.uint64(row), np.uint64(first + j)]


@kernel
def cluster_blocks(W, rows, starts, first, last, n_rounds, centroids, halves):
    """Write the centroids of all blocks, by Lloyd's algorithm.

    Parameters
    ----------
    W : ndarray of float of shape (n_labels, dim)
    rows : ndarray of int64 of shape (n_sample,)
        The rows to cluster.
    starts : ndarray of int64 of shape (n_blocks, >= 16)
        Positions in `rows` of the first centroids of each block.
    first, last : int
        The columns of W that are cut into blocks.
    n_rounds : int
        Rounds of Lloyd's algorithm.
    centroids : ndarray of float32 of shape (n_blocks, 2, 16)
        Overwritten; 0 in columns from `last` on.
    halves : ndarray of float32 of shape (n_blocks, 16)
        Overwritten: half of the squared norms of the centroids.
    """
    n_blocks, n_sample = centroids.shape[0], rows.shape[0]
    values = np.zeros((n_sample, n_blocks * WIDTH), np.float32)
    for i in range(n_sample):
        copy_row(W, rows[i], first, last, values[i])
    sums, counts = np.empty((TABLE, WIDTH)), np.empty(TABLE, np.int64)
    distances = np.empty(TABLE, np.float32)
    bits = distances.view(np.int32)
    for b in range(n_blocks):
        at = b * WIDTH
        for c in range(TABLE):
            for j in range(WIDTH):
                centroids[b, j, c] = values[starts[b, c], at + j]
            _write_half(centroids[b], c, halves[b])
        for _ in range(n_rounds):
            counts[:] = 0
            sums[:] = 0.0
            for i in range(n_sample):
                x, y = values[i, at], values[i, at + 1]
                best = nearest_centroid(x, y, centroids[b], halves[b], distances, bits)
                counts[best] += 1
                sums[best, 0] += x
                sums[best, 1] += y
            for c in range(TABLE):
                if counts[c] > 0:
                    for j in range(WIDTH):
                        centroids[b, j, c] = sums[c, j] / counts[c]
                    _write_half(centroids[b], c, halves[b])


@inlined
def _write_half(centroids, c, halves):
    """Write half of the squared norm of a centroid."""
    half = np.float32(0.0)
    for j in range(WIDTH):
        half += np.float32(0.5) * centroids[j, c] * centroids[j, c]
    halves[c] = half


@kernel
def encode_rows(W, rows, first, last, centroids, halves, codes, frequencies, is_new):
    """Write the codes of some labels.

    Parameters
    ----------
    W : ndarray of float of shape (n_labels, dim)
    rows : ndarray of int32 of shape (m,)
        Labels.
    first, last : int
        The columns of W that are cut into blocks.
    centroids : ndarray of float32 of shape (n_blocks, 2, 16)
    halves : ndarray of float32 of shape (n_blocks, 16)
        Half of the squared norms of the centroids.
    codes : ndarray of uint8 of shape (n_groups, n_blocks / 2, 64)
        As ``byte_lanes`` reads them; those of the labels are overwritten.
    frequencies : ndarray of int32 of shape (n_blocks, 16)
        Number of labels with each code; updated.
    is_new : bool
        Whether the labels had no codes before.
    """
    n_blocks = centroids.shape[0]
    values = np.zeros(n_blocks * WIDTH, np.float32)
    distances = np.empty(TABLE, np.float32)
    bits = distances.view(np.int32)
    for i in range(rows.shape[0]):
        label = rows[i]
        copy_row(W, label, first, last, values)
        group, lane = label // LANES, label % LANES
        for b in range(n_blocks):
            at = np.uint64(b * WIDTH)
            x, y = values[at], values[at + np.uint64(1)]
            code = nearest_centroid(x, y, centroids[b], halves[b], distances, bits)
            shift = 4 * (b % 2)
            old = codes[group, b // 2, lane]
            if not is_new:
                frequencies[b, (old >> shift) & (TABLE - 1)] -= 1
            frequencies[b, code] += 1
            codes[group, b // 2, lane] = (old & ~((TABLE - 1) << shift)) | (code << shift)


@kernel
def fill_tables(V, centroids, frequencies, n_labels, share, tables, tops, steps):
    """Write the tables of queries: by how much the score falls short with each code.

    The sum of a label's entries, times the step, is how far its score, computed from the centroids,
    is below the best conceivable one, ``top``.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
        Queries.
    centroids : ndarray of float32 of shape (n_blocks, 2, 16)
    frequencies : ndarray of int32 of shape (n_blocks, 16)
        Number of labels with each code.
    n_labels : int
    share : float
        Requested share of the labels. The steps are such that the best of them are resolved.
    tables : ndarray of uint8 of shape (n, n_blocks, 16)
        Overwritten.
    tops, steps : ndarray of float64 of shape (n,)
        Overwritten.
    """
    n_blocks = centroids.shape[0]
    # Roughly where normal scores have that share above them, less some for other tails.
    tail = np.sqrt(2.0 * np.log(1.0 / share)) - _BELOW_TAIL
    values = np.zeros(n_blocks * WIDTH, np.float32)
    falls = np.empty((n_blocks, TABLE), np.float32)
    for i in range(V.shape[0]):
        copy_row(V, i, 0, V.shape[1], values)
        top, mean, variance = np.float64(0.0), np.float64(0.0), np.float64(0.0)
        for b in range(n_blocks):
            at = np.uint64(b * WIDTH)
            x, y = values[at], values[at + np.uint64(1)]
            largest, total, total_squares = _score_centroids(
                x, y, centroids[b], frequencies[b], falls[b]
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
            for c in range(tables.shape[2]):
                entry = falls[b, c] * scale + np.float32(0.5)
                # NaN is not below 255
                tables[i, b, c] = np.uint8(np.int32(entry)) if entry < 255.0 else np.uint8(255)


@inlined
def _score_centroids(x, y, centroids, frequencies, falls):
    """Write by how much each centroid's inner product with two values is below the largest.

    Returns
    -------
    largest, total, total_squares : float32
        The largest inner product; sums over all labels of what their centroids fall short, and of
        its square.
    """
    largest = np.float32(-np.inf)
    for c in range(falls.shape[0]):
        falls[c] = x * centroids[0, c] + y * centroids[1, c]
        largest = max(largest, falls[c])
    total, total_squares = np.float32(0.0), np.float32(0.0)
    for c in range(falls.shape[0]):
        falls[c] = largest - falls[c]
        weighted = np.float32(frequencies[c]) * falls[c]
        total += weighted
        total_squares += weighted * falls[c]
    return largest, total, total_squares

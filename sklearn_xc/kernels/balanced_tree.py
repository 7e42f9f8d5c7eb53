"""Rows cut in two again and again, by 2-means whose halves have given sizes.

A node of the tree is a range of `order`, which holds its rows in ascending order. Where the sizes
are given, the assignment of least inertia ranks rows by their inner products with the difference of
the two centroids: a split is a normal and a threshold. What it takes off the inertia of a node of m
rows is ``k (m - k) / m`` times the square of the normal's length, so that the longest normal is the
best.
"""

import numpy as np

from sklearn_xc.kernels._jit import inlined, kernel
from sklearn_xc.kernels.dense_dot import dense_dot
from sklearn_xc.kernels.negatives import mix, random_unit
from sklearn_xc.kernels.ranking import select_first

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: Rows of a node that its normal is sought on, pairs of rows to start from, rounds for each.
_SAMPLE, _STARTS, _ROUNDS = 256, 4, 8
#: Rounds on all rows of a node that has more.
_FULL_ROUNDS = 4
#: A round that adds a smaller share to the square of the normal's length is the last.
_GAIN = 1e-3


@inlined
def rows_on_the_left(n_rows, n_clusters):
    """Return how many rows belong to the first ``n_clusters // 2`` clusters of a node.

    A cluster has ``n_rows // n_clusters`` rows, or one more. The rows that are left over are shared
    out by the number of clusters, so that the same holds for both children.
    """
    n_left = n_clusters // 2
    return n_rows // n_clusters * n_left + n_rows % n_clusters * n_left // n_clusters


@kernel
def split_subtree(V, order, cluster, first, last, n_clusters, first_cluster, node, depth, key):
    """Split a node and what is below it.

    Parameters
    ----------
    V : ndarray of float32 or float64 of shape (n, dim)
        C-contiguous.
    order : ndarray of int32 of shape (n,)
        Rows of V. Those of the node, `first` to `last`, are rewritten: child by child, ascending in
        each.
    cluster : ndarray of int64 of shape (n,)
        Overwritten for the rows of clusters that are reached.
    first, last : int
        The node.
    n_clusters, first_cluster : int
        How many clusters the node is to have, 1 to ``last - first``, and the number of the first.
    node : int
        The node's number: 1 is the root, and the children of i are 2 i and 2 i + 1.
    depth : int
        Levels to go down.
    key : uint64
        Of the random numbers. Those of a node depend on the key and the node's number alone.
    """
    m, dim = last - first, V.shape[1]
    keys, ranked = np.empty(m, V.dtype), np.empty(m, V.dtype)
    places, moved = np.empty(m, np.int32), np.empty(m, np.int32)
    sums, total = np.empty(dim), np.empty(dim)
    normal, best = np.empty(dim, V.dtype), np.empty(dim, V.dtype)
    # Nodes to be split: the left child goes first, so that one of each level waits.
    stack = np.zeros((depth + 2, 6), np.int64)
    stack[0] = (first, last, n_clusters, first_cluster, node, depth)
    n_open = 1
    while n_open > 0:
        n_open -= 1
        begin, end, c, c0, number, levels = stack[n_open]
        if c == 1:
            for i in range(begin, end):
                cluster[order[i]] = c0
            continue
        if levels == 0:
            continue
        rows, k = order[begin:end], rows_on_the_left(end - begin, c)
        node_key = mix(key + np.uint64(number) * _GOLDEN)
        _find_normal(V, rows, k, node_key, keys, ranked, places, sums, total, normal, best)
        _cut(V, rows, k, best, keys, ranked, places, moved)
        middle, half = begin + k, c // 2
        stack[n_open] = (middle, end, c - half, c0 + half, 2 * number + 1, levels - 1)
        stack[n_open + 1] = (begin, middle, half, c0, 2 * number, levels - 1)
        n_open += 2


@inlined
def _find_normal(V, rows, k, key, keys, ranked, places, sums, total, normal, best):
    """Write the normal of a good split of rows in k and the others to `best`.

    Rounds of 2-means on a sample from a few pairs of rows; the longest normal, which is the least
    inertia, is kept. Then rounds on all rows.
    """
    m, dim = rows.shape[0], V.shape[1]
    n_sample = min(m, _SAMPLE)
    n_left = min(max(1, k * n_sample // m), n_sample - 1)
    longest = -1.0
    for j in range(np.uint64(dim)):  # no length is known if a row is not finite
        best[j] = 0.0
    for start in range(_STARTS):
        a = np.int64(random_unit(key, 2 * start) * n_sample)
        b = np.int64(random_unit(key, 2 * start + 1) * (n_sample - 1))
        b += b >= a
        one, other = V[rows[a * m // n_sample]], V[rows[b * m // n_sample]]
        for j in range(np.uint64(dim)):
            normal[j] = one[j] - other[j]
        length = _move_centroids(
            V, rows, n_sample, n_left, _ROUNDS, keys, ranked, places, sums, total, normal
        )
        if length > longest:
            longest = length
            for j in range(np.uint64(dim)):
                best[j] = normal[j]
    if n_sample < m:
        _move_centroids(V, rows, m, k, _FULL_ROUNDS, keys, ranked, places, sums, total, best)


@inlined
def _move_centroids(V, rows, n_sample, k, n_rounds, keys, ranked, places, sums, total, normal):
    """Rewrite the normal by rounds of 2-means on one row in every ``m / n_sample``.

    Returns
    -------
    float
        The square of its length.
    """
    m, dim = rows.shape[0], np.uint64(V.shape[1])
    for j in range(dim):
        total[j] = 0.0
    for i in range(n_sample):
        row = V[np.uint64(rows[i * m // n_sample])]
        for j in range(dim):
            total[j] += np.float64(row[j])
    length = 0.0
    for _ in range(n_rounds):
        worst, place = _threshold(V, rows, n_sample, k, normal, keys, ranked, places)
        for j in range(dim):
            sums[j] = 0.0
        for i in range(n_sample):
            if keys[i] > worst or (keys[i] == worst and i <= place):
                row = V[np.uint64(rows[i * m // n_sample])]
                for j in range(dim):
                    sums[j] += np.float64(row[j])
        before, length = length, 0.0
        # A loop of its own: a sum beside which a loop writes rounds by where the arrays are.
        for j in range(dim):
            difference = sums[j] / k - (total[j] - sums[j]) / (n_sample - k)
            length += difference * difference
        for j in range(dim):
            normal[j] = sums[j] / k - (total[j] - sums[j]) / (n_sample - k)
        if not length > before * (1.0 + _GAIN):
            break
    return length


@inlined
def _threshold(V, rows, n_sample, k, normal, keys, ranked, places):
    """Write the rows' inner products with the normal; return the k-th largest, and its place."""
    m, dim = rows.shape[0], np.uint64(V.shape[1])
    for i in range(n_sample):
        row = np.uint64(rows[i * m // n_sample])
        number = dense_dot(V, row * dim, normal, np.uint64(0), dim)
        keys[i] = number if number == number else -np.inf  # NaN cannot be ranked
        ranked[i], places[i] = keys[i], i
    select_first(ranked, places, n_sample, k)
    worst, place = ranked[0], places[0]
    for i in range(1, k):
        if ranked[i] < worst or (ranked[i] == worst and places[i] > place):
            worst, place = ranked[i], places[i]
    return worst, place


@inlined
def _cut(V, rows, k, normal, keys, ranked, places, moved):
    """Put the k rows farthest along the normal in front; both parts stay in ascending order."""
    m = rows.shape[0]
    worst, place = _threshold(V, rows, m, k, normal, keys, ranked, places)
    n_left, n_right = 0, 0
    for i in range(m):
        if keys[i] > worst or (keys[i] == worst and i <= place):
            rows[n_left] = rows[i]
            n_left += 1
        else:
            moved[n_right] = rows[i]
            n_right += 1
    for i in range(n_right):
        rows[n_left + i] = moved[i]

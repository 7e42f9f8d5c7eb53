"""Rows cut in two again and again, by 2-means whose parts are whole numbers of clusters.

A node of the tree is a range of `order`, which holds its rows in ascending order. Where the sizes
are given, the assignment of least inertia ranks rows by their inner products with the difference of
the two centroids: a split is a normal and a threshold. What it takes off the inertia of a node of m
rows is ``k (m - k) / m`` times the square of the normal's length.

The part k is that of some of the node's clusters, of a quarter to three quarters of them: where the
rows fall apart into groups, the cut goes between groups, and leaves them whole. It is chosen along
the normal, by the same formula on the inner products: no step of the rounds makes the inertia more.
"""

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import mix, random_unit
from sklearn_xc._compile.arithmetic.vectors import dot_of_rows
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.ranking import select_first

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
#: Rows of a node that its normal is sought on, pairs of rows to start from, rounds for each.
_SAMPLE, _STARTS, _ROUNDS = 256, 2, 5
#: Rounds on all rows of a node that has more. With 4 starts, 8 rounds and 4 full rounds, 77,000
#: embeddings of glosses took twice as long, for 1 to 3 % less inertia.
_FULL_ROUNDS = 1
#: Rounds, of these and those, that choose the sizes.
_FREE_ROUNDS, _FULL_FREE_ROUNDS = 3, 1
#: A round that adds a smaller share to what the split takes off the inertia is the last.
_GAIN = 1e-3


@inlined
def rows_on_the_left(n_rows, n_clusters, n_left):
    """Return how many rows belong to the first `n_left` clusters of a node.

    A cluster has ``n_rows // n_clusters`` rows, or one more. The rows that are left over are shared
    out by the number of clusters, so that the same holds for both children.
    """
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

    Returns
    -------
    int
        How many of the node's clusters are in its left child; 0 if it is a cluster.
    """
    m = last - first
    dim = V.shape[1]
    keys, ranked = np.empty(m, V.dtype), np.empty(m, V.dtype)
    places, moved = np.empty(m, np.int32), np.empty(m, np.int32)
    work = keys, ranked, places, np.empty(dim), np.empty(dim)
    normal, best = np.empty(dim, V.dtype), np.empty(dim, V.dtype)
    # Nodes to be split: the left child goes first, so that one of each level waits.
    stack = np.zeros((depth + 2, 6), np.int64)
    stack[0] = (first, last, n_clusters, first_cluster, node, depth)
    n_open, at_root = 1, 0
    while n_open > 0:
        n_open -= 1
        begin, end, c, c0, number, levels = stack[n_open]
        if c == 1:
            for i in range(begin, end):
                cluster[order[i]] = c0
            continue
        if levels == 0:
            continue
        rows = order[begin:end]
        node_key = mix(key + np.uint64(number) * _GOLDEN)
        n_left = _find_normal(V, rows, c, node_key, work, normal, best)
        middle = begin + rows_on_the_left(end - begin, c, n_left)
        _cut(V, rows, middle - begin, best, keys, ranked, places, moved)
        stack[n_open] = (middle, end, c - n_left, c0 + n_left, 2 * number + 1, levels - 1)
        stack[n_open + 1] = (begin, middle, n_left, c0, 2 * number, levels - 1)
        n_open += 2
        if at_root == 0:
            at_root = n_left
    return at_root


@inlined
def _find_normal(V, rows, n_clusters, key, work, normal, best):
    """Write the normal of a good split of rows to `best`, and return the clusters on its left.

    Rounds of 2-means on a sample from a few pairs of rows; what takes most off the inertia is kept.
    Then rounds on all rows.
    """
    m, dim = rows.shape[0], V.shape[1]
    n_sample = min(m, _SAMPLE)
    n_left = n_clusters // 2
    most = -1.0
    for j in range(np.uint64(dim)):  # no length is known if a row is not finite
        best[j] = 0.0
    for start in range(_STARTS):
        a = np.int64(random_unit(key, 2 * start) * n_sample)
        b = np.int64(random_unit(key, 2 * start + 1) * (n_sample - 1))
        b += b >= a
        one, other = V[rows[a * m // n_sample]], V[rows[b * m // n_sample]]
        for j in range(np.uint64(dim)):
            normal[j] = one[j] - other[j]
        half = n_clusters // 2
        gain, left = _move_centroids(
            V, rows, n_sample, n_clusters, half, _ROUNDS, _FREE_ROUNDS, work, normal
        )
        if gain > most:
            n_left, most = left, gain
            for j in range(np.uint64(dim)):
                best[j] = normal[j]
    if n_sample < m:
        _, n_left = _move_centroids(
            V, rows, m, n_clusters, n_left, _FULL_ROUNDS, _FULL_FREE_ROUNDS, work, best
        )
    return n_left


@inlined
def _move_centroids(V, rows, n_sample, n_clusters, n_left, n_rounds, n_free, work, normal):
    """Rewrite the normal by rounds of 2-means on one row in every ``m / n_sample``.

    The first `n_free` rounds choose how many clusters are on the left.

    Returns
    -------
    gain : float
        What the split takes off the inertia.
    n_left : int
        Clusters on the left.
    """
    keys, ranked, places, sums, total = work
    m = rows.shape[0]
    dim = np.uint64(V.shape[1])
    for j in range(dim):
        total[j] = 0.0
    for i in range(n_sample):
        row = V[np.uint64(rows[i * m // n_sample])]
        for j in range(dim):
            total[j] += np.float64(row[j])
    gain = 0.0
    for n_round in range(n_rounds):
        _project(V, rows, n_sample, normal, keys, ranked, places)
        if n_round < n_free and n_clusters > 2:
            ranked[:n_sample].sort()
            n_left = _best_place(ranked, m, n_sample, n_clusters, n_left)
            for i in range(n_sample):
                ranked[i] = keys[i]
        k = _sampled_rows(m, n_sample, n_clusters, n_left)
        worst, place = _threshold(n_sample, k, ranked, places)
        for j in range(dim):
            sums[j] = 0.0
        for i in range(n_sample):
            if keys[i] > worst or (keys[i] == worst and i <= place):
                row = V[np.uint64(rows[i * m // n_sample])]
                for j in range(dim):
                    sums[j] += np.float64(row[j])
        for j in range(dim):
            normal[j] = sums[j] / k - (total[j] - sums[j]) / (n_sample - k)
        # Not summed in the loop above: LLVM's order would depend on where the arrays lie.
        before = gain
        normals = normal.reshape((1, normal.shape[0]))
        gain = np.float64(dot_of_rows(normals, np.uint64(0), normals, np.uint64(0), np.uint64(0)))
        gain *= k * (n_sample - k) / n_sample
        if not gain > before * (1.0 + _GAIN):
            break
    return gain, n_left


@inlined
def _sampled_rows(m, n_sample, n_clusters, n_left):
    """Return how many rows of a sample go to the left, for that many clusters there."""
    k = rows_on_the_left(m, n_clusters, n_left)
    return min(max(1, k * n_sample // m), n_sample - 1)


@inlined
def _best_place(ranked, m, n_sample, n_clusters, n_left):
    """Return how many clusters on the left take most off the inertia along the normal.

    A quarter of them at least is on either side. `ranked` is ascending; `n_left` if not finite.
    """
    total = 0.0
    for i in range(n_sample):
        total += np.float64(ranked[i])
    lowest = max(1, -(-n_clusters // 4))
    step = max(1, n_clusters // n_sample)
    most = -1.0
    done = 0
    left = 0.0
    for a in range(lowest, n_clusters - lowest + 1, step):
        k = _sampled_rows(m, n_sample, n_clusters, a)
        while done < k:
            done += 1
            left += np.float64(ranked[n_sample - done])
        excess = left - total * k / n_sample
        gain = excess * excess / (k * np.float64(n_sample - k))
        if gain > most:
            most, n_left = gain, a
    return n_left


@inlined
def _project(V, rows, n_sample, normal, keys, ranked, places):
    """Write the rows' inner products with the normal."""
    m = rows.shape[0]
    normals = normal.reshape((1, normal.shape[0]))
    for i in range(n_sample):
        row = np.uint64(rows[i * m // n_sample])
        number = dot_of_rows(V, row, normals, np.uint64(0), np.uint64(0))
        keys[i] = number if number == number else -np.inf  # NaN cannot be ranked
        ranked[i], places[i] = keys[i], i


@inlined
def _threshold(n_sample, k, ranked, places):
    """Return the k-th largest inner product, and its place."""
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
    _project(V, rows, m, normal, keys, ranked, places)
    worst, place = _threshold(m, k, ranked, places)
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

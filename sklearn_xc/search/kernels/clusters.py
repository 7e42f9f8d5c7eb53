"""Clusters of the rows of W by direction, kept up to date while W moves, and searched.

A row is augmented by ``sqrt(max(0, bound**2 - |w|**2))``, so that all have the same norm and the
nearest centroid is that with the largest inner product. The augmented number is never stored.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import dot_of_rows
from sklearn_xc._compile.emitters.int16_lanes import prefetch
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.ranking import sort_stack, write_best

#: Rows of a cluster are prefetched this many ahead: they are scattered.
_AHEAD = np.uint64(8)
_CACHE_LINE = 64


class Clusters(NamedTuple):
    """Clusters of labels.

    Attributes
    ----------
    rows : ndarray of shape (n_labels, d)
        Copies of the rows, as of their last update.
    cluster : ndarray of int32 of shape (n_labels,)
        Cluster of each label.
    gap : ndarray of float64 of shape (n_labels,)
        The nearest centroid stays the nearest while the row moves by less than half of this.
    members : ndarray of int32 of shape (n_labels,)
        Labels by cluster.
    begin : ndarray of int64 of shape (n_clusters + 1,)
        Where the members of each cluster begin.
    """

    rows: np.ndarray
    cluster: np.ndarray
    gap: np.ndarray
    members: np.ndarray
    begin: np.ndarray


@inlined
def _missing(bound, norm2):
    """Return the number that a row of a squared norm is augmented by."""
    return np.sqrt(max(0.0, bound * bound - norm2))


@kernel
def largest_norm(W, first, last):
    """Return the largest norm of the rows of W, columns `first` to `last`, in float64."""
    largest = 0.0
    for i in range(W.shape[0]):
        row = W[i, first:last]
        norm2 = 0.0
        for j in range(row.shape[0]):
            norm2 += np.float64(row[j]) * np.float64(row[j])
        largest = max(largest, norm2)
    return np.sqrt(largest)


@kernel
def augment_rows(W, first, rows, bound, out):
    """Write some rows of W from column `first` on, and their augmented number, to `out`.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
    first : int
    rows : ndarray of int of shape (m,)
    bound : float
        The norm to reach; longer rows are augmented by 0.
    out : ndarray of shape (m, d + 1)
        Overwritten.
    """
    d = out.shape[1] - 1
    for r in range(rows.shape[0]):
        row = W[rows[r], first : first + d]
        copy = out[r]
        norm2 = 0.0
        for j in range(np.uint64(d)):
            copy[j] = row[j]
        # In a loop of its own, as in ``sum_of``.
        for j in range(np.uint64(d)):
            norm2 += np.float64(row[j]) * np.float64(row[j])
        copy[d] = _missing(bound, norm2)


@kernel
def two_nearest(affinity, nearest, largest, gap):
    """Write the column of the largest number of each row, the number, and its lead on the next.

    Parameters
    ----------
    affinity : ndarray of shape (n, n_clusters)
    nearest : ndarray of int32 of shape (n,)
        Ties go to the first column.
    largest, gap : ndarray of float64 of shape (n,)
        The gap is inf where there is one column only.
    """
    for i in range(affinity.shape[0]):
        row = affinity[i]
        best = affinity[i, 0]
        at = 0
        second = row.dtype.type(-np.inf)
        for c in range(1, row.shape[0]):
            if row[c] > second:
                if row[c] > best:
                    best, second, at = row[c], best, c
                else:
                    second = row[c]
        nearest[i], largest[i], gap[i] = at, best, np.float64(best) - np.float64(second)


@kernel
def sum_members(points, nearest, sums):
    """Add each point to the row of `sums`, float64, of its cluster."""
    for i in range(points.shape[0]):
        total, point = sums[nearest[i]], points[i]
        for j in range(np.uint64(point.shape[0])):
            total[j] += np.float64(point[j])


@kernel
def list_members(clusters):
    """Write the members of all clusters, labels ascending."""
    cluster, members, begin = clusters.cluster, clusters.members, clusters.begin
    begin[:] = 0
    for label in range(np.uint64(cluster.shape[0])):
        begin[np.uint64(cluster[label]) + np.uint64(1)] += 1
    for c in range(1, begin.shape[0]):
        begin[c] += begin[c - 1]
    place = begin.copy()
    for label in range(np.uint64(cluster.shape[0])):
        c = np.uint64(cluster[label])
        members[np.uint64(place[c])] = label
        place[c] += 1


@kernel
def refresh_rows(W, first, changed, bound, rounding, clusters, loose):
    """Copy changed rows and write the labels that may have another centroid now.

    A centroid has norm 1, so that a move by m changes the lead of the nearest on any other by 2 m
    at most.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
    first : int
        First of the columns that are copied.
    changed : ndarray of int of shape (m,)
    bound, rounding : float
        The norm that rows are augmented to, and a gap too small to be relied on.
    clusters : Clusters
    loose : ndarray of int32 of shape (m,)
        Overwritten at its head.

    Returns
    -------
    int
        Number of labels written.
    """
    d = clusters.rows.shape[1]
    n_loose = 0
    for r in range(changed.shape[0]):
        label = np.uint64(changed[r])
        row, copy = W[label, first : first + d], clusters.rows[label]
        new2, old2, move2 = 0.0, 0.0, 0.0
        for j in range(np.uint64(d)):  # apart from the copying, so that it is vectorised
            new, old = np.float64(row[j]), np.float64(copy[j])
            new2 += new * new
            old2 += old * old
            move2 += (new - old) * (new - old)
        for j in range(np.uint64(d)):
            copy[j] = row[j]
        change = _missing(bound, new2) - _missing(bound, old2)
        clusters.gap[label] -= 2.0 * np.sqrt(move2 + change * change)
        if not clusters.gap[label] > rounding:
            loose[n_loose] = label
            n_loose += 1
    return n_loose


@kernel
def search_clusters(V, first, last, centroids, clusters, n_candidates, labels, scores, counts):
    """Write the best rows of the best clusters, best first, for the queries `first` to `last`.

    Clusters are visited by the inner products of their centroids, until they have had at least
    `n_candidates` rows; these are scored and the best are kept. Ties go to the smaller cluster and
    the smaller label.

    Parameters
    ----------
    V : ndarray of shape (n, d)
        Queries, C-contiguous.
    first, last : int
    centroids : ndarray of shape (n_clusters, d + 1)
        Of augmented rows; a query is augmented by 0.
    clusters : Clusters
    n_candidates : int
        At most the number of labels.
    labels, scores : ndarray of int32 and float of shape (n, n_candidates)
        Overwritten.
    counts : ndarray of int64 of shape (n,)
        Overwritten.
    """
    n_clusters = centroids.shape[0]
    begin = clusters.begin
    room = n_candidates
    for c in range(n_clusters):
        room = max(room, n_candidates + begin[c + 1] - begin[c])
    affinity, is_left = np.empty(n_clusters, V.dtype), np.empty(n_clusters, np.bool_)
    seen_labels, seen_scores = np.empty(room, np.int32), np.empty(room, V.dtype)
    space = sort_stack()
    d = np.uint64(V.shape[1])
    step = np.uint64(_CACHE_LINE // V.itemsize)
    for i in range(first, last):
        for c in range(np.uint64(n_clusters)):
            affinity[c] = dot_of_rows(centroids, c, V, np.uint64(i), np.uint64(0))
            is_left[c] = begin[c + np.uint64(1)] > begin[c]
        n_seen = np.uint64(0)
        while n_seen < np.uint64(n_candidates):
            best = _pop_best(affinity, is_left)
            end = np.uint64(begin[best + 1])
            for at in range(np.uint64(begin[best]), end):
                soon = np.uint64(clusters.members[min(at + _AHEAD, end - np.uint64(1))]) * d
                for line in range(soon, soon + d, step):
                    prefetch(clusters.rows, line)
                label = np.uint64(clusters.members[at])
                seen_scores[n_seen] = dot_of_rows(
                    clusters.rows, label, V, np.uint64(i), np.uint64(0)
                )
                seen_labels[n_seen] = label
                n_seen += np.uint64(1)
        counts[i] = write_best(
            seen_scores, seen_labels, np.int64(n_seen), labels[i], scores[i], space
        )


@inlined
def _pop_best(affinity, is_left):
    """Return the cluster of the largest number among those left, and strike it off.

    Few clusters are visited, so that going through all numbers each time costs less than a sort.
    """
    best = -1
    for c in range(affinity.shape[0]):
        if is_left[c] and (best < 0 or affinity[c] > affinity[best]):
            best = c
    is_left[best] = False
    return best

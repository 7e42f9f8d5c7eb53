"""Rows of W, copied cluster by cluster, kept so while W moves, and searched by centroids.

A row is augmented by ``sqrt(max(0, bound**2 - |w|**2))``, so that all have the same norm and the
nearest centroid is that with the largest inner product. The augmented number is never stored.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.emitters.dense_dot import dense_dot
from sklearn_xc._compile.jit import inlined, kernel
from sklearn_xc._weights.kernels.ranking import sort_space
from sklearn_xc.search.kernels.candidates import write_best


class Layout(NamedTuple):
    """Where the copies are. Each label has one slot; a cluster's slots follow each other.

    Attributes
    ----------
    rows : ndarray of shape (n_slots, d)
        Copies; anything in slots that are free.
    labels : ndarray of int32 of shape (n_slots,)
    begin, size, room : ndarray of int64 of shape (n_clusters,)
        A cluster has the slots from `begin` on, of which `size` are taken and `room` reserved.
    free : ndarray of int64 of shape (1,)
        The slots from here on belong to no cluster.
    slot, cluster : ndarray of int64 and int32 of shape (n_labels,)
        Of each label.
    gap : ndarray of float64 of shape (n_labels,)
        The nearest centroid stays the nearest while the row moves by less than half of this.
    """

    rows: np.ndarray
    labels: np.ndarray
    begin: np.ndarray
    size: np.ndarray
    room: np.ndarray
    free: np.ndarray
    slot: np.ndarray
    cluster: np.ndarray
    gap: np.ndarray


@inlined
def _missing(bound, norm2):
    """Return the number that a row of a squared norm is augmented by."""
    return np.sqrt(max(0.0, bound * bound - norm2))


@kernel
def largest_norm(W, first, last):
    """Return the largest norm of the rows of W, columns `first` to `last`, in float64."""
    largest = 0.0
    for i in range(W.shape[0]):
        row, norm2 = W[i, first:last], 0.0
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
        row, copy, norm2 = W[rows[r], first : first + d], out[r], 0.0
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
        row, best, at = affinity[i], affinity[i, 0], 0
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
def fill_slots(W, first, layout):
    """Copy all rows of W, from column `first` on, to their slots."""
    d = np.uint64(layout.rows.shape[1])
    for label in range(W.shape[0]):
        slot = layout.slot[label]
        layout.labels[slot] = label
        row, copy = W[label], layout.rows[slot]
        for j in range(d):
            copy[j] = row[np.uint64(first) + j]


@kernel
def refresh_rows(W, first, changed, bound, rounding, layout, loose):
    """Copy changed rows to their slots and write the labels that may have another centroid now.

    A centroid has norm 1, so that a move by m changes the lead of the nearest on any other by 2 m
    at most.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
    first : int
    changed : ndarray of int of shape (m,)
    bound, rounding : float
        The norm that rows are augmented to, and a gap too small to be relied on.
    layout : Layout
    loose : ndarray of int32 of shape (m,)
        Overwritten at its head.

    Returns
    -------
    int
        How many labels were written.
    """
    d, n_loose = layout.rows.shape[1], 0
    for r in range(changed.shape[0]):
        label = np.uint64(changed[r])
        row, copy = W[label, first : first + d], layout.rows[np.uint64(layout.slot[label])]
        new2, old2, move2 = 0.0, 0.0, 0.0
        for j in range(np.uint64(d)):  # apart from the copying, so that it is vectorised
            new, old = np.float64(row[j]), np.float64(copy[j])
            new2 += new * new
            old2 += old * old
            move2 += (new - old) * (new - old)
        for j in range(np.uint64(d)):
            copy[j] = row[j]
        change = _missing(bound, new2) - _missing(bound, old2)
        layout.gap[label] -= 2.0 * np.sqrt(move2 + change * change)
        if not layout.gap[label] > rounding:
            loose[n_loose] = label
            n_loose += 1
    return n_loose


@kernel
def move_labels(labels, nearest, gap, done, layout):
    """Move labels to their clusters; the last of the one left takes the slot.

    A cluster without room moves to free slots, with room for half as many again.

    Parameters
    ----------
    labels, nearest : ndarray of int32 of shape (m,)
        The labels and their clusters.
    gap : ndarray of float64 of shape (m,)
        To be kept for them.
    done : int
        Where to begin.
    layout : Layout
        Rewritten.

    Returns
    -------
    int
        How many labels are done: m, or less where the free slots did not do.
    """
    rows, begin, size, room = layout.rows, layout.begin, layout.size, layout.room
    for r in range(done, labels.shape[0]):
        label, new = labels[r], nearest[r]
        old = layout.cluster[label]
        layout.gap[label] = gap[r]
        if new == old:
            continue
        if size[new] == room[new]:
            wanted = room_for(size[new])
            if layout.free[0] + wanted > rows.shape[0]:
                return r
            to = layout.free[0]
            for k in range(size[new]):
                _move_slot(layout, begin[new] + k, to + k)
            begin[new], room[new] = to, wanted
            layout.free[0] += wanted
        last = begin[new] + size[new]
        hole = layout.slot[label]
        _move_slot(layout, hole, last)
        layout.cluster[label] = new
        size[new] += 1
        size[old] -= 1
        if hole != begin[old] + size[old]:
            _move_slot(layout, begin[old] + size[old], hole)
    return labels.shape[0]


@inlined
def room_for(size):
    """Return the slots to reserve for a cluster of this size."""
    return size + size // 2 + 8


@inlined
def _move_slot(layout, source, to):
    label, row, copy = layout.labels[source], layout.rows[source], layout.rows[to]
    for j in range(np.uint64(row.shape[0])):
        copy[j] = row[j]
    layout.labels[to] = label
    layout.slot[label] = to


@kernel
def search_clusters(V, first, last, centroids, layout, n_candidates, labels, scores, counts):
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
    layout : Layout
    n_candidates : int
        At most the number of labels.
    labels, scores : ndarray of int32 and float of shape (n, n_candidates)
        Overwritten.
    counts : ndarray of int64 of shape (n,)
        Overwritten.
    """
    d, width = np.uint64(V.shape[1]), np.uint64(centroids.shape[1])
    n_clusters = centroids.shape[0]
    room = n_candidates
    for c in range(n_clusters):
        room = max(room, n_candidates + layout.size[c])
    affinity, is_left = np.empty(n_clusters, V.dtype), np.empty(n_clusters, np.bool_)
    seen_labels, seen_scores = np.empty(room, np.int32), np.empty(room, V.dtype)
    space = sort_space(room)
    for i in range(first, last):
        at = np.uint64(i) * d
        for c in range(np.uint64(n_clusters)):
            affinity[c] = dense_dot(centroids, c * width, V, at, d)
            is_left[c] = layout.size[c] > 0
        n_seen = np.uint64(0)
        while n_seen < np.uint64(n_candidates):
            best = _pop_best(affinity, is_left)
            begin, size = np.uint64(layout.begin[best]), np.uint64(layout.size[best])
            for slot in range(begin, begin + size):
                seen_scores[n_seen] = dense_dot(layout.rows, slot * d, V, at, d)
                seen_labels[n_seen] = layout.labels[slot]
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

"""Lists of labels and scores for message passing, one for each block of columns."""

from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.jit import inlined
from sklearn_xc._compile.scratch import scratch

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_HALF = np.uint64(32)


class Lists(NamedTuple):
    """Work space for one instance: B blocks, up to ``cap`` labels.

    Attributes
    ----------
    places : ndarray of int32 of shape (B, cap)
        Labels of each list, as positions among the labels of the instance; positives lead.
    scores : ndarray of float64 of shape (B, cap)
        Their scores, ``B (z_j + lambda_j)``.
    sizes : ndarray of int64 of shape (B,)
        Lengths of the lists.
    gradient, work : ndarray of float64 of shape (cap,) and (2 cap,)
        Of one list.
    marked : ndarray of bool of shape (cap,)
        All False between uses.
    slot : ndarray of int64 of shape (cap,)
        Position of a label among those that a round moves; all -1 between rounds.
    moved, last_list, total : ndarray of int64, int64 and float64 of shape (cap,)
        The labels that a round moves, the last list with each, and B times their scores z.
    table : ndarray of int32
        Hash table of places, -1 where free; its length is a power of 2.
    """

    places: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray
    gradient: np.ndarray
    work: np.ndarray
    marked: np.ndarray
    slot: np.ndarray
    moved: np.ndarray
    last_list: np.ndarray
    total: np.ndarray
    table: np.ndarray


@inlined
def make_lists(n_blocks, cap):
    """Return empty lists of `n_blocks` blocks."""
    length = 2
    while length < 2 * cap:
        length *= 2
    return Lists(
        np.empty((n_blocks, cap), np.int32),
        np.empty((n_blocks, cap)),
        np.zeros(n_blocks, np.int64),
        scratch(cap, np.float64),
        scratch(2 * cap, np.float64),
        np.zeros(cap, np.bool_),
        np.full(cap, -1, np.int64),
        np.empty(cap, np.int64),
        np.empty(cap, np.int64),
        scratch(cap, np.float64),
        np.empty(length, np.int32),
    )


@inlined
def _append(lists, j, place, score):
    at = lists.sizes[j]
    lists.places[j, at] = place
    lists.scores[j, at] = score
    lists.sizes[j] = at + 1


@inlined
def _find_place(label, labels, n, table):
    """Return the place of a label, which is added if it is new, and the number of labels."""
    mask = np.uint64(table.shape[0] - 1)
    at = ((np.uint64(np.uint32(label)) * _GOLDEN) >> _HALF) & mask
    while table[at] >= 0:
        if labels[np.uint32(table[at])] == label:
            return np.int64(table[at]), n
        at = (at + _ONE) & mask
    table[at] = n
    labels[n] = label
    return n, n + 1


@inlined
def list_retrieved(i, blocks, positives, labels, lists):
    """Write the labels of instance i, positives first, and a list for each block; return number."""
    block_labels, block_scores, block_counts = blocks
    positive_labels, positive_scores, start, stop = positives
    n_blocks = block_labels.shape[0]
    factor = np.float64(n_blocks)
    lists.table[:] = -1
    n = 0
    for t in range(start, stop):
        _, n = _find_place(positive_labels[t], labels, n, lists.table)
    n_positive = n
    for j in range(n_blocks):
        lists.sizes[j] = 0
        for k in range(n_positive):
            _append(lists, j, k, factor * positive_scores[j, start + k])
        for q in range(block_counts[j, i]):
            place, n = _find_place(block_labels[j, i, q], labels, n, lists.table)
            if place >= n_positive:
                _append(lists, j, place, factor * np.float64(block_scores[j, i, q]))
    return n


@inlined
def list_rest(lists, j, n):
    """Append the labels, of n, that the list of block j lacks, with score 0."""
    for i in range(lists.sizes[j]):
        lists.marked[np.uint32(lists.places[j, i])] = True
    for k in range(n):
        if not lists.marked[k]:
            _append(lists, j, k, 0.0)
        lists.marked[k] = False


@inlined
def move_scores(lists, n_moved, step):
    """Move each block's scores of some labels towards the sum of all blocks'."""
    n_blocks = lists.sizes.shape[0]
    for s in range(n_moved):
        lists.total[s] = 0.0
        lists.last_list[s] = -1
    for j in range(n_blocks):
        for i in range(lists.sizes[j]):
            s = lists.slot[np.uint32(lists.places[j, i])]
            if s >= 0:
                lists.total[s] += lists.scores[j, i]
    for j in range(n_blocks):
        for i in range(lists.sizes[j]):
            s = lists.slot[np.uint32(lists.places[j, i])]
            if s >= 0:
                aim = lists.total[s] / n_blocks
                lists.scores[j, i] += step * (aim - lists.scores[j, i])
                lists.last_list[s] = j
        for s in range(n_moved):
            if lists.last_list[s] != j:
                _append(lists, j, lists.moved[s], step * lists.total[s] / n_blocks)

"""Greedy message passing: the gradient of a loss from scores that are known in blocks, and in part.

The scores ``z = z_1 + ... + z_B`` of an instance are sums over blocks of features. Each block has
retrieved its own largest entries. The convex function ::

    G(Lambda) = 1/B sum_j L(B (z_j + lambda_j))        sum_j lambda_j = 0

is smallest, namely L(z), where all arguments of L are equal. Each round moves them towards each
other at the labels at which the gradient of L is large for some block, which takes B scores a label
and no search.

In the argument ``m_j = B (z_j + lambda_j)`` the step ``lambda_j <- eta lambda_j* + (1 - eta)
lambda_j`` reads ``m_j <- eta z + (1 - eta) m_j``, and z is the mean of the m_j. So the arguments
alone are kept. That of a block is a list of labels and scores: the positives, what the block has
retrieved, and what a round has moved. All other labels that some block has retrieved have the score
0 and are listed where they matter, that is where 0 is above the floor of the loss. Labels that no
block has retrieved are absent, as if their scores were -inf.

Source: algorithm 2 of [1]_; differs in that labels which are in no list are absent. Taken as 0, as
printed in its algorithm 1, they would beat retrieved labels with negative scores.

References
----------
.. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
"""

import functools
import math
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined, kernel
from sklearn_xc.kernels.compiling.scratch import scratch

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_HALF = np.uint64(32)


class _Lists(NamedTuple):
    """Work space for one instance: B blocks, up to ``cap`` labels.

    Attributes
    ----------
    places : ndarray of int32 of shape (B, cap)
        Where the labels of each list are among the labels of the instance; the positives lead.
    scores : ndarray of float64 of shape (B, cap)
        Their scores, ``B (z_j + lambda_j)``.
    sizes : ndarray of int64 of shape (B,)
        Lengths of the lists.
    gradient, work : ndarray of float64 of shape (cap,) and (2 cap,)
        Of one list.
    marked : ndarray of bool of shape (cap,)
        All False between uses.
    slot : ndarray of int64 of shape (cap,)
        Which of the labels that a round moves a label is; all -1 between rounds.
    moved, last_list, total : ndarray of int64, int64 and float64 of shape (cap,)
        The labels that a round moves, the last list that had them, and B times their scores z.
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
def _make_lists(n_blocks, cap):
    length = 2
    while length < 2 * cap:
        length *= 2
    return _Lists(
        np.empty((n_blocks, cap), np.int32), np.empty((n_blocks, cap)),
        np.zeros(n_blocks, np.int64), scratch(cap, np.float64), scratch(2 * cap, np.float64),
        np.zeros(cap, np.bool_),
        np.full(cap, -1, np.int64), np.empty(cap, np.int64), np.empty(cap, np.int64),
        scratch(cap, np.float64), np.empty(length, np.int32),
    )  # fmt: skip


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
def _list_retrieved(
    i, block_labels, block_scores, block_counts, positive_labels, positive_scores, start, stop,
    labels, lists,
):  # fmt: skip
    """Write the labels of instance i, positives first, and a list for each block; return number."""
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
def _list_rest(lists, j, n):
    """Append those of the n labels that block j has not in its list: their score is 0."""
    for i in range(lists.sizes[j]):
        lists.marked[np.uint32(lists.places[j, i])] = True
    for k in range(n):
        if not lists.marked[k]:
            _append(lists, j, k, 0.0)
        lists.marked[k] = False


@inlined
def _move_scores(lists, n_moved, step):
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


@functools.cache
def message_passing_kernels(loss: ModuleType) -> SimpleNamespace:
    """Return ``couple`` and ``couple_one``, compiled for `loss` on their first calls.

    Parameters
    ----------
    loss : module
        A member of ``sklearn_xc.losses.LABEL_SET_LOSSES``.
    """
    gradient = loss.gradient
    is_sparse = loss.support_floor(0.0, 0.0, 1.0) > -math.inf

    @inlined
    def block_gradient(lists, j, n_positive, n, smoothing):
        """Write the gradient for the list of block j, and return its loss."""
        while True:
            size = lists.sizes[j]
            value, floor = gradient(
                lists.scores[j], n_positive, size, smoothing, lists.gradient, lists.work
            )
            if floor >= 0.0 or size == n:
                return value
            _list_rest(lists, j, n)

    @inlined
    def pass_messages(lists, n_positive, n, smoothing, tau, n_rounds):
        """Do the rounds of algorithm 2."""
        n_blocks = lists.sizes.shape[0]
        if not is_sparse or tau < 0.0:
            for j in range(n_blocks):
                _list_rest(lists, j, n)
        for t in range(1, n_rounds + 1):
            n_moved = 0
            for j in range(n_blocks):
                block_gradient(lists, j, n_positive, n, smoothing)
                for i in range(lists.sizes[j]):
                    k = np.uint32(lists.places[j, i])
                    if abs(lists.gradient[i]) > tau and lists.slot[k] < 0:
                        lists.slot[k] = n_moved
                        lists.moved[n_moved] = k
                        n_moved += 1
            _move_scores(lists, n_moved, 2.0 / (t + 2.0))
            for s in range(n_moved):
                lists.slot[np.uint64(lists.moved[s])] = -1

    @inlined
    def add_gradients(lists, n_positive, n, smoothing, out):
        """Write the mean over the blocks of the gradients; return that of the losses."""
        n_blocks = lists.sizes.shape[0]
        out[:n] = 0.0
        value = 0.0
        for j in range(n_blocks):
            value += block_gradient(lists, j, n_positive, n, smoothing)
            for i in range(lists.sizes[j]):
                out[np.uint32(lists.places[j, i])] += lists.gradient[i] / n_blocks
        return value / n_blocks

    @kernel
    def couple(
        block_labels, block_scores, block_counts, positive_indptr, positive_labels,
        positive_scores, weight, smoothing, tau, n_rounds, labels_out, gradient_out, counts_out,
        losses_out,
    ):  # fmt: skip
        """Write, for each instance, weight times the loss and the gradient after some rounds.

        In time and memory O(B Q) an instance and round, Q the labels that a block retrieves, where
        the floor of the loss sorts out labels of score 0; otherwise, as always with softmax,
        O(B^2 Q) if the blocks retrieve different labels. An instance's results do not depend on
        the others.

        Parameters
        ----------
        block_labels : ndarray of int32 of shape (B, n, Q)
            What each block has retrieved for each instance: distinct labels, first.
        block_scores : ndarray of float of shape (B, n, Q)
            Their scores in that block. Those of positives are not read.
        block_counts : ndarray of int64 of shape (B, n)
            How many they are.
        positive_indptr, positive_labels : ndarray of int64 and int32
            The positives of each instance, distinct, as in a CSR matrix.
        positive_scores : ndarray of float64 of shape (B, n_pairs)
            Their scores in each block.
        weight : ndarray of float64 of shape (n,)
            Of the instances.
        smoothing : float
            Of the loss.
        tau : float
            A round moves the labels with a gradient beyond it in some block: all labels if it is
            negative.
        n_rounds : int
            0 couples the blocks by the mean of their gradients alone.
        labels_out, gradient_out : ndarray of int32 and float64 of shape (n, cap)
            The labels whose gradient is not zero, positives first, and their gradients, at the
            head of each row. ``cap`` is at least B Q and the largest number of positives together.
        counts_out : ndarray of int64 of shape (n,)
            How many they are; 0 for an instance without positives.
        losses_out : ndarray of float64 of shape (n,)
            Weight times G at the end, which is at least the loss of the sum of the blocks' scores.
        """
        lists = _make_lists(block_labels.shape[0], labels_out.shape[1])
        for i in range(labels_out.shape[0]):
            counts_out[i] = 0
            losses_out[i] = 0.0
            start, stop = positive_indptr[i], positive_indptr[i + 1]
            if start == stop:
                continue
            labels, mean = labels_out[i], gradient_out[i]
            n = _list_retrieved(
                i, block_labels, block_scores, block_counts, positive_labels, positive_scores,
                start, stop, labels, lists,
            )  # fmt: skip
            pass_messages(lists, stop - start, n, smoothing, tau, n_rounds)
            losses_out[i] = weight[i] * add_gradients(lists, stop - start, n, smoothing, mean)
            found = 0
            for k in range(n):
                if mean[k] != 0.0:
                    labels[found] = labels[k]
                    mean[found] = weight[i] * mean[k]
                    found += 1
            counts_out[i] = found

    @kernel
    def couple_one(
        i, block_labels, block_scores, block_counts, positive_indptr, positive_labels,
        positive_scores, smoothing, tau, n_rounds,
    ):  # fmt: skip
        """Return labels, scores z_j and messages lambda_j of one instance, not weighted.

        Arguments as of ``couple``. Positives come first among the labels; the others are of shape
        (B, n_labels).
        """
        n_blocks = block_labels.shape[0]
        start, stop = positive_indptr[i], positive_indptr[i + 1]
        lists = _make_lists(n_blocks, n_blocks * block_labels.shape[2] + stop - start)
        labels = np.empty(lists.slot.shape[0], np.int32)
        n = _list_retrieved(
            i, block_labels, block_scores, block_counts, positive_labels, positive_scores,
            start, stop, labels, lists,
        )  # fmt: skip
        scores, messages = np.zeros((n_blocks, n)), np.zeros((n_blocks, n))
        for j in range(n_blocks):
            for s in range(lists.sizes[j]):
                scores[j, lists.places[j, s]] = lists.scores[j, s] / n_blocks
        pass_messages(lists, stop - start, n, smoothing, tau, n_rounds)
        for j in range(n_blocks):
            for s in range(lists.sizes[j]):
                k = lists.places[j, s]
                messages[j, k] = lists.scores[j, s] / n_blocks - scores[j, k]
        return labels[:n], scores, messages

    return SimpleNamespace(couple=couple, couple_one=couple_one)

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
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._compile.jit import callable_in_kernels, inlined, kernel
from sklearn_xc._compile.scratch import scratch

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_HALF = np.uint64(32)


# Lists of labels and scores, one for each block


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


# Rounds


def is_sparse(support_floor: Callable[..., Any], parameters: tuple[float, ...]) -> bool:
    """Return whether labels with low scores have no gradient, by the functions of a loss."""
    return bool(support_floor(0.0, 0.0, parameters) > -math.inf)


def _rounds_of(gradient: Callable[..., Any], is_sparse: bool) -> SimpleNamespace:
    """Return the parts of ``couple`` that go through the blocks of one instance."""

    @inlined
    def block_gradient(lists, j, n_positive, n, parameters):
        """Write the gradient for the list of block j, and return its loss."""
        while True:
            size = lists.sizes[j]
            value, floor = gradient(
                lists.scores[j], n_positive, size, parameters, lists.gradient, lists.work
            )
            if floor >= 0.0 or size == n:
                return value
            list_rest(lists, j, n)

    @inlined
    def pass_messages(lists, n_positive, n, parameters, tau, n_rounds):
        """Do the rounds of algorithm 2."""
        n_blocks = lists.sizes.shape[0]
        if not is_sparse or tau < 0.0:
            for j in range(n_blocks):
                list_rest(lists, j, n)
        for t in range(1, n_rounds + 1):
            n_moved = 0
            for j in range(n_blocks):
                block_gradient(lists, j, n_positive, n, parameters)
                for i in range(lists.sizes[j]):
                    k = np.uint32(lists.places[j, i])
                    if abs(lists.gradient[i]) > tau and lists.slot[k] < 0:
                        lists.slot[k] = n_moved
                        lists.moved[n_moved] = k
                        n_moved += 1
            move_scores(lists, n_moved, 2.0 / (t + 2.0))
            for s in range(n_moved):
                lists.slot[np.uint64(lists.moved[s])] = -1

    @inlined
    def add_gradients(lists, n_positive, n, parameters, out):
        """Write the mean over the blocks of the gradients; return that of the losses."""
        n_blocks = lists.sizes.shape[0]
        out[:n] = 0.0
        value = 0.0
        for j in range(n_blocks):
            value += block_gradient(lists, j, n_positive, n, parameters)
            for i in range(lists.sizes[j]):
                out[np.uint32(lists.places[j, i])] += lists.gradient[i] / n_blocks
        return value / n_blocks

    return SimpleNamespace(pass_messages=pass_messages, add_gradients=add_gradients)


@functools.cache
def message_passing_kernels(gradient: Callable[..., Any], *, is_sparse: bool) -> Any:
    """Return the kernel ``couple`` for the gradient of a `LabelSetLoss`.

    `is_sparse` tells whether its floor is above -inf, so that some labels have no gradient.
    """
    rounds = _rounds_of(callable_in_kernels(gradient), is_sparse)
    pass_messages, add_gradients = rounds.pass_messages, rounds.add_gradients

    @kernel
    def couple(blocks, positives, weight, parameters, tau, n_rounds, out):
        """Write, for each instance, weight times the loss and the gradient after some rounds.

        Takes O(B Q) time and memory per instance and round, Q the labels that a block retrieves,
        where the floor of the loss excludes labels of score 0; otherwise, as always with softmax,
        O(B^2 Q) if the blocks retrieve different labels. Instances do not affect each other.

        Parameters
        ----------
        blocks : tuple of ndarray
            Distinct labels that each block has retrieved for each instance, int32 (B, n, Q); their
            scores in that block, float (B, n, Q), not read for positives; how many there are,
            int64 (B, n).
        positives : tuple of ndarray
            Row pointers and labels, distinct, as in a CSR matrix; their scores in each block,
            float64 (B, n_pairs).
        weight : ndarray of float64 of shape (n,)
        parameters : tuple of float
            Of the loss.
        tau : float
            A round moves labels with a larger gradient in some block; all labels if it is negative.
        n_rounds : int
            0 couples the blocks by the mean of their gradients alone.
        out : tuple of ndarray
            Overwritten: labels with a gradient, positives first, int32 (n, cap); gradients, float
            (n, cap); how many, int64 (n,); weight times G at the end, float64 (n,). ``cap`` is at
            least B Q plus the largest number of positives.
        """
        labels_out, gradient_out, counts_out, losses_out = out
        indptr, positive_labels, positive_scores = positives
        lists = make_lists(blocks[0].shape[0], labels_out.shape[1])
        for i in range(labels_out.shape[0]):
            counts_out[i] = 0
            losses_out[i] = 0.0
            start, stop = indptr[i], indptr[i + 1]
            if start == stop:
                continue
            labels, mean = labels_out[i], gradient_out[i]
            own = positive_labels, positive_scores, start, stop
            n = list_retrieved(i, blocks, own, labels, lists)
            pass_messages(lists, stop - start, n, parameters, tau, n_rounds)
            losses_out[i] = weight[i] * add_gradients(lists, stop - start, n, parameters, mean)
            found = 0
            for k in range(n):
                if mean[k] != 0.0:
                    labels[found] = labels[k]
                    mean[found] = weight[i] * mean[k]
                    found += 1
            counts_out[i] = found

    return couple

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
from typing import Any

import numpy as np

from sklearn_xc.kernels.compiling.jit import callable_in_kernels, inlined, kernel
from sklearn_xc.kernels.decomposition.message_lists import (
    list_rest,
    list_retrieved,
    make_lists,
    move_scores,
)


@functools.cache
def message_passing_kernels(gradient: Callable[..., Any], *, is_sparse: bool) -> SimpleNamespace:
    """Return ``couple`` and ``couple_one``, compiled for a loss on their first calls.

    Parameters
    ----------
    gradient : callable
        Of a `LabelSetLoss`.
    is_sparse : bool
        Whether its floor is above -inf, so that some labels have no gradient.
    """
    rounds = _rounds_of(callable_in_kernels(gradient), is_sparse)
    return SimpleNamespace(
        couple=_couple_kernel(gradient, rounds), couple_one=_couple_one_kernel(gradient, rounds)
    )


def is_sparse(support_floor: Callable[..., Any], parameters: tuple[float, ...]) -> bool:
    """Tell whether labels with low scores have no gradient, by the functions of a loss."""
    return bool(support_floor(0.0, 0.0, parameters) > -math.inf)


def _rounds_of(gradient: Callable[..., Any], is_sparse: bool) -> SimpleNamespace:
    """Return the parts of the kernels that go through the blocks of one instance."""

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


def _couple_kernel(gradient: Callable[..., Any], rounds: SimpleNamespace) -> Any:
    pass_messages, add_gradients = rounds.pass_messages, rounds.add_gradients

    @kernel
    def couple(
        block_labels, block_scores, block_counts, positive_indptr, positive_labels,
        positive_scores, weight, parameters, tau, n_rounds, labels_out, gradient_out, counts_out,
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
        parameters : tuple of float
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
        lists = make_lists(block_labels.shape[0], labels_out.shape[1])
        for i in range(labels_out.shape[0]):
            counts_out[i] = 0
            losses_out[i] = 0.0
            start, stop = positive_indptr[i], positive_indptr[i + 1]
            if start == stop:
                continue
            labels, mean = labels_out[i], gradient_out[i]
            n = list_retrieved(
                i, block_labels, block_scores, block_counts, positive_labels, positive_scores,
                start, stop, labels, lists,
            )  # fmt: skip
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


def _couple_one_kernel(gradient: Callable[..., Any], rounds: SimpleNamespace) -> Any:
    pass_messages = rounds.pass_messages

    @kernel
    def couple_one(
        i, block_labels, block_scores, block_counts, positive_indptr, positive_labels,
        positive_scores, parameters, tau, n_rounds,
    ):  # fmt: skip
        """Return labels, scores z_j and messages lambda_j of one instance, not weighted.

        Arguments as of ``couple``. Positives come first among the labels; the others are of shape
        (B, n_labels).
        """
        n_blocks = block_labels.shape[0]
        start, stop = positive_indptr[i], positive_indptr[i + 1]
        lists = make_lists(n_blocks, n_blocks * block_labels.shape[2] + stop - start)
        labels = np.empty(lists.slot.shape[0], np.int32)
        n = list_retrieved(
            i, block_labels, block_scores, block_counts, positive_labels, positive_scores,
            start, stop, labels, lists,
        )  # fmt: skip
        scores, messages = np.zeros((n_blocks, n)), np.zeros((n_blocks, n))
        for j in range(n_blocks):
            for s in range(lists.sizes[j]):
                scores[j, lists.places[j, s]] = lists.scores[j, s] / n_blocks
        pass_messages(lists, stop - start, n, parameters, tau, n_rounds)
        for j in range(n_blocks):
            for s in range(lists.sizes[j]):
                k = lists.places[j, s]
                messages[j, k] = lists.scores[j, s] / n_blocks - scores[j, k]
        return labels[:n], scores, messages

    return couple_one

"""Greedy message passing: the gradient of a loss from scores that are known in blocks, and in part.

The scores ``z = z_1 + ... + z_B`` of an instance are sums over blocks of features. Each block has
retrieved its own largest entries. The convex function ::

    G(Lambda) = 1/B sum_j L(B (z_j + lambda_j))        sum_j lambda_j = 0

is smallest, namely L(z), where all arguments of L are equal. Each round moves them towards each
other at the labels at which the gradient of L is large for some block, which takes B scores a label
and no search.

In the argument ``m_j = B (z_j + lambda_j)`` the step ``lambda_j <- eta lambda_j* + (1 - eta)
lambda_j`` reads ``m_j <- eta z + (1 - eta) m_j``, and z is the mean of the m_j. So the arguments
alone are kept: those of the positives and of all labels that some block has retrieved, which score
0 in the others.

Source: algorithm 2 of [1]_, where labels that no block has retrieved have a score of 0. Here they
take part if a block lists them with that score; else they are left out of the loss.

References
----------
.. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import callable_in_kernels, inlined, kernel, scratch
from sklearn_xc.decomposition.kernels.label_gradients import write_gradient

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_HALF = np.uint64(32)


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
def _list_scores(i, blocks, positives, labels, m, table):
    """Write the labels of instance i, positives first, and B times their scores in each block."""
    found, scores, counts = blocks
    indptr, positive_labels, positive_scores = positives
    n_blocks = found.shape[0]
    table[:] = -1
    n = 0
    for t in range(indptr[i], indptr[i + 1]):
        place, n = _find_place(positive_labels[t], labels, n, table)
        for j in range(n_blocks):
            m[j, place] = n_blocks * positive_scores[j, t]
    n_positive = n
    for j in range(n_blocks):
        for q in range(counts[j, i]):
            before = n
            place, n = _find_place(found[j, i, q], labels, n, table)
            if n > before:
                for other in range(n_blocks):
                    m[other, place] = 0.0
            if place >= n_positive:
                m[j, place] = n_blocks * np.float64(scores[j, i, q])
    return n


@inlined
def _move(m, gradients, n, tau, step):
    """Move the scores of labels with a large gradient in some block towards their mean."""
    n_blocks = m.shape[0]
    for k in range(n):
        largest = -1.0
        mean = 0.0
        for j in range(n_blocks):
            largest = max(largest, abs(gradients[j, k]))
            mean += m[j, k] / n_blocks
        if largest > tau:
            for j in range(n_blocks):
                m[j, k] += step * (mean - m[j, k])


@functools.cache
def message_passing_kernel(gradient: Callable[..., Any]) -> Any:
    """Return the kernel ``couple`` for the gradient of a `LabelSetLoss`."""
    find_gradient = callable_in_kernels(gradient)

    @kernel
    def couple(blocks, positives, weight, parameters, tau, n_rounds, out):
        """Write, for each instance, weight times the loss and the gradient after some rounds.

        Takes O(B^2 Q) time and O(B^2 Q) memory per instance and round, Q the labels that a block
        retrieves. Instances do not affect each other.

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
        n_blocks, cap = blocks[0].shape[0], labels_out.shape[1]
        m, gradients = np.empty((n_blocks, cap)), np.empty((n_blocks, cap))
        work = scratch(2 * cap, np.float64)
        length = 2
        while length < 2 * cap:
            length *= 2
        table = np.empty(length, np.int32)
        for i in range(labels_out.shape[0]):
            counts_out[i], losses_out[i] = 0, 0.0
            n_positive = positives[0][i + 1] - positives[0][i]
            labels = labels_out[i]
            if n_positive == 0:
                continue
            n = _list_scores(i, blocks, positives, labels, m, table)
            for t in range(n_rounds + 1):
                loss = 0.0
                for j in range(n_blocks):
                    value, _ = find_gradient(m[j], n_positive, n, parameters, gradients[j], work)
                    loss += value / n_blocks
                if t < n_rounds:
                    _move(m, gradients, n, tau, 2.0 / (t + 3.0))
            losses_out[i] = weight[i] * loss
            for k in range(n):
                mean = 0.0
                for j in range(n_blocks):
                    mean += gradients[j, k] / n_blocks
                work[k] = mean
            counts_out[i] = write_gradient(labels, work, n, weight[i], labels, gradient_out[i])

    return couple

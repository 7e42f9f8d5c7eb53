"""Gradients of a loss over label sets, for the labels that a search has found or for all."""

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from sklearn_xc._compile.arithmetic.vectors import dot_of_rows, largest_entry
from sklearn_xc._compile.jit import callable_in_kernels, inlined, kernel, scratch

#: Labels whose exact scores are computed at first; then a share more of them, and so on.
_FIRST_LABELS = 32
_SHARE_MORE = 0.25
#: A candidate is skipped if its estimated score lies this many standard deviations of the errors
#: below what would give it a gradient. One was too few with 10,000 classes and more (accuracy 0.41
#: against 0.46), four took up to half as much time again for no gain.
DEVIATIONS = 2.0


@inlined
def slack_of_estimates(total, squares, n):
    """Return by how much a score may exceed its estimate, from the sums of n errors so far."""
    if n == 0:  # all candidates so far were positives
        return np.inf
    mean = total / n
    return mean + DEVIATIONS * np.sqrt(max(squares / n - mean * mean, 0.0))


@inlined
def next_size(done):
    """Return up to which candidate to score next."""
    return done + max(_FIRST_LABELS, np.int64(_SHARE_MORE * done))


@inlined
def score(W, label, V, i):
    """Return the inner product of a row of W and a row of V."""
    return dot_of_rows(W, np.uint64(label), V, np.uint64(i), np.uint64(0))


@inlined
def is_positive(label, positives, first, last):
    """Return whether a label is one of ``positives[first:last]``, which need not be sorted."""
    found = False
    for t in range(first, last):
        found |= positives[t] == label
    return found


@inlined
def hide_positives(scores, positives, first, last):
    """Set the scores, (n_labels,), of ``positives[first:last]`` to -inf."""
    for t in range(first, last):
        scores[positives[t]] = -np.inf


@inlined
def write_gradient(labels, gradient, n, weight, labels_out, gradient_out):
    """Write the labels with a gradient that is not 0, and return their number."""
    written = 0
    for t in range(n):
        if gradient[t] != 0.0:
            labels_out[written] = labels[t]
            gradient_out[written] = weight * gradient[t]
            written += 1
    return written


@functools.cache
def label_gradient_kernels(
    gradient: Callable[..., Any], support_floor: Callable[..., Any]
) -> SimpleNamespace:
    """Return the kernels for the two functions of a `LabelSetLoss`.

    Both write, for instance i of n, ``counts[i]`` labels with a gradient that is not 0, with it, at
    the beginning of row i of `labels_out` (int32) and `gradient_out` (float), and the loss over the
    labels considered in `losses` (float64). Gradient and loss are multiplied by the instance's
    weight. The positives of i, distinct, are ``positives[indptr[i] : indptr[i + 1]]``. `parameters`
    are those of the loss.

    searched(W, batch, found, is_exact, parameters, out, wants_more)
        Over labels found by a search. `batch` is ``(V, indptr, positives, weight)``; `found` are
        labels, int32 (n, n_candidates), their scores or estimates of them, and counts; `out` is
        ``(labels_out, gradient_out, counts, losses)``. Estimated candidates come best first and
        are scored exactly until no further one seems to have a gradient. ``wants_more[i]``, bool,
        is whether candidates beyond the last one may have a gradient.
    dense(scores, indptr, positives, weight, parameters, labels_out, gradient_out, counts, losses)
        Over all labels, from all scores, (n, n_labels), which are overwritten in part.
    """
    return SimpleNamespace(
        searched=_searched_kernel(gradient), dense=_dense_kernel(gradient, support_floor)
    )


def _searched_kernel(gradient: Callable[..., Any]) -> Any:
    find_gradient = callable_in_kernels(gradient)

    @kernel
    def searched(W, batch, candidates, is_exact, parameters, out, wants_more):
        V, indptr, positives, weight = batch
        found, scores, n_found = candidates
        labels_out, gradient_out, counts, losses = out
        room = found.shape[1] + np.max(indptr[1:] - indptr[:-1])
        labels, z = scratch(room, np.int32), scratch(room, np.float64)
        gradient, work = scratch(room, np.float64), scratch(2 * room, np.float64)
        for i in range(V.shape[0]):
            first, last = indptr[i], indptr[i + 1]
            for t in range(first, last):
                labels[t - first] = positives[t]
                z[t - first] = score(W, positives[t], V, i)
            n = n_positive = last - first
            total, squares, n_scored = 0.0, 0.0, 0
            done = 0
            until = n_found[i] if is_exact else _FIRST_LABELS
            while True:
                until = min(until, n_found[i])
                for t in range(done, until):
                    label = found[i, t]
                    if is_positive(label, positives, first, last):
                        continue
                    labels[n] = label
                    if is_exact:
                        z[n] = scores[i, t]
                    else:
                        z[n] = score(W, label, V, i)
                        error = z[n] - scores[i, t]
                        total += error
                        squares += error * error
                        n_scored += 1
                    n += 1
                done = until
                loss, floor = find_gradient(z, n_positive, n, parameters, gradient, work)
                wants_more[i] = False
                if done == n_found[i] and (is_exact or done == 0):
                    break
                slack = slack_of_estimates(total, squares, n_scored)
                # No candidate beyond the last one has a better estimate.
                if scores[i, min(done, n_found[i] - 1)] + slack <= floor:
                    break
                if done == n_found[i]:
                    wants_more[i] = True
                    break
                until = next_size(done)
            losses[i] = weight[i] * loss
            counts[i] = write_gradient(
                labels, gradient, n, weight[i], labels_out[i], gradient_out[i]
            )

    return searched


def _dense_kernel(gradient: Callable[..., Any], support_floor: Callable[..., Any]) -> Any:
    find_gradient, find_floor = callable_in_kernels(gradient), callable_in_kernels(support_floor)

    @kernel
    def dense(
        scores, indptr, positives, weight, parameters, labels_out, gradient_out, counts, losses
    ):
        n_labels = scores.shape[1]
        labels, z = scratch(n_labels, np.int32), scratch(n_labels, np.float64)
        gradient, work = scratch(n_labels, np.float64), scratch(2 * n_labels, np.float64)
        for i in range(scores.shape[0]):
            n = 0
            smallest = np.inf
            for t in range(indptr[i], indptr[i + 1]):
                labels[n], z[n] = positives[t], scores[i, positives[t]]
                smallest = min(smallest, z[n])
                n += 1
            hide_positives(scores[i], positives, indptr[i], indptr[i + 1])
            n_positive = n
            largest = largest_entry(scores[i])
            bound = find_floor(np.float64(largest), smallest, parameters)
            # Of scores beyond 1e16 the floor is rounded to the largest, which must not be left out.
            top = largest if largest > -np.inf else np.nan
            for k in range(n_labels):
                if scores[i, k] > bound or scores[i, k] == top:
                    labels[n], z[n] = k, scores[i, k]
                    n += 1
            loss, _ = find_gradient(z, n_positive, n, parameters, gradient, work)
            losses[i] = weight[i] * loss
            counts[i] = write_gradient(
                labels, gradient, n, weight[i], labels_out[i], gradient_out[i]
            )

    return dense

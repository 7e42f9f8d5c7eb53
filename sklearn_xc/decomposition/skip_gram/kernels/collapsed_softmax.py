"""Softmax of a word over contexts, against how often it has occurred with each of them.

The loss of word i is ``log(sum over contexts k of exp(z_ik)) - sum over its contexts k of s_ik
z_ik``, where s_ik is the share of context k among all that i has occurred with. Its gradient by z
is the softmax less the shares.

Source: equation 9 of [1]_, without the factor of the word's own frequency, which is its weight.

References
----------
.. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
   decomposition for fast learning in large output spaces", ICML 2018.
"""

import math

import numpy as np

from sklearn_xc._compile.arithmetic.vector_math import vector_exp
from sklearn_xc._compile.arithmetic.vectors import largest_entry, sum_of
from sklearn_xc._compile.jit import inlined, kernel, scratch
from sklearn_xc._training.kernels.row_moves import prefetch_row
from sklearn_xc.decomposition.kernels.label_gradients import next_size, score, slack_of_estimates

#: A context after the last one scored has a smaller probability than this.
NEGLIGIBLE = 1e-3
#: A context with a larger probability is worth being kept for the next step.
KEPT = 2e-4
_LOG_NEGLIGIBLE = math.log(NEGLIGIBLE)
#: Of a float32.
_LOG2_E = np.float32(1.4426950408889634)
_LOG_2_HIGH, _LOG_2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LEAST = np.float32(-87.0)
#: Rows of contexts are prefetched this far ahead of their scores.
_AHEAD = 8
#: Exponents are cut at this.
_MOST = 700.0
_BIAS, _MANTISSA_BITS = np.int32(127), np.int32(23)


@inlined
def _exp32(x):
    """Return exp(x) of a float32 up to 0, to seven digits, but at least e^-87."""
    t = max(x, _LEAST)
    whole = np.rint(t * _LOG2_E)
    r = t - whole * _LOG_2_HIGH - whole * _LOG_2_LOW
    p = np.float32(1.0 / 5040.0)
    p = p * r + np.float32(1.0 / 720.0)
    p = p * r + np.float32(1.0 / 120.0)
    p = p * r + np.float32(1.0 / 24.0)
    p = p * r + np.float32(1.0 / 6.0)
    p = p * r + np.float32(0.5)
    power = np.int32((np.int32(whole) + _BIAS) << _MANTISSA_BITS).view(np.float32)
    return (np.float32(1.0) + r + r * r * p) * power


@inlined
def _add(z, first, last, work, largest, total):
    """Return the largest score so far, and the sum of exp(score - it), with some further ones."""
    if first == last:
        return largest, total
    top = largest_entry(z[first:last])
    if top > largest:
        total *= math.exp(largest - top)
        largest = top
    for j in range(first, last):
        below = z[j] - largest
        work[j] = vector_exp(below) if below <= 0.0 else below  # NaN stays NaN
    return largest, total + sum_of(work[first:last])


@inlined
def _reference(z, label, log_shares, centre):
    """Return the reference weight of a context, up to the height of its word."""
    log_share = log_shares[label]
    return math.exp(log_share) * (1.0 + z - log_share - centre)


@inlined
def _score_own(i, W, words, z, labels, seen):
    """Score the contexts of word i; return how many there are, and their mean score by share."""
    V, indptr, positives, shares, _ = words
    last = indptr[V.shape[0]] - 1
    first = indptr[i]
    mean_score = 0.0
    for t in range(first, indptr[i + 1]):
        prefetch_row(W, positives[min(t + _AHEAD, last)])
        labels[t - first] = positives[t]
        z[t - first] = score(W, positives[t], V, i)
        seen[positives[t]] = i
        mean_score += shares[t] * z[t - first]
    return indptr[i + 1] - first, mean_score


@inlined
def _score_found(i, W, V, candidates, is_exact, z, labels, seen, work, n):
    """Score contexts found for word i, which has n so far, until no further one seems to matter.

    Returns the new n, the largest score, the sum of ``exp(z - largest)``, and whether contexts
    beyond the last one found may matter.
    """
    found, scores, n_found = candidates
    has_scores = scores.shape[1] > 0 or found.shape[1] == 0
    largest, total = _add(z, 0, n, work, -np.inf, 0.0)
    error_sum, squares, n_scored = 0.0, 0.0, 0
    done = 0
    until = n_found[i] if is_exact or not has_scores else next_size(0)
    while True:
        until, before = min(until, n_found[i]), n
        for t in range(done, until):
            label = found[i, t]
            prefetch_row(W, found[i, min(t + _AHEAD, n_found[i] - 1)])
            if seen[label] == i:
                continue
            seen[label] = i
            labels[n] = label
            if is_exact:
                z[n] = scores[i, t]
            else:
                z[n] = score(W, label, V, i)
                if has_scores:
                    error = z[n] - scores[i, t]
                    error_sum += error
                    squares += error * error
                    n_scored += 1
            n += 1
        done = until
        largest, total = _add(z, before, n, work, largest, total)
        if done == n_found[i] and (is_exact or done == 0 or not has_scores):
            return n, largest, total, False
        slack = slack_of_estimates(error_sum, squares, n_scored)
        floor = largest + math.log(total) + _LOG_NEGLIGIBLE
        if scores[i, min(done, n_found[i] - 1)] + slack <= floor:
            return n, largest, total, False
        if done == n_found[i]:
            return n, largest, total, True
        until = next_size(done)


@inlined
def _weigh_drawn(i, drawn, log_shares, centre, height, largest, seen, work):
    """Write ``exp(z - largest)`` less the reference, over the probability of each draw; sum it."""
    others, probabilities, scores, _ = drawn
    for t in range(others.shape[0]):
        work[t] = 0.0
        if seen[others[t]] != i:
            z = np.float64(scores[i, t])
            work[t] = math.exp(min(z - largest, _MOST))
            work[t] -= height * _reference(z, others[t], log_shares, centre)
            work[t] /= probabilities[t]
    return sum_of(work[: others.shape[0]])


@kernel
def gradient_of_found(W, words, candidates, drawn, reference, is_exact, out, wants_more, keeping):
    """Write the gradients over a word's own contexts, those found, and some drawn from the others.

    The sample corrects a reference whose sums over all contexts are known: context k has the weight
    ``exp(heights[i]) s_k (1 + z_ik - log(s_k) - centres[i])``, with its share s_k of all counts.
    The difference of ``exp(z_ik)`` and this weight counts 1 / r times for a context that is drawn
    with probability r, and once for one that was found or is the word's own. Gradients are written
    less those of the reference, which are `factors` times its weights without the height.

    Parameters
    ----------
    W : ndarray of float of shape (n_contexts, dim)
    words : tuple of ndarray
        V, float (n, dim); row pointers and contexts of each word, distinct, and their shares, which
        sum to 1; weights of loss and gradient, float64 (n,).
    candidates : tuple of ndarray
        Contexts that a search has found, int32 (n, n_candidates); their scores, or estimates of
        them, best first, or (n, 0) if all are to be scored; how many, int64 (n,).
    drawn : tuple of ndarray
        Distinct contexts, int32 (m,); their probabilities; their scores, float (n, m); and,
        overwritten, their gradients, 0 for contexts that count themselves.
    reference : tuple of ndarray
        log_shares, float64 (n_contexts,); centres, the means of ``z_ik - log(s_k)`` with the
        weights s_k, and heights, float64 (n,); and, overwritten, factors, float64 (n,).
    is_exact : bool
        Whether candidates' scores are exact. Of estimated ones only those that seem to matter are
        scored.
    out : tuple of ndarray
        Overwritten, as in ``label_gradient_kernels``: the word's own contexts and those found.
    wants_more : ndarray of bool of shape (n,)
        Overwritten: whether contexts beyond the last one found may matter.
    keeping : tuple of ndarray
        Overwritten: contexts found that matter and are not the word's own, int32 (n, n_most), and
        how many, int64 (n,).
    """
    V, indptr, _, shares, weight = words
    others, of_others = drawn[0], drawn[3]
    log_shares, centres, heights, factors = reference
    labels_out, gradient_out, counts, losses = out
    kept, n_kept = keeping
    room = candidates[0].shape[1] + np.max(indptr[1:] - indptr[:-1])
    z, work = scratch(room, np.float64), scratch(max(room, others.shape[0]), np.float64)
    seen = np.full(W.shape[0], -1, np.int32)
    for i in range(V.shape[0]):
        # 1. Scores of the word's own contexts and of those found.
        labels = labels_out[i]
        n_own, mean_score = _score_own(i, W, words, z, labels, seen)
        n, largest, total, wants_more[i] = _score_found(
            i, W, V, candidates, is_exact, z, labels, seen, work, n_own
        )
        # 2. The sum over all contexts, divided by exp(largest).
        rest = height = math.exp(min(heights[i] - largest, _MOST))
        for j in range(n):
            rest -= height * _reference(z[j], labels[j], log_shares, centres[i])
        rest += _weigh_drawn(i, drawn, log_shares, centres[i], height, largest, seen, work)
        total += max(rest, 0.0)
        for t in range(others.shape[0]):
            of_others[i, t] = weight[i] * work[t] / total
        log_total = largest + math.log(total)
        factors[i] = weight[i] * height / total
        losses[i] = weight[i] * (log_total - mean_score)
        # 3. Gradients, and the contexts that are worth being kept.
        counts[i], n_kept[i] = n, 0
        for j in range(n):
            below = z[j] - log_total
            work[j] = vector_exp(below) if below <= 0.0 else below
        for j in range(n_own, n):
            if work[j] > KEPT and n_kept[i] < kept.shape[1]:
                kept[i, n_kept[i]] = labels[j]
                n_kept[i] += 1
        for j in range(n_own):
            work[j] -= shares[indptr[i] + j]
        for j in range(n):
            gradient_out[i, j] = weight[i] * work[j]
        for j in range(n):
            expected = _reference(z[j], labels[j], log_shares, centres[i])
            gradient_out[i, j] -= factors[i] * expected


@kernel
def gradient_of_all(scores, indptr, positives, shares, weight, losses):
    """Write the gradients over all contexts in place of their scores.

    Parameters
    ----------
    scores : ndarray of float32 or float64 of shape (n, n_contexts)
        Overwritten by the gradients.
    indptr, positives, shares, weight, losses
        As of ``gradient_of_found``.
    """
    number = scores.dtype.type
    for i in range(scores.shape[0]):
        z = scores[i]
        largest = z[0]
        mean_score = 0.0
        for t in range(indptr[i], indptr[i + 1]):
            mean_score += shares[t] * z[positives[t]]
        for k in range(z.shape[0]):
            largest = max(largest, z[k])
        for k in range(z.shape[0]):
            z[k] = _exp32(z[k] - largest)
        total = sum_of(z)
        factor = number(weight[i] / total)
        for k in range(z.shape[0]):
            z[k] *= factor
        for t in range(indptr[i], indptr[i + 1]):
            z[positives[t]] -= number(weight[i] * shares[t])
        losses[i] = weight[i] * (np.float64(largest) + math.log(total) - mean_score)


@kernel
def add_outer_products(G, labels, values, counts, V, first, last):
    """Add ``values[i, t] V[i]`` to row ``labels[i, t]`` of G, in some columns.

    Parameters
    ----------
    G : ndarray of float of shape (n_contexts, dim)
        Changed.
    labels, values, counts
        As of ``LabelGradient``.
    V : ndarray of float of shape (n, dim)
    first, last : int
        The columns.
    """
    for i in range(V.shape[0]):
        v = V[i, first:last]
        for t in range(counts[i]):
            g, value = G[labels[i, t], first:last], values[i, t]
            for j in range(v.shape[0]):
                g[j] += value * v[j]

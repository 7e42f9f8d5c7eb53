"""Loops of the skip-gram model against slow twins."""

import math

import numpy as np
import pytest

from sklearn_xc.decomposition.skip_gram.kernels.collapsed_softmax import (
    KEPT,
    add_outer_products,
    gradient_of_all,
    gradient_of_found,
)

N, N_CONTEXTS, DIM = 9, 40, 6


def words(seed, dtype):
    """Return vectors, and contexts with shares, of some words."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(N_CONTEXTS, DIM)).astype(dtype)
    V = rng.normal(size=(N, DIM)).astype(dtype)
    own = [np.sort(rng.choice(N_CONTEXTS, rng.integers(1, 9), replace=False)) for _ in range(N)]
    shares = [rng.dirichlet(np.ones(len(one))) for one in own]
    indptr = np.cumsum([0, *map(len, own)])
    weight = rng.uniform(0.5, 3, N)
    return (
        rng,
        W,
        V,
        own,
        shares,
        indptr,
        np.concatenate(own).astype(np.int32),
        np.concatenate(shares).astype(dtype),
        weight,
    )


def twin_of_found(z, own, shares, others, chances, log_shares, centre, height):
    """Return the gradient of one word over all contexts, by the definition, and its loss."""
    counted = set(own) | set(others["found"])
    reference = np.exp(height + log_shares) * (1 + z - log_shares - centre)
    total = sum(math.exp(z[k]) for k in counted)
    drawn = [k for k in others["drawn"] if k not in counted]
    corrected = reference.sum() - sum(reference[k] for k in counted)
    corrected += sum((math.exp(z[k]) - reference[k]) / chances[k] for k in drawn)
    total += max(corrected, 0.0)
    gradient = reference / total
    for k in counted:
        gradient[k] = math.exp(z[k]) / total
    for k in drawn:
        gradient[k] += (math.exp(z[k]) - reference[k]) / chances[k] / total
    for k, share in zip(own, shares, strict=True):
        gradient[k] -= share
    loss = math.log(total) - sum(s * z[k] for k, s in zip(own, shares, strict=True))
    return gradient, loss


@pytest.mark.parametrize("scores", ["exact", "estimated", "none"])
def test_gradients_over_some_contexts(scores):
    dtype = np.float32
    rng, W, V, own, shares, indptr, positives, flat_shares, weight = words(0, dtype)
    z = V.astype(float) @ W.T.astype(float)
    found = np.argsort(-z, axis=1)[:, :5].astype(np.int32)
    of_found = np.take_along_axis(z, found, 1).astype(dtype)
    if scores == "estimated":
        of_found = of_found + dtype(0.01)
    elif scores == "none":
        of_found = np.empty((N, 0), dtype)
    drawn = np.sort(rng.choice(N_CONTEXTS, 12, replace=False)).astype(np.int32)
    chances = rng.uniform(0.2, 1, N_CONTEXTS)
    log_shares = np.log(rng.dirichlet(np.ones(N_CONTEXTS)))
    centres = (z - log_shares) @ np.exp(log_shares)  # with which the reference has its height
    heights = centres + rng.normal(size=N) * 0.2
    room = 5 + int(np.diff(indptr).max())
    labels, values = np.empty((N, room), np.int32), np.empty((N, room), dtype)
    counts, losses, factors = np.empty(N, np.int64), np.empty(N), np.empty(N)
    wants_more, of_others = np.empty(N, np.bool_), np.empty((N, 12), dtype)
    kept, n_kept = np.empty((N, 4), np.int32), np.empty(N, np.int64)
    scores_of_others = V @ W[drawn].T
    before = scores_of_others.copy()
    batch, candidates = (
        (V, indptr, positives, flat_shares, weight),
        (found, of_found, np.full(N, 5)),
    )
    others = drawn, chances[drawn], scores_of_others, of_others
    reference = log_shares, centres, heights, factors
    how, out = (scores == "exact",), (labels, values, counts, losses)
    keeping = kept, n_kept
    gradient_of_found(W, batch, candidates, others, reference, *how, out, wants_more, keeping)
    np.testing.assert_array_equal(scores_of_others, before)
    for i in range(N):
        n_own = len(own[i])
        assert labels[i, :n_own].tolist() == own[i].tolist()
        # Estimates may stop the search before the last one.
        of_word = {"found": labels[i, n_own : counts[i]].tolist(), "drawn": drawn.tolist()}
        if scores != "estimated":
            assert set(of_word["found"]) == set(found[i].tolist()) - set(own[i].tolist())
        expected, loss = twin_of_found(
            z[i], own[i], shares[i], of_word, chances, log_shares, centres[i], heights[i]
        )
        rest = factors[i] * np.exp(log_shares) * (1 + z[i] - log_shares - centres[i])
        np.add.at(rest, labels[i, : counts[i]], values[i, : counts[i]].astype(float))
        np.add.at(rest, drawn, of_others[i].astype(float))
        np.testing.assert_allclose(rest, weight[i] * expected, atol=1e-5)
        assert losses[i] == pytest.approx(weight[i] * loss, rel=1e-5)
        p = expected[of_word["found"]]
        matter = [k for k, one in zip(of_word["found"], p, strict=True) if one > KEPT][:4]
        assert kept[i, : n_kept[i]].tolist() == matter


def test_a_search_that_may_have_missed_something_asks_for_more():
    _, W, V, _, _, indptr, positives, shares, weight = words(3, np.float32)
    z = V @ W.T
    found = np.argsort(-z, axis=1)[:, :3].astype(np.int32)
    scores = np.take_along_axis(z, found, 1)
    wants_more = np.empty(N, np.bool_)
    room = 3 + int(np.diff(indptr).max())
    no_scores = np.empty((N, 0), np.float32)
    none = np.empty(0, np.int32), np.empty(0), no_scores, no_scores.copy()
    for is_exact, expected in ((True, False), (False, True)):
        batch, candidates = (V, indptr, positives, shares, weight), (found, scores, np.full(N, 3))
        reference = np.zeros(N_CONTEXTS), np.zeros(N), np.zeros(N), np.empty(N)
        labels, values = np.empty((N, room), np.int32), np.empty((N, room), np.float32)
        out = labels, values, np.empty(N, np.int64), np.empty(N)
        keeping = np.empty((N, 0), np.int32), np.empty(N, np.int64)
        gradient_of_found(W, batch, candidates, none, reference, is_exact, out, wants_more, keeping)
        assert (wants_more == expected).all()


@pytest.mark.parametrize(("dtype", "scale"), [(np.float32, 1), (np.float64, 1), (np.float32, 60)])
def test_gradients_over_all_contexts(dtype, scale):
    _, W, V, own, shares, indptr, positives, flat_shares, weight = words(4, dtype)
    scores = np.ascontiguousarray(dtype(scale) * V @ W.T)
    z, losses = scores.astype(float), np.empty(N)
    gradient_of_all(scores, indptr, positives, flat_shares, weight, losses)
    top = z.max(axis=1, keepdims=True)
    log_p = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    for i in range(N):
        expected = np.exp(log_p[i])
        expected[own[i]] -= shares[i]
        np.testing.assert_allclose(scores[i], weight[i] * expected, atol=2e-6)
        loss = -weight[i] * (shares[i] @ log_p[i, own[i]])
        assert losses[i] == pytest.approx(loss, rel=1e-5)


def test_outer_products_are_added_in_some_columns():
    rng = np.random.default_rng(0)
    G, V = rng.normal(size=(20, 6)), rng.normal(size=(5, 6))
    labels, values = rng.integers(0, 20, (5, 7)).astype(np.int32), rng.normal(size=(5, 7))
    counts = np.array([7, 0, 3, 7, 1])
    expected = G.copy()
    for i in range(5):
        for t in range(counts[i]):
            expected[labels[i, t], 2:5] += values[i, t] * V[i, 2:5]
    add_outer_products(G, labels, values, counts, V, 2, 5)
    np.testing.assert_allclose(G, expected)

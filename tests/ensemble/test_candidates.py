"""Pairs, their features and their order beside plain loops."""

import numpy as np
import pytest

from sklearn_xc._training.boosting import best_share
from sklearn_xc.ensemble.members import Answers
from sklearn_xc.ensemble.stacking.learner import best_threshold
from sklearn_xc.ensemble.stacking.pairs import (
    describe,
    directions,
    feature_names,
    gather,
    is_relevant,
)

N, L = 30, 12


def some_answers(k, seed, n_padded=0):
    rng = np.random.default_rng(seed)
    labels = np.array([rng.permutation(L)[:k] for _ in range(N)])
    scores = -np.sort(-rng.normal(size=(N, k)), axis=1)
    if n_padded:
        labels[::3, k - n_padded :], scores[::3, k - n_padded :] = -1, -np.inf
    return Answers(labels, scores)


@pytest.fixture(params=[(7, 7, 3), (7, 5, 5), (12, 4, 2)], ids=str)
def case(request):
    deep, other, n_candidates = request.param
    return [some_answers(deep, 0), some_answers(other, 1, n_padded=1)], n_candidates


def reference(answers, n_candidates):
    """Return {(row, label): [(score, rank) or (nan, nan) of each member]}."""
    pairs = {}
    for i in range(N):
        named = {one for labels, _ in answers for one in labels[i, :n_candidates].tolist()} - {-1}
        for label in sorted(named):
            said = []
            for labels, scores in answers:
                at = np.flatnonzero(labels[i] == label)
                said.append((scores[i, at[0]], at[0] + 1) if len(at) else (np.nan, np.nan))
            pairs[i, label] = said
    return pairs


def test_gather(case):
    answers, n_candidates = case
    found, expected = gather(answers, n_candidates), reference(answers, n_candidates)
    assert list(zip(found.rows.tolist(), found.labels.tolist(), strict=True)) == list(expected)
    said = np.array(list(expected.values()))
    np.testing.assert_array_equal(found.scores, said[:, :, 0])
    np.testing.assert_array_equal(found.ranks, said[:, :, 1])
    assert found.n == N


def test_describe(case):
    answers, n_candidates = case
    frequencies = np.arange(L) ** 2
    pairs = gather(answers, n_candidates)
    found = describe(pairs, frequencies)
    rows = []
    for (i, label), said in reference(answers, n_candidates).items():
        row = []
        for (score, rank), (_, scores) in zip(said, answers, strict=True):
            first, second = scores[i, :2]
            row += [score, first - score, rank, first, first - second]
        votes = np.nansum([1 / rank for _, rank in said])
        rows.append([*row, np.log(1 + frequencies[label]), votes])
    # What is not among a member's candidates has no place in `ranks`, nor has its best then.
    expected = np.array(rows)
    is_known = ~np.isnan(found)
    np.testing.assert_allclose(found[is_known], expected[is_known], rtol=1e-6)
    assert np.isnan(found[:, 0]).sum() == np.isnan(expected[:, 0]).sum()
    assert found.shape[1] == len(directions(2)) == len(feature_names(["a", "b"]))


def test_relevance():
    Y = np.random.default_rng(0).random((N, L)) < 0.3
    pairs = gather([some_answers(6, 2)], 4)
    rows, labels = np.nonzero(Y)
    indptr = np.searchsorted(rows, np.arange(N + 1))
    np.testing.assert_array_equal(is_relevant(pairs, indptr, labels), Y[pairs.rows, pairs.labels])


@pytest.mark.parametrize("seed", range(2))
def test_threshold(seed):
    """By trying each."""
    rng = np.random.default_rng(seed)
    chances = np.round(rng.random(60), 1)
    relevant = rng.random(60) < chances
    n_relevant = relevant.sum() + 7

    def f1(threshold):
        predicted = chances > threshold
        return 2 * (predicted & relevant).sum() / (predicted.sum() + n_relevant)

    found = best_threshold(chances, relevant, n_relevant)
    assert f1(found) == max(f1(t) for t in np.unique(np.append(chances, [0, 1])) - 0.05)
    assert best_threshold(chances, np.zeros(60, bool), 3) == 0.5
    assert best_threshold(np.empty(0), np.empty(0, bool), 3) == 0.5


def test_mixture():
    """The share with the lowest log-loss, of five."""
    rng = np.random.default_rng(0)
    truth = rng.random(500)
    relevant = rng.random(500) < truth
    weight = rng.random(500)
    good = np.clip(truth, 0.01, 0.99)
    bad = rng.random(500) * 0.98 + 0.01
    for a, b in ((good, bad), (bad, good), (good, np.clip(good + 0.1, 0, 0.99)), (good, good)):

        def loss(share, a=a, b=b):
            mean = share * a + (1 - share) * b
            return -(weight * np.log(np.where(relevant, mean, 1 - mean))).sum()

        found = best_share(a, b, relevant, weight)
        assert loss(found) == min(loss(share) for share in (0, 0.25, 0.5, 0.75, 1))
    assert best_share(good, bad, relevant, weight) >= 0.75

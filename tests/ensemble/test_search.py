"""Thresholds against exhaustive search."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, fbeta_score

from sklearn_xc.ensemble.held_out import ScoredPairs
from sklearn_xc.ensemble.thresholds import (
    Cells,
    RankedPairs,
    as_many_as_true,
    most_macro_f,
    most_micro_f,
    most_recall,
)
from sklearn_xc.metrics.frequency_groups import frequency_edges, group_of


def pairs_of(scores, truth, weight):
    """Return all pairs of dense arrays (n, n_labels) with finite scores."""
    n, n_labels = scores.shape
    rows, labels = np.nonzero(np.isfinite(scores))
    at, true = np.nonzero(truth)
    zeros = np.zeros(len(rows), np.int64)
    return ScoredPairs(
        rows,
        labels,
        zeros,
        scores[rows, labels],
        truth[rows, labels].astype(bool),
        weight[rows],
        zeros + 1,
        true,
        weight[at],
        np.ones(len(true), np.int64),
        n_labels,
        n,
    )


def drawn(seed, n=7, n_labels=3):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 6, (n, n_labels)).astype(float)  # with ties
    scores[rng.random((n, n_labels)) < 0.2] = np.nan
    truth = (rng.random((n, n_labels)) < 0.3 + 0.1 * np.nan_to_num(scores)).astype(int)
    truth[0, 0] = 1
    return scores, truth, rng.integers(1, 4, n).astype(float)


def all_thresholds(scores, cell_of, n_cells):
    """Yield thresholds of labels: every way to cut the scores of each cell."""
    cuts = np.concatenate([np.unique(scores[np.isfinite(scores)]), [-1.0]])
    for chosen in product(cuts, repeat=n_cells):
        yield np.array(chosen)[cell_of]


def predicted(scores, thresholds):
    return (np.nan_to_num(scores, nan=-np.inf) > thresholds).astype(int)


MEASURES = {
    "micro": lambda t, p, w, beta: fbeta_score(
        t, p, beta=beta, average="micro", sample_weight=w, zero_division=0
    ),
    "macro": lambda t, p, w, beta: fbeta_score(
        t, p, beta=beta, average="macro", sample_weight=w, zero_division=0
    ),
}
FOUND = {"micro": most_micro_f, "macro": most_macro_f}


@pytest.mark.parametrize(
    ("cell_of", "beta", "seed"),
    [([0, 0, 0], 1.0, 0), ([0, 0, 0], 2.0, 4), ([0, 1, 0], 2.0, 4), ([0, 1, 2], 0.5, 3)],
)
@pytest.mark.parametrize("measure", MEASURES)
def test_no_thresholds_have_a_larger_f(measure, cell_of, beta, seed):
    scores, truth, weight = drawn(seed)
    cell_of, n_cells = np.array(cell_of), max(cell_of) + 1
    pairs = pairs_of(scores, truth, weight)
    ranking = RankedPairs(pairs, Cells(cell_of[pairs.labels], cell_of[pairs.true_labels], n_cells))
    thresholds = ranking.thresholds(FOUND[measure](ranking, beta))[cell_of]

    def value(one):
        return MEASURES[measure](truth, predicted(scores, one), weight, beta)

    best = max(value(one) for one in all_thresholds(scores, cell_of, n_cells))
    assert value(thresholds) == pytest.approx(best, abs=1e-12)
    if measure == "micro":
        again = predicted(scores, thresholds)
        assert f1_score(truth, again, average="micro", sample_weight=weight) > 0


@pytest.mark.parametrize(("floor", "seed"), [(0.3, 0), (0.6, 1), (0.6, 2), (0.9, 3)])
def test_the_most_recall_at_a_precision(seed, floor):
    scores, truth, weight = drawn(seed, n=12)
    pairs = pairs_of(scores, truth, weight)
    ranking = RankedPairs(pairs, Cells(pairs.labels, pairs.true_labels, 3))
    thresholds = ranking.thresholds(most_recall(ranking, floor))
    for label in range(3):

        def hits(threshold, label=label):
            named = predicted(scores[:, label], threshold)
            found = weight @ (named * truth[:, label])
            return found if found >= floor * (weight @ named) - 1e-12 else -1.0

        cuts = [*np.unique(scores[np.isfinite(scores)]), -1.0]
        assert hits(thresholds[label]) == max(hits(cut) for cut in cuts)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_as_many_as_true_where_scores_differ(seed):
    rng = np.random.default_rng(seed)
    scores = rng.permutation(60).reshape(20, 3).astype(float)
    truth = (rng.random((20, 3)) < 0.3).astype(int)
    truth[0] = 1
    pairs = pairs_of(scores, truth, np.ones(20))
    ranking = RankedPairs(pairs, Cells(pairs.labels, pairs.true_labels, 3))
    named = predicted(scores, ranking.thresholds(as_many_as_true(ranking)))
    np.testing.assert_array_equal(named.sum(axis=0), truth.sum(axis=0))


def test_cells_without_pairs_have_no_threshold():
    pairs = pairs_of(np.array([[1.0, np.nan]]), np.array([[1, 1]]), np.ones(1))
    ranking = RankedPairs(pairs, Cells(pairs.labels, pairs.true_labels, 2))
    found = ranking.thresholds(most_micro_f(ranking, 1.0))
    assert found[0] < 1.0
    assert np.isnan(found[1])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 8))
def test_groups_share_the_pairs(counts, n_groups):
    counts = np.array(counts)
    edges = frequency_edges(counts, n_groups)
    assert len(edges) < n_groups
    assert (np.diff(edges) > 0).all()
    groups = group_of(counts, edges)
    assert (np.diff(groups[np.argsort(counts, kind="stable")]) >= 0).all()
    if counts.any():  # no group is empty, and none but that of its most frequent label is too large
        assert set(groups[counts > 0]) == set(range(len(edges) + 1))

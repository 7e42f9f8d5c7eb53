"""Answers for a sample before and after pruning, against those of dense scores."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.losses import LOSSES
from sklearn_xc.solvers import pruning
from sklearn_xc.solvers.newton_cg import solve_block
from sklearn_xc.solvers.problem import sum_instances
from sklearn_xc.solvers.pruning import PruningCost, SampleScores, sum_up, together


def solve_in_blocks(problem, n_blocks, n_lanes=4):
    from sklearn_xc.initialisers import MeanSeparating

    sums, msi = sum_instances(problem), MeanSeparating()
    prepared = msi.prepare(problem, sums)
    labels = np.random.default_rng(0).permutation(problem.n_labels)
    blocks = np.array_split(labels, n_blocks)
    return [solve_block(problem, sums, msi, prepared, b, n_lanes) for b in blocks]


def dense_weights(solutions, n_labels, d):
    W = np.zeros((n_labels, d + 1))
    for one in solutions:
        W[one.labels, :-1] = sp.csr_array(
            (one.values, one.indices, one.indptr), shape=(len(one.labels), d)
        ).toarray()
        W[one.labels, -1] = one.intercepts
    return W


def answers(scores, Y, ks):
    """Return hits among the first k, and F1, from dense scores."""
    hits = {}
    # Of equal scores a positive comes before a negative, and one positive before the other.
    place = np.argsort(np.lexsort((~Y, -scores), axis=1), axis=1)
    for k in ks:
        hits[k] = int(((place < k) & Y & (scores > -np.inf)).sum())
    above = scores > 0
    return hits, 2 * (above & Y).sum() / max(above.sum() + Y.sum(), 1)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("prune", [0.02, 0.3, 10.0])
def test_they_are_those_of_dense_scores(
    prune, dtype, dense, loss, make_xy, make_problem, monkeypatch
):
    """As far as a label may have a loss on an instance: not below the kink."""
    monkeypatch.setattr(pruning, "KS", (1, 3))
    X, Y = make_xy(n=150, d=40, n_labels=20)
    problem = make_problem(X, Y, loss=loss, dtype=dtype, dense=dense, prune=prune, tol=1e-3)
    cost = sum_up(together(one.sample for one in solve_in_blocks(problem, 3)))
    whole = solve_in_blocks(dataclasses.replace(problem, prune=0.0), 3)
    assert all(one.sample is None for one in whole)
    before = dense_weights(whole, 20, 40)
    after = np.where(np.abs(before) < prune, 0, before)
    after[:, -1] = before[:, -1]
    rows = np.flatnonzero(Y.toarray().any(axis=1))
    if loss == "logistic":
        at = np.linspace(0, len(rows), pruning.SMALL_SAMPLE, endpoint=False).astype(int)
        rows = rows[at]
    assert cost.n_sampled == len(rows)
    Z = np.hstack([X.toarray()[rows], np.ones((len(rows), 1))])
    for side, W in enumerate((before, after)):
        scores, truth = Z @ W.T, Y.toarray()[rows] > 0
        if loss != "logistic":  # below the kink labels are not ranked
            scores = np.where(scores > -1, scores, -np.inf)
        hits, f1 = answers(scores, truth, (1, 3))
        for k in (1, 3):
            assert cost.hits[k][side] == hits[k]
        assert cost.f1[side] == pytest.approx(f1)


def test_the_sample_does_not_depend_on_the_cut_into_blocks(make_xy, make_problem, monkeypatch):
    monkeypatch.setattr(pruning, "SAMPLE_SIZE", 30)
    X, Y = make_xy(n=150, n_labels=20)
    problem = make_problem(X, Y, prune=0.3)
    costs = [sum_up(together(s.sample for s in solve_in_blocks(problem, n))) for n in (1, 4, 20)]
    assert costs[0] == costs[1] == costs[2]
    assert costs[0].n_sampled == 30


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_no_instance_has_a_label(loss, make_xy, make_problem):
    X, _ = make_xy()
    problem = make_problem(X, np.zeros((120, 2)), prune=0.1, loss=loss)
    cost = sum_up(together(one.sample for one in solve_in_blocks(problem, 1)))
    assert cost == PruningCost(0, {1: (0, 0), 5: (0, 0)}, (0.0, 0.0))
    assert cost.losses(2, True) == []


def test_ties_do_not_count_as_before():
    best = np.full((2, 1, 5), -np.inf, np.float32)
    best[0, 0, :2], best[1, 0, :2] = (0.5, 0.25), (0.5, 0.5)
    scores = np.array([[0.5, 0.5, 0.1], [0.25, 0.75, 0.6]])
    part = SampleScores(best, np.zeros(2), np.zeros(3, int), scores)
    # Before: 0.5, 0.5, *0.5*; after: 0.75, 0.6, *0.5*, ... the second of the negatives at 0.5.
    assert sum_up(part).hits == {1: (1, 1), 5: (3, 3)}


@pytest.mark.parametrize(
    ("hits", "f1", "expected"),
    [
        ({1: (100, 100), 5: (300, 300)}, (0.8, 0.8), []),
        ({1: (100, 97), 5: (300, 297)}, (0.8, 0.77), ["precision@1"]),
        ({1: (100, 98), 5: (300, 296)}, (0.8, 0.77), ["precision@5"]),
        ({1: (100, 98), 5: (300, 297)}, (0.8, 0.75), ["F1"]),
        ({1: (100, 98), 5: (300, 298)}, (0.0, 0.0), []),
        ({1: (3, 1), 5: (5, 3)}, (0.8, 0.9), []),
        ({1: (100, 110), 5: (300, 330)}, (0.8, 0.9), []),
    ],
)
def test_what_is_notable(hits, f1, expected):
    cost = PruningCost(100, hits, f1)
    assert [name for name, _, _ in cost.losses(50, True)] == expected
    assert "F1" not in [name for name, _, _ in cost.losses(50, False)]
    assert "precision@5" not in [name for name, _, _ in cost.losses(5, True)]
    assert not [name for name, _, _ in cost.losses(1, True) if name != "F1"]
    for _, before, after in cost.losses(50, True):
        assert 1 >= before > after >= 0

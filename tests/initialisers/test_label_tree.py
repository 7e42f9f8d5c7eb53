"""The tree over labels, against scipy's on the full matrix of distances."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from sklearn_xc.initialisers import label_tree
from sklearn_xc.initialisers.label_tree import span_labels
from sklearn_xc.parallel.subtrees import topological


def distances(Y, weight):
    """Return the weight of the rows that tell labels apart; the last label is the root."""
    columns = np.vstack([Y.T.astype(bool), np.zeros(len(Y), bool)])
    return np.array([[weight[a ^ b].sum() for b in columns] for a in columns])


def cost_of(parents, cost):
    return sum(cost[j, parent] for j, parent in enumerate(parents))  # -1: the root


@st.composite
def targets(draw):
    """Return distinct columns, with rows that have many labels, and row weights."""
    n, m = draw(st.integers(1, 14)), draw(st.integers(1, 12))
    share = draw(st.sampled_from([0.15, 0.4, 0.7, 0.95]))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    Y = np.unique(rng.random((n, m)) < share, axis=1)
    weight = draw(st.sampled_from([np.ones(n), rng.integers(1, 5, n).astype(float)]))
    return Y.astype(int), weight


@given(targets=targets(), at_a_time=st.sampled_from([1, 7, 2**21]))
def test_no_tree_costs_less(targets, at_a_time, make_problem):
    Y, weight = targets
    problem = make_problem(sp.csr_array(np.ones((len(Y), 1))), sp.csr_array(Y), weight=weight)
    m = Y.shape[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_tree, "PAIRS_AT_A_TIME", at_a_time)
        parents = span_labels(problem, np.arange(m))
    assert len(topological(parents)) == m  # a tree
    cost = distances(Y, weight)
    # One more for every edge: scipy takes a 0 for no edge.
    least = minimum_spanning_tree(cost + 1.0).sum() - m
    assert cost_of(parents, cost) == pytest.approx(least, abs=1e-9)


@pytest.fixture
def problem(make_xy, make_problem):
    """Return a problem of distinct labels, some on almost the same rows as others."""
    X, Y = make_xy(n_labels=40)
    near = Y.toarray()[:, :20]
    near[::9] = 0
    return make_problem(X, np.unique(np.hstack([Y.toarray(), near]), axis=1))


def test_pieces_of_the_pairs_make_the_same_tree(problem, monkeypatch):
    labels = np.arange(problem.n_labels)
    whole = span_labels(problem, labels)
    assert (whole >= 0).sum() > 10
    for at_a_time in (1, 50, 1000):
        monkeypatch.setattr(label_tree, "PAIRS_AT_A_TIME", at_a_time)
        np.testing.assert_array_equal(span_labels(problem, labels), whole)


def test_the_order_of_the_labels_makes_no_difference(problem):
    labels = np.arange(problem.n_labels)
    whole = span_labels(problem, labels)
    order = np.random.default_rng(0).permutation(len(labels))
    shuffled = span_labels(problem, labels[order])
    above = np.where(shuffled >= 0, labels[order][shuffled], -1)
    np.testing.assert_array_equal(above, np.where(whole >= 0, labels[whole], -1)[order])


def test_labels_that_differ_in_their_weights_alone_are_neighbours(make_problem):
    Y = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    problem = make_problem(np.eye(3), Y, plus=np.array([1.0, 2.0, 1.0]))
    assert span_labels(problem, np.arange(3)).tolist() == [-1, 0, -1]


def test_no_label_or_one(make_problem):
    problem = make_problem(np.eye(2), np.array([[1], [0]]))
    assert span_labels(problem, np.array([0])).tolist() == [-1]
    assert span_labels(problem, np.zeros(0, np.int64)).tolist() == []


def test_rows_with_a_thousand_labels_take_little_memory(make_problem, monkeypatch):
    """Four million pairs, of which 20,000 are looked at together."""
    rng = np.random.default_rng(0)
    n, m = 60, 2000
    Y = np.zeros((n, m), int)
    for row in Y:
        row[rng.choice(m, 1000, replace=False)] = 1
    problem = make_problem(np.ones((n, 1)), sp.csr_array(Y))
    monkeypatch.setattr(label_tree, "PAIRS_AT_A_TIME", 20_000)
    seen, pairs = [], label_tree._pairs
    monkeypatch.setattr(
        label_tree, "_pairs", lambda *a: (seen.append(len(e)) or e for e in pairs(*a))
    )
    tracemalloc.start()
    parents = span_labels(problem, np.arange(m))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(seen) > 50
    assert sum(seen) > 100_000
    assert peak < 20e6  # all pairs would take 48 MB, as indices and values
    columns = np.hstack([Y, np.zeros((n, 1), int)])
    counts = columns.sum(axis=0)
    cost = counts[:, None] + counts - 2.0 * (columns.T @ columns)
    assert cost_of(parents, cost) == minimum_spanning_tree(cost + 1.0).sum() - m

"""The tree over labels, against scipy's on the full matrix of distances."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree

from sklearn_xc.one_vs_all.blocks import topological
from sklearn_xc.one_vs_all.starts import ovap
from sklearn_xc.one_vs_all.starts.ovap import span_labels


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
        patch.setattr(ovap, "CHUNK_PAIRS", at_a_time)
        parents = span_labels(problem, np.arange(m))
    assert len(topological(parents)) == m  # a tree
    cost = distances(Y, weight)
    # One more for every edge: scipy takes a 0 for no edge.
    least = minimum_spanning_tree(cost + 1.0).sum() - m
    assert cost_of(parents, cost) == pytest.approx(least, abs=1e-9)

"""Indicators, names and rankings with ancestors, and without, beside sets of nodes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import above, closed, graphs, made

from sklearn_xc import LabelHierarchy

KINDS = LabelHierarchy.from_parents({"oak": "tree", "moss": "plant", "tree": "plant"})
CONTAINERS = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_matrix, sp.lil_array, np.asarray)


@st.composite
def graphs_and_sets(draw):
    graph = draw(graphs())
    nodes = st.sets(st.integers(0, graph[0] - 1), max_size=4)
    return graph, draw(st.lists(nodes, min_size=1, max_size=6))


def indicator(sets, n):
    return np.array([[node in nodes for node in range(n)] for nodes in sets], np.int8)


@given(graphs_and_sets(), st.sampled_from(CONTAINERS))
def test_with_ancestors_and_deepest(problem, container):
    graph, sets = problem
    (n, edges), hierarchy = graph, made(graph)
    Y = container(indicator(sets, n))
    added = hierarchy.with_ancestors(Y)
    left = hierarchy.deepest(Y)
    for found, of_set in (
        (added, lambda nodes: closed(edges, nodes)),
        (left, lambda nodes: {a for a in nodes if not any(a in above(edges, b) for b in nodes)}),
    ):
        assert found.dtype == np.int8
        assert found.shape == (len(sets), n)
        expected = {
            np.asarray: np.ndarray,
            sp.csr_matrix: sp.csr_matrix,
            sp.coo_matrix: sp.csr_matrix,
        }.get(container, sp.csr_array)
        assert type(found) is expected
        dense = found.toarray() if sp.issparse(found) else found
        np.testing.assert_array_equal(dense, indicator([of_set(nodes) for nodes in sets], n))
    np.testing.assert_array_equal(
        *(as_dense(hierarchy.with_ancestors(one)) for one in (left, added))
    )


def as_dense(Y):
    return Y.toarray() if sp.issparse(Y) else Y


def test_names_give_names():
    assert KINDS.with_ancestors([["oak"], [], ["moss", "oak"]]) == [
        ["oak", "tree", "plant"],
        [],
        ["oak", "moss", "tree", "plant"],
    ]
    assert KINDS.deepest([{"oak", "plant"}, ["tree"], None]) == [["oak"], ["tree"], []]
    for flat in (["oak", "moss"], np.array(["oak", "moss"]), pd.Series(["oak", "moss"])):
        assert KINDS.with_ancestors(flat) == [["oak", "tree", "plant"], ["moss", "plant"]]
    numbers = LabelHierarchy.from_edges([(30, 10), (40, 10)])
    assert numbers.deepest(np.array([30, 10])) == [[30], [10]]
    Y = KINDS.encode([["plant", "oak"], []])
    assert Y.dtype == np.int8
    assert Y.indices.tolist() == [0, 3]
    assert Y.shape == (2, 4)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["oak", "elm"], ["ash"]], "y must hold names of nodes. Got 2 that are none, 'elm'"),
        (np.ones((2, 5)), "at most 4 columns.*Got shape .2, 5."),
        (np.full((1, 4), np.nan), "indicator of 0 and 1. Got nan"),
        (sp.coo_array((np.ones(2, np.int8), ([0, 0], [1, 1])), (1, 4)), "Got 2"),
    ],
)
def test_neither_indicator_nor_names(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KINDS.deepest(y)


@st.composite
def rankings(draw):
    graph = draw(graphs())
    n = graph[0]
    scores = draw(
        st.lists(
            st.lists(st.integers(-3, 3).map(float), min_size=n, max_size=n), min_size=1, max_size=4
        )
    )
    return graph, np.array(scores), draw(st.integers(1, n))


def best(scores, k):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def lifted(edges, scores):
    """Return dense scores, each the largest of its node's and of those below."""
    found = scores.copy()
    for node in range(scores.shape[1]):
        for other in above(edges, node):
            found[:, other] = np.maximum(found[:, other], scores[:, node])
    return found


@given(rankings())
def test_the_best_labels_are_enough_for_the_consistent_ranking(problem):
    graph, scores, k = problem
    (n, edges), hierarchy = graph, made(graph)
    labels, found = hierarchy.consistent_topk(*best(scores, k))
    expected = lifted(edges, scores)
    np.testing.assert_array_equal(found, best(expected, k)[1])
    np.testing.assert_array_equal(np.take_along_axis(expected, labels, axis=1), found)
    assert all(len(set(row)) == k for row in labels.tolist())
    ties = (found[:, 1:] == found[:, :-1]) & (labels[:, 1:] < labels[:, :-1])
    assert not ties.any()
    # All of them, so that no label is without its ancestors.
    labels, found = hierarchy.consistent_topk(*best(scores, k), k=n)
    for row, values in zip(labels.tolist(), found.tolist(), strict=True):
        score = {node: value for node, value in zip(row, values, strict=True) if node >= 0}
        for node, value in score.items():
            assert all(score[one] >= value for one in above(edges, node))


def test_padding_and_dtypes():
    labels, scores = KINDS.consistent_topk(
        np.array([[0, -1], [-1, -1]]), np.array([[2, -np.inf], [-np.inf, -np.inf]], np.float32)
    )
    np.testing.assert_array_equal(labels, [[0, 2], [-1, -1]])
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, [[2, 2], [-np.inf, -np.inf]])
    none = KINDS.consistent_topk(np.empty((0, 3), int), np.empty((0, 3)))
    assert [part.shape for part in none] == [(0, 3), (0, 3)]
    labels, scores = KINDS.consistent_topk([[1, 3]], [[3, 1]])  # whole numbers
    np.testing.assert_array_equal(labels, [[1, 3]])
    np.testing.assert_array_equal(scores, [[3.0, 3.0]])
    scores = KINDS.consistent_scores(sp.csr_matrix([[0.9, 0.2, 0.0, 0.95]]))
    assert type(scores) is sp.csr_matrix
    np.testing.assert_array_equal(scores.toarray(), [[0.9, 0.2, 0.9, 0.95]])
    assert KINDS.with_ancestors(sp.csr_array((0, 4), dtype=np.int8)).shape == (0, 4)


def test_more_than_255_labels_below_a_node():
    hierarchy = LabelHierarchy(range(601), [(node, 600) for node in range(600)])
    Y = sp.csr_array(np.ones((1, 600), np.int8))
    assert hierarchy.with_ancestors(Y).sum(dtype=int) == 601
    assert hierarchy.deepest(hierarchy.with_ancestors(Y)).indices.tolist() == list(range(600))


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([[0, 4]], [[1.0, 0.5]], "positions of the 4 nodes, or -1. Got 4"),
        ([[0, 1]], [[1.0]], "Got shapes .1, 2. and .1, 1."),
        ([[1, 1]], [[1.0, 3.0]], "labels must be distinct within a row"),
        ([[0, 1]], [[np.nan, 1.0]], "scores must not hold NaN"),
        (sp.csr_array((1, 4)), [[1.0]], "sparse matrix: use consistent_scores"),
    ],
)
def test_no_ranking(labels, scores, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KINDS.consistent_topk(labels, scores)

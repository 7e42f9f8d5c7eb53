"""Hierarchical precision, recall and F1 against sets of nodes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from sklearn_xc import LabelHierarchy
from sklearn_xc.metrics import hierarchical_f1, hierarchical_precision_recall_f1

KINDS = LabelHierarchy.from_paths(["plant/tree/oak", "plant/tree/ash", "animal/ant"])


@st.composite
def problems(draw):
    """Return the parents of each node, whose numbers are smaller, and true and named sets."""
    n = draw(st.integers(1, 9))
    parents = [
        draw(st.sets(st.integers(0, max(node - 1, 0)), max_size=2 if node else 0))
        for node in range(n)
    ]
    rows = st.lists(st.sets(st.integers(0, n - 1), max_size=4), min_size=1, max_size=6)
    true = draw(rows)
    named = [draw(st.sets(st.integers(0, n - 1), max_size=4)) for _ in true]
    weight = draw(st.none() | st.lists(st.integers(1, 4), min_size=len(true), max_size=len(true)))
    return parents, true, named, weight


def reference(parents, true, named, weight):
    """Return the three measures of sets of nodes, by the definition."""
    roots = [node for node, above in enumerate(parents) if not above]
    only = set(roots) if len(roots) == 1 < len(parents) else set()

    def closed(nodes):
        found, todo = set(), list(nodes)
        while todo:
            node = todo.pop()
            found.add(node)
            todo += parents[node]
        return found - only

    weight = weight or [1] * len(true)
    both = sum(w * len(closed(a) & closed(b)) for a, b, w in zip(true, named, weight, strict=True))
    n_true = sum(w * len(closed(a)) for a, w in zip(true, weight, strict=True))
    n_named = sum(w * len(closed(b)) for b, w in zip(named, weight, strict=True))
    return (
        both / n_named if n_named else 0.0,
        both / n_true if n_true else 0.0,
        2 * both / (n_true + n_named) if n_true + n_named else 0.0,
    )


def hierarchy_of(parents):
    edges = [(child, parent) for child, above in enumerate(parents) for parent in above]
    return LabelHierarchy(np.arange(len(parents)), np.array(edges, int).reshape(-1, 2))


def indicator(sets, n):
    return np.array([[node in nodes for node in range(n)] for nodes in sets], int)


def test_a_single_root_does_not_count():
    below = LabelHierarchy.from_paths([f"all/{path}" for path in KINDS.names.tolist()])
    for names in (["plant/tree/oak"], ["plant/tree/ash", "animal/ant"]):
        values = [
            hierarchical_f1([["plant/tree/oak"]], [names], KINDS),
            hierarchical_f1([["all/plant/tree/oak"]], [[f"all/{name}" for name in names]], below),
        ]
        assert values[0] == pytest.approx(values[1])


@given(problems(), st.sampled_from([np.asarray, sp.csr_array, sp.csc_matrix]))
def test_sets_of_nodes(problem, container):
    parents, true, named, weight = problem
    n, hierarchy = len(parents), hierarchy_of(parents)
    Y_true, Y_pred = container(indicator(true, n)), sp.csr_array(indicator(named, n))
    expected = pytest.approx(reference(*problem), abs=1e-12)
    measure = hierarchical_precision_recall_f1
    assert measure(Y_true, Y_pred, hierarchy, sample_weight=weight) == expected
    closed = hierarchy.with_ancestors(Y_pred)  # ancestors are added anyway
    assert measure(Y_true, closed, hierarchy, sample_weight=weight) == expected


def test_without_edges_it_is_micro_f1():
    rng = np.random.default_rng(0)
    Y_true, Y_pred = (sp.csr_array((rng.random((30, 12)) < 0.3).astype(int)) for _ in "ab")
    flat = LabelHierarchy(np.arange(12), [])
    expected = f1_score(Y_true, Y_pred, average="micro")
    assert hierarchical_f1(Y_true, Y_pred, flat) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("Y_true", "Y_pred", "message"),
    [
        (np.eye(7, dtype=int), np.eye(7, dtype=int), "Y_true: expected at most 6 columns.*Got 7"),
        (2 * np.eye(3), np.eye(3), "Y_true: .*Got 2"),
        (np.eye(2), np.eye(3), "Y_pred: expected 2 rows"),
        ([["animal/ant"]], [["elm"]], "names of nodes.*'elm' first"),
        (np.ones((0, 2)), np.ones((0, 2)), "Y_true: expected at least one row"),
        (np.ones((1, 1, 1)), np.ones((1, 2)), "Y_true: expected 1 or 2 dimensions"),
    ],
)
def test_errors(Y_true, Y_pred, message):
    with pytest.raises(ValueError, match=message):
        hierarchical_f1(Y_true, Y_pred, KINDS)

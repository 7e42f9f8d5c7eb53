"""How a hierarchy is made, of what it is not, and which labels come first."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import above, graphs, made

from sklearn_xc import LabelHierarchy

PARENTS = {"oak": "tree", "tree": "plant", "moss": ["plant", "damp"]}
EDGES = {("oak", "tree"), ("tree", "plant"), ("moss", "plant"), ("moss", "damp")}


def named_edges(hierarchy):
    rows, columns = hierarchy.parents.nonzero()
    return set(zip(hierarchy.names[rows], hierarchy.names[columns], strict=True))


@pytest.mark.parametrize(
    "make",
    [
        lambda: LabelHierarchy.from_parents(PARENTS),
        lambda: LabelHierarchy.from_parents({**PARENTS, "plant": None, "damp": []}),
        lambda: LabelHierarchy.from_parents(
            pd.Series([parent for _, parent in EDGES], [child for child, _ in EDGES])
        ),
        lambda: LabelHierarchy.from_edges(EDGES),
        lambda: LabelHierarchy.from_edges(np.array([*EDGES], dtype=object)),
        lambda: LabelHierarchy.from_edges(pl.DataFrame([*EDGES], orient="row")),
        lambda: LabelHierarchy(
            ["oak", "tree", "plant", "moss", "damp"], [(0, 1), (1, 2), (3, 2), (3, 4)]
        ),
    ],
)
def test_one_graph_made_in_many_ways(make):
    hierarchy = make()
    assert named_edges(hierarchy) == EDGES
    assert hierarchy.n_nodes == len(hierarchy.names) == 5


def test_order_of_names():
    found = LabelHierarchy.from_parents(PARENTS)
    assert found.names.tolist() == ["oak", "tree", "moss", "plant", "damp"]
    labels = ["fern", "plant", "oak"]
    found = LabelHierarchy.from_parents(PARENTS, labels=labels)
    assert found.names.tolist() == [*labels, "tree", "moss", "damp"]
    assert found.roots.tolist() == [0, 1, 5]
    assert LabelHierarchy.from_edges([(7, 3), (3, 9)]).names.tolist() == [7, 3, 9]
    assert LabelHierarchy.from_edges([], labels=["a", "b"]).n_nodes == 2


def test_paths():
    found = LabelHierarchy.from_paths(["a > b > c", "a > b", "a>d", "e"], separator=">")
    assert found.names.tolist() == ["a > b > c", "a > b", "a>d", "e", "a"]
    assert named_edges(found) == {("a > b > c", "a > b"), ("a > b", "a"), ("a>d", "a")}
    folders = LabelHierarchy.from_paths(["/usr/lib", "/usr"])
    assert folders.names.tolist() == ["/usr/lib", "/usr"]
    assert named_edges(folders) == {("/usr/lib", "/usr")}


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda h: h([], []), ValueError, "at least one node. Got none"),
        (lambda h: h(["a", "a"], []), ValueError, "names must be distinct. Got 'a' more than once"),
        (lambda h: h(["a", "b"], [(0, 0)]), ValueError, "its own parent. Got 'a'"),
        (lambda h: h(["a", "b"], [(0, 1), (0, 1)]), ValueError, "Got 'b' twice for 'a'"),
        (lambda h: h(["a", "b"], [(0, -1)]), ValueError, "positions of the 2 nodes. Got -1"),
        (lambda h: h(["a", "b"], [("a", "b")]), TypeError, "pairs of positions.*from_edges takes"),
        (lambda h: h(["a", "b"], np.ma.masked_array([[0, 1]])), TypeError, "masked"),
        (lambda h: h.from_parents({"a": "b", "b": "a"}), ValueError, "cycle.*'a' > 'b' > 'a'"),
        (lambda h: h.from_parents({"a": [["b"]]}), TypeError, "names must be texts or integers"),
        (lambda h: h.from_parents("abc"), TypeError, "parents must be a mapping.*Got str"),
        (lambda h: h.from_edges(["ab"]), ValueError, "edges must be pairs.*Got 'ab' at 0"),
        (lambda h: h.from_paths("a/b"), TypeError, "paths must be texts.*Got 'a/b'"),
        (lambda h: h.from_paths(["a//b"]), ValueError, "without empty parts. Got 'a//b'"),
        (lambda h: h.from_paths(["a", "a"]), ValueError, "distinct. Got 'a' more than once"),
    ],
)
def test_no_hierarchy(make, kind, message):
    with pytest.raises(kind, match=f"^LabelHierarchy: .*{message}"):
        make(LabelHierarchy)


@given(graphs(), st.randoms(use_true_random=False))
def test_restricted_keeps_what_is_above_through_others(graph, random):
    n, edges = graph
    chosen = random.sample(range(n), random.randint(1, n))
    found = made(graph).restricted(chosen)
    assert found.names.tolist() == chosen
    for row, node in enumerate(chosen):
        higher = above(edges, node) & set(chosen)
        ancestors = found.ancestors[[row]].indices
        assert {chosen[one] for one in ancestors} == higher
        nearest = higher - {b for a in higher for b in above(edges, a)}
        if len(chosen) < n:
            assert {chosen[one] for one in found.parents[[row]].indices} == nearest
    again = LabelHierarchy(found.names, np.argwhere(found.parents.toarray()))
    assert (again.ancestors != found.ancestors).nnz == 0

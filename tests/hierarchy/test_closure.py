"""All ancestors of each node, beside a walk up from each; cycles; memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from small_graphs import above, graphs, made

from sklearn_xc import LabelHierarchy
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.hierarchy import closure


def rows_of(matrix):
    return [set(matrix.indices[a:b].tolist()) for a, b in zip(
        matrix.indptr[:-1], matrix.indptr[1:], strict=True)]  # fmt: skip


@given(graphs())
@example((1, []))
@example((4, [(3, 1), (3, 2), (1, 0), (2, 0)]))
def test_ancestors_are_those_of_a_walk_up(graph):
    n, edges = graph
    hierarchy = made(graph)
    ancestors = hierarchy.ancestors
    assert rows_of(ancestors) == [above(edges, node) for node in range(n)]
    assert rows_of(hierarchy.parents) == [{b for a, b in edges if a == node} for node in range(n)]
    assert hierarchy.roots.tolist() == [node for node in range(n) if not above(edges, node)]
    fresh = sp.csr_array((ancestors.data, ancestors.indices, ancestors.indptr), shape=(n, n))
    assert fresh.has_canonical_format
    assert ancestors.dtype == bool
    assert ancestors.data.all()


@given(graphs())
def test_depth_is_the_longest_way_up(graph):
    n, edges = graph
    depth = closure.depths_of(made(graph).parents)
    for node in range(n):
        assert depth[node] == max((1 + depth[b] for a, b in edges if a == node), default=0)


def test_pieces_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    edges = np.unique([sorted(rng.choice(300, 2, replace=False))[::-1] for _ in range(900)], axis=0)
    whole = LabelHierarchy(np.arange(300), edges).ancestors
    monkeypatch.setattr(closure, "_TOGETHER", 7)
    cut = LabelHierarchy(np.arange(300), edges).ancestors
    assert whole.nnz > 5_000
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(cut, name))


def test_a_chain_that_fits_and_one_that_does_not():
    n = 1_000
    chain = LabelHierarchy.from_parents(np.arange(-1, n - 1))
    np.testing.assert_array_equal(chain.ancestors.toarray(), np.tri(n, k=-1, dtype=bool))
    long = LabelHierarchy.from_parents(np.arange(-1, 2_999_999))
    with pytest.raises(MemoryBudgetError, match="of 3000000 nodes, 4499998500000 pairs"):
        long.with_ancestors(sp.csr_array((1, 5)))


def test_many_nodes_with_two_parents_each():
    n = 50_000
    children = np.arange(2, n)
    edges = np.concatenate([np.c_[children, children // 2], np.c_[children, children // 2 - 1]])
    hierarchy = LabelHierarchy(np.arange(n), edges)
    ancestors = hierarchy.ancestors
    for node in (2, 3, 1_000, n - 1):
        found, level = set(), {node}
        while level := {p for one in level if one > 1 for p in (one // 2, one // 2 - 1)}:
            found |= level
        assert set(ancestors.indices[ancestors.indptr[node] : ancestors.indptr[node + 1]]) == found


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([(1, 0), (2, 1), (0, 2)], {"'a' > 'c' > 'b' > 'a'", "'b' > 'a' > 'c' > 'b'",
                                    "'c' > 'b' > 'a' > 'c'"}),
        ([(0, 1), (1, 2), (2, 1)], {"'b' > 'c' > 'b'", "'c' > 'b' > 'c'"}),
        ([(1, 2), (2, 1), (3, 1), (4, 3)], {"'b' > 'c' > 'b'", "'c' > 'b' > 'c'"}),
    ],
)  # fmt: skip
def test_a_cycle_is_named(edges, cycle):
    with pytest.raises(ValueError, match="no node may be above itself") as error:
        LabelHierarchy(list("abcde"), edges)
    assert any(str(error.value).endswith(f": {one}.") for one in cycle)


def test_a_long_cycle_is_shortened():
    edges = [(node, (node + 1) % 50) for node in range(50)]
    with pytest.raises(ValueError, match=r"0 > 1 > 2 > 3 > \.\.\. > 47 > 48 > 49 > 0\."):
        LabelHierarchy(np.arange(50), edges)

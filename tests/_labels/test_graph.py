"""All ancestors of each node, beside a walk up from each; cycles; memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from small_graphs import above, graphs, made

from sklearn_xc import LabelHierarchy
from sklearn_xc._labels.hierarchy.graph import depths_of
from sklearn_xc.exceptions import MemoryBudgetError


@given(graphs())
@example((1, []))
@example((4, [(3, 1), (3, 2), (1, 0), (2, 0)]))
def test_ancestors_are_those_of_a_walk_up(graph):
    n, edges = graph
    hierarchy = made(graph)
    ancestors = hierarchy.ancestors
    expected = [[node in above(edges, child) for node in range(n)] for child in range(n)]
    np.testing.assert_array_equal(ancestors.toarray(), expected)
    assert hierarchy.roots.tolist() == [node for node in range(n) if not above(edges, node)]
    fresh = sp.csr_array((ancestors.data, ancestors.indices, ancestors.indptr), shape=(n, n))
    assert fresh.has_canonical_format
    assert ancestors.dtype == bool


@given(graphs())
def test_depth_is_the_longest_way_up(graph):
    n, edges = graph
    depth, cycle = depths_of(made(graph).parents)
    assert cycle == []
    for node in range(n):
        assert depth[node] == max((1 + depth[b] for a, b in edges if a == node), default=0)


def chain_of(n):
    return LabelHierarchy(np.arange(n), np.column_stack([np.arange(1, n), np.arange(n - 1)]))


def test_a_chain_that_fits_and_one_that_does_not():
    n = 300
    chain = chain_of(n)
    np.testing.assert_array_equal(chain.ancestors.toarray(), np.tri(n, k=-1, dtype=bool))
    long = chain_of(3_000_000)
    with pytest.raises(MemoryBudgetError, match="of 3000000 nodes, 4499998500000 pairs"):
        long.with_ancestors(sp.csr_array((1, 5)))


@pytest.mark.parametrize(
    ("edges", "cycles"),
    [
        ([(1, 0), (2, 1), (0, 2)], ["'a' > 'c' > 'b' > 'a'"]),
        ([(1, 2), (2, 1), (3, 1), (4, 3)], ["'b' > 'c' > 'b'", "'c' > 'b' > 'c'"]),
        ([(i, (i + 1) % 50) for i in range(50)], ["'0' > '1' > '2' > '3' > ... > '47' > '48' > "]),
    ],
)
def test_a_cycle_is_named(edges, cycles):
    names = list("abcde") if len(edges) < 50 else list(map(str, range(50)))
    with pytest.raises(ValueError, match="no node may be above itself") as error:
        LabelHierarchy(names, edges)
    assert any(f": {one}" in str(error.value) for one in cycles)

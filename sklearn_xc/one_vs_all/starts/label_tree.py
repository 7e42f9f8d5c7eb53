"""The minimum spanning tree over labels, by how much their positives differ."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from sklearn_xc.one_vs_all.solver.problem import OneVsAllProblem

#: Pairs of labels are counted for so many at a time, a label's at least. 2^21 take about 100 MB.
PAIRS_AT_A_TIME = 2**21

#: An edge is a row of its cost and of two labels by rank, the first one smaller; -1 is the root.
_Edges = np.ndarray
_EDGE = np.dtype([("cost", np.float64), ("one", np.int64), ("other", np.int64)])


def span_labels(problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
    """Return each label's parent in the minimum spanning tree over labels and a root.

    The root is a label without positives. An edge costs the weight of the instances that have one
    of its two labels and not the other: ``|P_j| + |P_k| - 2 |P_j & P_k|``, and ``|P_j|`` to the
    root. Of edges that cost the same, one to the root goes first, which keeps the tree shallow,
    then those of frequent labels; among labels as frequent as each other the instances decide, so
    that another order of the labels gives the same tree.

    Parameters
    ----------
    problem : OneVsAllProblem
        The problems of all labels.
    labels : ndarray of int64 of shape (m,)
        The labels to span, no problem among them twice.

    Returns
    -------
    ndarray of int64 of shape (m,)
        Positions in `labels`; -1 where the parent is the root.

    Notes
    -----
    The tree is exact, and no pair of labels is kept that cannot be in it. Where two labels share at
    most half of the rarer one's positives, their edge is the dearest of the triangle with the root:
    no minimum spanning tree needs it. The pairs are counted for some labels at a time, and what is
    left of them is merged into the tree of those before, so that memory does not grow with the
    labels of an instance: about 100 MB, and 70 bytes for each non-zero of Y. Time: O(sum over
    instances of their labels squared). 50,724 distinct labels, 50 for each of 5,000 instances,
    took 0.9 s; 199,990 labels with 950 for each instance, 4.5 10^9 pairs, took 2 minutes.
    """
    Y, weight, order = _in_order(problem, labels)
    m = len(order)
    tree = np.zeros(m, _EDGE)
    tree["cost"], tree["one"], tree["other"] = weight, -1, np.arange(m)
    found: list[_Edges] = []
    n_found = 0
    for edges in _pairs(Y, weight, problem.weight.astype(np.float64)):
        found.append(edges)
        n_found += len(edges)
        if n_found >= max(m, PAIRS_AT_A_TIME):
            tree, found, n_found = _least(tree, found, m), [], 0
    tree = _least(tree, found, m)
    _, before = breadth_first_order(_graph(np.ones(m), tree, m), 0, directed=False)
    parent = before[1:].astype(np.int64) - 1
    parents = np.empty(m, np.int64)
    parents[order] = np.where(parent < 0, -1, order[parent])
    return parents


def _in_order(
    problem: OneVsAllProblem, labels: np.ndarray
) -> tuple[sp.csc_array, np.ndarray, np.ndarray]:
    """Return the labels' positives in the order of the tree, their weights, and that order.

    The order: the most frequent labels first, then by instances, then by the weights of the loss.
    """
    rows = [problem.positives(int(label)) for label in labels]
    row_weight = problem.weight.astype(np.float64)
    weight = np.array([row_weight[positives].sum() for positives in rows])
    key = [
        (-weight[j], rows[j].tobytes(), problem.plus[label], problem.minus[label])
        for j, label in enumerate(labels)
    ]
    order = np.array(sorted(range(len(labels)), key=key.__getitem__), np.int64)
    rows = [rows[j] for j in order]
    indptr = np.concatenate(([0], np.cumsum([len(positives) for positives in rows])))
    positives = np.concatenate([*rows, np.zeros(0, np.int32)])
    shape = problem.n_samples, len(labels)
    return (
        sp.csc_array((np.ones(len(positives)), positives, indptr), shape=shape),
        weight[order],
        order,
    )


def _pairs(Y: sp.csc_array, weight: np.ndarray, row_weight: np.ndarray) -> Iterator[_Edges]:
    """Yield the edges between labels that share more than half of the rarer one's positives."""
    by_row = Y.tocsr()
    labels_of = np.diff(by_row.indptr)
    # So many pairs are made for the labels up to each one, its pair with itself among them.
    made = np.concatenate(([0], np.cumsum(labels_of[Y.indices])))[Y.indptr]
    by_row.data = np.repeat(row_weight, labels_of)
    by_label = Y.T
    first, m = 0, Y.shape[1]
    while first < m:
        last = max(
            first + 1, int(np.searchsorted(made, made[first] + PAIRS_AT_A_TIME, "right")) - 1
        )
        common = (by_label[first:last] @ by_row).tocoo()
        rarer, other, shared = common.row + first, common.col, common.data
        is_near = (other < rarer) & (2.0 * shared > weight[rarer])
        rarer, other, shared = rarer[is_near], other[is_near], shared[is_near]
        edges = np.empty(len(rarer), _EDGE)
        edges["cost"] = weight[rarer] + weight[other] - 2.0 * shared
        edges["one"], edges["other"] = other, rarer
        yield edges
        first = last


def _least(tree: _Edges, found: list[_Edges], m: int) -> _Edges:
    """Return the minimum spanning tree of the edges of a tree and of others."""
    edges = np.concatenate([tree, *found])
    edges = edges[np.lexsort((edges["other"], edges["one"], edges["cost"]))]
    # Their places as costs: no two are equal, so that there is one tree only.
    place = np.arange(1.0, 1.0 + len(edges))
    return edges[minimum_spanning_tree(_graph(place, edges, m)).data.astype(np.int64) - 1]


def _graph(costs: np.ndarray, edges: _Edges, m: int) -> sp.csr_array:
    """Return edges as a matrix, the root first; scipy's graphs take 32-bit indices."""
    ends = [(edges[end] + 1).astype(np.int32) for end in ("one", "other")]
    return sp.csr_array((costs, tuple(ends)), shape=(m + 1, m + 1))

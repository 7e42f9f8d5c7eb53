"""OvAP and OvAP++: start at the all-negative problem's solution, or at that of a similar label."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from sklearn_xc.one_vs_all.problem import InstanceSums, OneVsAllProblem
from sklearn_xc.one_vs_all.solver.newton_cg import solve_all_negative
from sklearn_xc.one_vs_all.starts.protocol import SameStart

#: Pairs of labels counted at a time; they take about 100 MB.
CHUNK_PAIRS = 2**21

#: An edge is a row of its cost and of two labels by rank, the first one smaller; -1 is the root.
_Edges = np.ndarray
_EDGE = np.dtype([("cost", np.float64), ("one", np.int64), ("other", np.int64)])


class OneVsAllPrimal(SameStart):
    """Start every label at the solution of the problem without positives.

    An accurate solution of the all-negative problem has nearly every instance at the kink of the
    squared hinge, where Newton's quadratic model is at its worst, so the solver stops early.

    Parameters
    ----------
    stop : float, default=0.003
        The solver stops when the gradient has fallen to this share of its value at zero. Chosen
        by a sweep on three data sets; see ``docs/papers/mean_separating.md``.

    Notes
    -----
    Source: Fang, Cheng and Hsieh, "Fast training for large-scale one-versus-all linear classifiers
    using tree-structured initialization", SDM 2019, as described in section 2 of Schultheis and
    Babbar (2022).

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.one_vs_all.starts import OneVsAllPrimal
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC(init=OneVsAllPrimal(stop=0.01)).fit(X, Y)
    >>> bool(clf.score(X, Y) > 0.9)
    True
    """

    def __init__(self, stop: float = 0.003) -> None:
        self.stop = stop

    def prepare(self, problem: OneVsAllProblem, sums: InstanceSums) -> np.ndarray:
        """Solve the all-negative problem from zero."""
        stop = np.array([self.stop])
        solution = solve_all_negative(problem, sums, relative_tolerance=stop, relative_gap=np.inf)
        return problem.point(solution.indices, solution.values, solution.intercepts[0])


class OneVsAllPrimalPlusPlus(OneVsAllPrimal):
    """Start along a minimum spanning tree over the labels, with the all-negative problem as root.

    The cost of an edge is the weight of the instances that have exactly one of the two labels,
    ``|P_j| + |P_k| - 2 |P_j & P_k|``; for an edge to the root, it is ``|P_j|``. A label starts at
    its parent's weights after pruning. There is one tree over all labels that are solved, so the
    model does not depend on how they are cut into blocks; a block waits for the blocks that hold
    the parents of its labels.

    Parameters
    ----------
    stop : float, default=0.003
        As in ``OneVsAllPrimal``.

    Notes
    -----
    Building the tree takes about 100 MB and 70 bytes for each non-zero of Y, and O(sum over
    instances of their labels squared) time: 2 minutes for 5,000 instances of 950 labels each. No
    label is solved on working sets.

    Source: Fang, Cheng and Hsieh, "Fast training for large-scale one-versus-all linear classifiers
    using tree-structured initialization", SDM 2019, as described in section 2 of Schultheis and
    Babbar (2022). It differs in that the tree is cut into subtrees with at most as many labels as
    a block, which are solved together, instead of a blocked depth-first search.

    Examples
    --------
    If each label has a near copy, starting at a neighbour's weights saves Newton steps:

    >>> import numpy as np
    >>> from scipy.sparse import csr_array, hstack
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> from sklearn_xc.one_vs_all.starts import OneVsAllPrimal, OneVsAllPrimalPlusPlus
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> is_kept = np.random.default_rng(0).random(Y.shape) < 0.9
    >>> Y = hstack([Y, csr_array(Y * is_kept)], format="csr")
    >>> near = OvALinearXC(init=OneVsAllPrimalPlusPlus()).fit(X, Y)
    >>> far = OvALinearXC(init=OneVsAllPrimal()).fit(X, Y)
    >>> bool(near.n_iter_.sum() < far.n_iter_.sum())
    True
    """

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
        """Return the parent of each label in their tree; -1 for the root."""
        return span_labels(problem, labels)


def span_labels(problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
    """Return each label's parent in the minimum spanning tree over labels and a root.

    The root is a label without positives. An edge costs the weight of the instances that have one
    of its two labels and not the other: ``|P_j| + |P_k| - 2 |P_j & P_k|``, and ``|P_j|`` to the
    root. Among edges of equal cost, those to the root come first, which keeps the tree shallow,
    then those of frequent labels, then the instances decide, so that the order of the labels does
    not change the tree.

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
    The tree is exact. If two labels share at most half of the rarer one's positives, their edge is
    the most expensive of the triangle with the root and not needed. Pairs are counted for some
    labels at a time and merged into the tree so far, so memory does not grow with the labels of an
    instance: about 100 MB, and 70 bytes for each non-zero of Y. Time: O(sum over instances of their
    labels squared).
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
        if n_found >= max(m, CHUNK_PAIRS):
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
    # Cumulative number of pairs up to each label, including its pair with itself.
    made = np.concatenate(([0], np.cumsum(labels_of[Y.indices])))[Y.indptr]
    by_row.data = np.repeat(row_weight, labels_of)
    by_label = Y.T
    first = 0
    m = Y.shape[1]
    while first < m:
        last = max(first + 1, int(np.searchsorted(made, made[first] + CHUNK_PAIRS, "right")) - 1)
        common = (by_label[first:last] @ by_row).tocoo()
        rarer = common.row + first
        other = common.col
        shared = common.data
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
    # With positions as costs, no two are equal: the tree is unique.
    place = np.arange(1.0, 1.0 + len(edges))
    return edges[minimum_spanning_tree(_graph(place, edges, m)).data.astype(np.int64) - 1]


def _graph(costs: np.ndarray, edges: _Edges, m: int) -> sp.csr_array:
    """Return edges as a matrix, the root first; scipy's graphs take 32-bit indices."""
    ends = [(edges[end] + 1).astype(np.int32) for end in ("one", "other")]
    return sp.csr_array((costs, tuple(ends)), shape=(m + 1, m + 1))

"""One-vs-all primal++: each label starts at the solution of a label with similar positives."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from sklearn_xc.initialisers.ovap import OneVsAllPrimal
from sklearn_xc.solvers.problem import OneVsAllProblem


class OneVsAllPrimalPlusPlus(OneVsAllPrimal):
    """Start along a minimum spanning tree over the labels, the all-negative problem its root.

    The cost of an edge is the weight of the instances that have one of the two labels and not the
    other, ``|P_j| + |P_k| - 2 |P_j & P_k|``, and ``|P_j|`` to the root: labels that never occur
    together are no closer to each other than to the root, so that only pairs that do need an edge.
    A label starts at its parent's weights after pruning. Each block of labels has a tree of its
    own; another cut into blocks gives other trees, and the same optimum.

    Parameters
    ----------
    stop : float, default=0.003
        As for ``OneVsAllPrimal``.

    Notes
    -----
    Source: Fang, Cheng and Hsieh, "Fast training for large-scale one-versus-all linear classifiers
    using tree-structured initialization", SDM 2019, as described in section 2 of Schultheis and
    Babbar (2022). Differs in that there is a tree for each block.
    """

    def parents(self, problem: OneVsAllProblem, labels: np.ndarray) -> np.ndarray:
        """Return the parent of each label in the block's tree; -1 for the root."""
        rows = [problem.positives(int(label)) for label in labels]
        indptr = np.concatenate(([0], np.cumsum([len(positives) for positives in rows])))
        n, m = problem.n_samples, len(labels)
        ones = np.ones(indptr[-1])
        Y = sp.csc_array((ones, np.concatenate(rows), indptr), shape=(n, m))
        weight = problem.weight.astype(np.float64)
        counts = Y.T @ weight
        common = sp.triu(Y.T @ (weight[:, None] * Y), k=1, format="coo")
        cost = counts[common.row] + counts[common.col] - 2.0 * common.data
        root = np.full(m, m)
        # One more for every edge changes no tree, and keeps edges of cost 0.
        edges = sp.csr_array(
            (
                1.0 + np.concatenate([cost, counts]),
                (np.concatenate([common.row, root]), np.concatenate([common.col, np.arange(m)])),
            ),
            shape=(m + 1, m + 1),
        )
        tree = minimum_spanning_tree(edges)
        _, parent = breadth_first_order(tree, m, directed=False)
        return np.where(parent[:m] == m, -1, parent[:m])

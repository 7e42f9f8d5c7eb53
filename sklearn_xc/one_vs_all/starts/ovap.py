"""One-vs-all primal, and primal++: solutions of the all-negative problem and of similar labels."""

import dataclasses

import numpy as np

from sklearn_xc.one_vs_all.solver.newton_cg import solve_block
from sklearn_xc.one_vs_all.solver.problem import (
    NO_POSITIVES,
    InstanceSums,
    OneVsAllProblem,
    PositiveSums,
)
from sklearn_xc.one_vs_all.starts.constant import Zero
from sklearn_xc.one_vs_all.starts.label_tree import span_labels
from sklearn_xc.one_vs_all.starts.protocol import Initialiser


class OneVsAllPrimal(Initialiser):
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
        all_negative = dataclasses.replace(
            problem,
            y_indptr=np.zeros(2, np.int64),
            y_rows=NO_POSITIVES,
            plus=np.ones(1),
            minus=np.array([np.median(problem.minus)]),
            relative_tolerance=np.array([self.stop]),
            relative_gap=np.inf,
            prune=0.0,
        )
        solution = solve_block(all_negative, sums, Zero(), None, np.zeros(1, np.int64), n_lanes=1)
        w = np.zeros(problem.n_features + 1)
        w[solution.indices] = solution.values
        w[-1] = solution.intercepts[0]
        return w

    def mixtures(
        self, prepared: np.ndarray, problem: OneVsAllProblem, positives: PositiveSums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return the all-negative solution for every label."""
        m = len(positives.weight)
        return np.zeros(m), np.ones(m), prepared

    def start(
        self,
        prepared: np.ndarray,
        problem: OneVsAllProblem,
        label: int,
        positive_sum: np.ndarray,
    ) -> np.ndarray:
        """Return the all-negative solution, the same for every label."""
        return prepared


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

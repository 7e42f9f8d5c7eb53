"""One-vs-all primal: the solution of the all-negative problem, stopped early on purpose.

Source: Fang et al., "Fast training for large-scale one-versus-all linear classifiers using
tree-structured initialization", SDM 2019, as described in section 2 of Schultheis and Babbar
(2022). A well-solved all-negative problem leaves nearly every instance at the kink of the squared
hinge, where Newton's quadratic model is at its worst; ``STOP`` was chosen by a sweep, see
``python -m sklearn_xc.bench inits --sweep-ovap``.
"""

import dataclasses

import numpy as np

from sklearn_xc.solvers.problem import NO_POSITIVES, InstanceSums, OneVsAllProblem

#: The all-negative problem is left when its gradient has fallen to this share of that at zero.
STOP = 0.1


def prepare(problem: OneVsAllProblem, sums: InstanceSums) -> np.ndarray:
    """Solve the all-negative problem from zero."""
    from sklearn_xc.initialisers import zero
    from sklearn_xc.solvers.newton_cg import solve_block

    all_negative = dataclasses.replace(
        problem,
        y_indptr=np.zeros(2, np.int64),
        y_rows=NO_POSITIVES,
        plus=problem.plus[:1],
        minus=np.array([np.median(problem.minus)]),
        relative_tolerance=np.array([STOP]),
        prune=0.0,
    )
    solution = solve_block(all_negative, sums, zero, None, np.zeros(1, np.int64), n_lanes=1)
    w = np.zeros(problem.n_features + 1)
    w[solution.indices] = solution.values
    w[-1] = solution.intercepts[0]
    return w


def start(
    prepared: np.ndarray, problem: OneVsAllProblem, label: int, positive_sum: np.ndarray
) -> np.ndarray:
    """Return the all-negative solution, the same for every label."""
    return prepared

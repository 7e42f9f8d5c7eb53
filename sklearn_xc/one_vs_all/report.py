"""The report of a fit, and its warnings."""

import warnings
from typing import Any

import numpy as np

from sklearn_xc.exceptions import ConvergenceWarning, PruningWarning
from sklearn_xc.one_vs_all.solver.newton_cg import STATUS_NAMES, BlockSolution

#: Pruning is reported if it adds more than this share to the sum of all objectives. It was below
#: 0.002 for the defaults on five sets of texts, 0.08 where answers stayed the same, and above 0.25
#: wherever precision on training instances fell by more than 1%.
_LARGE_INCREASE = 0.2


def stacked(solutions: list[BlockSolution], row_of_label: np.ndarray, name: str) -> np.ndarray:
    """Return one attribute of the solutions of all labels."""
    return np.concatenate([getattr(s, name) for s in solutions])[row_of_label]


def fit_report(
    solutions: list[BlockSolution], row_of_label: np.ndarray, is_bounded: bool
) -> dict[str, np.ndarray]:
    """Return ``fit_report_``, a dict of columns.

    Parameters
    ----------
    solutions : list of BlockSolution
        One for each block.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The row of each label in the stacked solutions.
    is_bounded : bool
        Whether the ridge covers all weights, so that the suboptimality has a bound.
    """
    names = (
        "n_iter",
        "n_products",
        "status",
        "objective",
        "gradient_norm",
        "gradient_tolerance",
        "pruned_objective",
        "seconds",
    )
    columns = {name: stacked(solutions, row_of_label, name) for name in names}
    norm, pruned = columns["gradient_norm"], columns.pop("pruned_objective")
    return {
        **columns,
        "status": np.array(STATUS_NAMES)[columns["status"]],
        "suboptimality": 0.5 * norm**2 if is_bounded else np.full_like(norm, np.inf),
        "pruning_increase": pruned - columns["objective"],
        "seconds": columns["seconds"] / np.bincount(row_of_label)[row_of_label],
    }


def warn_of_fit(estimator: Any, stacklevel: int) -> None:
    """Warn of labels that did not converge, and of weights that were missed after pruning."""
    name, report = type(estimator).__name__, estimator.fit_report_
    seen = np.ones(len(report["status"]), bool)
    if not estimator._is_binary:  # the weights of an unseen label show nowhere
        seen[estimator._unseen_labels] = False
    for status, text in (
        (
            "max_iter",
            f"did not converge within max_iter={estimator.max_iter} Newton steps (labels {{}}). "
            "Raise max_iter or tol, or lower C; fit_report_ holds a bound on the error of each.",
        ),
        (
            "stalled",
            f"stopped at the precision of {estimator.intercept_.dtype} before their stopping rule "
            "held (labels {}). Raise tol, scale X to rows of about unit length, or pass X as "
            "float64 if it is not.",
        ),
    ):
        labels = np.flatnonzero((report["status"] == status) & seen)
        if labels.size:
            some = ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")
            warnings.warn(
                f"{name}: {labels.size} of {len(seen)} labels {text.format(some)}",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )
    total, increase = report["objective"][seen].sum(), report["pruning_increase"][seen].sum()
    if increase > _LARGE_INCREASE * total:
        warnings.warn(
            f"{name}: prune={estimator.prune} raised the sum of all objectives by "
            f"{increase / total:.0%}: weights were removed that predictions need. Lower it: "
            "weights are the smaller, the larger X is.",
            PruningWarning,
            stacklevel=stacklevel,
        )

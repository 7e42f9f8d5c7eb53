"""What a fit of all labels did: its report, and what there is to warn of."""

import warnings
from typing import Any

import numpy as np

from sklearn_xc._pruning_notes import PruningNote, tell_pruning
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.solvers.newton_cg import STATUS_NAMES, BlockSolution


def stacked(solutions: list[BlockSolution], row_of_label: np.ndarray, name: str) -> np.ndarray:
    """Return one attribute of the solutions of all labels."""
    return np.concatenate([getattr(s, name) for s in solutions])[row_of_label]


def fit_report(
    solutions: list[BlockSolution], row_of_label: np.ndarray, is_bounded: bool,
    costs: tuple[np.ndarray, np.ndarray],
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return ``fit_report_``: a column for each thing that is known of every label.

    Parameters
    ----------
    solutions : list of BlockSolution
        One for each block.
    row_of_label : ndarray of int64 of shape (n_labels,)
        The row of each label in the stacked solutions.
    is_bounded : bool
        Whether the ridge covers all weights, so that the suboptimality has a bound.
    costs : tuple of ndarray of float64 of shape (n_labels,)
        Weights of the loss of a positive and of a negative of weight 1.
    """
    columns = {
        name: stacked(solutions, row_of_label, name)
        for name in (
            "n_iter",
            "n_products",
            "status",
            "objective",
            "gradient_norm",
            "gradient_tolerance",
            "pruned_objective",
            "seconds",
        )
    }
    norm, pruned = columns["gradient_norm"], columns.pop("pruned_objective")
    suboptimality = 0.5 * norm**2 if is_bounded else np.full_like(norm, np.inf)
    increase = pruned - columns["objective"]
    return {
        **columns,
        "status": np.array(STATUS_NAMES)[columns["status"]],
        "suboptimality": suboptimality,
        "pruning_increase": increase,
        "distance": np.sqrt(2.0 * np.maximum(suboptimality + increase, 0.0)),
        "positive_cost": costs[0],
        "negative_cost": costs[1],
        "seconds": columns["seconds"] / np.bincount(row_of_label)[row_of_label],
    }


def warn_of_fit(estimator: Any, stacklevel: int) -> None:
    """Warn of what went less than well in the fit of an estimator."""
    name, report = type(estimator).__name__, estimator.fit_report_
    # What a label without instances is solved to shows nowhere.
    matters = np.ones(len(report["status"]), bool)
    if not estimator._is_binary:
        matters[estimator._unseen_labels] = False
    out = np.flatnonzero((report["status"] == "max_iter") & matters)
    if out.size:
        warnings.warn(
            f"{name}: {out.size} of {len(report['status'])} labels did not converge "
            f"within max_iter={estimator.max_iter} Newton steps (labels {_some(out)}). Raise "
            "max_iter or tol, or lower C; fit_report_ holds a bound on the error of each.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    stalled = np.flatnonzero((report["status"] == "stalled") & matters)
    if stalled.size:
        warnings.warn(
            f"{name}: {stalled.size} of {len(report['status'])} labels stopped at the "
            f"precision of {estimator.intercept_.dtype} before their stopping rule held (labels "
            f"{_some(stalled)}). Raise tol, scale X to rows of about unit length, or pass X as "
            "float64 if it is not.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
    cost = estimator._pruning_cost
    if cost is None:  # nothing was pruned
        return
    has_threshold = estimator._is_binary or estimator._targets_kind != "classes"
    lower = cost.losses(len(estimator.intercept_), has_threshold)
    if lower:
        fell = " and ".join(f"{metric} from {a:.3f} to {b:.3f}" for metric, a, b in lower)
        text = (
            f"{name}: prune={estimator.prune} lowered {fell} on {cost.n_sampled} of the training "
            "instances. Lower it: weights are the smaller, the larger X is."
        )
        tell_pruning(PruningNote(text, max(a - b for _, a, b in lower)), stacklevel)


def _some(labels: np.ndarray) -> str:
    """Name a few labels for a message."""
    return ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")

"""Distance from LIBLINEAR's optimum, and precision beside it.

Half of the labels are the most frequent ones, half are drawn with a fixed seed from the others.
Each is solved from every start at tol=1e-4, and by LIBLINEAR's primal solver (scikit-learn's
LinearSVC) at tol=1e-8 for reference. Both objectives, 0.5 (|w|^2 + b^2) + C sum max(0, 1 -
margin)^2, are evaluated in float64 by the same few lines of numpy. The CPU times are at these
different tolerances, so that they are no comparison of speed.
"""

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from asv_bench.common.data import SETS, SplitSet, load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, n_unsolved, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import INITIALISERS
from sklearn_xc.metrics import precision_at_k

C = 1.0
TOL = 1e-4
REFERENCE_TOL = 1e-8
KS = (1, 3, 5)

#: The largest relative gap of a label, and the largest distance in precision, in points.
MAX_GAP = 1e-3
MAX_POINTS = 0.1

_COLUMNS = [
    Column("set", "set"),
    Column("init", "init"),
    Column("n_labels", "labels"),
    Column("max_gap", "max gap", ".1e"),
    Column("median_gap", "median gap", ".1e"),
    *(Column(f"P@{k}", f"P@{k}", ".2f") for k in KS),
    *(Column(f"LIBLINEAR P@{k}", f"LIBLINEAR @{k}", ".2f") for k in KS),
    Column("points", "max diff", ".2f"),
    Column("cpu_s", "CPU s", ".2f"),
    Column("reference_cpu_s", "LIBLINEAR CPU s", ".2f"),
    Column("n_unsolved", "not converged"),
    Column("reference_n_unsolved", "LIBLINEAR n. c."),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("bibtex", "tate"))
    parser.add_argument("--labels", type=int, default=50, metavar="N", help="labels (50)")


def main(
    data: Any,
    *,
    sets: Sequence[str] = ("bibtex", "tate"),
    labels: int = 50,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the distance from the optimum.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("bibtex", "tate")
        Keys of ``data.SETS``; features are float64.
    labels : int, default=50
        How many labels.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row per set and start. ``max_gap`` and ``median_gap`` are over labels, of (objective -
        reference) / reference; negative where the reference is farther from the optimum.
    """
    report = report or Report("optimum")
    rows = []
    for name in sets:
        split = load_set(name, data, dtype=np.float64)
        rows += _measure_set(split, choose_labels(split.Y_train, labels))
    report.table(
        f"Relative gap to LIBLINEAR's objective (goal: at most {MAX_GAP:g}), precision over the "
        f"same labels in % (goal: within {MAX_POINTS} points)",
        rows,
        _COLUMNS,
    )
    report.line()
    report.line(
        f"C={C:g}, ridge on the intercept, tol={TOL:g} and prune=0 here, tol={REFERENCE_TOL:g} for "
        "LinearSVC(dual=False): the CPU times are no comparison of speed."
    )
    return rows


def choose_labels(Y: Any, n_labels: int) -> np.ndarray:
    """Return labels with a positive: the most frequent ones, and others drawn with seed 0.

    Parameters
    ----------
    Y : sparse array of shape (n, L)
        Training labels.
    n_labels : int
        How many, half of each kind (the larger half frequent ones); fewer where Y has fewer.

    Returns
    -------
    ndarray of int64
        Distinct columns of Y.
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    head, others = np.split(order, [-(-n_labels // 2)])
    n_drawn = min(n_labels // 2, len(others))
    return np.concatenate([head, np.random.default_rng(0).choice(others, n_drawn, replace=False)])


def objectives(X: Any, Y: Any, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return each label's objective with the squared hinge and a ridge on the intercept.

    Parameters
    ----------
    X : sparse of shape (n, d), float64
        Instances.
    Y : sparse of shape (n, L)
        Labels.
    W : ndarray of shape (L, d)
        Weights.
    b : ndarray of shape (L,)
        Intercepts.

    Returns
    -------
    ndarray of float64 of shape (L,)
        The loss is a sum over instances, times C.
    """
    W, b = W.astype(np.float64), b.astype(np.float64)
    margin = (2.0 * Y.toarray() - 1.0) * (X @ W.T + b)
    loss = (np.maximum(0.0, 1.0 - margin) ** 2).sum(axis=0)
    return 0.5 * ((W**2).sum(axis=1) + b**2) + C * loss


def _measure_set(split: SplitSet, labels: np.ndarray) -> list[dict[str, Any]]:
    X, Y, Y_test = split.X_train, split.Y_train[:, labels], split.Y_test[:, labels]
    (W, b, n_failed), reference_seconds = cpu_seconds(_solve_reference, X, Y)
    reference = objectives(X, Y, W, b)
    order = np.argsort(-(split.X_test @ W.T + b), axis=1, kind="stable")
    expected = 100 * precision_at_k(Y_test, order[:, : KS[-1]], KS)
    rows = []
    for init in INITIALISERS:
        model = OvALinearXC(
            C=C, init=init, tol=TOL, prune=0, fit_intercept=True, regularize_intercept=True,
            n_jobs=1,
        )  # fmt: skip
        warm_up(model, X, Y)
        _, seconds = cpu_seconds(fit_quietly, model, X, Y)
        ours = objectives(X, Y, model.coef_.toarray(), model.intercept_)
        gap = (ours - reference) / reference
        precision = 100 * precision_at_k(Y_test, model.predict_topk(split.X_test, KS[-1]), KS)
        rows.append(
            {
                "set": split.name,
                "init": init,
                "n_labels": len(labels),
                "max_gap": float(gap.max()),
                "median_gap": float(np.median(gap)),
                **{f"P@{k}": float(p) for k, p in zip(KS, precision, strict=True)},
                **{f"LIBLINEAR P@{k}": float(p) for k, p in zip(KS, expected, strict=True)},
                "points": float(np.abs(precision - expected).max()),
                "cpu_s": seconds,
                "reference_cpu_s": reference_seconds,
                "n_unsolved": n_unsolved(model),
                "reference_n_unsolved": n_failed,
            }
        )
    return rows


def _solve_reference(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Return LinearSVC's weights and intercepts, and how many labels it gave up on."""
    W, b = np.empty((Y.shape[1], X.shape[1])), np.empty(Y.shape[1])
    n_failed = 0
    for row, column in enumerate(Y.toarray().T):
        model = LinearSVC(C=C, dual=False, tol=REFERENCE_TOL, max_iter=10_000)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(X, column)
        n_failed += any(issubclass(each.category, ConvergenceWarning) for each in caught)
        W[row], b[row] = model.coef_[0], model.intercept_[0]
    return W, b, n_failed

"""CPU time of choosing C by cross-validation: OvALinearXCCV beside GridSearchCV and plain loops.

All of them score the same grid of C by precision@1 on the same folds, and then train on all rows
with the best C; one thread, after a warm-up. "exhaustive" is OvALinearXCCV without its race, "loop"
fits every C from a cold start, "loop, coef_" from the pruned weights and the intercepts of the C
before it, in rising order. "fits" is what each costs in fits of OvALinearXC with its defaults.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, KFold

from asv_bench.common.data import SETS, SplitSet, load_set, take_labels
from asv_bench.common.measure import cpu_seconds, fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.metrics import get_scorer, precision_at_k

SYSTEMS = ("OvALinearXCCV", "exhaustive", "GridSearchCV", "loop", "loop, coef_")

_COLUMNS = (
    Column("system", "system"),
    Column("cpu_s", "CPU s", ".1f"),
    Column("fits", "default fits", ".1f"),
    Column("scored", "scored", "d"),
    Column("ratio", "ratio to OvALinearXCCV", ".2f"),
    Column("C", "C", ".3g"),
    Column("score", "mean P@1 %", ".2f"),
    Column("points", "largest difference", ".2f"),
    Column("P@1", "test P@1 %", ".2f"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("bibtex", "tate"))
    parser.add_argument("--labels", type=int, metavar="N", help="N labels, drawn with a fixed seed")
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="folds (5)")
    parser.add_argument("--Cs", type=int, default=10, metavar="N", help="values of C (10)")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)


def main(
    data: Any,
    *,
    sets: Sequence[str] = ("bibtex", "tate"),
    labels: int | None = None,
    folds: int = 5,
    Cs: int = 10,
    systems: Sequence[str] = SYSTEMS,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the choice of C.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("bibtex", "tate")
        Keys of ``data.SETS``.
    labels : int, default=None
        Labels to take of each set; None for all.
    folds, Cs : int
        Number of folds, and of values of C on the estimator's grid.
    systems : sequence of str, default=SYSTEMS
        What to measure, "OvALinearXCCV" first.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row per set and system. "fits" is the CPU time in default fits, "scored" the number of
        scores, and "points" the largest difference of a fold's precision from that of
        OvALinearXCCV, in percent, where both have one.
    """
    report = report or Report("cv")
    rows = []
    for name in sets:
        split = load_set(name, data)
        of_set = _measure_set(split, labels, folds, Cs, systems)
        n, d = split.X_train.shape
        report.table(
            f"{name}: {folds} folds, {Cs} values of C, {of_set[0]['n_labels']:,} labels "
            f"({n:,} x {d:,})",
            of_set,
            _COLUMNS,
        )
        rows += of_set
    return rows


def _measure_set(
    split: SplitSet, n_labels: int | None, n_folds: int, n_Cs: int, systems: Sequence[str]
) -> list[dict[str, Any]]:
    columns = take_labels(split.Y_train, n_labels)
    X, Y = sp.csr_array(split.X_train), sp.csr_array(split.Y_train)[:, columns]
    X_test, Y_test = split.X_test, sp.csr_array(split.Y_test)[:, columns]
    folds = list(KFold(n_folds, shuffle=True, random_state=0).split(X))
    warm_up(OvALinearXC(n_jobs=1), X, Y)
    default_s = sorted(cpu_seconds(fit_quietly, OvALinearXC(n_jobs=1), X, Y)[1] for _ in range(3))
    search: dict[str, Callable[..., Any]] = {
        "OvALinearXCCV": _by_race,
        "exhaustive": _by_path,
        "GridSearchCV": _by_grid_search,
        "loop": _by_loop,
        "loop, coef_": _by_warm_loop,
    }
    grid = np.logspace(-1.5, 1.0, n_Cs)
    rows = []
    for system in systems:
        (model, scores), seconds = cpu_seconds(search[system], X, Y, folds, grid)
        run = np.isfinite(scores).any(axis=1)
        means = scores[run].mean(axis=0)  # NaN where a value has left the race
        ranked, _ = model.predict_topk(X_test, 1)
        rows.append(
            {
                "set": split.name,
                "system": system,
                "n_labels": Y.shape[1],
                "cpu_s": seconds,
                "fits": seconds / default_s[1],
                "scored": int(np.isfinite(scores).sum()),
                "C": float(grid[np.nanargmax(means)]),
                "score": 100 * float(np.nanmax(means)),
                "P@1": 100 * float(precision_at_k(Y_test, ranked, k=1)),
                "scores": scores,
            }
        )
    for row in rows:
        row["ratio"] = row["cpu_s"] / rows[0]["cpu_s"]
        row["points"] = 100 * float(np.nanmax(np.abs(row["scores"] - rows[0]["scores"])))
    return rows


def _by_race(X: Any, Y: Any, folds: list, grid: np.ndarray) -> tuple[Any, np.ndarray]:
    model = fit_quietly(OvALinearXCCV(grid, cv=folds, n_jobs=1), X, Y)
    return model, model.scores_


def _by_path(X: Any, Y: Any, folds: list, grid: np.ndarray) -> tuple[Any, np.ndarray]:
    model = fit_quietly(OvALinearXCCV(grid, cv=folds, exhaustive=True, n_jobs=1), X, Y)
    return model, model.scores_


def _by_grid_search(X: Any, Y: Any, folds: list, grid: np.ndarray) -> tuple[Any, np.ndarray]:
    search = GridSearchCV(
        OvALinearXC(n_jobs=1), {"C": grid}, cv=folds, scoring=get_scorer("P@1"), error_score="raise"
    )
    fit_quietly(search, X, Y)
    of_fold = [search.cv_results_[f"split{fold}_test_score"] for fold in range(len(folds))]
    return search.best_estimator_, np.array(of_fold)


def _by_loop(X: Any, Y: Any, folds: list, grid: np.ndarray) -> tuple[Any, np.ndarray]:
    return _loop(X, Y, folds, grid, lambda model: "msi")


def _by_warm_loop(X: Any, Y: Any, folds: list, grid: np.ndarray) -> tuple[Any, np.ndarray]:
    def start(model: Any) -> Any:
        intercept = sp.csr_array(model.intercept_[:, None])
        return sp.hstack([model.coef_, intercept], format="csr")

    return _loop(X, Y, folds, grid, start)


def _loop(
    X: Any, Y: Any, folds: list, grid: np.ndarray, start: Callable[[Any], Any]
) -> tuple[Any, np.ndarray]:
    """Return the final model and the scores; `start` makes an init from the model before."""
    scores = np.empty((len(folds), len(grid)))
    scorer = get_scorer("P@1")
    for fold, (train, test) in enumerate(folds):
        X_train, Y_train, X_test, Y_test = X[train], Y[train], X[test], Y[test]
        model: Any = None
        for c, C in enumerate(grid):
            init = "msi" if model is None else start(model)
            model = fit_quietly(OvALinearXC(C=C, init=init, n_jobs=1), X_train, Y_train)
            scores[fold, c] = scorer(model, X_test, Y_test)
    best = grid[np.argmax(scores.mean(axis=0))]
    return fit_quietly(OvALinearXC(C=best, n_jobs=1), X, Y), scores

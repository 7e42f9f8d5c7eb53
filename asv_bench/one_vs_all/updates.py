"""``update`` of one-vs-all beside a full fit: CPU time, precision, and whether its bound holds.

A model of the first rows learns the last ones: a random tenth, or a part where a tenth of the
labels mostly occurs (four fifths of the rows with one of these, and a twentieth of the others). The
bound is compared with the distance from the optimum of all rows, for some labels.
"""

import argparse
import copy
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k

_KS = (1, 3, 5)
_LAST, _DRIFTING, _OF_DRIFTING, _OF_OTHERS = 0.1, 0.1, 0.8, 0.05

_COLUMNS = [
    Column("set", "set"),
    Column("split", "split"),
    Column("model", "model"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("share", "of a full fit", ".2f"),
    *(Column(f"P@{k}", f"P@{k} %", ".2f") for k in _KS),
    Column("positives", "new positives %", ".1f"),
    Column("drift", "drift %", ".1f"),
    Column("bound", "median bound / norm, kept", ".3f"),
    Column("true", "median distance / norm, kept", ".3f"),
    Column("violated", "bounds violated"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=("gutenberg_subjects",), metavar="SET")
    parser.add_argument("--splits", nargs="+", default=tuple(SPLITS), choices=tuple(SPLITS))
    parser.add_argument("--drifts", nargs="+", type=float, default=(0.1, 0.3, 1.0), metavar="D")
    parser.add_argument("--rows", type=int, default=None, help="first training rows (all)")
    parser.add_argument("--check", type=int, default=1000, help="labels for the bound (1,000)")
    parser.add_argument("--jobs", type=int, default=None, help="threads")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("gutenberg_subjects",),
    splits: Sequence[str] = ("random", "drift"),
    drifts: Sequence[float] = (0.1, 0.3, 1.0),
    rows: int | None = None,
    check: int = 1000,
    jobs: int | None = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Update models and fit them anew.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sets : sequence of str
    splits : sequence of str
        Keys of ``SPLITS``.
    drifts : sequence of float
        Values of `max_drift`.
    rows : int, default=None
        Of each set; None takes all.
    check : int, default=1000
        Labels of which the optimum of all rows is found.
    jobs : int, default=None
        Threads.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set, split and model.
    """
    report, found = report or Report("updates"), []
    for name in sets:
        parts = load_set(name, data)
        X, Y = sp.csr_array(parts.X_train)[:rows], sp.csr_array(parts.Y_train)[:rows]
        warm_up(OvALinearXC(), X, Y)
        for split in splits:
            is_last = SPLITS[split](Y)
            for row in _compare(X, Y, parts, is_last, drifts, check, jobs):
                found.append({"set": name, "split": split, **row})
                report.line(f"{name}, {split}, {row['model']}: {row['cpu_s']:.1f} CPU s")
    report.table("Updates beside full fits", found, _COLUMNS)
    return found


def _compare(
    X: Any, Y: Any, parts: Any, is_last: np.ndarray, drifts: Sequence[float], check: int,
    jobs: int | None,
) -> list[dict[str, Any]]:  # fmt: skip
    def precision(model: Any) -> dict[str, float]:
        labels, _ = model.predict_topk(parts.X_test, max(_KS))
        return {f"P@{k}": 100 * precision_at_k(parts.Y_test, labels, k=k) for k in _KS}

    X_old, Y_old, X_new, Y_new = X[~is_last], Y[~is_last], X[is_last], Y[is_last]
    first, of_first = cpu_seconds(fit_quietly, OvALinearXC(n_jobs=jobs), X_old, Y_old)
    full, of_full = cpu_seconds(fit_quietly, OvALinearXC(n_jobs=jobs), X, Y)
    share = int(is_last.sum()) / len(is_last)
    found = [
        {"model": f"first {1 - share:.0%}", "cpu_s": of_first, "share": of_first / of_full}
        | precision(first),
        {"model": "full", "cpu_s": of_full, "share": 1.0} | precision(full),
    ]
    labels = np.random.default_rng(1).permutation(Y.shape[1])[:check]
    optimum = OvALinearXC(tol=1e-6, prune=0, n_jobs=jobs)
    optimum = fit_quietly(optimum, X.astype(np.float64), Y[:, labels])
    for drift in drifts:
        model = copy.copy(first).set_params(max_drift=drift)
        update = partial(quietly, model.update, X_new, Y_new, X_old=X_old, y_old=Y_old)
        _, seconds = cpu_seconds(update)
        reason = model.fit_report_["reason"]
        found.append(
            {"model": f"update, max_drift={drift:g}", "cpu_s": seconds, "share": seconds / of_full}
            | precision(model)
            | {
                "positives": 100 * np.mean(reason == "new positives"),
                "drift": 100 * np.mean(reason == "drift"),
            }
            | _bounds(model, labels, optimum)
        )  # fmt: skip
    return found


def _bounds(model: Any, labels: np.ndarray, optimum: Any) -> dict[str, float]:
    """Return how the bounds of some labels compare with their distances from the optimum."""
    difference = model.coef_[labels] - optimum.coef_
    squares = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
    distance = np.sqrt(squares + (model.intercept_[labels] - optimum.intercept_) ** 2)
    bound, slack = model.fit_report_["distance"][labels], optimum.fit_report_["gradient_norm"]
    coef = optimum.coef_
    norm = np.sqrt(
        np.asarray(coef.multiply(coef).sum(axis=1)).ravel() + optimum.intercept_**2
    )  # fmt: skip
    kept = (model.fit_report_["reason"][labels] == "kept") & (model.label_counts_[labels] > 0)
    return {
        "violated": int((distance > bound + slack).sum()),
        "bound": float(np.median((bound / norm)[kept])) if kept.any() else np.nan,
        "true": float(np.median((distance / norm)[kept])) if kept.any() else np.nan,
    }


def _random(Y: Any) -> np.ndarray:
    """Return which rows come last: a random tenth."""
    return np.random.default_rng(0).random(Y.shape[0]) < _LAST


def _drifting(Y: Any) -> np.ndarray:
    """Return which rows come last: most of those that have one of a tenth of the labels."""
    rng = np.random.default_rng(0)
    labels = rng.random(Y.shape[1]) < _DRIFTING
    has_one = np.asarray(Y @ labels.astype(np.float64)) > 0
    return rng.random(Y.shape[0]) < np.where(has_one, _OF_DRIFTING, _OF_OTHERS)


SPLITS = {"random": _random, "drift": _drifting}

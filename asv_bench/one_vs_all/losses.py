"""CPU time of one-vs-all training by loss.

Fits the same labels with each loss in turn, one thread, after a warm-up, and reports the median CPU
time beside that of the squared hinge. The problems differ, so that the objectives do; the stopping
rule, the certificate and C, 0.5, are the same. Precision is that of the test rows over the labels
taken.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import SETS, SplitSet, load_set, take_labels
from asv_bench.common.measure import cpu_seconds, fit_quietly, n_unsolved, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.losses import LOSSES
from sklearn_xc.metrics import precision_at_k

#: What the logistic loss, of which every instance has a part, should take at most.
GOALS = {"logistic": 3.0}

_COLUMNS = (
    Column("loss", "loss"),
    Column("n_labels", "labels", ","),
    Column("cpu_s", "CPU s", ".2f"),
    Column("ms_per_label", "ms a label", ".2f"),
    Column("ratio", "ratio to squared hinge", ".2f"),
    Column("goal", "goal", ".1f"),
    Column("n_iter", "Newton steps", ".2f"),
    Column("n_products", "Hessian products", ".1f"),
    Column("bound", "largest bound", ".1e"),
    Column("n_unsolved", "not converged"),
    Column("P@1", "P@1 %", ".2f"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=tuple(SETS), help="data sets")
    parser.add_argument("--labels", type=int, metavar="N", help="N labels, drawn with a fixed seed")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=tuple(LOSSES))
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="fits of each (3)")


def main(
    data: Any,
    *,
    sets: Sequence[str] = tuple(SETS),
    labels: int | None = None,
    losses: Sequence[str] = tuple(LOSSES),
    repeats: int = 3,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the losses.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=all
        Keys of ``data.SETS``.
    labels : int, default=None
        Labels to take of each set; None for all.
    losses : sequence of str, default=all
        Keys of ``sklearn_xc.losses.LOSSES``; the squared hinge is measured in any case.
    repeats : int, default=3
        Fits of each loss, of which the median counts.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row for each set and loss. The bound is that on the distance from the minimum, as a
        share of the objective.
    """
    report = report or Report("losses")
    chosen = ["squared_hinge", *(loss for loss in losses if loss != "squared_hinge")]
    rows = []
    for name in sets:
        split = load_set(name, data)
        of_set = _measure(split, chosen, labels, repeats)
        n, d = split.X_train.shape
        report.table(f"{name}: losses ({n:,} x {d:,}, median of {repeats})", of_set, _COLUMNS)
        rows += of_set
    return rows


def _measure(
    split: SplitSet, losses: Sequence[str], n_labels: int | None, repeats: int
) -> list[dict[str, Any]]:
    """Return a row for each loss; the fits take turns, so that a slow minute hits all of them."""
    taken = take_labels(split.Y_train, n_labels)
    X, Y = split.X_train, split.Y_train[:, taken]
    for loss in losses:
        warm_up(OvALinearXC(loss=loss, n_jobs=1), X, Y)
    seconds: dict[str, list[float]] = {loss: [] for loss in losses}
    model: dict[str, OvALinearXC] = {}
    for _ in range(repeats):
        for loss in losses:
            model[loss] = OvALinearXC(C=0.5, loss=loss, n_jobs=1)
            _, spent = cpu_seconds(fit_quietly, model[loss], X, Y)
            seconds[loss].append(spent)
    base = float(np.median(seconds["squared_hinge"]))
    return [
        _row(split, loss, model[loss], float(np.median(seconds[loss])), base, taken)
        for loss in losses
    ]


def _row(
    split: SplitSet, loss: str, model: OvALinearXC, cpu_s: float, base: float, taken: np.ndarray
) -> dict[str, Any]:
    found = model.fit_report_
    best, _ = model.predict_topk(split.X_test, 1)
    return {
        "set": split.name,
        "loss": loss,
        "n_labels": len(taken),
        "cpu_s": cpu_s,
        "ms_per_label": 1e3 * cpu_s / len(taken),
        "ratio": cpu_s / base,
        "goal": GOALS.get(loss),
        "n_iter": float(found["n_iter"].mean()),
        "n_products": float(found["n_products"].mean()),
        "bound": float((found["suboptimality"] / found["objective"]).max()),
        "n_unsolved": n_unsolved(model),
        "P@1": 100 * float(precision_at_k(split.Y_test[:, taken], best, k=1)),
    }

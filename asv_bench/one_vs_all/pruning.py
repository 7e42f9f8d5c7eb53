"""What pruning costs new instances, and whether ``OvALinearXC`` warns of it.

The model is fitted once for each threshold; precision and F1 are those of the test set, in
percent, beside their loss against ``prune=0``. ``PruningWarning`` judges by training instances.
"""

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.metrics import f1_score

from asv_bench.common.data import SETS, load_set
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.exceptions import PruningWarning
from sklearn_xc.metrics import precision_at_k

THRESHOLDS = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5)

_COLUMNS = [
    Column("set", "set"),
    Column("loss", "loss"),
    Column("prune", "prune", "g"),
    Column("weights", "weights", ",d"),
    Column("p1", "P@1", ".2f"),
    Column("p5", "P@5", ".2f"),
    Column("f1", "F1", ".2f"),
    Column("lost", "lost: P@1, P@5, F1"),
    Column("warns", "warns"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["bibtex", "tate"], help="sets")
    parser.add_argument(
        "--losses", nargs="+", default=["squared_hinge"], help="of OvALinearXC (squared_hinge)"
    )
    parser.add_argument("--prune", nargs="+", type=float, default=THRESHOLDS, help="thresholds")
    parser.add_argument("--n-train-rows", type=int, default=None, metavar="N", help="all")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("tate",),
    losses: Sequence[str] = ("squared_hinge",),
    prune: Sequence[float] = THRESHOLDS,
    n_train_rows: int | None = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Fit with each threshold, and compare answers for the test set.

    Parameters
    ----------
    data : path, default=None
        Folder of the data sets.
    sets, losses : sequence of str
        Data sets, and losses of ``OvALinearXC``.
    prune : sequence of float
        Thresholds; others than 0 are compared with the first.
    n_train_rows : int, default=None
        Rows to fit; None takes all.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each fit; precision and F1 in percent.
    """
    report = report or Report("pruning")
    rows = []
    for name in sets:
        split = load_set(name, data)
        X, Y = split.X_train[:n_train_rows], split.Y_train[:n_train_rows]
        for loss in losses:
            first = None
            for threshold in prune:
                found = _measure(OvALinearXC(C=1.0, loss=loss, prune=threshold), X, Y, split)
                first = found if first is None else first
                lost = ", ".join(f"{first[key] - found[key]:.2f}" for key in ("p1", "p5", "f1"))
                rows.append({"set": name, "loss": loss, "prune": threshold, **found, "lost": lost})
    report.table("Pruning, test set", rows, _COLUMNS)
    return rows


def _measure(model: OvALinearXC, X: Any, Y: Any, split: Any) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    labels, _ = model.predict_topk(split.X_test, 5)
    first, five = precision_at_k(split.Y_test, labels, [1, 5])
    f1 = f1_score(split.Y_test, model.predict(split.X_test), average="micro", zero_division=0.0)
    return {
        "weights": int(model.coef_.nnz),
        "p1": 100 * first,
        "p5": 100 * five,
        "f1": 100 * f1,
        "warns": "yes" if any(w.category is PruningWarning for w in caught) else "no",
    }

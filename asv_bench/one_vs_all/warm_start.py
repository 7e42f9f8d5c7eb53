"""A fit that starts at last week's weights, beside one from scratch: CPU time and Newton steps."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k

_COLUMNS = [
    Column("set", "set"),
    Column("share", "new rows", ".0%"),
    Column("start", "start"),
    Column("n_iter", "Newton steps a label", ".2f"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("P@1", "P@1 %", ".2f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=("citeulike_t",), metavar="SET")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("citeulike_t",),
    shares: Sequence[float] = (0.01, 0.1, 1.0),
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Fit to some rows, then to these and new ones.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sets : sequence of str
    shares : sequence of float
        New rows, as a share of the old ones.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set, share and start.
    """
    report, rows = report or Report("warm_start"), []
    for name in sets:
        split = load_set(name, data, dtype=np.float32)
        order = np.random.default_rng(0).permutation(split.X_train.shape[0])
        X, Y = split.X_train[order], split.Y_train[order]
        warm_up(OvALinearXC(n_jobs=1), X, Y)
        for share in shares:
            n_old = round(len(order) / (1.0 + share))
            model = fit_quietly(OvALinearXC(warm_start=True, n_jobs=1), X[:n_old], Y[:n_old])
            for start, fitted in (("last weights", model), ("msi", OvALinearXC(n_jobs=1))):
                fitted, seconds = cpu_seconds(fit_quietly, fitted, X, Y)
                labels, _ = fitted.predict_topk(split.X_test, 1)
                rows.append(
                    {
                        "set": name,
                        "share": share,
                        "start": start,
                        "n_iter": float(fitted.n_iter_.mean()),
                        "cpu_s": seconds,
                        "P@1": 100 * float(precision_at_k(split.Y_test, labels, k=1)),
                    }
                )
    report.table("Warm starts of one-vs-all, one thread", rows, _COLUMNS)
    return rows

"""CPU time of one-vs-all training by start vector.

Fits all labels with each of the start vectors, in turns, one thread, after a warm-up, and reports
the median CPU time. The optimum does not depend on the start, up to the stopping rule: the sums of
the objectives show it.

  --sweep-ovap  instead tries where to leave the all-negative problem of "ovap"
  --trace       instead watches line search and active instances from one Newton step to the next
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import SETS, SplitSet, load_set, take_labels
from asv_bench.common.measure import cpu_seconds, fit_quietly, n_unsolved, warm_up
from asv_bench.common.report import Column, Report
from asv_bench.one_vs_all import inits_trace
from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import OneVsAllPrimal

INITS = ("msi", "ovap", "bias", "zero")
OVAP_STOPS = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-5)

#: How much longer than "msi" a start should take at least.
GOALS = {
    ("bibtex", "zero"): 1.8,
    ("tate", "zero"): 1.8,
    ("delicious", "zero"): 1.3,
    ("bibtex", "ovap"): 1.1,
    ("tate", "ovap"): 1.1,
    ("delicious", "ovap"): 1.1,
}

_MEASURED = (
    Column("n_labels", "labels", ","),
    Column("dtype", "dtype"),
    Column("cpu_s", "CPU s", ".2f"),
    Column("spread_s", "+- s", ".2f"),
    Column("ratio", "ratio to msi", ".2f"),
    Column("goal", "goal", ".1f"),
    Column("n_iter", "Newton steps", ".2f"),
    Column("n_products", "Hessian products", ".1f"),
    Column("objective", "objective sum", ",.1f"),
    Column("n_unsolved", "not converged"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=tuple(SETS), help="data sets")
    parser.add_argument("--labels", type=int, metavar="N", help="N labels, drawn with a fixed seed")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="fits of each (3)")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--sweep-ovap", action="store_true", help="where to leave ovap's problem")
    instead.add_argument(
        "--trace", action="store_true", help="step by step (500 labels by default)"
    )


def main(
    data: Any,
    *,
    sets: Sequence[str] = tuple(SETS),
    labels: int | None = None,
    repeats: int = 3,
    dtype: Any = "float32",
    sweep_ovap: bool = False,
    trace: bool = False,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the start vectors.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("bibtex", "delicious", "tate")
        Keys of ``data.SETS``.
    labels : int, default=None
        Labels to take of each set; None for all (500 with `trace`).
    repeats : int, default=3
        Fits of each start, of which the median counts.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features.
    sweep_ovap, trace : bool, default=False
        What to do instead; see the module's docstring.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row per set and start (with `sweep_ovap` per set and stop, with `trace` per set, start
        and Newton step).
    """
    report = report or Report("inits")
    if trace:
        return inits_trace.trace_sets(data, sets, labels or 500, dtype, report)
    rows = []
    for name in sets:
        split = load_set(name, data, dtype=np.dtype(dtype))
        starts: dict[str, Any] = {init: init for init in INITS}
        if sweep_ovap:
            starts = {"msi": "msi"} | {
                f"ovap {stop:g}": OneVsAllPrimal(stop) for stop in OVAP_STOPS
            }
        of_set = _measure_starts(split, starts, labels, repeats)
        title = "where to leave the all-negative problem" if sweep_ovap else "start vectors"
        report.table(
            f"{name}: {title} ({split.X_train.shape[0]:,} x {split.X_train.shape[1]:,}, "
            f"median of {repeats})",
            of_set,
            [Column("init", "init"), *_MEASURED],
        )
        rows += of_set
    report.line()
    report.line("Newton steps and Hessian products are means over labels; one thread.")
    return rows


def _measure_starts(
    split: SplitSet, starts: dict[str, Any], n_labels: int | None, repeats: int
) -> list[dict[str, Any]]:
    """Return a row for each start; the fits take turns, so that a slow minute hits all of them."""
    X, Y = split.X_train, split.Y_train[:, take_labels(split.Y_train, n_labels)]
    for init in starts.values():
        warm_up(OvALinearXC(C=1.0, init=init, n_jobs=1), X, Y)
    seconds: dict[str, list[float]] = {start: [] for start in starts}
    model: dict[str, OvALinearXC] = {}
    for _ in range(repeats):
        for start, init in starts.items():
            model[start] = OvALinearXC(C=1.0, init=init, n_jobs=1)
            _, spent = cpu_seconds(fit_quietly, model[start], X, Y)
            seconds[start].append(spent)
    base = float(np.median(seconds["msi"]))
    return [
        {
            "set": split.name,
            "init": start,
            "n_labels": Y.shape[1],
            "dtype": str(X.dtype),
            "cpu_s": float(np.median(seconds[start])),
            "spread_s": float(np.ptp(seconds[start]) / 2),
            "ratio": float(np.median(seconds[start])) / base,
            "goal": GOALS.get((split.name, start)),
            "n_iter": float(model[start].n_iter_.mean()),
            "n_products": float(model[start].fit_report_["n_products"].mean()),
            "objective": float(model[start].fit_report_["objective"].sum()),
            "n_unsolved": n_unsolved(model[start]),
        }
        for start in starts
    ]

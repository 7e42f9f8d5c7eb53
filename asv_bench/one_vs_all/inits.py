"""CPU time of one-vs-all training by start vector.

Fits all labels with each of the start vectors, in turns, one thread, after a warm-up, and reports
the median CPU time. The optimum does not depend on the start, up to the stopping rule: the sums of
the objectives show it.

  --sweep-ovap    instead tries where to leave the all-negative problem of "ovap"
  --sweep-msi     instead tries the two scores of "msi"
  --trace         instead watches objective, line search, active instances and time from one Newton
                  step to the next
  --by-positives  instead measures labels by how many positives they have
  --table N       instead measures what table 1, 2 or 3 of the paper on mean-separating starts
                  shows, on the sets that come nearest to its own (see ``inits_tables``): 1 squared
                  hinge, sparse and dense; 2 logistic loss; 3 the speed-up of "ovap++" and "msi"
                  over "zero"; and precision by start, which is table 4
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import SETS, SplitSet, load_set, take_labels
from asv_bench.common.report import Column, Report
from asv_bench.one_vs_all import inits_positives, inits_tables, inits_trace
from asv_bench.one_vs_all.inits_fits import measure_starts
from sklearn_xc.initialisers import MeanSeparating, OneVsAllPrimal

INITS = ("msi", "ovap", "ovap++", "bias", "zero")
OVAP_STOPS = (0.5, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-5)
#: Mean scores of positives and of negatives; "msi" is at 1 and -2.
MSI_SCORES = ((0, -2), (0.5, -2), (2, -2), (1, -1), (1, -1.5), (1, -2.5), (1, -3), (1, -4))

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
    parser.add_argument("--sets", nargs="+", choices=SETS, help="data sets")
    parser.add_argument("--labels", type=int, metavar="N", help="N labels, drawn with a fixed seed")
    parser.add_argument("--repeats", type=int, metavar="N", help="fits of each (3, with --table 1)")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--sweep-ovap", action="store_true", help="where to leave ovap's problem")
    instead.add_argument("--sweep-msi", action="store_true", help="the two scores of msi")
    instead.add_argument(
        "--trace", action="store_true", help="step by step (500 labels by default)"
    )
    instead.add_argument(
        "--by-positives", action="store_true", help="by frequency (50 labels of each group)"
    )
    instead.add_argument(
        "--table", type=int, choices=inits_tables.TABLES, help="a table of the paper"
    )


def main(
    data: Any,
    *,
    sets: Sequence[str] | None = None,
    labels: int | None = None,
    repeats: int | None = None,
    dtype: Any = "float32",
    sweep_ovap: bool = False,
    sweep_msi: bool = False,
    trace: bool = False,
    by_positives: bool = False,
    table: int | None = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the start vectors.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=None
        Keys of ``data.SETS``; None for all, or those of a `table`.
    labels : int, default=None
        Labels to take of each set; None for all (500 with `trace`, 50 of a group with
        `by_positives`), or those that a `table` names.
    repeats : int, default=None
        Fits of each start, of which the median counts; None for 3, or 1 with a `table`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the features.
    sweep_ovap, sweep_msi, trace, by_positives : bool, default=False
        What to do instead; see the module's docstring.
    table : {1, 2, 3}, default=None
        The table of the paper to reproduce instead.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row per set and start (with `trace` also per Newton step, with `by_positives` per
        group).
    """
    report = report or Report("inits")
    if table is not None:
        return inits_tables.reproduce(data, table, sets, labels, repeats or 1, dtype, report)
    sets, repeats = tuple(SETS) if sets is None else sets, repeats or 3
    if trace:
        return inits_trace.trace_sets(data, sets, labels or 500, dtype, report)
    if by_positives:
        return inits_positives.measure_by_positives(data, sets, labels or 50, dtype, report)
    rows = []
    for name in sets:
        split = load_set(name, data, dtype=np.dtype(dtype))
        title = "start vectors"
        if sweep_ovap:
            title = "where to leave the all-negative problem"
            tried: Any = ((f"ovap {stop:g}", OneVsAllPrimal(stop)) for stop in OVAP_STOPS)
        elif sweep_msi:
            title = "mean scores of positives and negatives"
            tried = ((f"{s:g}, {t:g}", MeanSeparating(s, t)) for s, t in MSI_SCORES)
        else:
            tried = ((init, init) for init in INITS)
        starts: dict[str, Any] = {"msi": "msi", **dict(tried)}
        of_set = _measure_starts(split, starts, labels, repeats)
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
    """Return a row for each start."""
    Y = split.Y_train[:, take_labels(split.Y_train, n_labels)]
    return [
        {"set": split.name, "goal": GOALS.get((split.name, row["init"])), **row}
        for row in measure_starts(split.X_train, Y, starts, repeats)
    ]

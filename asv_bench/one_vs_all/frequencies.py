"""CPU time of a label by how frequent it is.

Labels are cut into ten groups of equal size by their number of positives; labels drawn from each
are fitted by themselves, one thread, and what a fit takes whatever its labels, measured with one of
them, is taken off. An eleventh group holds the most frequent hundredth.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import SETS, SplitSet, load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC

#: No group should take so many times the median group's time.
MAX_RATIO = 20.0

_COLUMNS = (
    Column("group", "labels by frequency"),
    Column("least", "fewest positives", ","),
    Column("most", "most positives", ","),
    Column("ms_per_label", "CPU ms/label", ".2f"),
    Column("ratio", "ratio to the median group", ".2f"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=tuple(SETS), help="data sets")
    parser.add_argument("--labels", type=int, default=256, metavar="N", help="of a group (256)")
    parser.add_argument("--cache", metavar="DIR", help="folder for the sets as matrices")


def main(
    data: Any,
    *,
    sets: Sequence[str] = tuple(SETS),
    labels: int = 256,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure labels by frequency.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=all
        Keys of ``data.SETS``.
    labels : int, default=256
        Labels drawn from each group.
    cache : path-like, default=None
        As for ``load_set``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row for each set and group.
    """
    report = report or Report("frequencies")
    rows = []
    for name in sets:
        split = load_set(name, data, cache=cache)
        of_set = _measure(split, labels)
        n, d = split.X_train.shape
        title = f"{name}: CPU time by frequency ({n:,} x {d:,}; goal: no ratio above {MAX_RATIO:g})"
        report.table(title, of_set, _COLUMNS)
        rows += of_set
    return rows


def _measure(split: SplitSet, n_labels: int) -> list[dict[str, Any]]:
    X, Y = split.X_train, split.Y_train.tocsc()
    counts = np.diff(Y.indptr)
    order = np.flatnonzero(counts)[np.argsort(counts[counts > 0], kind="stable")]
    groups = {f"{k + 1}. tenth": part for k, part in enumerate(np.array_split(order, 10))}
    groups["last hundredth"] = order[-max(1, len(order) // 100) :]
    rng = np.random.default_rng(0)
    warm_up(OvALinearXC(n_jobs=1), X, split.Y_train)
    one = Y[:, order[:1]].tocsr()
    _, fixed = cpu_seconds(fit_quietly, OvALinearXC(n_jobs=1), X, one)
    rows: list[dict[str, Any]] = []
    for group, members in groups.items():
        drawn = rng.permutation(members)[:n_labels]
        _, spent = cpu_seconds(fit_quietly, OvALinearXC(n_jobs=1), X, Y[:, drawn].tocsr())
        rows.append(
            {
                "set": split.name,
                "group": group,
                "least": int(counts[members].min()),
                "most": int(counts[members].max()),
                "ms_per_label": 1e3 * max(spent - fixed, 0.0) / len(drawn),
            }
        )
    median = float(np.median([row["ms_per_label"] for row in rows[:10]]))
    for row in rows:
        row["ratio"] = row["ms_per_label"] / median if median > 0 else np.nan
    return rows

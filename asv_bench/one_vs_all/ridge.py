"""Precision of one-vs-all on test rows by C, and what a fit takes, on sets at several sizes.

One thread, after a warm-up; labels without a training instance have no part in the precision. A
note says which C the other sets would choose for each set that is left out: the one with the
smallest mean distance from the best P@1 of each. Sets of the same documents have no say.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import note_size
from asv_bench.common.measure import cpu_seconds, fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from asv_bench.common.sized_sets import (
    CLASS_SETS,
    LABEL_SETS,
    SIZES,
    SizedSet,
    documents_of,
    load_sized_set,
    sizes_of,
)
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

VALUES = (0.03, 0.1, 0.3, 0.5, 1.0, 3.0, 10.0)
SETS = (
    "bibtex", "delicious", "cooking_stackexchange", "tate", "gutenberg_subjects", "english_wordnet",
    "english_wordnet:first",
)  # fmt: skip
#: Sets of more training rows than this are left out, and no more test rows are taken.
_MOST_ROWS, _MOST_TESTED = 13_000, 10_000

_MEASURES = (
    ("P@1", "P@1 in %", ".1f"),
    ("P@5", "P@5 in %", ".1f"),
    ("PSP@1", "PSP@1 in %", ".1f"),
    ("cpu_s", "CPU s of a fit", ".2f"),
    ("ratio", "CPU time of a fit, ratio to C=1", ".2f"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=LABEL_SETS + CLASS_SETS, default=SETS)
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), default=tuple(SIZES))
    parser.add_argument("--values", nargs="+", type=float, default=VALUES, help="of C, 1 included")


def main(
    data: Any,
    *,
    sets: Sequence[str] = SETS,
    sizes: Sequence[str] = tuple(SIZES),
    values: Sequence[float] = VALUES,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Fit with each C.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=SETS
        Sets at several sizes, of ``sized_sets``.
    sizes : sequence of {"1/16", "1/4", "all"}
        Shares of the training rows.
    values : sequence of float, default=VALUES
        Of C; 1 among them.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row per set, size and C.
    """
    report = report or Report("ridge")
    rows: list[dict[str, Any]] = []
    for name in sets:
        for size in (size for size in sizes if size in sizes_of(name)):
            sized = load_sized_set(name, size, data)
            if sized.X_train.shape[0] <= _MOST_ROWS:
                note_size(f"{name}, {size}", sized.X_train, sized.Y_train, sized.X_test)
                rows += _measure(sized, size, values)
    for key, title, spec in _MEASURES:
        report.table(
            f"{title}, by C",
            list(_wide(rows, key)),
            [
                Column("set", "set"),
                Column("size", "size"),
                Column("n_rows", "rows", ",d"),
                *(Column(f"{C:g}", f"C={C:g}", spec) for C in values),
            ],
        )
    report.line()
    for left_out, chosen in choices(rows, values).items():
        report.line(f"Without {left_out} the other sets choose C={chosen:g}.")
    return rows


def _measure(sized: SizedSet, size: str, values: Sequence[float]) -> list[dict[str, Any]]:
    X, Y = sized.X_train, sized.Y_train
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    seen = np.flatnonzero(counts)
    tested = np.sort(np.random.default_rng(1).permutation(sized.X_test.shape[0])[:_MOST_TESTED])
    X_test, Y_test = sized.X_test[tested], sized.Y_test[tested][:, seen]
    Y = Y[:, seen]
    known = propensity(counts[seen], X.shape[0])
    warm_up(OvALinearXC(n_jobs=1), X, Y)
    rows = []
    for C in values:
        model, seconds = cpu_seconds(fit_quietly, OvALinearXC(C=C, n_jobs=1), X, Y)
        ranked = model.predict_topk(X_test, 5)
        first, five = 100 * precision_at_k(Y_test, ranked, (1, 5))
        scored = psp_at_k(Y_test, ranked, 1, propensities=known)
        rows.append(
            {
                "set": sized.name, "size": size, "n_rows": X.shape[0], "C": C, "P@1": float(first),
                "P@5": float(five), "PSP@1": 100 * float(scored), "cpu_s": seconds,
            }
        )  # fmt: skip
    base = next(row["cpu_s"] for row in rows if row["C"] == 1.0)
    for row in rows:
        row["ratio"] = row["cpu_s"] / base
    return rows


def _wide(rows: Sequence[dict[str, Any]], key: str) -> Iterator[dict[str, Any]]:
    for name, size in dict.fromkeys((row["set"], row["size"]) for row in rows):
        of_set = [row for row in rows if (row["set"], row["size"]) == (name, size)]
        line = {"set": name, "size": size, "n_rows": of_set[0]["n_rows"]}
        yield line | {f"{row['C']:g}": row[key] for row in of_set}


def choices(rows: Sequence[dict[str, Any]], values: Sequence[float]) -> dict[str, float]:
    """Return which C all sets but those of some documents choose, by documents.

    Parameters
    ----------
    rows : sequence of dict
        Of ``main``.
    values : sequence of float
        Of C.

    Returns
    -------
    dict of str to float
        Empty if there are no two sets.
    """
    lost: dict[str, list[np.ndarray]] = {}
    for line in _wide(rows, "P@1"):
        found = np.array([line[f"{C:g}"] for C in values])
        lost.setdefault(documents_of(line["set"]), []).append(found.max() - found)
    means = {name: np.mean(of_set, axis=0) for name, of_set in lost.items()}
    if len(means) < 2:
        return {}
    total = sum(means.values())
    return {name: float(values[int(np.argmin(total - mean))]) for name, mean in means.items()}

"""How well folds share out labels: RareLabelSplit, iterative stratification and plain folds.

Of the label indicators of training rows, as every splitter deals them to folds: the label
distribution of Sechidis and others (2011), which is the mean over labels and folds of the distance
between the odds of a label within a fold and those in all rows; the same of pairs of labels that
some row has together; how often a label with two positives or more has none in the training rows
of a fold; how much folds differ in size; and CPU seconds.

Iterative stratification is that of scikit-multilearn (``pip install scikit-multilearn``), left out
where it is not installed. It draws from numpy's global generator, which is seeded; with more labels
than --most-labels it is not asked, as its time grows with their square.
"""

import argparse
import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.common.sized_sets import LABEL_SETS, SIZES, load_sized_set
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.model_selection import RareLabelSplit

#: Sets and their sizes; "made" has 100,000 label columns.
SETS = ("bibtex", "delicious", "tate@1/4", "cooking_stackexchange", "made")
METHODS = ("RareLabelSplit", "IterativeStratification", "KFold")
_MADE_ROWS, _MADE_LABELS, _MADE_LABELS_PER_ROW = 50_000, 100_000, 3.0
_MOST_LABELS = 200_000

_COLUMNS = [
    Column("set", "set"),
    Column("rows", "rows", ",d"),
    Column("labels", "labels", ",d"),
    Column("method", "method"),
    Column("ld", "LD x 1e4", ".2f"),
    Column("lpd", "LPD x 1e4", ".2f"),
    Column("lost", "lost in training", ",d"),
    Column("spread", "rows, largest - smallest", ",d"),
    Column("cpu_s", "CPU s", ".3f"),
]

Folds = list[np.ndarray]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument(
        "--sets", nargs="+", default=SETS, metavar="NAME[@SIZE]",
        help=f"of {', '.join(LABEL_SETS)}, at {', '.join(SIZES)} of the training rows; or made",
    )  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--splits", type=int, default=5, metavar="N", help="folds (5)")
    parser.add_argument("--made-labels", type=int, default=_MADE_LABELS, metavar="N")
    parser.add_argument("--most-labels", type=int, default=_MOST_LABELS, metavar="N")
    parser.add_argument("--cache", default=None, help="folder where loaded sets are kept")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = SETS,
    methods: Sequence[str] = METHODS,
    splits: int = 5,
    made_labels: int = _MADE_LABELS,
    most_labels: int = _MOST_LABELS,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Deal the rows of each set to folds by each method, and measure what comes out.

    Parameters
    ----------
    data : path, default=None
        Folder of the data sets.
    sets : sequence of str
        Names, with a size behind an "@" where not all rows are meant; "made".
    methods : sequence of str
        Of ``METHODS``.
    splits : int, default=5
        Folds.
    made_labels : int, default=100_000
        Label columns of the made set; it has half as many rows.
    most_labels : int, default=200_000
        Label columns with which iterative stratification is still asked.
    cache : path, default=None
        Folder where loaded sets are kept.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set and method.
    """
    report = report or Report("splits")
    known: dict[str, Callable[[Any, int], Folds]] = {
        "RareLabelSplit": _rare_label_split, "IterativeStratification": _iterative,
        "KFold": _k_fold,
    }  # fmt: skip
    if "IterativeStratification" in methods and _skmultilearn() is None:
        report.line("scikit-multilearn is not installed: no IterativeStratification.")
        methods = [name for name in methods if name != "IterativeStratification"]
    _rare_label_split(sp.csr_array(np.eye(8, 4)), 2)  # compiles
    rows = []
    for name in sets:
        Y = _labels(name, made_labels, data, cache)
        for method in methods:
            if method == "IterativeStratification" and Y.shape[1] > most_labels:
                continue
            folds, seconds = cpu_seconds(known[method], Y, splits)
            sizes = [len(fold) for fold in folds]
            rows.append(
                {
                    "set": name, "rows": Y.shape[0], "labels": Y.shape[1], "method": method,
                    "ld": 1e4 * label_distribution(Y, folds),
                    "lpd": 1e4 * pair_distribution(Y, folds),
                    "lost": n_lost(Y, folds), "spread": max(sizes) - min(sizes), "cpu_s": seconds,
                }
            )  # fmt: skip
    report.table(f"{splits} folds", rows, _COLUMNS)
    return rows


def _labels(name: str, made_labels: int, data: Any, cache: Any) -> Any:
    """Return the indicator of a set, csr_array of shape (n, n_labels)."""
    if name == "made":
        _, Y = make_xc_classification(
            n_samples=max(10, made_labels * _MADE_ROWS // _MADE_LABELS), n_features=1_000,
            n_labels=made_labels, nnz_per_row=5, random_state=0,
            labels_per_row=min(_MADE_LABELS_PER_ROW, made_labels),
        )  # fmt: skip
        return sp.csr_array(Y)
    of_set, _, size = name.partition("@")
    return sp.csr_array(load_sized_set(of_set, size or "all", data, cache=cache).Y_train)


def _rare_label_split(Y: Any, n_splits: int) -> Folds:
    return _tests(RareLabelSplit(n_splits), Y)


def _k_fold(Y: Any, n_splits: int) -> Folds:
    return _tests(KFold(n_splits, shuffle=True, random_state=0), Y)


def _iterative(Y: Any, n_splits: int) -> Folds:
    # Its random_state is refused by scikit-learn's base class, and would not be used.
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        return _tests(_skmultilearn().IterativeStratification(n_splits=n_splits), Y)
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _tests(splitter: Any, Y: Any) -> Folds:
    X = np.zeros((Y.shape[0], 1))
    return [np.asarray(test) for _, test in splitter.split(X, Y)]


def _skmultilearn() -> Any:
    try:
        return importlib.import_module("skmultilearn.model_selection")
    except ImportError:
        return None


def label_distribution(Y: Any, folds: Iterable[np.ndarray]) -> float:
    """Return the mean distance of the odds of labels within folds from those in all rows.

    In a fold without negatives of a label, half a one is counted.

    Parameters
    ----------
    Y : csr_array of shape (n, n_labels)
        Indicator.
    folds : iterable of ndarray of int
        Rows of each.

    Returns
    -------
    float
        Over labels that some rows have, and some have not.

    Notes
    -----
    Source: LD of K. Sechidis, G. Tsoumakas, I. Vlahavas, "On the stratification of multi-label
    data", ECML PKDD 2011; differs in that labels that no row has are left out.
    """
    counts = [_sums(Y[fold]) for fold in folds]
    return _distance(_sums(Y), counts, Y.shape[0], [len(fold) for fold in folds])


def pair_distribution(Y: Any, folds: Iterable[np.ndarray]) -> float:
    """Return what :func:`label_distribution` does, of pairs of labels that some row has together.

    NaN where there is no such pair.
    """
    n_labels = Y.shape[1]
    keys, whole = _pairs(Y)
    counts = []
    for fold in folds:
        at, n = _pairs(Y[fold])
        of_fold = np.zeros(len(keys))
        of_fold[np.searchsorted(keys, at)] = n
        counts.append(of_fold)
    if not len(keys) or n_labels < 2:
        return float("nan")
    return _distance(whole, counts, Y.shape[0], [len(fold) for fold in folds])


def n_lost(Y: Any, folds: Iterable[np.ndarray]) -> int:
    """Return how often a label with two positives has all of them in one fold, over folds."""
    counts = _sums(Y)
    return sum(int(((counts >= 2) & (_sums(Y[fold]) == counts)).sum()) for fold in folds)


def _distance(
    whole: np.ndarray, parts: Sequence[np.ndarray], n: int, sizes: Sequence[int]
) -> float:
    kept = (whole > 0) & (whole < n)
    odds = whole[kept] / (n - whole[kept])
    of_folds = [
        np.abs(part[kept] / np.maximum(size - part[kept], 0.5) - odds)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return float(np.mean(of_folds))


def _sums(Y: Any) -> np.ndarray:
    return np.asarray(Y.sum(axis=0), np.float64).ravel()


def _pairs(Y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of labels as rising numbers, and how many rows have each."""
    Y = sp.csr_array(Y, dtype=np.int32)
    together = sp.coo_array(sp.triu(Y.T @ Y, k=1))
    rows, columns = (index.astype(np.int64) for index in together.coords)
    keys = rows * Y.shape[1] + columns
    order = np.argsort(keys)
    return keys[order], together.data[order].astype(np.float64)

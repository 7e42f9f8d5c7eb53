"""Dense X: distance from the optimum and precision by start, at the default and the paper's tol.

100 components of a truncated SVD, as they are, with rows of unit length, and standardised; the 400
most frequent labels. The optimum is that of a fit in float64 with tol=1e-6. One thread.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler, normalize

from asv_bench.common.data import SETS, SplitSet, load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k

STARTS = ("msi", "zero", "bias", "ovap")
TOLERANCES = {"default": None, "paper's, 1.0": 1.0}
_COMPONENTS = 100
_LABELS = 400
_COLUMNS = [
    Column("features", "features"),
    Column("tol", "tol"),
    Column("init", "init"),
    Column("median", "median gap", ".1e"),
    Column("largest", "largest gap", ".1e"),
    Column("bound", "largest bound", ".1e"),
    Column("P@1", "P@1 %", ".2f"),
    Column("cpu_s", "CPU s", ".2f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("bibtex", "delicious"))
    parser.add_argument("--rows", type=int, default=5000, metavar="N", help="training rows (5,000)")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("bibtex", "delicious"),
    rows: int = 5000,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure how far the labels of dense fits are from their optimum.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("bibtex", "delicious")
        Keys of ``data.SETS``.
    rows : int, default=5000
        Training rows at most, the first ones.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row for each set, kind of features, tolerance and start. Gaps and bounds are relative to
        the minimum, and to the objective.
    """
    report = report or Report("dense")
    measured = []
    for name in sets:
        of_set = list(_measure(load_set(name, data), rows))
        report.table(f"{name}: {_COMPONENTS} components", of_set, _COLUMNS)
        measured += of_set
    return measured


def _measure(split: SplitSet, n_rows: int) -> Iterator[dict[str, Any]]:
    Y = split.Y_train[:n_rows]
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    frequent = np.sort(np.argsort(-counts, kind="stable")[: min(_LABELS, np.count_nonzero(counts))])
    Y, Y_test = Y[:, frequent], split.Y_test[:, frequent]
    for features, X, X_test in _dense_features(split, n_rows):
        optimum = fit_quietly(_model(tol=1e-6), X.astype(np.float64), Y).fit_report_["objective"]
        for tol, value in TOLERANCES.items():
            for init in STARTS:
                fit_quietly(_model(tol=value, init=init), X[:200], Y[:200, :4])
                model, seconds = cpu_seconds(fit_quietly, _model(tol=value, init=init), X, Y)
                found = model.fit_report_
                gaps = (found["objective"] - optimum) / optimum
                best, _ = model.predict_topk(X_test, 1)
                yield {
                    "set": split.name,
                    "features": features,
                    "tol": tol,
                    "init": init,
                    "median": float(np.median(gaps)),
                    "largest": float(gaps.max()),
                    "bound": float((found["suboptimality"] / found["objective"]).max()),
                    "P@1": 100 * float(precision_at_k(Y_test, best, k=1)),
                    "cpu_s": seconds,
                }


def _model(**parameters: Any) -> OvALinearXC:
    return OvALinearXC(C=1.0, prune=0, n_jobs=1, **parameters)


def _dense_features(split: SplitSet, n_rows: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    n_components = min(_COMPONENTS, split.X_train.shape[1] - 1)
    svd = TruncatedSVD(n_components, random_state=0)
    X = svd.fit_transform(split.X_train[:n_rows]).astype(np.float32)
    X_test = svd.transform(split.X_test).astype(np.float32)
    yield "components", X, X_test
    yield "unit rows", normalize(X), normalize(X_test)
    scaler = StandardScaler().fit(X)
    yield "standardised", scaler.transform(X), scaler.transform(X_test)

"""Precision, nDCG and propensity-scored precision, beside DiSMEC++.

The default settings, sparse float64 features, one thread. The reference is DiSMEC++, revision
7cfb2b6, with mean-separating start vectors, the squared hinge, C=1, the same stopping rule and the
same pruning, on the same files.
"""

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from asv_bench.common.data import SETS, load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, n_unsolved, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import TopKScorer

KS = (1, 3, 5)

#: P@1, P@3 and P@5 of DiSMEC++ in %.
REFERENCES = {"bibtex": (64.06, 38.70, 28.01), "delicious": (67.28, 60.65, 55.95)}
#: How far from them in points is still the same.
MAX_POINTS = 0.3

_METRICS = ("P", "nDCG", "PSP")
_COLUMNS = [
    Column("set", "set"),
    Column("system", "system"),
    *(Column(f"{metric}@{k}", f"{metric}@{k}", ".2f") for metric in _METRICS for k in KS),
    Column("points", "max diff", ".2f"),
    Column("train_cpu_s", "train CPU s", ".2f"),
    Column("predict_ms_per_row", "predict ms/row", ".3f"),
    Column("nnz_share", "weights kept", ".1%"),
    Column("n_unsolved", "not converged"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=tuple(REFERENCES))
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")


def main(
    data: Any,
    *,
    sets: Sequence[str] = tuple(REFERENCES),
    dtype: Any = "float64",
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the quality of predictions.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("bibtex", "delicious")
        Keys of ``data.SETS``.
    dtype : {"float32", "float64"}, default="float64"
        Type of the features.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row per set, followed by one of DiSMEC++ where its numbers are known. Metrics are in %;
        ``points`` is the largest distance of the three precisions.
    """
    report = report or Report("accuracy")
    scorer = TopKScorer(KS, ("precision", "ndcg", "psp"))
    rows: list[dict[str, Any]] = []
    for name in sets:
        split = load_set(name, data, dtype=np.dtype(dtype))
        model = OvALinearXC(C=1.0, n_jobs=1)
        warm_up(model, split.X_train, split.Y_train)
        _, seconds = cpu_seconds(fit_quietly, model, split.X_train, split.Y_train)
        began = perf_counter()
        model.predict_topk(split.X_test, KS[-1])
        predict_ms = 1000 * (perf_counter() - began)
        scores = {
            key: 100 * value for key, value in scorer(model, split.X_test, split.Y_test).items()
        }
        reference = REFERENCES.get(name)
        row = {
            "set": name,
            "system": "OvALinearXC",
            **scores,
            "train_cpu_s": seconds,
            "predict_ms_per_row": predict_ms / split.X_test.shape[0],
            "nnz_share": model.coef_.nnz / (model.coef_.shape[0] * model.coef_.shape[1]),
            "n_unsolved": n_unsolved(model),
        }
        rows.append(row)
        if reference is not None:
            precision = {f"P@{k}": value for k, value in zip(KS, reference, strict=True)}
            row["points"] = max(abs(row[key] - value) for key, value in precision.items())
            rows.append({"set": name, "system": "DiSMEC++", **precision})
    report.table(
        f"Test split, in %; goal: precision within {MAX_POINTS} points of DiSMEC++", rows, _COLUMNS
    )
    return rows

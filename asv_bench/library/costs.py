"""What a fit costs in time and memory when there are four times as many instances, features, ...

Every estimator with its defaults, on one thread, each fit in a process of its own after a toy fit:
on made data of a base size, and with one size at a time four times as large. A ratio of 4 says that
cost is in proportion to that size, 1 that it does not depend on it. Labels of an instance stay the
same in number, so that with more labels each is rarer.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.library.large import in_fresh_process
from asv_bench.library.max_memory import MIB, Watch, give_back, resident

ESTIMATORS = (
    "OvALinearXC",
    "SoftmaxUMax",
    "ImplicitSoftmaxSGD",
    "DecompMIPSClassifier",
    "NGAMEEmbeddingXC",
)
#: Of one class for each instance; the others get sets of labels.
_ONE_CLASS = ("SoftmaxUMax", "ImplicitSoftmaxSGD")

BASE = {"n_samples": 10_000, "n_features": 10_000, "n_labels": 2_000, "nnz_per_row": 20}
FACTOR = 4
_TOY = {"n_samples": 300, "n_features": 200, "n_labels": 12, "nnz_per_row": 8}
_NAMES = {
    "n_samples": "instances",
    "n_features": "features",
    "n_labels": "labels",
    "nnz_per_row": "non-zeros a row",
}

_COLUMNS = [
    Column("estimator", "estimator"),
    Column("larger", "four times the"),
    Column("cpu_s", "CPU s", ".2f"),
    Column("time_ratio", "time ratio", ".1f"),
    Column("grown_mib", "memory of the fit, MiB", ",.0f"),
    Column("memory_ratio", "memory ratio", ".1f"),
    Column("model_mib", "model MiB", ",.1f"),
    Column("model_ratio", "model size ratio", ".1f"),
    Column("ms_per_row", "predict ms/row", ".3f"),
    Column("predict_ratio", "predict time ratio", ".1f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=ESTIMATORS)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="fits of each (3)")


def main(
    data: Any = None,
    *,
    estimators: Sequence[str] = ESTIMATORS,
    repeats: int = 3,
    base: dict[str, int] = BASE,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the base size and each larger one.

    Parameters
    ----------
    data : object, default=None
        Not used.
    estimators : sequence of str
        Names of classes.
    repeats : int, default=3
        Fits of each, of which the median counts.
    base : dict
        Arguments of ``make_xc_classification``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each estimator and size; the base is first.
    """
    report = report or Report("costs")
    rows = []
    for name in estimators:
        first = None
        for larger in (None, *_NAMES):
            sizes = base if larger is None else base | {larger: FACTOR * base[larger]}
            row = in_fresh_process(measure, name, sizes, repeats)
            if "error" in row:
                raise RuntimeError(f"{name}: {row['error']}")
            first = first or row
            rows.append({
                "estimator": name,
                "larger": "(base)" if larger is None else _NAMES[larger],
                **row,
                "time_ratio": row["cpu_s"] / first["cpu_s"],
                "memory_ratio": row["grown_mib"] / first["grown_mib"],
                "model_ratio": row["model_mib"] / first["model_mib"],
                "predict_ratio": row["ms_per_row"] / first["ms_per_row"],
            })  # fmt: skip
    sizes_of_base = ", ".join(f"{base[size]:,} {word}" for size, word in _NAMES.items())
    report.table(f"Base: {sizes_of_base}; one thread, median of {repeats}", rows, _COLUMNS)
    return rows


def measure(name: str, sizes: dict[str, int], repeats: int) -> dict[str, Any]:
    """Fit an estimator with its defaults, in this process: a fresh one.

    Parameters
    ----------
    name : str
        One of ``ESTIMATORS``.
    sizes : dict
        Arguments of ``make_xc_classification``.
    repeats : int
        Fits.

    Returns
    -------
    dict
        Medians of CPU seconds, of what the process grew by, and of prediction; the model's size.
    """
    one_class = name in _ONE_CLASS
    X, y = _made(sizes, one_class)
    seconds, grown = [], []
    with warnings.catch_warnings(), TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        toy, classes = _made(_TOY, one_class)
        _estimator(name).fit(toy, classes).predict_topk(toy[:2], 5)
        for _ in range(repeats):
            give_back()
            before = resident()["RssAnon"]
            with Watch() as watch:
                model, of_fit = cpu_seconds(_estimator(name).fit, X, y)
            seconds.append(of_fit)
            grown.append(watch.anonymous - before)
        model.save(Path(folder, "model"))
        files = [path for path in Path(folder, "model").rglob("*") if path.is_file()]
        model_bytes = sum(path.stat().st_size for path in files)
        batch = X[:2000]
        of_answers = [cpu_seconds(model.predict_topk, batch, 5)[1] for _ in range(max(3, repeats))]
    return {
        "cpu_s": float(np.median(seconds)),
        "grown_mib": float(np.median(grown)) / MIB,
        "model_mib": model_bytes / MIB,
        "ms_per_row": 1000 * float(np.median(of_answers)) / batch.shape[0],
    }


def _estimator(name: str) -> Any:
    import sklearn_xc

    estimator = getattr(sklearn_xc, name)
    seeded = {"random_state": 0} if "random_state" in estimator._get_param_names() else {}
    return estimator(n_jobs=1, **seeded)


def _made(sizes: dict[str, int], one_class: bool) -> tuple[Any, Any]:
    from sklearn_xc.datasets import make_xc_classification

    X, Y = make_xc_classification(**sizes, labels_per_row=3, random_state=0)
    return X.astype(np.float32), Y.indices[Y.indptr[:-1]] if one_class else Y

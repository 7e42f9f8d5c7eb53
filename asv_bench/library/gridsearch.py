"""Peak memory and time of scikit-learn's GridSearchCV with very many sparse label columns.

Each search runs in a fresh process of its own: two values of C, two folds, TopKScorer, and the
final fit on all rows. At the default size a dense int8 indicator would take 1 GB, and dense float64
scores of the rows of one fold 4 GB.
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter, process_time
from typing import Any

from asv_bench.common.report import Column, Report

#: Peak memory that a search must stay below.
MAX_BYTES = 2 * 2**30

ESTIMATORS = ("OvALinearXC", "Pipeline")

_COLUMNS = [
    Column("estimator", "estimator"),
    Column("n_labels", "label columns", ","),
    Column("n_used", "with a positive", ","),
    Column("n_distinct", "distinct", ","),
    Column("imports_mib", "imports MiB", ",.0f"),
    Column("data_mib", "and data MiB", ",.0f"),
    Column("peak_mib", "peak MiB", ",.0f"),
    Column("wall_s", "wall s", ".1f"),
    Column("cpu_s", "CPU s", ".1f"),
    Column("fit_s", "mean fit s", ".1f"),
    Column("score_s", "mean score s", ".1f"),
    Column("refit_s", "refit s", ".1f"),
    Column("best_C", "best C", "g"),
    Column("P@1", "P@1 %", ".2f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--labels", type=int, default=200_000, metavar="N", help="200,000")
    parser.add_argument("--samples", type=int, default=5_000, metavar="N", help="rows (5,000)")
    parser.add_argument("--features", type=int, default=5_000, metavar="N", help="5,000")


def main(
    data: Any = None,
    *,
    labels: int = 200_000,
    samples: int = 5_000,
    features: int = 5_000,
    estimators: Sequence[str] = ESTIMATORS,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure a search on made data.

    Parameters
    ----------
    data : object, default=None
        Not used.
    labels, samples, features : int
        Label columns, rows and columns of the data made.
    estimators : sequence of {"OvALinearXC", "Pipeline"}, default=both
        What to search over.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each of `estimators`: the bare one, and the same within a Pipeline.
    """
    report = report or Report("gridsearch")
    rows = []
    for estimator in estimators:
        # A forked process would start with the memory of this one.
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as fresh:
            rows.append(fresh.submit(measure_search, estimator, labels, samples, features).result())
    report.table(
        f"GridSearchCV, 2 values of C, 2 folds, {samples:,} rows x {features:,} features (goal: "
        f"peak below {MAX_BYTES / 2**20:,.0f} MiB)",
        rows,
        _COLUMNS,
    )
    return rows


def measure_search(
    estimator: str, n_labels: int, n_samples: int, n_features: int
) -> dict[str, Any]:
    """Search in this process, which should be a fresh one.

    Parameters
    ----------
    estimator : {"OvALinearXC", "Pipeline"}
        What to search over.
    n_labels, n_samples, n_features : int
        Shape of the data.

    Returns
    -------
    dict
        A row of the table.
    """
    import warnings

    import numpy as np
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    from asv_bench.common.measure import peak_bytes, warm_up
    from sklearn_xc import OvALinearXC
    from sklearn_xc.datasets import make_xc_classification
    from sklearn_xc.exceptions import PruningWarning
    from sklearn_xc.metrics import TopKScorer

    after_imports = peak_bytes()
    X, Y = make_xc_classification(
        n_samples=n_samples, n_features=n_features, n_labels=n_labels,
        nnz_per_row=min(30, n_features), labels_per_row=min(4, n_labels), random_state=0,
    )  # fmt: skip
    by_label = Y.tocsc()
    columns = np.split(by_label.indices, by_label.indptr[1:-1])
    groups = [column.tobytes() for column in columns]
    warm_up(OvALinearXC(), X[:100], Y[:100])
    after_data = peak_bytes()
    model: Any = OvALinearXC()
    grid = {"C": [0.3, 1.0]}
    if estimator == "Pipeline":
        model = make_pipeline(Normalizer(), model)
        grid = {"ovalinearxc__C": grid["C"]}
    search = GridSearchCV(model, grid, cv=2, scoring=TopKScorer(), refit="P@1", error_score="raise")
    wall, cpu = perf_counter(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PruningWarning)
        search.fit(X, Y)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return {
        "estimator": estimator,
        "n_labels": n_labels,
        "n_used": int((np.diff(by_label.indptr) > 0).sum()),
        "n_distinct": len(set(groups)),
        "imports_mib": after_imports / 2**20,
        "data_mib": after_data / 2**20,
        "peak_mib": peak_bytes() / 2**20,
        "wall_s": wall,
        "cpu_s": cpu,
        "fit_s": float(search.cv_results_["mean_fit_time"].mean()),
        "score_s": float(search.cv_results_["mean_score_time"].mean()),
        "refit_s": search.refit_time_,
        "best_C": next(iter(search.best_params_.values())),
        "P@1": 100 * float(search.best_score_),
    }

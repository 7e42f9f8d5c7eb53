"""Time and memory of one-vs-all training as the number of labels grows towards a million.

Made data: rows of 50 features drawn from a Zipf law, tf-idf weighted, and labels with five
positives each, rows that share one of the rarer features. Each size is fitted in a fresh process.
What counts is the memory beyond X, Y and the pruned model, and the time per label, which should
not grow; ``--labels 1000000`` fits them all. Then the best labels of single rows are asked for.
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter, process_time
from typing import Any

import numpy as np

from asv_bench.common.report import Column, Report

N_SAMPLES = 100_000
N_FEATURES = 100_000
NONZEROS_PER_ROW = 50
POSITIVES_PER_LABEL = 5
#: Memory beyond X, Y and the model that a fit of a million labels must stay below.
MAX_BYTES = 4 * 2**30
#: Rows that are predicted one by one.
N_PREDICTED = 200

_COLUMNS = [
    Column("n_labels", "labels", ","),
    Column("cpu_ms_per_label", "CPU ms/label", ".2f"),
    Column("wall_s", "wall s", ",.1f"),
    Column("data_mib", "X and Y MiB", ",.0f"),
    Column("model_mib", "model MiB", ",.0f"),
    Column("beyond_mib", "beyond MiB", ",.0f"),
    Column("n_unsolved", "not converged"),
    Column("row_ms", "ms to predict a row", ".2f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--labels", type=int, nargs="+", default=(1_000, 4_000, 16_000))
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")


def main(
    data: Any = None,
    *,
    labels: Sequence[int] = (1_000, 4_000, 16_000),
    jobs: int = 1,
    samples: int = N_SAMPLES,
    features: int = N_FEATURES,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure fits of several numbers of labels.

    Parameters
    ----------
    data : object, default=None
        Not used.
    labels : sequence of int
        Numbers of labels.
    jobs : int, default=1
        Threads.
    samples, features : int
        Rows and columns of X.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each of `labels`.
    """
    report = report or Report("scaling")
    rows = []
    for n_labels in labels:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn) as fresh:
            rows.append(fresh.submit(measure_fit, n_labels, jobs, samples, features).result())
    report.table(
        f"OvALinearXC, {samples:,} rows x {features:,} features, {NONZEROS_PER_ROW} non-zeros a "
        f"row, {POSITIVES_PER_LABEL} positives a label (goal: below {MAX_BYTES / 2**20:,.0f} MiB "
        "beyond X, Y and the model for a million labels)",
        rows,
        _COLUMNS,
    )
    return rows


def measure_fit(n_labels: int, n_jobs: int, n_samples: int, n_features: int) -> dict[str, Any]:
    """Fit in this process, which should be a fresh one.

    Parameters
    ----------
    n_labels, n_jobs, n_samples, n_features : int
        Shape of the data, and threads.

    Returns
    -------
    dict
        A row of the table.
    """
    from asv_bench.common.measure import fit_quietly, n_unsolved, peak_bytes, reset_peak, warm_up
    from sklearn_xc import OvALinearXC

    X, Y = make_data(n_labels, n_samples, n_features)
    warm_up(OvALinearXC(), X[:200], Y[:200])
    reset_peak()
    before = peak_bytes()
    wall, cpu = perf_counter(), process_time()
    model = fit_quietly(OvALinearXC(C=1.0, n_jobs=n_jobs), X, Y)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    coef = model.coef_
    model_bytes = coef.data.nbytes + coef.indices.nbytes + coef.indptr.nbytes
    beyond = peak_bytes() - before - model_bytes
    arrays = (X.data, X.indices, X.indptr, Y.data, Y.indices, Y.indptr)
    return {
        "n_labels": n_labels,
        "cpu_ms_per_label": 1e3 * cpu / n_labels,
        "wall_s": wall,
        "data_mib": sum(array.nbytes for array in arrays) / 2**20,
        "model_mib": model_bytes / 2**20,
        "beyond_mib": beyond / 2**20,
        "n_unsolved": n_unsolved(model),
        "row_ms": 1e3 * _seconds_of_a_row(model, X),
    }


def _seconds_of_a_row(model: Any, X: Any) -> float:
    """Return the median time of the best labels of one row."""
    seconds = []
    model.predict_topk(X[:1])  # arranges the weights by feature
    for i in range(N_PREDICTED):
        row = X[i : i + 1]
        began = perf_counter()
        model.predict_topk(row)
        seconds.append(perf_counter() - began)
    return float(np.median(seconds))


def make_data(n_labels: int, n_samples: int, n_features: int) -> tuple[Any, Any]:
    """Return X (csr_array, float32, unit rows) and Y (csr_array, int8)."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    rng = np.random.default_rng(0)
    weight = 1.0 / (10.0 + np.arange(n_features))
    drawn = rng.choice(n_features, (n_samples, NONZEROS_PER_ROW), p=weight / weight.sum())
    rows = np.repeat(np.arange(n_samples), NONZEROS_PER_ROW)
    counts = sp.csr_array(
        (np.ones(drawn.size, np.float32), (rows, drawn.ravel())), shape=(n_samples, n_features)
    )
    by_feature = counts.tocsc()
    lengths = np.diff(by_feature.indptr)
    rare = np.flatnonzero((lengths >= POSITIVES_PER_LABEL) & (lengths <= max(50, n_samples // 200)))
    topic = rng.choice(rare, n_labels)
    at = rng.random((n_labels, POSITIVES_PER_LABEL)) * lengths[topic][:, None]
    positives = by_feature.indices[by_feature.indptr[topic][:, None] + at.astype(np.int64)]
    labels = np.repeat(np.arange(n_labels), POSITIVES_PER_LABEL)
    Y = sp.csr_array(
        (np.ones(labels.size, np.int8), (positives.ravel(), labels)), shape=(n_samples, n_labels)
    )
    Y.data[:] = 1  # where a row was drawn twice
    return TfidfTransformer().fit_transform(counts).astype(np.float32), Y

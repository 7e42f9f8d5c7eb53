"""The softmax estimators: the paper's table, steps per second, held-out log-loss by CPU time.

* table: training log-loss after 50 epochs, with the first label of each instance as its class: what
  table 3 of [1]_ says, what its protocol gives here, and the true log-losses, also by rate
  (``table``).
* rates, epochs, formulations, runtimes: its tables 2 and 4 and figures 1, 3 and 4 (``paper``).
* probabilities: log-loss and calibration on test instances, with the defaults, on sets of classes
  at several sizes (``probabilities``).
* speed: steps per second beside the same steps in plain numpy, on syn4k with the first label.
* curves: log-loss of held-out pairs against the CPU seconds of training, on syn4k with all labels
  of each instance (4,000 classes), beside scikit-learn's solvers and the biased methods.

[1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

import argparse
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import load_set
from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.common.sized_sets import SIZES
from asv_bench.softmax import paper
from asv_bench.softmax.curves import CURVES, draw_curves, measure_curves
from asv_bench.softmax.numpy_softmax import implicit_steps, umax_steps
from asv_bench.softmax.probabilities import BANDS, measure_probabilities
from asv_bench.softmax.probabilities import COLUMNS as PROBABILITIES_COLUMNS
from asv_bench.softmax.table import BY_RATE, COLUMNS, by_rate, reproduce
from sklearn_xc import SoftmaxUMax
from sklearn_xc._checks import check_instances
from sklearn_xc.kernels.softmax.rules import RULES
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState, run_epoch

PARTS = (
    "table", "rates", "epochs", "formulations", "runtimes", "probabilities", "speed", "curves",
)  # fmt: skip
SETS = ("bibtex", "delicious")

_EPOCHS = 50
#: Steps that are timed, of ours and of numpy.
_STEPS, _NUMPY_STEPS = 15_000, 1_000

_SPEED_COLUMNS = [
    Column("method", "method"),
    Column("n_negatives", "classes a step"),
    Column("ours", "steps/s", ",.0f"),
    Column("numpy", "numpy", ",.0f"),
    Column("ratio", "ratio", ",.0f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--sets", nargs="+", default=SETS, help="of the paper's parts")
    parser.add_argument(
        "--sizes",
        nargs="+",
        choices=tuple(SIZES),
        default=tuple(SIZES),
        help="of the probabilities",
    )
    parser.add_argument("--jobs", type=int, default=1, help="threads (1)")
    parser.add_argument("--epochs", type=int, default=_EPOCHS, help="of the paper's parts (50)")
    parser.add_argument(
        "--budget", type=float, default=300.0, help="CPU seconds of each curve, about (300)"
    )
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=CURVES, help="which ones")
    parser.add_argument("--cache", help="folder that keeps loaded sets")


def main(
    data: Any = None,
    *,
    parts: Sequence[str] = PARTS,
    sets: Sequence[str] = SETS,
    sizes: Sequence[str] = tuple(SIZES),
    jobs: int = 1,
    epochs: int = _EPOCHS,
    budget: float = 300.0,
    curves: Sequence[str] = CURVES,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure and report the parts asked for.

    Parameters
    ----------
    data : path-like, default=None
        Folder of the data sets.
    parts : sequence of str
        What to measure, of ``PARTS``.
    sets : sequence of str
        Sets of the parts that reproduce the paper.
    sizes : sequence of {"1/16", "1/4", "all"}
        Shares of the training instances for the probabilities.
    jobs : int
        Threads.
    epochs : int
        Of these parts.
    budget : float
        CPU seconds after which a curve gets no further point.
    curves : sequence of str
        Which curves.
    cache : path-like, default=None
        See ``load_set``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        Rows of all parts.
    """
    report = report or Report("softmax")
    rows: list[dict[str, Any]] = []
    if "table" in parts:
        for name in sets:
            X, y = first_labels(load_set(name, data, cache=cache))
            of_set = reproduce(name, X, y, jobs, epochs, report)
            title = f"{of_set[0]['title']}: training log-loss after {epochs} epochs"
            report.table(title, of_set, COLUMNS)
            report.table(f"{title}, true, by rate", by_rate(of_set), BY_RATE)
            rows += of_set
    rows += _measure_paper(data, parts, sets, epochs, cache, report)
    if "probabilities" in parts:
        found = measure_probabilities(data, sizes, report, cache=cache)
        report.table("Probabilities of test instances", found, PROBABILITIES_COLUMNS)
        bands = [band for row in found for band in row["bands"]]
        report.table("How often the best class is right", bands, BANDS)
        rows += found
    if "speed" in parts:
        speed = time_steps(*first_labels(load_set("syn4k", data, cache=cache)))
        report.table("Steps per second, syn4k, one thread", speed, _SPEED_COLUMNS)
        rows += speed
    if "curves" in parts:
        split = load_set("syn4k", data, cache=cache)
        points = measure_curves(split, jobs, budget, report, curves=curves)
        report.figure(draw_curves(points), "softmax_curves")
        rows += points
    return rows


def _measure_paper(
    data: Any, parts: Sequence[str], sets: Sequence[str], epochs: int, cache: Any, report: Report
) -> list[dict[str, Any]]:
    """Measure and report those parts that ``paper`` has."""
    found: dict[str, list[dict[str, Any]]] = {
        part: [] for part in ("rates", "epochs", "formulations", "runtimes") if part in parts
    }
    for name in sets if found else ():
        X, y = first_labels(load_set(name, data, cache=cache))
        if "rates" in found:
            found["rates"] += paper.choose_rates(name, X, y, epochs)
        if "epochs" in found:
            found["epochs"] += paper.follow_epochs(name, X, y, epochs)
        if "formulations" in found:
            found["formulations"] += paper.compare_formulations(name, X, y, epochs)
        if "runtimes" in found:
            found["runtimes"].append(paper.time_epochs(name, X, y, epochs))
        report.line(f"{name}: measured")
    if "rates" in found:
        title = f"Rates by {epochs} epochs on a tenth of the rows"
        report.table(title, found["rates"], paper.RATES_COLUMNS)
    if "epochs" in found:
        report.table("Training log-loss by epoch", found["epochs"], paper.EPOCHS_COLUMNS)
        report.figure(paper.draw_epochs(found["epochs"]), "softmax_epochs")
    if "formulations" in found:
        paper.report_formulations(found["formulations"], report)
    if "runtimes" in found:
        title = f"{epochs} epochs, one instance a step, implicit with 1 class and others with 5"
        report.table(title, found["runtimes"], paper.RUNTIMES_COLUMNS)
    return [row for rows in found.values() for row in rows]


def first_labels(split: Any) -> tuple[Any, np.ndarray]:
    """Return the training instances with features and labels, and the first label of each."""
    X, Y = sp.csr_array(split.X_train), sp.csr_array(split.Y_train)
    Y.sort_indices()
    kept = np.flatnonzero((np.diff(Y.indptr) > 0) & (np.diff(X.indptr) > 0))
    return X[kept], Y.indices[Y.indptr[kept]]


def time_steps(X: Any, y: np.ndarray) -> list[dict[str, Any]]:
    """Return steps per second of U-max and of implicit steps, ours and in numpy.

    Parameters
    ----------
    X : csr_array of shape (n, n_features)
        Instances.
    y : ndarray of shape (n,)
        Classes.

    Returns
    -------
    list of dict
        A row per method; ours are medians of nine epochs.
    """
    classes, positions = np.unique(y, return_inverse=True)
    X, positions = X[:_STEPS], positions[:_STEPS].astype(np.int32)
    n, n_classes = len(positions), len(classes)
    rng = np.random.default_rng(0)
    order = rng.permutation(n)[:_NUMPY_STEPS]
    instances = check_instances(SoftmaxUMax(), X, reset=True)
    problem = SoftmaxProblem(
        instances, np.arange(n, dtype=np.int32), positions, np.ones(n), n_classes, 0.0
    )

    def start() -> SoftmaxState:
        W = np.zeros((n_classes, X.shape[1]), X.dtype)
        return SoftmaxState.at(W, np.full(n, np.log(n_classes)))

    rows = []
    for label, method, m, rate in (("U-max", "umax", 5, 0.1), ("implicit", "implicit", 1, 1.0)):
        settings = SgdSettings(RULES[method], m, 1, 0)
        run_epoch(problem, start(), settings, 0, rate, 0.0)  # compiled, or loaded
        state, rates = start(), []
        for epoch in range(9):
            _, seconds = cpu_seconds(run_epoch, problem, state, settings, epoch, rate, 0.0)
            rates.append(n / seconds)
        twin = start()
        began = process_time()
        if method == "umax":
            umax_steps(X, positions, twin.V, twin.u, order, rate, m, 1.0, rng)
        else:
            implicit_steps(X, positions, twin.V, twin.u, order, rate, rng)
        numpy_rate = len(order) / (process_time() - began)
        ours = float(np.median(rates))
        rows.append(
            {
                "method": label, "n_negatives": m, "ours": ours, "numpy": numpy_rate,
                "ratio": ours / numpy_rate,
            }
        )  # fmt: skip
    return rows

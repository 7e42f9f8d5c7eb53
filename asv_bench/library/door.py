"""What the checks of sparse matrices cost, as a share of the calls that make them.

Each call is made several times; the CPU seconds within ``check_sparse`` and ``rows_are_canonical``
are summed while it runs (for a single row, from its wall time: a clock's tick is longer than the
call). Medians over the repetitions; one thread.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from asv_bench.common.data import SETS, load_set
from asv_bench.common.measure import fit_quietly
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC, SoftmaxUMax, _sparse_input
from sklearn_xc.datasets import dump_xmc_file, load_xmc_file
from sklearn_xc.metrics import precision_at_k

_CHECKS = ("check_sparse", "rows_are_canonical")
_MANY = 100_000
_SINGLE = 2_000

_COLUMNS = [
    Column("call", "call"),
    Column("ms", "ms", ",.3f"),
    Column("checks_ms", "checks, ms", ",.4f"),
    Column("share", "share", ".2%"),
    Column("goal", "goal"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--set", choices=SETS, default="tate", help="data set (tate)")
    parser.add_argument("--n-train-rows", type=int, default=10_000, metavar="N", help="10000")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="of each call (5)")


def main(
    data: Any = None,
    *,
    set: str = "tate",
    n_train_rows: int = 10_000,
    repeats: int = 5,
    n_many: int = _MANY,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure the checks within fits, predictions, a metric, writing and reading.

    Parameters
    ----------
    data : path, default=None
        Folder of the data sets.
    set : str, default="tate"
        Which one.
    n_train_rows : int
        Rows to fit.
    repeats : int
        Times that each call is made.
    n_many : int
        Rows to predict at once; those of the test set, repeated.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each call.
    """
    report = report or Report("door")
    split = load_set(set, data)
    X, Y = split.X_train[:n_train_rows], split.Y_train[:n_train_rows]
    model = fit_quietly(OvALinearXC(), X, Y)
    softmax = SoftmaxUMax(max_iter=2, learning_rate=0.1, random_state=0)
    rows = np.resize(np.arange(split.X_test.shape[0]), n_many)
    many, truth = split.X_test[rows], split.Y_test[rows]
    labels, _ = model.predict_topk(many, 5)
    single = [many[[i]] for i in range(min(_SINGLE, n_many))]
    with TemporaryDirectory() as folder:
        path = Path(folder, "data.txt")
        few = slice(min(20_000, n_many))
        calls: list[tuple[str, str, Callable[[], Any]]] = [
            ("OvALinearXC.fit", "1%", lambda: fit_quietly(OvALinearXC(), X, Y)),
            ("SoftmaxUMax.fit, 2 epochs", "1%", lambda: softmax.fit(X, Y)),
            (f"predict_topk, {n_many:,} rows", "1%", lambda: model.predict_topk(many, 5)),
            ("precision_at_k", "15%", lambda: precision_at_k(truth, labels, [1, 3, 5])),
            ("dump_xmc_file", "15%", lambda: dump_xmc_file(path, many[few], truth[few])),
            ("load_xmc_file", "15%", lambda: load_xmc_file(path)),
        ]
        found = [
            {"call": call, "goal": goal, **_measure(run, repeats)} for call, goal, run in calls
        ]
    found.append({"call": "predict_topk, 1 row", "goal": "0.08 ms", **_single(model, single)})
    report.table(f"Checks of sparse matrices, {set}, {X.shape[0]:,} training rows", found, _COLUMNS)
    return found


def _measure(run: Callable[[], Any], repeats: int) -> dict[str, float]:
    run()
    times, checks = [], []
    for _ in range(repeats):
        with _timed_checks(thread_time) as spent:
            began = thread_time()
            run()
            times.append(thread_time() - began)
        checks.append(spent[0])
    return _row(times, checks)


def _single(model: OvALinearXC, rows: list[Any]) -> dict[str, float]:
    """Return the same for single rows: the median row, and the checks of a loop of their own."""
    times = []
    for row in rows:
        began = perf_counter()
        model.predict_topk(row, 5)
        times.append(perf_counter() - began)
    checks = []
    for row in rows:
        began = perf_counter()
        _sparse_input.check_sparse(row, "X", "OvALinearXC")
        _sparse_input.rows_are_canonical(row.indptr, row.indices[: row.indptr[-1]])
        checks.append(perf_counter() - began)
    return _row(times, checks)


def _row(times: list[float], checks: list[float]) -> dict[str, float]:
    whole, part = float(np.median(times)), float(np.median(checks))
    return {"ms": 1e3 * whole, "checks_ms": 1e3 * part, "share": part / whole}


@contextmanager
def _timed_checks(clock: Callable[[], float]) -> Iterator[list[float]]:
    """Sum the seconds within the checks, wherever in the package they are called."""
    spent = [0.0]

    def timed(check: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            began = clock()
            try:
                return check(*arguments)
            finally:
                spent[0] += clock() - began

        return run

    places = [
        (module, name, getattr(module, name))
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("sklearn_xc")
        for name in _CHECKS
        if name in vars(module)
    ]
    try:
        for module, name, check in places:
            setattr(module, name, timed(check))
        yield spent
    finally:
        for module, name, check in places:
            setattr(module, name, check)

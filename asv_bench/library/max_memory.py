"""Peak memory of fits against ``max_memory``: every estimator, five budgets, each in a process.

``max_memory`` counts what the process grows by beyond what it had when the fit began: code that was
loaded and compiled by a toy fit, X and y are there before. Pages of files are not counted: the
system takes these back when it needs them. A budget is a share of what the fit holds at its peak
without a limit.
"""

import argparse
import ctypes
import gc
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from asv_bench.common.measure import peak_bytes, reset_peak
from asv_bench.common.report import Column, Report
from asv_bench.library.large import in_fresh_process

#: Budgets, as shares of the peak of a fit without a limit.
SHARES = (0.1, 0.5, 1.1, 1.5, 4.0)

MIB = 2**20

_COLUMNS = [
    Column("estimator", "estimator"),
    Column("share", "of the need", ".1f"),
    Column("budget_mib", "max_memory, MiB", ",.0f"),
    Column("outcome", "outcome"),
    Column("toy_mib", "RSS after a toy fit, MiB", ",.0f"),
    Column("peak_mib", "peak RSS, MiB", ",.0f"),
    Column("grown_mib", "grown by, MiB", ",.0f"),
    Column("used", "of max_memory", ".0%"),
    Column("in_files_mib", "RSS of files, MiB", ",.0f"),
    Column("wall_s", "s", ".1f"),
]


class Case(NamedTuple):
    """A fit of some seconds.

    Attributes
    ----------
    make : callable
        Returns the estimator for a ``max_memory``.
    n_samples, n_features, n_labels, nnz_per_row : int
        Of the made data.
    one_d : bool
        Whether each row has one class.
    """

    make: Callable[[Any], Any]
    n_samples: int
    n_features: int
    n_labels: int
    nnz_per_row: int
    one_d: bool = False

    def data(self, *, toy: bool = False) -> tuple[Any, Any]:
        """Return X in float32, and Y; of the toy some rows, features and labels."""
        from sklearn_xc.datasets import make_xc_classification

        sizes = (300, 200, 12) if toy else self[1:4]
        n_samples, n_features, n_labels = sizes
        X, Y = make_xc_classification(
            n_samples=n_samples, n_features=n_features, n_labels=n_labels,
            nnz_per_row=min(self.nnz_per_row, n_features // 10), labels_per_row=3, random_state=0,
        )  # fmt: skip
        return X.astype(np.float32), Y.indices[Y.indptr[:-1]] if self.one_d else Y


def _sklearn_xc(name: str, max_memory: Any, **parameters: Any) -> Any:
    import sklearn_xc

    return getattr(sklearn_xc, name)(max_memory=max_memory, **parameters)


def _ova(max_memory: Any = None) -> Any:
    return _sklearn_xc("OvALinearXC", max_memory, tol=0.1)


def _implicit(max_memory: Any = None) -> Any:
    return _sklearn_xc(
        "ImplicitSoftmaxSGD", max_memory, max_iter=1, learning_rate=0.1, random_state=0
    )


#: Fits that take some seconds and some dozens of MiB.
CASES = {
    "OvALinearXC": Case(_ova, 40_000, 20_000, 100, 60),
    "OvALinearXCCV": Case(
        lambda allowed: _sklearn_xc(
            "OvALinearXCCV", allowed, tol=0.1, Cs=[0.1, 1.0], cv=2, random_state=0
        ),
        20_000, 20_000, 24, 60,
    ),
    "SoftmaxUMax": Case(
        lambda allowed: _sklearn_xc("SoftmaxUMax", allowed, max_iter=1, random_state=0),
        10_000, 10_000, 600, 30, one_d=True,
    ),
    "ImplicitSoftmaxSGD": Case(_implicit, 40_000, 10_000, 300, 60, one_d=True),
    "DecompMIPSClassifier": Case(
        lambda allowed: _sklearn_xc("DecompMIPSClassifier", allowed, max_iter=1, random_state=0),
        6_000, 40_000, 3_000, 30,
    ),
    "NGAMEEmbeddingXC": Case(
        lambda allowed: _sklearn_xc(
            "NGAMEEmbeddingXC", allowed, max_iter=1, classifier_max_iter=1, embedding_dim=128,
            random_state=0,
        ),
        6_000, 20_000, 3_000, 30,
    ),
    "DecompMIPSSkipGram": Case(
        lambda allowed: _sklearn_xc(
            "DecompMIPSSkipGram", allowed, max_iter=2, vectors="input", random_state=0
        ),
        20_000, 20_000, 10, 30,
    ),
    "StackingXC": Case(
        lambda allowed: _sklearn_xc(
            "StackingXC", allowed, estimators=[("ova", _ova()), ("softmax", _implicit())],
            cv=0.3, random_state=0,
        ),
        10_000, 10_000, 150, 30,
    ),
    "ThresholdTuner": Case(
        lambda allowed: _sklearn_xc(
            "ThresholdTuner", allowed, estimator=_ova(), cv=0.3, random_state=0
        ),
        15_000, 20_000, 50, 60,
    ),
    "TopKCalibrator": Case(
        lambda allowed: _sklearn_xc(
            "TopKCalibrator", allowed, estimator=_ova(), cv=0.3, random_state=0
        ),
        15_000, 20_000, 50, 60,
    ),
}  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument(
        "--estimators", nargs="+", choices=CASES, default=tuple(CASES), metavar="NAME"
    )
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES, metavar="S")


def main(
    data: Any = None,
    *,
    estimators: Sequence[str] = tuple(CASES),
    shares: Sequence[float] = SHARES,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Fit each estimator without a limit, then within each budget.

    Parameters
    ----------
    data : object, default=None
        Not used.
    estimators : sequence of str
        Names of ``CASES``.
    shares : sequence of float
        Budgets, as shares of the growth without a limit.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each fit; `outcome` is "fitted" or "refused".
    """
    report = report or Report("max_memory")
    rows = []
    for name in estimators:
        free = in_fresh_process(measure_fits, name, (None,))
        if isinstance(free, dict):  # an error
            raise RuntimeError(f"{name}: {free['error']}")
        need = free[0]["grown_mib"]
        rows.append({"estimator": name, "share": np.nan, **free[0], "budget_mib": np.nan})
        report.line(f"{name}: {need:,.0f} MiB without a limit, {free[0]['wall_s']:.1f} s")
        for share in shares:
            [row] = in_fresh_process(measure_fits, name, (int(share * need * MIB),))
            rows.append({"estimator": name, "share": share, **row})
            report.line(
                f"  {share:.1f}: {row['outcome']}, {row['grown_mib']:,.0f} of "
                f"{row['budget_mib']:,.0f} MiB. {row['says']}"
            )
    report.table("Peak memory of fits (the first of each has no limit)", rows, _COLUMNS)
    return rows


def measure_fits(name: str, budgets: Sequence[int | None]) -> list[dict[str, Any]]:
    """Fit one case within some budgets, one after the other, in this process: a fresh one.

    Parameters
    ----------
    name : str
        Of ``CASES``.
    budgets : sequence of int or None
        Each ``max_memory`` in bytes.

    Returns
    -------
    list of dict
        For each budget the outcome, what the error says, resident memory before and at the peak.
    """
    from sklearn_xc.exceptions import MemoryBudgetError

    case = CASES[name]
    X, y = case.data()
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        toy = case.make(None)
        toy.fit(*case.data(toy=True))
        del toy
        for budget in budgets:
            give_back()
            toy = resident()
            reset_peak()
            began, outcome, says = perf_counter(), "fitted", ""
            with Watch() as watch:
                try:
                    case.make(budget).fit(X, y)
                except MemoryBudgetError as error:
                    outcome, says = "refused", str(error)
            allowed = np.nan if budget is None else budget
            grown = watch.anonymous - toy["RssAnon"]
            rows.append({
                "budget_mib": allowed / MIB, "outcome": outcome, "says": says,
                "toy_mib": toy["VmRSS"] / MIB, "peak_mib": peak_bytes() / MIB,
                "grown_mib": grown / MIB, "used": grown / allowed,
                "in_files_mib": (watch.in_files - toy["RssFile"]) / MIB,
                "wall_s": perf_counter() - began,
            })  # fmt: skip
    return rows


class Watch:
    """Looks at this process every two milliseconds.

    Attributes
    ----------
    anonymous, in_files : int
        The most bytes seen that are resident for no file, which the system cannot take back, and
        for files.
    """

    def __init__(self) -> None:
        self.anonymous = self.in_files = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        self._thread.join()

    def _look(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ends.wait(0.002)
            now = resident()
            self.anonymous = max(self.anonymous, now["RssAnon"] + now["RssShmem"])
            self.in_files = max(self.in_files, now["RssFile"])


def resident() -> dict[str, int]:
    """Return the bytes of this process that are resident, in all and by kind (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = [line.split() for line in lines if line.startswith(("Rss", "VmRSS"))]
    return {name.rstrip(":"): 1024 * int(size) for name, size, _ in fields}


def give_back() -> None:
    """Return to the system what is free."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

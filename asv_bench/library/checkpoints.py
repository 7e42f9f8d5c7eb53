"""What checkpoints cost a fit, and what a kill costs with them, by estimator.

Each fit runs in a process of its own, forked off one that has the data and compiled loops: without
and with ``checkpoint_dir`` in turns, then called again when all is there, then killed in the middle
and called again. Two fits of the same take times that differ by more than what checkpoints cost: so
the time that is spent in them is taken within the fit, too.
"""

import argparse
import functools
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from asv_bench.common.data import load_set
from asv_bench.common.measure import fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import NGAMEEmbeddingXC, OvALinearXC, OvALinearXCCV
from sklearn_xc.storage import checkpoints, loops

#: Fits of about ten seconds to a minute.
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "OvALinearXC": OvALinearXC,
    "OvALinearXCCV": lambda **own: OvALinearXCCV(Cs=[0.3, 1.0], cv=2, **own),
    "NGAMEEmbeddingXC": lambda **own: NGAMEEmbeddingXC(random_state=0, **own),
}

_COLUMNS = [
    Column("set", "set"),
    Column("estimator", "estimator"),
    Column("plain_s", "fit, s", ",.1f"),
    Column("plain_cpu_s", "CPU s", ",.1f"),
    Column("cpu_ratio", "CPU s with checkpoints", ".3f"),
    Column("cpu_share", "CPU in them", ".2%"),
    Column("share", "time in them", ".2%"),
    Column("mib", "MiB kept", ",.0f"),
    Column("lost_s", "lost by a kill in the middle, s", ",.1f"),
    Column("again_s", "called again when done, s", ",.1f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=("gutenberg_subjects",), metavar="SET")
    parser.add_argument("--estimators", nargs="+", default=tuple(ESTIMATORS), choices=ESTIMATORS)
    parser.add_argument("--turns", type=int, default=3, help="fits with and without (3)")
    parser.add_argument("--rows", type=int, default=None, help="first rows of a set (all)")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("gutenberg_subjects",),
    estimators: Sequence[str] = tuple(ESTIMATORS),
    turns: int = 3,
    rows: int | None = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Fit each estimator with and without checkpoints.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sets, estimators : sequence of str
    turns : int
        Fits of each kind, whose medians are told.
    rows : int, default=None
        Of each set; None takes all.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set and estimator.
    """
    report, found = report or Report("checkpoints"), []
    for name in sets:
        split = load_set(name, data)
        X, Y = split.X_train[:rows], split.Y_train[:rows]
        for estimator in estimators:
            make = ESTIMATORS[estimator]
            warm_up(make(), X, Y)
            row = _measure(make, X, Y, turns)
            report.line(f"{name}, {estimator}: {row['cpu_share']:.2%} of the CPU time")
            found.append({"set": name, "estimator": estimator, **row})
    report.table("Checkpoints: medians, one thread", found, _COLUMNS)
    return found


def _measure(make: Callable[..., Any], X: Any, Y: Any, turns: int) -> dict[str, float]:
    plain, kept = [], []
    with TemporaryDirectory() as given:
        folder = Path(given) / "fit"
        for _ in range(turns):
            plain.append(_fitted(make, X, Y))
            shutil.rmtree(folder, ignore_errors=True)
            kept.append(_fitted(make, X, Y, folder))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        again = _fitted(make, X, Y, folder)
        shutil.rmtree(folder)
        whole = float(np.median([fit.seconds for fit in kept]))
        _fitted(make, X, Y, folder, kill_after=whole / 2)
        rest = _fitted(make, X, Y, folder)
    without, with_them = (_Fit(*np.median(one, axis=0)) for one in (plain, kept))
    return {
        "plain_s": without.seconds, "plain_cpu_s": without.cpu,
        "cpu_ratio": with_them.cpu / without.cpu, "cpu_share": with_them.cpu_in / with_them.cpu,
        "share": with_them.seconds_in / with_them.seconds, "mib": size / 2**20,
        "lost_s": whole / 2 + rest.seconds - whole, "again_s": again.seconds,
    }  # fmt: skip


class _Fit(NamedTuple):
    """Seconds and CPU seconds of a fit, and those of them that its checkpoints took."""

    seconds: float
    cpu: float
    seconds_in: float
    cpu_in: float


class _Clock:
    """Takes the time inside some functions, also where one calls another."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0
        self._depth = 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and has its time taken."""

        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            if self._depth:
                return function(*args, **named)
            self._depth, began, cpu = 1, time.perf_counter(), time.process_time()
            try:
                return function(*args, **named)
            finally:
                self._depth = 0
                self.seconds += time.perf_counter() - began
                self.cpu += time.process_time() - cpu

        return call


def _fitted(
    make: Callable[..., Any], X: Any, Y: Any, folder: Path | None = None,
    kill_after: float | None = None,
) -> _Fit:  # fmt: skip
    """Fit in a process of its own."""
    fork = multiprocessing.get_context("fork")
    answers, clock = fork.SimpleQueue(), _Clock()

    def work() -> None:
        for owner, name in _PLACES:
            setattr(owner, name, clock.timed(getattr(owner, name)))
        began, cpu = time.perf_counter(), time.process_time()
        fit_quietly(make(checkpoint_dir=folder), X, Y)
        found = time.perf_counter() - began, time.process_time() - cpu
        answers.put((*found, clock.seconds, clock.cpu))

    process = fork.Process(target=work)
    process.start()
    if kill_after is not None:
        process.join(kill_after)
        if process.exitcode is None and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        return _Fit(kill_after, kill_after, np.nan, np.nan)
    found = _Fit(*answers.get())
    process.join()
    return found


#: What a fit with checkpoints does beside one without: all of it is in these.
_PLACES = (
    (checkpoints, "key_of"),
    (checkpoints, "opened"),
    (checkpoints.Checkpoints, "put"),
    (checkpoints.Checkpoints, "get"),
    (loops.Loop, "put"),
    (loops.Loop, "get"),
)

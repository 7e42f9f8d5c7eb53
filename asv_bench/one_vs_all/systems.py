"""OvALinearXC beside its peers: precision, time, memory and model size on the same matrices.

Each system trains and predicts in a fresh process, so that memory, CPU time and imports are its
own, with the number of threads given. What fails or is not installed keeps its row, with the
reason. With --out every row is kept in ova.jsonl as it comes, and the same command goes on where it
was stopped: rows that are there are not measured again, those that failed are.

The extra ``bench`` installs omikuji, napkinXC and sparse_dot_topn. LIBLINEAR is ``pip install
liblinear-official``, which needs a C compiler. PECOS needs numpy<2 and with it an environment of
its own: ``python -m venv pecos; pecos/bin/pip install libpecos``, then ``--pecos-python
pecos/bin/python``.

LIBLINEAR solves the same problems label by label, for hours on the large sets: it trains a sample
of the labels, and its seconds are extrapolated. Precision and PSP@k (propensities from the training
labels, with the constants 0.55 and 1.5) are computed by this package for all systems. CPU seconds
of OvALinearXC are without compilation, which the notes below the table give.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asv_bench.common.data import SETS, cache_folder, load_set
from asv_bench.common.report import Column, Report
from asv_bench.common.runs import RowLog, run_worker
from asv_bench.one_vs_all.systems_figure import draw_systems
from asv_bench.peers import DEFAULT_SYSTEMS, SYSTEMS, why_not
from asv_bench.peers.worker import COMPILE, KS

DEFAULT_SETS = ("yso_finna_en", "syn4k", "citeulike_t")

_COLUMNS = [
    Column("set", "set"),
    Column("title", "system"),
    *(Column(f"{metric}@{k}", f"{metric}@{k}", ".2f") for metric in ("P", "PSP") for k in KS),
    Column("train_cpu_s", "train CPU s", ",.1f"),
    Column("train_wall_s", "wall s", ",.1f"),
    Column("predict_ms_per_row", "predict ms/row", ".3f"),
    Column("peak_mb", "peak MB", ",.0f"),
    Column("before_mb", "of it before", ",.0f"),
    Column("model_mb", "model MB", ",.1f"),
    Column("model_in", "in"),
    Column("n_threads", "threads"),
    Column("n_unsolved", "not converged"),
    Column("note", "note"),
]
#: Longest note in the table; errors stand below it in full.
_NOTE = 60
#: Environment variables with which the libraries are told their number of threads.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=DEFAULT_SETS)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=DEFAULT_SYSTEMS)
    parser.add_argument("--cv", action="store_true", help="add OvALinearXCCV")
    parser.add_argument(
        "--losses", nargs="+", default=(), metavar="LOSS",
        choices=[system.options["loss"] for system in SYSTEMS.values() if "loss" in system.options],
        help="add OvALinearXC with these losses: %(choices)s",
    )  # fmt: skip
    parser.add_argument("--n-jobs", type=int, default=1, metavar="N", help="threads (1)")
    parser.add_argument(
        "--liblinear-labels", type=int, default=100, metavar="N",
        help="labels that LIBLINEAR trains (100); as many as there are for all",
    )  # fmt: skip
    parser.add_argument("--pecos-python", metavar="PATH", help="interpreter with libpecos")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="folder for the sets as matrices")
    parser.add_argument(
        "--timeout", type=float, default=7200, metavar="S", help="for one system on one set (7,200)"
    )


def main(
    data: Any,
    *,
    sets: Sequence[str] = DEFAULT_SETS,
    systems: Sequence[str] = DEFAULT_SYSTEMS,
    cv: bool = False,
    losses: Sequence[str] = (),
    n_jobs: int = 1,
    liblinear_labels: int = 100,
    pecos_python: Any = None,
    cache: Any = None,
    timeout: float = 7200.0,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure all systems on all sets.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str
        Keys of ``data.SETS``.
    systems : sequence of str
        Keys of ``peers.SYSTEMS``.
    cv : bool, default=False
        Whether to add OvALinearXCCV.
    losses : sequence of str, default=()
        Further losses of OvALinearXC.
    n_jobs : int, default=1
        Threads of the training; predictions take one.
    liblinear_labels : int, default=100
        Labels that LIBLINEAR trains.
    pecos_python : path-like, default=None
        An interpreter where libpecos can be imported; None leaves PECOS out.
    cache : path-like, default=None
        Where the sets are kept as matrices; None takes a temporary folder.
    timeout : float, default=7200
        Seconds for one system on one set.
    report : Report, default=None
        Where to show the results; its folder also holds ova.jsonl and the weights of OvALinearXC.
        None prints them.

    Returns
    -------
    list of dict
        A row per set and system, see :func:`~asv_bench.peers.worker.to_row`; with ``error``
        where a system failed, and ``note`` for what the table says.

    Raises
    ------
    FileNotFoundError
        If a set's files are missing; nothing has been measured then.
    """
    report = report or Report("ova")
    names = [*systems, *(["ova-cv"] if cv else []), *(f"ova-{loss}" for loss in losses)]
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(TemporaryDirectory()))
        cache = temporary if cache is None else Path(cache)
        folder = temporary if report.out is None else report.out
        log = RowLog(None if report.out is None else report.out / "ova.jsonl")
        tasks = plan_tasks(sets, dict.fromkeys(names), n_jobs, liblinear_labels)
        _load_missing({task["set"] for task in tasks if log.find(task) is None}, data, cache)
        rows = []
        for task in [{"system": COMPILE, "set": None}, *tasks]:
            row = log.find(task)
            if row is None:
                row = _measure(task, cache, folder, pecos_python, timeout)
                row["measured_at"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
                log.add(task, row)
                print(_progress(row), file=sys.stderr, flush=True)
            rows.append(row)
    (compilation, *rows) = rows
    _report(report, rows, compilation)
    return rows


def plan_tasks(
    sets: Iterable[str], systems: Iterable[str], n_jobs: int, liblinear_labels: int
) -> list[dict[str, Any]]:
    """Return what to measure, set by set: all that the numbers of a row depend on.

    sparse_dot_topn, which needs the weights of OvALinearXC, comes last.
    """
    names = sorted(systems, key=lambda name: SYSTEMS[name].module == "sparse_dot_topn")
    tasks = []
    for set_name in dict.fromkeys(sets):
        for name in names:
            task: dict[str, Any] = {"set": set_name, "system": name, "n_jobs": n_jobs}
            if SYSTEMS[name].module == "liblinear":
                task |= {"n_jobs": 1, "n_labels": liblinear_labels}
            tasks.append(task)
    return tasks


def _load_missing(sets: Iterable[str], data: Any, cache: Path) -> None:
    """Bring sets into the cache, and let go of them."""
    for name in sorted(sets):
        if not cache_folder(name, cache).is_dir():
            load_set(name, data, cache=cache)


def _measure(
    task: dict[str, Any], cache: Path, folder: Path, pecos_python: Any, timeout: float
) -> dict[str, Any]:
    """Run a task in a process of its own and return its row."""
    with TemporaryDirectory() as work:
        environment = dict(os.environ)
        shown: dict[str, Any] = {"set": task["set"], "system": task["system"]}
        if task["system"] == COMPILE:
            environment["NUMBA_CACHE_DIR"] = work
        else:
            shown["title"] = SYSTEMS[task["system"]].title
            reason = why_not(task["system"], pecos_python)
            if reason is not None:
                return shown | {"error": reason}
            environment |= dict.fromkeys(_THREAD_VARIABLES, str(task["n_jobs"]))
        full = task | {
            "cache": str(cache),
            "matrices": str(cache_folder(task["set"], cache)),
            "weights": str(folder / f"ova_weights_{task['set']}.npz"),
            "pecos_python": None if pecos_python is None else str(pecos_python),
        }
        return shown | run_worker(full, Path(work), environment, timeout)


def _progress(row: dict[str, Any]) -> str:
    name = f"{row['set'] or ''} {row['system']}".strip()
    if "error" in row:
        return f"{name}: {row['error']}"
    seconds = row.get("train_cpu_s")
    return f"{name}: done" if seconds is None else f"{name}: {seconds:,.1f} CPU s"


def _note(row: dict[str, Any]) -> str | None:
    text = row["error"] if "error" in row else "; ".join(row["remarks"])
    return text if len(text) <= _NOTE else f"{text[: _NOTE - 3]}..."


def _report(report: Report, rows: list[dict[str, Any]], compilation: dict[str, Any]) -> None:
    for row in rows:
        row["note"] = _note(row)
    report.table("Test split, in %; seconds, memory and size of the model", rows, _COLUMNS)
    report.line()
    for line in _footer(rows, compilation):
        report.line(line)
    if report.out is not None and any(row.get("train_cpu_s") is not None for row in rows):
        report.figure(draw_systems(rows), "ova")


def _footer(rows: list[dict[str, Any]], compilation: dict[str, Any]) -> Iterable[str]:
    """Yield the notes below the table."""
    times = sorted(row["measured_at"] for row in rows)
    yield f"Measured from {times[0]} to {times[-1]} UTC, those kept from earlier runs included."
    yield (
        "MB are 10^6 bytes. Peak: the most resident memory of the process while it trained; what "
        "it held before, imports and data, is part of it. Predictions: CPU time, all test rows in "
        "one call, one thread; omikuji takes one row at a time."
    )
    if "compile_s" in compilation:
        yield (
            f"Compiling OvALinearXC for its first use on a machine: {compilation['compile_s']:.1f} "
            "CPU s, not part of the training."
        )
    else:
        yield f"The time of compiling OvALinearXC is not known: {compilation['error']}"
    warm = [row["warm_up_s"] for row in rows if "warm_up_s" in row]
    if warm:
        yield (
            f"Before each of its measured fits, one of some labels: {min(warm):.1f} to "
            f"{max(warm):.1f} CPU s, with kernels compiled or read from the cache."
        )
    for row in rows:
        if len(row.get("error", "")) > _NOTE:
            yield f"{row['set']}, {row['title']}: {row['error']}"

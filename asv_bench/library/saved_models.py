"""How long a saved model takes to open, and what processes that share one hold, by kind of file.

A one-vs-all model of made data is written as a folder (``save``), by joblib and by pickle. Fresh
processes open it, in twos and fours at the same time, answer one row and then some hundreds. Memory
is what the process has grown by since its imports: pages of its own, and its share of those that
others map too.
"""

import argparse
import multiprocessing
import os
import pickle
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from asv_bench.common.report import Column, Report
from asv_bench.one_vs_all.scaling import make_data

#: Rows that are answered, one by one, after the first.
N_ROWS = 300

_COLUMNS = [
    Column("kind", "written by"),
    Column("size_mib", "MiB on disk", ",.0f"),
    Column("n_processes", "processes"),
    Column("open_ms", "open, ms", ",.1f"),
    Column("first_ms", "first row, ms", ",.1f"),
    Column("row_ms", "a row, ms", ",.2f"),
    Column("own_mib", "own MiB each", ",.0f"),
    Column("shared_mib", "MiB of all", ",.0f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--labels", type=int, default=16_000, help="16000")
    parser.add_argument("--processes", type=int, nargs="+", default=(1, 2, 4), help="1 2 4")
    parser.add_argument("--jobs", type=int, default=-1, help="threads of the fit (all)")


def main(
    data: Any = None,
    *,
    labels: int = 16_000,
    processes: Sequence[int] = (1, 2, 4),
    jobs: int = -1,
    samples: int = 100_000,
    features: int = 100_000,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Write a model in all ways, and open it in several processes.

    Parameters
    ----------
    data : object, default=None
        Not used.
    labels, samples, features : int
        Of the made data.
    processes : sequence of int
        How many open it at the same time.
    jobs : int
        Threads of the fit.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each kind and number of processes; medians over the processes.
    """
    report = report or Report("saved_models")
    rows = []
    with TemporaryDirectory() as folder:
        sizes = _write(Path(folder), labels, samples, features, jobs)
        for kind, size in sizes.items():
            for n in processes:
                found = _open_in(n, kind, str(Path(folder) / kind))
                keys = ("open_ms", "first_ms", "row_ms", "own_mib")
                row = {key: float(np.median([one[key] for one in found])) for key in keys}
                row |= {"kind": kind, "size_mib": size / 2**20, "n_processes": n}
                rows.append(row | {"shared_mib": sum(one["pss_mib"] for one in found)})
    report.table(
        f"OvALinearXC, {labels:,} labels x {features:,} features, {N_ROWS} rows one by one", rows,
        _COLUMNS,
    )  # fmt: skip
    return rows


def _write(
    folder: Path, n_labels: int, n_samples: int, n_features: int, n_jobs: int
) -> dict[str, int]:
    """Fit and write a model in all ways; return the bytes of each."""
    import joblib
    import scipy.sparse as sp

    from asv_bench.common.measure import fit_quietly
    from sklearn_xc import OvALinearXC

    X, Y = make_data(n_labels, n_samples, n_features)
    model = fit_quietly(OvALinearXC(C=1.0, n_jobs=n_jobs), X, Y)
    sp.save_npz(folder / "rows.npz", X[: N_ROWS + 1])
    model.save(folder / "save")
    joblib.dump(model, folder / "joblib, mapped")
    os.link(folder / "joblib, mapped", folder / "joblib")
    with open(folder / "pickle", "wb") as stream:
        pickle.dump(model, stream, protocol=5)
    files = {kind: folder / kind for kind in ("save", "joblib, mapped", "joblib", "pickle")}
    return {
        kind: sum(path.stat().st_size for path in (file.iterdir() if file.is_dir() else [file]))
        for kind, file in files.items()
    }


def _open_in(n: int, kind: str, path: str) -> list[dict[str, float]]:
    """Open a model in some fresh processes at the same time."""
    spawn = multiprocessing.get_context("spawn")
    ready, done, answers = spawn.Barrier(n), spawn.Barrier(n), spawn.SimpleQueue()
    team = [spawn.Process(target=_open, args=(kind, path, ready, done, answers)) for _ in range(n)]
    for process in team:
        process.start()
    found = [answers.get() for _ in team]
    for process in team:
        process.join()
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def _open(kind: str, path: str, ready: Any, done: Any, answers: Any) -> None:
    """Tell of a model that was opened, or of what went wrong."""
    try:
        answers.put(_measure(kind, path, ready, done))
    except Exception as error:
        ready.abort()
        done.abort()
        answers.put(error)


def _measure(kind: str, path: str, ready: Any, done: Any) -> dict[str, float]:
    """Open a model, and answer rows."""
    import joblib
    import scipy.sparse as sp

    import sklearn_xc
    from asv_bench.common.measure import fit_quietly, process_kib
    from sklearn_xc.datasets import make_xc_classification

    rows = sp.csr_array(sp.load_npz(Path(path).parent / "rows.npz"))
    X, Y = make_xc_classification(n_samples=60, n_features=100, n_labels=300, random_state=0)
    toy = fit_quietly(sklearn_xc.OvALinearXC(tol=1.0), X, Y)
    toy.predict_topk(X[:1])  # kernels are loaded, as in a process that has warmed up
    ready.wait()
    before = process_kib()
    began = perf_counter()
    if kind == "save":
        model = sklearn_xc.load(path)
    elif kind == "pickle":
        with open(path, "rb") as stream:
            model = pickle.load(stream)
    else:
        model = joblib.load(path, mmap_mode="r" if kind == "joblib, mapped" else None)
    opened = perf_counter()
    model.predict_topk(rows[:1])
    first = perf_counter()
    seconds = []
    for i in range(1, N_ROWS + 1):
        row, start = rows[i : i + 1], perf_counter()
        model.predict_topk(row)
        seconds.append(perf_counter() - start)
    done.wait()  # all have it in memory now
    after = process_kib()
    done.wait()
    return {
        "open_ms": 1e3 * (opened - began),
        "first_ms": 1e3 * (first - opened),
        "row_ms": 1e3 * float(np.median(seconds[-N_ROWS // 3 :])),
        "own_mib": (after["Private"] - before["Private"]) / 1024,
        "pss_mib": (after["Pss"] - before["Pss"]) / 1024,
    }

"""One-vs-all on a cluster of this machine, beside threads: what Dask and Ray add, and what is sent.

As many workers as threads, each a process, share the cores of one machine: nothing can be won here,
so that what a fit takes longer is what the engine costs. Needs ``pip install
"sklearn-xc[dask,ray]"``.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from asv_bench.common.data import load_set, take_labels
from asv_bench.common.measure import fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.parallel.engines import engine_at_work

_COLUMNS = [
    Column("set", "set"),
    Column("n_labels", "labels", ","),
    Column("engine", "engine"),
    Column("seconds", "fit, s", ",.1f"),
    Column("ratio", "times threads", ".2f"),
    Column("first", "first fit, s", ",.1f"),
    Column("start", "start, s", ",.1f"),
    Column("task_ms", "an empty task, ms", ",.1f"),
    Column("sent_s", "X at hand, s", ",.2f"),
    Column("sent", "sent to a worker, times X", ".2f"),
    Column("same", "same bytes"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=("gutenberg_subjects",), metavar="SET")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3, help="fits with each engine (3)")
    parser.add_argument("--rows", type=int, default=None, help="first rows of a set (all)")
    parser.add_argument(
        "--labels", nargs="+", type=int, default=(None,), metavar="N", help="labels drawn (all)"
    )


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("gutenberg_subjects",),
    workers: int = 2,
    turns: int = 3,
    rows: int | None = None,
    labels: Sequence[int | None] = (None,),
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Fit one-vs-all in threads and on clusters, in turns.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sets : sequence of str
    workers : int
        Threads, and processes of a cluster.
    turns : int
        Fits with each, whose medians are told.
    rows : int, default=None
        Of each set; None takes all.
    labels : sequence of int or None, default=(None,)
        How many are drawn of those of a set, in turn; None for all.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each set and engine. What is sent goes over the loopback device, to the scheduler
        and from there: all of it, shared out among workers, is told beside X.
    """
    report, found = report or Report("clusters"), []
    for name, n_labels in itertools.product(sets, labels):
        split = load_set(name, data)
        X, Y = split.X_train[:rows], split.Y_train[:rows]
        Y = Y[:, take_labels(Y, n_labels)]
        warm_up(OvALinearXC(), X, Y)
        threads: dict[str, Any] = {}
        for engine, cluster in ENGINES.items():
            began = time.perf_counter()
            with cluster(workers):
                start = time.perf_counter() - began
                seconds, coef, sent = [], None, []
                for _ in range(turns + 1):
                    began, before = time.perf_counter(), _loopback_bytes()
                    model = fit_quietly(OvALinearXC(), X, Y)
                    seconds.append(time.perf_counter() - began)
                    sent.append((_loopback_bytes() - before) / workers / _bytes(X))
                    coef = model.coef_
                row = {
                    "set": name, "n_labels": Y.shape[1], "engine": engine, "first": seconds[0],
                    "start": start, "seconds": float(np.median(seconds[1:])),
                    **_overhead(X, workers), "sent": float(np.median(sent[1:])),
                }  # fmt: skip
            assert coef is not None
            threads = threads or {"seconds": row["seconds"], "coef": coef}
            same = (
                np.array_equal(coef.data, threads["coef"].data)
                and np.array_equal(coef.indices, threads["coef"].indices)
            )  # fmt: skip
            row |= {"ratio": row["seconds"] / threads["seconds"], "same": "yes" if same else "no"}
            report.line(f"{name}, {engine}: {row['seconds']:.1f} s")
            found.append(row)
    report.table("One-vs-all on clusters of this machine: medians", found, _COLUMNS)
    return found


def _overhead(X: Any, workers: int) -> dict[str, float]:
    """Return what a task costs, and how long it takes until each worker has X."""
    engine = engine_at_work()
    with engine.sharing(None, "bench") as place:
        list(place.run(_nothing, ((i, ()) for i in range(4 * workers)), workers))
        began = time.perf_counter()
        list(place.run(_nothing, ((i, ()) for i in range(200)), workers))
        task = (time.perf_counter() - began) / 200
    began = time.perf_counter()
    with engine.sharing(X, "bench") as place:
        list(place.run(_nothing, ((i, ()) for i in range(2 * workers)), workers))
    return {"task_ms": 1e3 * task, "sent_s": time.perf_counter() - began}


def _bytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def _loopback_bytes() -> float:
    """Return what has gone over the loopback device (Linux), NaN elsewhere."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
        return float(next(line for line in lines if line.strip().startswith("lo:")).split()[1])
    except (OSError, StopIteration):
        return float("nan")


def _nothing(shared: Any) -> None:
    pass


@contextmanager
def _threads(n: int) -> Iterator[None]:
    with joblib.parallel_config("threading", n_jobs=n):
        yield


@contextmanager
def _dask(n: int) -> Iterator[None]:
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
        as cluster,
        Client(cluster),
        joblib.parallel_config("dask"),
    ):  # fmt: skip
        yield


@contextmanager
def _ray(n: int) -> Iterator[None]:
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=n, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        with joblib.parallel_config("ray"):
            yield
    finally:
        ray.shutdown()


ENGINES: dict[str, Callable[[int], Any]] = {"threads": _threads, "dask": _dask, "ray": _ray}

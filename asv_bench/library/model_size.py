"""Compact one-vs-all models beside the models that they come from: size, precision, time, memory.

OvALinearXC with its defaults is fitted to each set and saved, and so is what its ``compact`` gives.
Both are opened and answer the same test rows, one by one and at once, with one thread; the calls of
both are timed in turns, in CPU seconds. Memory is what a fresh process has grown by that has opened
a model and answered all of these rows, pages of the files included.
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import SETS, load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, process_kib
from asv_bench.common.report import Column, Report

#: How often rows are answered at once, and single ones, of which the median is taken.
_REPEATS = 5
#: Rows that are answered one by one.
_SINGLE = 300
_KS = (1, 3, 5)
_KINDS = ("float", "compact")

_COLUMNS = [
    Column("set", "set"),
    Column("model", "model"),
    Column("n_labels", "labels", ",.0f"),
    Column("mib", "MiB", ",.1f"),
    Column("weight_bytes", "bytes a weight", ".2f"),
    *(Column(f"p{k}", f"P@{k}", ".2%") for k in _KS),
    Column("row_ms", "a row, ms", ".3f"),
    Column("batch_ms", "of many, ms", ".3f"),
    Column("process_mib", "MiB of a process", ",.0f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("gutenberg_subjects",))
    parser.add_argument(
        "--n-rows", type=int, default=5_000, metavar="N", help="rows to predict (5000)"
    )
    parser.add_argument(
        "--models", type=Path, metavar="DIR", help="folder in which fitted models are kept"
    )


def main(
    data: Any,
    *,
    sets: Sequence[str] = ("gutenberg_subjects",),
    n_rows: int = 5_000,
    models: Path | None = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure models of some sets.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("gutenberg_subjects",)
        Keys of ``data.SETS``.
    n_rows : int, default=5000
        How many test rows are answered at most, drawn with seed 0.
    models : Path, default=None
        A folder where fitted models are kept, and taken from if they are there.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        For each set a row of either model.
    """
    report, rows = report or Report("model_size"), []
    for name in sets:
        with TemporaryDirectory() as scratch:
            folder = (Path(scratch) if models is None else models) / name
            rows += _measure(name, data, folder, n_rows)
    report.table("OvALinearXC, float32, one thread, CPU time", rows, _COLUMNS)
    report.line()
    for big, small in zip(rows[::2], rows[1::2], strict=True):
        row, batch = (small[key] / big[key] for key in ("row_ms", "batch_ms"))
        report.line(
            f"{big['set']}: {big['mib'] / small['mib']:.1f} times smaller; a row takes "
            f"{row:.2f} of the time, many {batch:.2f}"
        )
    return rows


def _measure(name: str, data: Any, folder: Path, n_rows: int) -> list[dict[str, Any]]:
    """Return the rows of a set, with models in two folders inside of `folder`."""
    import sklearn_xc
    from sklearn_xc import OvALinearXC
    from sklearn_xc.metrics import precision_at_k
    from sklearn_xc.storage.tensors import read_arrays

    split = load_set(name, data)
    if not (folder / "float").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        fitted = fit_quietly(OvALinearXC(n_jobs=1), split.X_train, split.Y_train)
        fitted.save(folder / "float")
    sklearn_xc.load(folder / "float").compact().save(folder / "compact")
    n_test = split.X_test.shape[0]
    some = np.sort(np.random.default_rng(0).permutation(n_test)[:n_rows])
    X, Y = sp.csr_matrix(split.X_test[some]), split.Y_test[some]
    sp.save_npz(folder / "rows.npz", X)
    opened = {kind: sklearn_xc.load(folder / kind) for kind in _KINDS}
    single = [X[[i]] for i in range(min(_SINGLE, X.shape[0]))]
    answers = {kind: model.predict_topk(X, max(_KS)) for kind, model in opened.items()}
    of_rows: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    of_batch: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for _ in range(_REPEATS):
        for kind, model in opened.items():
            of_batch[kind].append(cpu_seconds(model.predict_topk, X, max(_KS))[1])
            of_rows[kind].append(cpu_seconds(_one_by_one, model, single)[1])
    n_weights = sklearn_xc.load(folder / "float").coef_.nnz
    rows = []
    for kind in _KINDS:
        size = sum(path.stat().st_size for path in (folder / kind).iterdir())
        (path,) = (folder / kind).glob("arrays-*.safetensors")
        arrays, _ = read_arrays(path)
        of_weights = sum(a.nbytes for key, a in arrays.items() if key.startswith("_weights."))
        row = {
            "set": name, "model": kind, "n_labels": Y.shape[1], "mib": size / 2**20,
            "weight_bytes": of_weights / n_weights,
            "row_ms": 1e3 * float(np.median(of_rows[kind])) / len(single),
            "batch_ms": 1e3 * float(np.median(of_batch[kind])) / X.shape[0],
            "process_mib": _process_mib(folder, kind),
        }  # fmt: skip
        labels = answers[kind][0]
        rows.append(row | {f"p{k}": precision_at_k(Y, labels, k=k) for k in _KS})
    return rows


def _one_by_one(model: Any, rows: Sequence[Any]) -> None:
    for row in rows:
        model.predict_topk(row, max(_KS))


def _process_mib(folder: Path, kind: str) -> float:
    """Return what a fresh process grows by that opens a model and answers all rows."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.SimpleQueue()
    process = spawn.Process(target=_grow, args=(str(folder), kind, answers))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"the process that opened {folder / kind} ended with an error")
    return answers.get() / 1024


def _grow(folder: str, kind: str, answers: Any) -> None:
    import sklearn_xc
    from sklearn_xc.datasets import make_xc_classification

    rows = sp.csr_array(sp.load_npz(Path(folder) / "rows.npz"))
    X, Y = make_xc_classification(n_samples=60, n_features=100, n_labels=300, random_state=0)
    toy = fit_quietly(sklearn_xc.OvALinearXC(tol=1.0, n_jobs=1), X, Y)
    for model in (toy, toy.compact()):
        model.predict_topk(X[:1])  # kernels are loaded, as in a process that has warmed up
    before = process_kib()["Pss"]
    model = sklearn_xc.load(Path(folder) / kind)
    for first in range(0, rows.shape[0], 256):
        model.predict_topk(rows[first : first + 256], max(_KS))
    answers.put(process_kib()["Pss"] - before)

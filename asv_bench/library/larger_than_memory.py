"""``OvALinearXC`` on an X in files, then with a model, ten times as large as ``max_memory``.

X is made in pieces and written to three files, which are mapped; a fresh process fits. Memory that
belongs to no file is bounded by ``RLIMIT_DATA`` to twice the budget above what the process had: had
it asked for X, the fit would have failed. A fit without a limit tells whether the bytes are equal.

Then X is small and the model large: it is fitted and saved by one process, and opened by another,
which answers; both are bounded likewise.
"""

import argparse
import resource
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.report import Column, Report
from asv_bench.library.large import in_fresh_process
from asv_bench.library.max_memory import CASES, MIB, Watch, give_back, resident

_COLUMNS = [
    Column("what", "what"),
    Column("x_mib", "X, MiB in files", ",.0f"),
    Column("budget_mib", "max_memory, MiB", ",.0f"),
    Column("anonymous_mib", "grown by, MiB", ",.0f"),
    Column("in_files_mib", "RSS of files, MiB", ",.0f"),
    Column("wall_s", "s", ",.0f"),
    Column("model", "SHA-256 of the weights"),
]
_COLUMNS_OF_MODEL = [
    Column("what", "what"),
    Column("model_mib", "model, MiB", ",.0f"),
    *_COLUMNS[2:-1],
    Column("model", "SHA-256"),
]
#: Rows that are made at a time.
_PIECE = 4_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--budget", type=float, default=32, help="max_memory in MiB (32)")
    parser.add_argument("--times", type=float, default=10, help="size of X in budgets (10)")
    parser.add_argument("--labels", type=int, default=16, help="16")
    parser.add_argument("--features", type=int, default=20_000, help="of the large X (20,000)")
    parser.add_argument("--per-row", type=int, default=2_000, help="non-zeros of a row (2,000)")
    parser.add_argument("--parts", nargs="+", choices=("x", "model"), default=("x", "model"))
    parser.add_argument("--model-budget", type=float, default=40, help="max_memory in MiB (40)")
    parser.add_argument("--model-labels", type=int, default=60_000, help="60,000")


def main(
    data: Any = None, *, budget: float = 32, times: float = 10, labels: int = 16,
    parts: Sequence[str] = ("x", "model"), model_budget: float = 40, model_labels: int = 60_000,
    features: int = 20_000, per_row: int = 2_000, report: Report | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Fit within a budget, and without one.

    Parameters
    ----------
    data : object, default=None
        Not used.
    budget : float
        ``max_memory`` in MiB, of the large X.
    times : float
        Size of X in budgets.
    labels, features, per_row : int
        Of the made data; non-zeros of each row.
    parts : sequence of {"x", "model"}
        What is to be large.
    model_budget : float
        ``max_memory`` in MiB, of the large model.
    model_labels : int
        Its labels.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each fit, and for the answers of a large model.
    """
    report, rows = report or Report("larger_than_memory"), list[dict[str, Any]]()
    if "x" in parts:
        n_rows = int(times * budget * MIB / (8 * per_row))
        with TemporaryDirectory() as name:
            folder = Path(name)
            write_rows(folder, n_rows, features, per_row, labels)
            rows += [
                {"what": what, **in_fresh_process(measure_fit, folder, features, labels, allowed)}
                for what, allowed in (("fit", budget), ("fit without a limit", None))
            ]
        report.table(f"{n_rows:,} rows of {per_row:,} non-zeros, {labels} labels", rows, _COLUMNS)
    if "model" in parts:
        of_model = list[dict[str, Any]]()
        with TemporaryDirectory() as name:
            folder = Path(name)
            for allowed in (model_budget, None):
                path, limit = folder / "model", "" if allowed else " without a limit"
                for what, work in (("fit, save", measure_save), ("open, answer", measure_answers)):
                    found = in_fresh_process(work, path, model_labels, allowed)
                    of_model.append({"what": what + limit, **found})
        report.table(f"{model_labels:,} labels of two rows each", of_model, _COLUMNS_OF_MODEL)
        rows += of_model
    for row in rows:
        if row.get("error"):
            report.line(f"{row['what']}: {row['error']}")
    return rows


def write_rows(folder: Path, n: int, d: int, per_row: int, n_labels: int) -> None:
    """Write X as CSR, and the label of every tenth row; labels have words of their own."""
    rng = np.random.default_rng(0)
    shape = (n * per_row,)
    indices = np.lib.format.open_memmap(folder / "indices.npy", "w+", np.int32, shape)
    values = np.lib.format.open_memmap(folder / "data.npy", "w+", np.float32, shape)
    y = rng.integers(0, n_labels, n)
    widths = 2 * (d - per_row) // per_row
    for first in range(0, n, _PIECE):
        size = min(_PIECE, n - first)
        steps = rng.integers(1, max(2, widths), (size, per_row))
        columns = np.minimum(np.cumsum(steps, axis=1), d - per_row + np.arange(per_row))
        columns[:, 0] = 0
        size_values = rng.random((size, per_row), np.float32) / np.float32(per_row**0.5)
        own = columns % n_labels == y[first : first + size, None]
        entries = slice(first * per_row, (first + size) * per_row)
        indices[entries] = columns.ravel()
        values[entries] = np.where(own, 5 * size_values, size_values).ravel()
    np.save(folder / "indptr.npy", np.arange(n + 1) * per_row)
    np.save(folder / "y.npy", y)


def measure_fit(folder: Path, d: int, n_labels: int, budget: float | None) -> dict[str, Any]:
    """Fit in this process, which should be a fresh one."""
    from sklearn_xc import OvALinearXC

    X, y = _rows(folder, d)
    n = len(y)
    rows = np.arange(0, n, 10)
    Y = sp.csr_array((np.ones(len(rows), np.int8), (rows, y[rows])), shape=(n, n_labels))
    with _bounded(budget) as found:
        model = OvALinearXC(max_memory=_bytes_of(budget), n_jobs=1).fit(X, Y)
    weights = model.coef_.data, model.coef_.indices, model.coef_.indptr, model.intercept_
    return {"x_mib": (X.data.nbytes + X.indices.nbytes) / MIB, "model": _digest(weights), **found}


def measure_save(path: Path, n_labels: int, budget: float | None) -> dict[str, Any]:
    """Fit a model of some hundred weights a label, and save it."""
    from sklearn_xc import OvALinearXC

    X, Y = _many_weights(n_labels)
    with _bounded(budget) as found:
        model = OvALinearXC(C=5, tol=1, max_memory=_bytes_of(budget), n_jobs=1).fit(X, Y)
        model.save(path)
    weights = model.coef_.data, model.coef_.indices, model.coef_.indptr, model.intercept_
    size = sum(one.stat().st_size for one in path.iterdir())
    return {"model_mib": size / MIB, "model": _digest(weights), **found}


def measure_answers(path: Path, n_labels: int, budget: float | None) -> dict[str, Any]:
    """Open a saved model, and find the best labels of rows."""
    from sklearn_xc import load

    X, _ = _many_weights(n_labels)
    with _bounded(budget) as found:
        answers = load(path).predict_topk(X, k=5)
    return {"model": _digest(answers), **found}


def _many_weights(n_labels: int) -> tuple[Any, Any]:
    """Return 4,000 rows of 400 of 20,000 features, and labels that have two rows each."""
    rng = np.random.default_rng(0)
    n, d, per_row = 4_000, 20_000, 400
    features = np.sort(rng.integers(0, d, (n, per_row)), axis=1).astype(np.int32)
    values = rng.random(n * per_row, np.float32) / np.float32(per_row**0.5)
    X = sp.csr_array((values, features.ravel(), np.arange(n + 1) * per_row), shape=(n, d))
    X.sum_duplicates()
    rows, labels = rng.integers(0, n, 2 * n_labels), np.repeat(np.arange(n_labels), 2)
    Y = sp.csr_array((np.ones(2 * n_labels), (rows, labels)), shape=(n, n_labels))
    return X, (Y != 0).astype(np.int8)


def _rows(folder: Path, d: int) -> tuple[Any, np.ndarray]:
    arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices")]
    indptr, y = np.load(folder / "indptr.npy"), np.load(folder / "y.npy")
    X = sp.csr_array((len(y), d), dtype=np.float32)
    X.data, X.indices, X.indptr = *arrays, indptr  # scipy's constructor would copy to int64
    return X, y


def _bytes_of(budget: float | None) -> int | None:
    return None if budget is None else int(budget * MIB)


@contextmanager
def _bounded(budget: float | None) -> Iterator[dict[str, Any]]:
    """Bound what is allocated inside to twice a budget; what is yielded tells of it afterwards."""
    found: dict[str, Any] = {"budget_mib": np.nan if budget is None else budget}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        toy = CASES["OvALinearXC"]
        toy.make(None).fit(*toy.data(toy=True))
        give_back()
        before = resident()
        if budget is not None:
            held = int(Path("/proc/self/statm").read_text().split()[5]) * 4096
            resource.setrlimit(resource.RLIMIT_DATA, (int(held + 2 * budget * MIB),) * 2)
        began = perf_counter()
        with Watch() as watch:
            yield found
    found |= {
        "anonymous_mib": (watch.anonymous - before["RssAnon"]) / MIB,
        "in_files_mib": (watch.in_files - before["RssFile"]) / MIB,
        "wall_s": perf_counter() - began,
    }


def _digest(arrays: Iterable[np.ndarray]) -> str:
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).view(np.uint8))
    return found.hexdigest()[:16]

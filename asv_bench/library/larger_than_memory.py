"""``OvALinearXC`` on an X in files, ten times as large as ``max_memory``.

X is made in pieces and written to three files, which are mapped; a fresh process fits. Memory that
belongs to no file is bounded by ``RLIMIT_DATA`` to twice the budget above what the process had: had
it asked for X, the fit would have failed. A fit without a limit tells whether the bytes are equal.
"""

import argparse
import resource
import warnings
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
    Column("what", "fit"),
    Column("x_mib", "X, MiB in files", ",.0f"),
    Column("budget_mib", "max_memory, MiB", ",.0f"),
    Column("anonymous_mib", "grown by, MiB", ",.0f"),
    Column("in_files_mib", "RSS of files, MiB", ",.0f"),
    Column("wall_s", "s", ",.0f"),
    Column("model", "SHA-256 of the weights"),
]
#: Rows that are made at a time.
_PIECE = 4_000


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--budget", type=float, default=160, help="max_memory in MiB (160)")
    parser.add_argument("--times", type=float, default=10, help="size of X in budgets (10)")
    parser.add_argument("--labels", type=int, default=64, help="64")


def main(
    data: Any = None, *, budget: float = 160, times: float = 10, labels: int = 64,
    features: int = 50_000, per_row: int = 1_000, report: Report | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Fit within a budget, and without one.

    Parameters
    ----------
    data : object, default=None
        Not used.
    budget : float
        ``max_memory`` in MiB.
    times : float
        Size of X in budgets.
    labels, features, per_row : int
        Of the made data; non-zeros of each row.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each fit.
    """
    report = report or Report("larger_than_memory")
    n_rows = int(times * budget * MIB / (8 * per_row))
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, n_rows, features, per_row, labels)
        rows = [
            {"what": what, **in_fresh_process(measure_fit, folder, features, labels, allowed)}
            for what, allowed in (("within", budget), ("without a limit", None))
        ]
    report.table(f"{n_rows:,} rows of {per_row:,} non-zeros, {labels} labels", rows, _COLUMNS)
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

    arrays = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices")]
    indptr, y = np.load(folder / "indptr.npy"), np.load(folder / "y.npy")
    n = len(y)
    X = sp.csr_array((n, d), dtype=np.float32)
    X.data, X.indices, X.indptr = *arrays, indptr  # scipy's constructor would copy to int64
    rows = np.arange(0, n, 10)
    Y = sp.csr_array((np.ones(len(rows), np.int8), (rows, y[rows])), shape=(n, n_labels))
    allowed = None if budget is None else int(budget * MIB)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        toy = CASES["OvALinearXC"]
        toy.make(None).fit(*toy.data(toy=True))
        give_back()
        before = resident()
        if allowed is not None:
            held = int(Path("/proc/self/statm").read_text().split()[5]) * 4096
            resource.setrlimit(resource.RLIMIT_DATA, (held + 2 * allowed,) * 2)
        began = perf_counter()
        with Watch() as watch:
            model = OvALinearXC(max_memory=allowed, n_jobs=1).fit(X, Y)
    digest = sha256()
    for array in (model.coef_.data, model.coef_.indices, model.coef_.indptr, model.intercept_):
        digest.update(np.ascontiguousarray(array).view(np.uint8))
    return {
        "x_mib": sum(array.nbytes for array in arrays) / MIB,
        "budget_mib": np.nan if budget is None else budget,
        "anonymous_mib": (watch.anonymous - before["RssAnon"]) / MIB,
        "in_files_mib": (watch.in_files - before["RssFile"]) / MIB,
        "wall_s": perf_counter() - began, "model": digest.hexdigest()[:16],
    }  # fmt: skip

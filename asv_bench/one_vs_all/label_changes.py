"""Slices of the labels in processes of their own, merged; and labels that are added to a model.

Each slice is fitted by a process, one after the other, with `label_range`, and saved; the merged
model is compared with that of a single fit, byte for byte. Then a model of all labels but some
learns these by ``add_labels``, beside a fit of these alone, and of all.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import load_set
from asv_bench.common.measure import cpu_seconds, fit_quietly, quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc.linear import merge, plan_label_ranges

_COLUMNS = [
    Column("set", "set"),
    Column("what", "what"),
    Column("n_labels", "labels", ","),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("same", "same bytes as one fit"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", default=("gutenberg_subjects",), metavar="SET")
    parser.add_argument("--slices", type=int, default=4, help="processes (4)")
    parser.add_argument("--added", type=int, default=100, help="labels to add (100)")
    parser.add_argument("--rows", type=int, default=None, help="first training rows (all)")


def main(
    data: Any = None,
    *,
    sets: Sequence[str] = ("gutenberg_subjects",),
    slices: int = 4,
    added: int = 100,
    rows: int | None = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Cut labels, put them together, and add some.

    Parameters
    ----------
    data : path-like
        Folder of the data sets.
    sets : sequence of str
    slices : int
        How many processes.
    added : int
        Labels to add, drawn at random.
    rows : int, default=None
        Of each set; None takes all.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        A row for each fit.
    """
    report, found = report or Report("label_changes"), []
    for name in sets:
        with tempfile.TemporaryDirectory() as folder:
            for row in _of_set(name, data, Path(folder), slices, added, rows):
                found.append({"set": name, **row})
                report.line(f"{name}, {row['what']}: {row['cpu_s']:.1f} CPU s")
    report.table("Slices of labels, and labels that are added", found, _COLUMNS)
    return found


def _of_set(
    name: str, data: Any, folder: Path, slices: int, added: int, rows: int | None
) -> list[dict[str, Any]]:
    split = load_set(name, data)
    X, Y = sp.csr_array(split.X_train)[:rows], sp.csc_array(split.Y_train)[:rows]
    warm_up(OvALinearXC(), X, Y)
    n_labels = Y.shape[1]
    whole, seconds = cpu_seconds(fit_quietly, OvALinearXC(), X, Y)
    found = [{"what": "one fit", "n_labels": n_labels, "cpu_s": seconds}]
    for part in ("data", "indices", "indptr"):
        np.save(folder / f"{part}.npy", getattr(X, part))
        np.save(folder / f"y_{part}.npy", getattr(Y, part))
    ranges, context = plan_label_ranges(X, Y, slices), multiprocessing.get_context("spawn")
    for number, of_labels in enumerate(ranges):
        with context.Pool(1) as pool:
            spent = pool.apply(_fit_slice, (str(folder), X.shape, Y.shape, of_labels, number))
        found.append(
            {"what": f"slice {number}", "n_labels": of_labels[1] - of_labels[0], "cpu_s": spent}
        )
    merged, spent = cpu_seconds(merge, [folder / f"slice {i}" for i in range(slices)])
    found.append(
        {"what": "merge", "n_labels": n_labels, "cpu_s": spent, "same": _is_same(merged, whole)}
    )
    last = np.sort(np.random.default_rng(0).permutation(n_labels)[:added])
    first = np.setdiff1d(np.arange(n_labels), last)
    model = fit_quietly(OvALinearXC(), X, Y[:, first])
    _, spent = cpu_seconds(quietly, model.add_labels, X, Y[:, last])
    same = _is_same(model.reorder_labels(np.argsort(np.concatenate((first, last)))), whole)
    found.append({"what": "add_labels", "n_labels": added, "cpu_s": spent, "same": same})
    _, spent = cpu_seconds(fit_quietly, OvALinearXC(), X, Y[:, last])
    found.append({"what": "a fit of these alone", "n_labels": added, "cpu_s": spent})
    return found


def _fit_slice(
    folder: str, x_shape: tuple, y_shape: tuple, of_labels: tuple[int, int], number: int
) -> float:
    """Fit and save a slice, in a process of its own; return the CPU seconds of the fit."""

    def held(name: str, prefix: str = "") -> Any:
        return np.load(Path(folder, f"{prefix}{name}.npy"))

    parts = "data", "indices", "indptr"
    X = sp.csr_array(tuple(held(part) for part in parts), shape=x_shape)
    Y = sp.csc_array(tuple(held(part, "y_") for part in parts), shape=y_shape)
    began = time.process_time()
    model = fit_quietly(OvALinearXC(label_range=of_labels), X, Y)
    spent = time.process_time() - began
    model.save(Path(folder, f"slice {number}"))
    return spent


def _is_same(a: Any, b: Any) -> str:
    arrays = [
        (x.coef_.indptr, x.coef_.indices, x.coef_.data, x.intercept_, x.label_counts_)
        for x in (a, b)
    ]
    same = all(np.array_equal(x, y) for x, y in zip(*arrays, strict=True))
    return "yes" if same else "no"

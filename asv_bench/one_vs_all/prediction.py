"""Speed of exact top-k prediction.

Trains OvALinearXC with its defaults on some rows, float32, and predicts others, one thread:

* predict_topk on one prepared CSR row at a time, checks included, and on all rows at once
* sparse_dot_topn, if it is installed, on the same matrices, intercepts as a constant feature
* the product of scipy, made dense, with argpartition and a sort of the k best

A system's recall is the share of its scores that reach the k-th best: labels that tie count alike.
"""

import argparse
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import SETS, SplitSet, load_set
from asv_bench.common.measure import fit_quietly, warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC

#: Rows that scipy multiplies at a time: their scores are dense.
_PIECE = 250
#: How far two systems' sums of the same products may differ, relative to the largest score.
_ROUNDING = 1e-5

_COLUMNS = [
    Column("set", "set"),
    Column("k", "k"),
    Column("system", "system"),
    Column("at_once", "rows at once", ","),
    Column("rows_per_s", "rows/s", ",.0f"),
    Column("ms_median", "ms/row median", ".3f"),
    Column("ms_p99", "ms/row p99", ".3f"),
    Column("recall", "recall", ".1%"),
    Column("exact", "known exact", ".1%"),
    Column("ratio", "speed to scipy", ".2f"),
]

_Prepare = Callable[[Any], Any]
_Predict = Callable[[Any], tuple[np.ndarray, np.ndarray]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=("tate",))
    parser.add_argument("--ks", nargs="+", type=int, default=(1, 5, 100), metavar="K")
    parser.add_argument(
        "--n-train-rows", type=int, default=20_000, metavar="N", help="rows to train on (20000)"
    )
    parser.add_argument(
        "--n-rows", type=int, default=1_000, metavar="N", help="rows to predict (1000)"
    )
    parser.add_argument("--prune", type=float, default=0.01, help="weights to drop (0.01)")


def main(
    data: Any,
    *,
    sets: Sequence[str] = ("tate",),
    ks: Sequence[int] = (1, 5, 100),
    n_train_rows: int = 20_000,
    n_rows: int = 1_000,
    prune: float = 0.01,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure prediction.

    Parameters
    ----------
    data : path-like or None
        Folder of the data sets.
    sets : sequence of str, default=("tate",)
        Keys of ``data.SETS``.
    ks : sequence of int, default=(1, 5, 100)
        How many labels to find; no more than the set has.
    n_train_rows, n_rows : int
        How many training rows to fit and test rows to predict at most, drawn with seed 0.
    prune : float, default=0.01
        Of OvALinearXC: the smaller, the more weights.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        One row per set, k, system, and way to hand over the rows. ``ms_median`` and ``ms_p99`` are
        of single rows; ``ratio`` is the speed relative to scipy with as many rows at once.
    """
    report = report or Report("prediction")
    rows, notes = [], []
    for name in sets:
        split = load_set(name, data, dtype=np.float32)
        model, began = OvALinearXC(C=1.0, prune=prune, n_jobs=1), perf_counter()
        X, Y = split.X_train, split.Y_train
        kept = _draw(X.shape[0], n_train_rows)
        warm_up(model, X[kept], Y[kept])
        fit_quietly(model, X[kept], Y[kept])
        seconds = perf_counter() - began
        X = sp.csr_matrix(split.X_test[_draw(split.X_test.shape[0], n_rows)])
        n_labels = model.coef_.shape[0]
        for k in sorted({min(k, n_labels) for k in ks}):
            rows += _measure_systems(split, model, X, k)
        notes.append(
            f"{name}: {n_labels:,} labels, {model.coef_.nnz / n_labels:,.0f} weights per label "
            f"(prune={prune:g}), trained on {len(kept):,} rows in {seconds:.0f} s; "
            f"{X.nnz / X.shape[0]:.1f} non-zeros per predicted row"
        )
    report.table(
        "Top-k prediction, float32, one thread (goal: ours at least 5 times scipy and as fast as "
        "sparse_dot_topn)",
        rows,
        _COLUMNS,
    )
    report.line()
    for note in notes:
        report.line(note)
    return rows


def _draw(n: int, n_drawn: int) -> np.ndarray:
    return np.sort(np.random.default_rng(0).permutation(n)[:n_drawn])


def _measure_systems(split: SplitSet, model: OvALinearXC, X: Any, k: int) -> list[dict[str, Any]]:
    kth = model.predict_topk(X, k)[1][:, -1:]
    kth = kth - _ROUNDING * np.abs(kth).max()
    singles = [X[[i]] for i in range(X.shape[0])]
    rows: list[dict[str, Any]] = []

    def add(system: str, at_once: int, seconds: np.ndarray, scores: np.ndarray) -> None:
        row = {
            "set": split.name,
            "k": k,
            "system": system,
            "at_once": at_once,
            "rows_per_s": X.shape[0] / float(seconds.sum()),
            "recall": float((scores >= kth).mean()),
        }
        if at_once == 1:
            row["ms_median"], row["ms_p99"] = 1000 * np.quantile(seconds, [0.5, 0.99])
        rows.append(row)

    for system, prepare, predict in _systems(model, k):
        prepared = [prepare(row) for row in singles]
        predict(prepared[0])
        seconds, answers = _time_each(predict, prepared)
        add(system, 1, seconds, np.concatenate([scores for _, scores in answers]))
        batch = [_time_each(predict, [prepare(X)]) for _ in range(3)]
        seconds, [(_, scores)] = min(batch, key=lambda each: each[0].sum())
        add(system, X.shape[0], seconds, scores)
    for row in rows:
        base = next(r for r in rows if (r["system"], r["at_once"]) == (_SCIPY, row["at_once"]))
        row["ratio"] = row["rows_per_s"] / base["rows_per_s"]
    return rows


def _time_each(predict: Any, pieces: Sequence[Any]) -> tuple[np.ndarray, list[Any]]:
    """Return the seconds of each call, and what they returned."""
    seconds, answers = np.empty(len(pieces)), []
    for i, piece in enumerate(pieces):
        began = perf_counter()
        answer = predict(piece)
        seconds[i] = perf_counter() - began
        answers.append(answer)
    return seconds, answers


_SCIPY = "scipy + argpartition"


def _systems(model: OvALinearXC, k: int) -> Iterator[tuple[str, _Prepare, _Predict]]:
    """Yield the name of each system, a function that brings rows into its form, and prediction."""
    coef, intercept = model.coef_, model.intercept_
    yield "predict_topk", lambda X: X, lambda X: model.predict_topk(X, k)
    if importlib.util.find_spec("sparse_dot_topn") is not None:
        yield "sparse_dot_topn", _append_ones, _sparse_dot_topn(coef, intercept, k)
    transposed = coef.T.tocsr()
    yield _SCIPY, lambda X: X, lambda X: _scipy_topk(X, transposed, intercept, k)


def _append_ones(X: Any) -> Any:
    return sp.csr_matrix(sp.hstack([X, np.ones((X.shape[0], 1), X.dtype)], format="csr"))


def _sparse_dot_topn(coef: Any, intercept: np.ndarray, k: int) -> _Predict:
    multiply = importlib.import_module("sparse_dot_topn").sp_matmul_topn
    # Also intercepts of zero are entries, so that every label has a score.
    places = np.arange(len(intercept)), np.zeros(len(intercept), np.int64)
    column = sp.csr_array((intercept, places), shape=(len(intercept), 1))
    by_feature = sp.csr_matrix(sp.hstack([coef, column], format="csr").T.tocsr())
    for name in ("indptr", "indices"):  # wider ones are copied in each call
        setattr(by_feature, name, getattr(by_feature, name).astype(np.int32))
    lowest = float(np.finfo(coef.dtype).min)  # without a threshold it drops negative scores

    def predict(X: Any) -> tuple[np.ndarray, np.ndarray]:
        found = multiply(X, by_feature, top_n=k, threshold=lowest, sort=True, n_threads=1)
        return found.indices.reshape(-1, k), found.data.reshape(-1, k)

    return predict


def _scipy_topk(
    X: Any, transposed: Any, intercept: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    parts = []
    for first in range(0, X.shape[0], _PIECE):
        scores = (X[first : first + _PIECE] @ transposed).toarray()
        scores += intercept
        labels = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        best = np.take_along_axis(scores, labels, axis=1)
        order = np.argsort(-best, axis=1)
        parts.append(
            (np.take_along_axis(labels, order, axis=1), np.take_along_axis(best, order, axis=1))
        )
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

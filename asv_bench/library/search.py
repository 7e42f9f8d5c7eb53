"""Search indexes beside each other: recall@10, time of a query and of a build, by labels.

Made rows are unit vectors around sqrt(labels) directions, scaled by lengths that vary as those of
trained weights do, and queries lie near rows. Rows of a data set are the weights of labels
with training instances, and queries its test instances, of a fitted ``DecompMIPSClassifier`` and
of an ``NGAMEEmbeddingXC``. All candidates are scored exactly, and that counts; one thread, CPU
time, the median of three runs.
"""

import argparse
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from asv_bench.common.measure import quietly
from asv_bench.common.report import Report
from asv_bench.common.sets import SETS, SIZES, load
from sklearn_xc import DecompMIPSClassifier, NGAMEEmbeddingXC
from sklearn_xc.search import INDEXES, Candidates, ExactIndex, make_index
from sklearn_xc.search.kernels.candidates import rank_labels

_N_QUERIES, _K, _RUNS = 512, 10, 3
#: Labels that are searched for, until recall is above the last.
_CANDIDATES, _ENOUGH = (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120), 0.995


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--labels", nargs="+", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=[], metavar="SET")
    parser.add_argument("--size", choices=SIZES, default="all", help="share of the training rows")
    parser.add_argument("--indexes", nargs="+", choices=INDEXES, default=["spherical", "product"])


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Return a row for each source of vectors, index and number of candidates."""
    rows = []
    for name, W, V in _sources(options):
        exact = ExactIndex()
        exact.build(W)
        best = exact.query(V, _K).labels
        common = {"vectors": name, "labels": len(W), "dim": W.shape[1]}
        rows.append(common | {"index": "exact", "recall@10": 1.0, "us": _us(exact, W, V, _K)})
        for kind in options.indexes:
            index = make_index(kind)
            index.build(W[:2000])
            index.query(V[:4], _K)
            began = process_time()
            index.build(W)
            built = process_time() - began
            for n in (n for n in _CANDIDATES if n < len(W)):
                found = index.query(V, n).labels
                recall = float(np.mean([np.isin(*p).mean() for p in zip(best, found, strict=True)]))
                row = {"index": kind, "build s": built, "candidates": n, "recall@10": recall}
                rows.append(common | row | {"us": _us(index, W, V, n)})
                if recall > _ENOUGH:
                    break
    report.table("Search", rows)
    return rows


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield names, rows and queries."""
    for n_labels in options.labels:
        rng = np.random.default_rng(0)
        centres = rng.standard_normal((round(n_labels**0.5), options.dim))
        W = centres[rng.integers(len(centres), size=n_labels)]
        W = _unit(_unit(W) + 0.8 * _unit(rng.standard_normal(W.shape)))
        W *= rng.lognormal(0.0, 0.2, (n_labels, 1))
        V = W[rng.integers(n_labels, size=_N_QUERIES)]
        V = _unit(_unit(V) + 0.6 * _unit(rng.standard_normal(V.shape)))
        yield "made", W.astype(np.float32), V.astype(np.float32)
    for name in options.sets:
        found = load(name, options.data, options.size, cache=options.cache)
        for model in (DecompMIPSClassifier(max_iter=5), NGAMEEmbeddingXC(fusion="sum")):
            quietly(model.set_params(random_state=0, n_jobs=1).fit, found.X_train, found.Y_train)
            W = model.coef_[found.Y_train.sum(axis=0) > 0]
            V = np.ascontiguousarray(model.embed(found.X_test[:_N_QUERIES]), W.dtype)
            yield f"{name}, {type(model).__name__}", W, V


def _us(index: Any, W: np.ndarray, V: np.ndarray, n: int) -> float:
    """Return the CPU microseconds of a query, exact scores of what it finds included."""
    seconds = []
    for _ in range(_RUNS):
        began = process_time()
        found = index.query(V, n)
        if not index.has_exact_scores:
            chosen = np.empty(0, W.dtype), found.labels, found.counts
            rank_labels(W, 0, V, 0, *chosen, *Candidates.empty(len(V), _K, W.dtype))
        seconds.append(process_time() - began)
    return 1e6 * float(np.median(seconds)) / len(V)


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)

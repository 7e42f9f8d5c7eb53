"""Time and recall of the search for shortlists by index, for the NGAME experiment."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from sklearn_xc.embedding._shortlist import ShortlistIndex
from sklearn_xc.parallel.row_ranges import one_blas_thread

INDEXES = ("exact", "product", "spherical")
#: Numbers of labels, and dimensions of embeddings.
LABELS, DIMS = (5_000, 20_000, 80_000), (64, 256)
#: Labels of a topic, queries, labels of a shortlist, and the best that should be among them.
_OF_TOPIC, _QUERIES, _LISTED, _BEST = 50, 2_048, 100, 10
#: Searches that are timed; the fastest counts.
_ROUNDS = 3

_COLUMNS = [
    Column("labels", "labels", ","),
    Column("dim", "dim"),
    Column("index", "index"),
    Column("us", "us/row", ",.0f"),
    Column("us_alone", "us, a row alone", ",.0f"),
    Column("recall", f"recall@{_BEST}", ".3f"),
    Column("build_s", "build, s", ".2f"),
]


def made_vectors(n_labels: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of labels in topics, and of instances near a label each, float32.

    Cosines are about 0.5 between labels of a topic, and 0.8 between an instance and its label.

    Returns
    -------
    W : ndarray of shape (n_labels, dim)
    V : ndarray of shape (2048, dim)
    """
    rng = np.random.default_rng(seed)

    def on_sphere(values: np.ndarray) -> np.ndarray:
        return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)

    topics = on_sphere(rng.normal(size=(-(-n_labels // _OF_TOPIC), dim)))
    own = on_sphere(rng.normal(size=(n_labels, dim)))
    W = on_sphere(topics[rng.integers(len(topics), size=n_labels)] + own)
    noise = on_sphere(rng.normal(size=(_QUERIES, dim)))
    return W, on_sphere(W[rng.integers(n_labels, size=_QUERIES)] + 0.75 * noise)


def measure_shortlist(
    labels: Sequence[int], dims: Sequence[int], seed: int, report: Report
) -> list[dict[str, Any]]:
    """Measure the search for the 100 best classifiers of made vectors, on one thread."""
    rows: list[dict[str, Any]] = []
    none = np.empty(0, np.int64)
    with one_blas_thread():
        for name in INDEXES:  # compiled
            W, V = made_vectors(500, 16, seed)
            ShortlistIndex.built(W, none, name, 1, seed).query(V, _LISTED)
        for dim in dims:
            for n_labels in labels:
                W, V = made_vectors(n_labels, dim, seed)
                best: Any = None
                for name in INDEXES:
                    index, build_s = cpu_seconds(ShortlistIndex.built, W, none, name, 1, seed)
                    timed = [cpu_seconds(index.query, V, _LISTED) for _ in range(_ROUNDS)]
                    found = timed[0][0][0]
                    if best is None:  # of the exact one, best first
                        best = found[:, :_BEST]
                    hits = (best[:, :, None] == found[:, None, :]).any(axis=2)
                    _, alone_s = cpu_seconds(_one_by_one, index, V[:200])
                    rows.append(
                        {"part": "shortlist", "labels": n_labels, "dim": dim, "index": name,
                         "us": 1e6 * min(seconds for _, seconds in timed) / len(V),
                         "us_alone": 1e6 * alone_s / 200, "recall": float(hits.mean()),
                         "build_s": build_s}
                    )  # fmt: skip
    report.table(f"the {_LISTED} best classifiers of made vectors, by index", rows, _COLUMNS)
    report.line()
    report.line(
        f"us/row: CPU microseconds of a row among {_QUERIES:,}, on one thread; recall@{_BEST}: the "
        f"share of the {_BEST} best labels that are in the shortlist of {_LISTED}."
    )
    return rows


def _one_by_one(index: ShortlistIndex, V: np.ndarray) -> None:
    for i in range(len(V)):
        index.query(V[i : i + 1], _LISTED)

"""What a system returns: its predictions, and what training and predicting cost."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds
from asv_bench.peers.meter import Usage

#: How many labels are predicted for a row.
K = 5


@dataclass
class Outcome:
    """Of one system on one set.

    Attributes
    ----------
    usage : Usage or None
        What training took; None if nothing was trained.
    topk : ndarray of int64 of shape (n_test, K) or None
        Predicted labels, best first, -1 where there are fewer; None if nothing was predicted.
    predict_ms_per_row : float or None
        CPU milliseconds, all test rows in one call, the model being in memory.
    model_bytes : int or None
        Size of the model.
    model_in : {"memory", "files"} or None
        Where it has that size.
    n_threads : int
        Threads of the training.
    n_unsolved : int or None
        Labels whose solver stopped early; None where the system does not tell.
    remarks : list of str
        What a reader of the row must know.
    figures : dict of str to float
        Further figures.
    """

    usage: Usage | None = None
    topk: np.ndarray | None = None
    predict_ms_per_row: float | None = None
    model_bytes: int | None = None
    model_in: str | None = None
    n_threads: int = 1
    n_unsolved: int | None = None
    remarks: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


def timed_topk(predict: Callable[[Any], Any], X: Any) -> tuple[Any, float]:
    """Return what a system predicts for all rows of X, and CPU milliseconds per row.

    One row is predicted first, so that what is loaded or built on the first call does not count.
    """
    predict(X[:1])
    result, seconds = cpu_seconds(predict, X)
    return result, 1000 * seconds / X.shape[0]


def pad(ranked: Iterable[Iterable[int]]) -> np.ndarray:
    """Return lists of labels as an int64 array of K columns, filled up with -1."""
    lists = [list(labels)[:K] for labels in ranked]
    topk = np.full((len(lists), K), -1, dtype=np.int64)
    for row, labels in zip(topk, lists, strict=True):
        row[: len(labels)] = labels
    return topk


def rank(scores: Any) -> np.ndarray:
    """Return the K best labels of each row of a dense or sparse array of scores."""
    if isinstance(scores, np.ndarray):
        return pad(np.argsort(-scores, axis=1, kind="stable")[:, :K])
    rows = zip(
        np.split(scores.indices, scores.indptr[1:-1]),
        np.split(scores.data, scores.indptr[1:-1]),
        strict=True,
    )
    return pad(labels[np.argsort(-values, kind="stable")] for labels, values in rows)


def folder_bytes(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

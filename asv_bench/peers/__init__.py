"""Other libraries beside the package's estimators.

A peer is a module with ``run(known, n_jobs)``, which trains on a ``DataSet``, predicts its test
rows in this process and returns an :class:`Outcome`. PECOS needs an interpreter of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asv_bench.common.measure import Usage

#: Labels predicted for a row.
K = 5


@dataclass
class Outcome:
    """Predictions of a system, and what they cost.

    Attributes
    ----------
    usage : Usage
        Of the training.
    topk : ndarray of int64 of shape (n_test, K)
        Predicted labels, best first, -1 where there are fewer.
    ms_per_row : float
        CPU milliseconds, all test rows in one call, the model being in memory.
    model_bytes : int or None
        Size of the saved model.
    """

    usage: Usage
    topk: np.ndarray
    ms_per_row: float
    model_bytes: int | None = None


def pad(ranked: Iterable[Iterable[int]]) -> np.ndarray:
    """Return lists of labels as an int64 array of K columns, filled with -1."""
    lists = [list(labels)[:K] for labels in ranked]
    topk = np.full((len(lists), K), -1, dtype=np.int64)
    for row, labels in zip(topk, lists, strict=True):
        row[: len(labels)] = labels
    return topk


def folder_bytes(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

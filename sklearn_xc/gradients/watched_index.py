"""An index that is told of moves when they change what it finds."""

import copy

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.kernels.steps.row_moves import add_drift
from sklearn_xc.mips.protocol import MipsIndex
from sklearn_xc.mips.recall import search_recall

#: A row is indexed again when it has gone this share of the root mean square of rows' norms.
_DRIFT = 0.1


class WatchedIndex:
    """An index that is told of moved rows when that changes what it finds.

    One with exact scores is told of each move. Estimates are off by much more than a small move
    makes, so that an index of those is told of a row once it has gone a tenth of the length of
    rows.

    Parameters
    ----------
    index : MipsIndex
    """

    def __init__(self, index: MipsIndex) -> None:
        self.index, self._is_built = index, False

    def build(self, W: np.ndarray, first: int, last: int, seed: int) -> None:
        """Index some columns of W."""
        self._columns, self._is_built = (first, last), True
        self.index.build(W, first, last, seed)
        self._drift = np.zeros(len(W), np.float32)
        part = W[:, first:last]
        self._limit = _DRIFT * float(np.sqrt(np.einsum("ij,ij->", part, part) / len(W)))

    def following(self, W: np.ndarray) -> "WatchedIndex":
        """Return one that goes on from here with a copy of W."""
        if not self._is_built:
            return WatchedIndex(copy.deepcopy(self.index))
        other = WatchedIndex(self.index.following(W))
        other._drift, other._limit = self._drift.copy(), self._limit
        other._columns, other._is_built = self._columns, True
        return other

    def update(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Take notice that some rows of W have moved so far."""
        if self.index.has_exact_scores:
            self.index.update(rows)
            return
        due = np.empty_like(rows)
        n = add_drift(rows, lengths, self._drift, self._limit, due)
        self.index.update(due[:n])

    def recall(self, W: np.ndarray, V: np.ndarray, k: int, n_candidates: int) -> float:
        """Return `search_recall` within the columns."""
        first, last = self._columns
        part = read_only(np.ascontiguousarray(V[:, first:last]))
        return search_recall(self.index, W, first, last, part, k, n_candidates)

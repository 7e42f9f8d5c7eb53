"""An index from outside the package, whose answers are checked before kernels read them."""

from typing import Any

import numpy as np

from sklearn_xc.search.protocol import Candidates, MipsIndex


class CheckedIndex:
    """An index from outside the package; each of its answers is checked.

    Parameters
    ----------
    index : MipsIndex
    who : str
        How messages name the argument, such as "DecompMIPSClassifier: index".
    """

    def __init__(self, index: MipsIndex, who: str) -> None:
        self.index, self.who = index, who
        self.has_exact_scores = index.has_exact_scores

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Index some columns of W; see `MipsIndex.build`."""
        self._n_labels, self._dtype = len(W), W.dtype
        self.index.build(W, first, last, seed)

    def update(self, rows: np.ndarray) -> None:
        """Take notice of changed rows; see `MipsIndex.update`."""
        self.index.update(rows)

    def following(self, W: np.ndarray) -> "CheckedIndex":
        """Return an index that follows a copy of W; see `MipsIndex.following`."""
        other = CheckedIndex(self.index.following(W), self.who)
        other._n_labels, other._dtype = self._n_labels, self._dtype
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return what the index finds; see `MipsIndex.query`.

        Raises
        ------
        ValueError
            If that is not what `MipsIndex.query` describes.
        """
        who = f"{self.who}: {type(self.index).__name__}.query"
        found = self.index.query(V, n_candidates)
        return _checked(found, len(V), self._n_labels, n_candidates, self._dtype, who)

    def __repr__(self) -> str:
        return repr(self.index)


def _checked(
    found: Any, n: int, n_labels: int, n_candidates: int, dtype: np.dtype, who: str
) -> Candidates:
    """Return candidates in C order, or raise an error for what kernels could not read."""
    if not isinstance(found, Candidates):
        raise ValueError(
            f"{who} must return Candidates(labels, scores, counts) (see sklearn_xc.search). "
            f"Got {type(found).__name__}."
        )
    expected = {
        "labels": ((n, n_candidates), np.dtype(np.int32)),
        "scores": ((n, n_candidates), dtype),
        "counts": ((n,), np.dtype(np.int64)),
    }
    for (name, (shape, kind)), array in zip(expected.items(), found, strict=True):
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{who} must return {name} as an ndarray. Got {type(array).__name__}.")
        if array.shape != shape or array.dtype != kind:
            raise ValueError(
                f"{who} must return {name} of shape {shape} and dtype {kind}. "
                f"Got shape {array.shape} and dtype {array.dtype}."
            )
    labels, scores, counts = map(np.ascontiguousarray, found)
    wrong = (counts < 0) | (counts > n_candidates)
    if wrong.any():
        raise ValueError(
            f"{who} must return counts from 0 to {n_candidates}. Got {counts[wrong][0]}."
        )
    is_found = np.arange(n_candidates) < counts[:, None]
    wrong = is_found & ((labels < 0) | (labels >= n_labels))
    if wrong.any():
        raise ValueError(
            f"{who} must return labels from 0 to {n_labels - 1}. Got {labels[wrong][0]}."
        )
    wrong = ~is_found & (labels != -1)
    if wrong.any():
        raise ValueError(
            f"{who} must return labels that are -1 behind as many as counts tells. "
            f"Got {labels[wrong][0]}."
        )
    ranked = np.sort(labels, axis=1)
    wrong = (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)
    if wrong.any():
        raise ValueError(
            f"{who} must return distinct labels for each query. "
            f"Got {ranked[:, 1:][wrong][0]} more than once."
        )
    return Candidates(labels, scores, counts)

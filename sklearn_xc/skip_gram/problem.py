"""How often words have occurred with contexts, frozen for training."""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._row_pieces import row_pieces
from sklearn_xc.solvers.moving_rows import entry_places

#: What contexts that never occur count, where a logarithm is asked for.
_LEAST_COUNT = 1e-3


@dataclass(frozen=True)
class Cooccurrences:
    """Counts of words with contexts.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_words + 1,)
    contexts : ndarray of int32
        Of each word, rising.
    counts : ndarray of float
        Positive.
    of_words : ndarray of float64 of shape (n_words,)
        Their sums.
    of_contexts : ndarray of float64 of shape (n_contexts,)
        Likewise.
    """

    indptr: np.ndarray
    contexts: np.ndarray
    counts: np.ndarray
    of_words: np.ndarray
    of_contexts: np.ndarray

    @classmethod
    def of(
        cls, indptr: np.ndarray, contexts: np.ndarray, counts: np.ndarray, n_contexts: int
    ) -> "Cooccurrences":
        """Return those of a matrix in CSR form."""
        of_words, of_contexts = np.zeros(len(indptr) - 1), np.zeros(n_contexts)
        for first, last in row_pieces(indptr):
            bounds = indptr[first : last + 1]
            some = slice(bounds[0], bounds[-1])
            ends = np.concatenate(([0.0], np.cumsum(counts[some], dtype=np.float64)))
            of_words[first:last] = np.diff(ends[bounds - bounds[0]])
            of_contexts += np.bincount(
                contexts[some], weights=counts[some], minlength=n_contexts
            )  # fmt: skip
        return cls(indptr, contexts, counts, of_words, of_contexts)

    @property
    def n_contexts(self) -> int:
        """How many contexts there are."""
        return len(self.of_contexts)

    @property
    def log_shares(self) -> np.ndarray:
        """The logarithms of contexts' shares of all counts; of one in a thousand where none is."""
        return np.log(np.maximum(self.of_contexts, _LEAST_COUNT) / self.total)

    @property
    def total(self) -> float:
        """The sum of all counts."""
        return float(self.of_words.sum())

    def of_rows(
        self, words: np.ndarray, dtype: np.dtype
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ``indptr``, contexts, and the shares of these, of some words."""
        starts = self.indptr[words]
        lengths = self.indptr[words + 1] - starts
        at, bounds = entry_places(starts, lengths)
        shares = self.counts[at] / np.repeat(self.of_words[words], lengths)
        return bounds, self.contexts[at], shares.astype(dtype, copy=False)

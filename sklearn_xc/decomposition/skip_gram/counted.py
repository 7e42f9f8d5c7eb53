"""Counts of words with contexts, from sentences or a matrix."""

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import as_native
from sklearn_xc._input.data import as_csr_rows
from sklearn_xc._input.row_pieces import row_pieces
from sklearn_xc._input.sparse import check_sparse
from sklearn_xc._training.moving_rows import entry_places
from sklearn_xc.decomposition.skip_gram.cooccurrence import count_contexts
from sklearn_xc.decomposition.skip_gram.word_arrays import as_distinct_words, known_rows

#: Count of contexts that never occur, where a logarithm is taken.
_LEAST_COUNT = 1e-3


@dataclass(frozen=True)
class Cooccurrences:
    """Counts of words with contexts, in CSR form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_words + 1,)
    contexts : ndarray of int32
        Rising in each row.
    counts : ndarray of float
        Positive.
    of_words : ndarray of float64 of shape (n_words,)
        Row sums.
    of_contexts : ndarray of float64 of shape (n_contexts,)
        Column sums.
    """

    indptr: np.ndarray
    contexts: np.ndarray
    counts: np.ndarray
    of_words: np.ndarray
    of_contexts: np.ndarray

    @classmethod
    def of(cls, matrix: Any, who: str) -> "Cooccurrences":
        """Return the counts of a sparse matrix; ValueError if there are none."""
        indptr, contexts, counts = as_csr_rows(matrix).without_zeros().arrays
        of_words, of_contexts = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[1])
        for first, last in row_pieces(indptr):
            bounds = indptr[first : last + 1]
            some = slice(bounds[0], bounds[-1])
            ends = np.concatenate(([0.0], np.cumsum(counts[some], dtype=np.float64)))
            of_words[first:last] = np.diff(ends[bounds - bounds[0]])
            of_contexts += np.bincount(contexts[some], counts[some], len(of_contexts))
        if not of_words.sum() > 0:
            raise ValueError(
                f"{who}: X must hold a pair of words that are near each other. Got none: lower "
                "min_count, or set subsample=None."
            )
        return cls(indptr, contexts, counts, of_words, of_contexts)

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return len(self.of_contexts)

    @property
    def log_shares(self) -> np.ndarray:
        """Logarithms of the contexts' shares of all counts; of 1e-3 for contexts without any."""
        return np.log(np.maximum(self.of_contexts, _LEAST_COUNT) / self.total)

    @property
    def total(self) -> float:
        """Sum of all counts."""
        return float(self.of_words.sum())

    def of_rows(self, words: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, ...]:
        """Return row pointers, contexts, and the contexts' shares of the counts, of some words."""
        starts = self.indptr[words]
        lengths = self.indptr[words + 1] - starts
        at, bounds = entry_places(starts, lengths)
        shares = self.counts[at] / np.repeat(self.of_words[words], lengths)
        return bounds, self.contexts[at], shares.astype(dtype, copy=False)


@dataclass(frozen=True)
class Counted:
    """Names of words and contexts, occurrences of the words, and the counts of pairs."""

    words: np.ndarray
    contexts: np.ndarray
    word_counts: np.ndarray
    counts: Cooccurrences


def read_counts(
    model: Any, X: Any, words: Any, contexts: Any, seed: int, allowed: int | None
) -> Counted:
    """Return the counts of sentences, or of a matrix, by the parameters of an estimator.

    Raises
    ------
    ValueError, TypeError
        For an X that is neither, has no pairs, or does not go with the names.
    """
    who = type(model).__name__
    if _is_matrix(X):
        matrix = _as_counts(X, who)
        counts = Cooccurrences.of(matrix, who)
        rows = _names(words, matrix.shape[0], f"{who}: words")
        if contexts is None and matrix.shape[0] == matrix.shape[1]:
            columns = rows
        else:
            columns = _names(contexts, matrix.shape[1], f"{who}: contexts")
        return Counted(rows, columns, np.rint(counts.of_words).astype(np.int64), counts)
    for name, given in (("words", words), ("contexts", contexts)):
        if given is not None:
            raise ValueError(f"{who}: {name} must be None where X is sentences. Got {given!r}.")
    found = _count(model, X, seed, allowed, int(model.min_count), model.max_words)
    n = len(found.words)
    matrix = sp.csr_array((found.counts, found.indices, found.indptr), shape=(n, n))
    return Counted(found.words, found.words, found.frequencies, Cooccurrences.of(matrix, who))


def read_known_counts(model: Any, X: Any, seed: int, allowed: int | None) -> Cooccurrences:
    """Return counts of the words and contexts of a fitted estimator.

    Raises
    ------
    ValueError, TypeError
        As of ``read_counts``; and for a matrix of another shape.
    """
    who, shape = type(model).__name__, (len(model.words_), len(model.contexts_))
    if _is_matrix(X):
        matrix = _as_counts(X, who)
        if matrix.shape != shape:
            raise ValueError(
                f"{who}: X must have the shape of the counts of fit, {shape}. Got {matrix.shape}."
            )
        return Cooccurrences.of(matrix, who)
    if not np.array_equal(model.words_, model.contexts_):
        raise ValueError(f"{who}: X must be a matrix of counts, as in fit.")
    found = _count(model, X, seed, allowed, 1, None)
    n = len(found.words)
    place = known_rows(model.words_, found.words)
    pairs = sp.csr_array((found.counts, found.indices, found.indptr), shape=(n, n)).tocoo()
    rows, columns = place[pairs.row], place[pairs.col]
    kept = (rows >= 0) & (columns >= 0)
    matrix = sp.csr_array((pairs.data[kept], (rows[kept], columns[kept])), shape=shape)
    return Cooccurrences.of(matrix, who)


def _count(
    model: Any, X: Any, seed: int, allowed: int | None, min_count: int, max_words: int | None
) -> Any:
    return count_contexts(
        X,
        window=int(model.window),
        min_count=min_count,
        max_words=max_words,
        subsample=model.subsample,
        seed=seed,
        allowed_bytes=allowed,
        n_jobs=model.n_jobs,
        who=type(model).__name__,
    )


def _is_matrix(X: Any) -> bool:
    """Return whether X is a matrix of numbers, not sentences or the name of a file."""
    if isinstance(X, str | bytes | PathLike):
        return False
    if sp.issparse(X) or hasattr(X, "dtypes"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"


def _as_counts(X: Any, who: str) -> Any:
    """Return a validated matrix of counts, float32 CSR."""
    check_sparse(X, "X", who)
    if not sp.issparse(X):
        X = as_native(X)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{who}: X must hold numbers, counts of pairs. Got dtype {X.dtype}.")
    matrix = sp.csr_array(X).astype(np.float32)
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{who}: X must hold finite counts. Got NaN or infinity.")
    if (matrix.data < 0).any():
        raise ValueError(f"{who}: X must hold counts, none negative. Got {matrix.data.min():g}.")
    return matrix


def _names(given: Any, n: int, name: str) -> np.ndarray:
    if given is None:
        return np.array([str(k) for k in range(n)], object)
    names = as_distinct_words(given, name)
    if len(names) != n:
        raise ValueError(f"{name} must be {n} names, one for each. Got {len(names)}.")
    return names

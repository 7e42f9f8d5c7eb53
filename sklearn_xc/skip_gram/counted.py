"""What ``fit`` is given, sentences or a matrix, as counts of words with contexts."""

from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import as_native
from sklearn_xc._data import as_csr_rows
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.skip_gram.cooccurrence import count_contexts
from sklearn_xc.skip_gram.problem import Cooccurrences
from sklearn_xc.skip_gram.word_arrays import as_distinct_words, known_rows


class Counted(NamedTuple):
    """Counts, and the names that go with them.

    Attributes
    ----------
    words, contexts : ndarray of str
        Names of words and of contexts.
    word_counts : ndarray of int64 of shape (n_words,)
        How often each word occurs.
    counts : Cooccurrences
    """

    words: np.ndarray
    contexts: np.ndarray
    word_counts: np.ndarray
    counts: Cooccurrences


def read_counts(
    model: Any, X: Any, words: Any, contexts: Any, seed: int, allowed: int | None
) -> Counted:
    """Return the counts of sentences, or of a matrix, for an estimator that has the parameters.

    Raises
    ------
    ValueError, TypeError
        For an X that is none of these, without pairs, or names that do not go with it.
    """
    who = type(model).__name__
    if not _is_matrix(X):
        _refuse_names(words, contexts, who)
        found = _count(model, X, int(model.min_count), model.max_words, seed, allowed)
        counts = Cooccurrences.of(found.indptr, found.indices, found.counts, len(found.words))
        _require_pairs(counts, who)
        return Counted(found.words, found.words, found.frequencies, counts)
    counts = _of_matrix(X, who)
    rows = _names(words, len(counts.of_words), f"{who}: words")
    if contexts is None and counts.n_contexts == len(rows):
        columns = rows
    else:
        columns = _names(contexts, counts.n_contexts, f"{who}: contexts")
    return Counted(rows, columns, np.rint(counts.of_words).astype(np.int64), counts)


def read_known_counts(
    model: Any, X: Any, words: Any, contexts: Any, seed: int, allowed: int | None
) -> Counted:
    """Return counts of those words and contexts that a fitted estimator knows.

    Raises
    ------
    ValueError, TypeError
        As of ``read_counts``; and for a matrix of another shape, or with other names.
    """
    who = type(model).__name__
    known = model.words_, model.contexts_
    if _is_matrix(X):
        found = read_counts(model, X, words, contexts, seed, allowed)
        shapes = [(len(rows), len(columns)) for rows, columns in (known, found[:2])]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{who}: X must have the shape of the counts of fit, {shapes[0]}. Got {shapes[1]}."
            )
        for given, name, old, new in zip(
            (words, contexts), ("words", "contexts"), known, found[:2], strict=True
        ):
            if given is not None and not np.array_equal(old, new):
                raise ValueError(f"{who}: {name} must be those of fit, in their order.")
        return found._replace(words=known[0], contexts=known[1])
    _refuse_names(words, contexts, who)
    if known[0] is not known[1] and not np.array_equal(*known):
        raise ValueError(
            f"{who}: X must be a matrix of counts, as in fit, whose contexts are no words."
        )
    found_words = _count(model, X, 1, None, seed, allowed)
    place = known_rows(known[0], found_words.words)
    n = len(known[0])
    matrix = sp.csr_array(
        (found_words.counts, found_words.indices, found_words.indptr),
        shape=(len(place), len(place)),
    )
    is_known = np.flatnonzero(place >= 0)
    kept = matrix[is_known][:, is_known].tocoo()
    new = place[is_known]
    matrix = sp.csr_array((kept.data, (new[kept.row], new[kept.col])), shape=(n, n))
    matrix.sort_indices()
    counts = Cooccurrences.of(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, n
    )
    _require_pairs(counts, who)
    frequencies = np.zeros(n, np.int64)
    frequencies[new] = found_words.frequencies[is_known]
    return Counted(*known, frequencies, counts)


def _count(
    model: Any, X: Any, min_count: int, max_words: Any, seed: int, allowed: int | None
) -> Any:
    return count_contexts(
        X,
        window=int(model.window),
        min_count=min_count,
        max_words=max_words,
        subsample=model.subsample,
        n_subsamples=int(model.n_subsamples),
        weighting=model.weighting,
        seed=seed,
        allowed_bytes=allowed,
        n_jobs=model.n_jobs,
        who=type(model).__name__,
    )


def _is_matrix(X: Any) -> bool:
    """Tell whether X is a matrix of numbers, and not sentences or the name of a file."""
    if isinstance(X, str | bytes | PathLike):
        return False
    if sp.issparse(X) or hasattr(X, "dtypes"):
        return True
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"


def _of_matrix(X: Any, who: str) -> Cooccurrences:
    check_sparse(X, "X", who)
    if not sp.issparse(X):
        X = as_native(X)
        if X.dtype.kind not in "biuf":
            raise TypeError(f"{who}: X must hold numbers, counts of pairs. Got dtype {X.dtype}.")
        X = sp.csr_array(X)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"{who}: X must hold numbers, counts of pairs. Got dtype {X.dtype}.")
    rows = as_csr_rows(X.astype(np.float32).tocsr()).without_zeros()
    indptr, contexts, counts = rows.arrays
    if not np.isfinite(counts).all():
        raise ValueError(f"{who}: X must hold finite counts. Got NaN or infinity.")
    if (counts < 0).any():
        raise ValueError(f"{who}: X must hold counts, none negative. Got {counts.min():g}.")
    found = Cooccurrences.of(indptr, contexts, counts, X.shape[1])
    _require_pairs(found, who)
    return found


def _require_pairs(counts: Cooccurrences, who: str) -> None:
    if not counts.total > 0:
        raise ValueError(
            f"{who}: X must hold a pair of words that are near each other. Got none: lower "
            "min_count, or set subsample=None."
        )


def _names(given: Any, n: int, name: str) -> np.ndarray:
    if given is None:
        return np.array([str(k) for k in range(n)], object)
    names = as_distinct_words(given, name)
    if len(names) != n:
        raise ValueError(f"{name} must be {n} names, one for each. Got {len(names)}.")
    return names


def _refuse_names(words: Any, contexts: Any, who: str) -> None:
    for name, given in (("words", words), ("contexts", contexts)):
        if given is not None:
            raise ValueError(
                f"{who}: {name} must be None where X is sentences, which have words. Got {given!r}."
            )

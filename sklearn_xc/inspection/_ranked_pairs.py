"""The k best labels of each instance as pairs: their scores, and which of them are true."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import check_count, refuse_disguised
from sklearn_xc._label_names import refuse_other_columns
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc._topk import (
    as_matrix,
    best_of_dense,
    check_topk_size,
    never_seen,
    topk,
    unwrap,
)
from sklearn_xc.metrics.check import TrueLabels, canonical_csr, check_y_true
from sklearn_xc.metrics.hits import find_hits

#: Dense probabilities are reduced in pieces of about so many values.
_PIECE = 2**24


class RankedPairs(NamedTuple):
    """Pairs of an instance and one of its k best labels.

    Attributes
    ----------
    score : ndarray of float64 of shape (n_pairs,)
    hit : ndarray of bool of shape (n_pairs,)
        Whether the label is true.
    n_true : int
        True labels of all instances, also those among no k best.
    """

    score: np.ndarray
    hit: np.ndarray
    n_true: int


def pairs_of_predictions(
    who: str, y_true: Any, scored: Any, k: Any, classes: Any = None,
    counts: np.ndarray | None = None,
) -> RankedPairs:  # fmt: skip
    """Check predictions and return their pairs.

    Parameters
    ----------
    who : str
        The display, for messages.
    y_true, classes, counts
        As in :func:`~sklearn_xc.metrics.hits.find_hits`.
    scored : tuple (indices, scores) or sparse matrix
        Arrays of shape (n, >= k), best first, or scores of shape (n, n_labels).
    k : int

    Raises
    ------
    ValueError
        If an argument does not fit.
    """
    k = check_count(k, f"{who}: k")
    if not (isinstance(scored, tuple) or sp.issparse(scored)):
        raise ValueError(
            f"{who}: topk must be a tuple (indices, scores), as predict_topk gives, or a sparse "
            f"matrix of scores. Got {type(scored).__name__}."
        )
    hits = find_hits(y_true, scored, k, classes, counts)
    named = hits.positions >= 0
    if sp.issparse(scored):
        score = _stored(canonical_csr(scored), np.nonzero(named)[0], hits.positions[named])
    else:
        score = np.asarray(scored[1])[:, :k][named]
    if not len(score):
        raise ValueError(f"{who}: topk must name some label. Got none for any instance.")
    return RankedPairs(score.astype(np.float64), hits.hit[named], int(hits.true.counts.sum()))


def _stored(matrix: sp.csr_array, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the stored values of a matrix, whose rows have rising columns, at some places."""
    width = 1 + int(matrix.indices.max(initial=0))
    keys = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr)) * width
    return matrix.data[np.searchsorted(keys + matrix.indices, rows * width + labels)]


def encoded(who: str, estimator: Any, y: Any) -> tuple[Any, np.ndarray | None, Any]:
    """Return y as metrics take it, the labels of each row where it was names, and the classes."""
    classifier, _ = unwrap(estimator, None)
    counts = None
    if hasattr(classifier, "_encode_targets"):
        y, counts = classifier._encode_targets(y)
    classes = getattr(classifier, "classes_", None)
    if isinstance(classes, list):  # of each label, as random forests have
        classes = np.arange(len(classes))
    if classes is not None and len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        refuse_other_columns(y, np.asarray(classes), who)
    return y, counts, classes


def pairs_of_estimator(
    who: str, estimator: Any, X: Any, y: Any, k: Any, response_method: str
) -> RankedPairs:
    """Return the pairs that an estimator ranks highest.

    Parameters
    ----------
    who : str
        The display, for messages.
    estimator, X, y
        Fitted; instances; what is true of them.
    k : int
    response_method : {"predict_proba", "predict_topk", "auto"}
        "auto" is the first where there is one.
    """
    methods = ("auto", "predict_proba", "predict_topk")
    if response_method not in methods:
        raise ValueError(
            f"{who}: response_method must be one of {methods}. Got {response_method!r}."
        )
    k = check_count(k, f"{who}: k")
    y, counts, classes = encoded(who, estimator, y)
    classifier, _ = unwrap(estimator, None)
    has_chances = hasattr(classifier, "predict_proba")
    if response_method == "predict_proba" and not has_chances:
        raise ValueError(
            f"{who}: the estimator must have predict_proba. Got {type(classifier).__name__} "
            'without it; response_method="predict_topk" takes scores that are probabilities.'
        )
    is_ranked = response_method == "predict_topk" or not has_chances
    scored = topk(estimator, X, k) if is_ranked else _most_likely(estimator, X, k)
    return pairs_of_predictions(who, y, scored, k, classes, counts)


def _most_likely(estimator: Any, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k most likely labels and their probabilities, both (n, k), in pieces of rows."""
    check_sparse(X, "X", "predict_proba")
    if np.ma.isMaskedArray(X):
        refuse_disguised(X, "predict_proba: X")
    k = check_topk_size(k, X, who="predict_proba")
    classifier, X = unwrap(estimator, X)
    X = X.tocsr() if sp.issparse(X) else X
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    n_rows = max(1, _PIECE // max(1, len(getattr(classifier, "classes_", ()))))
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    first = 0
    while first < n or not parts:
        rows = slice(first, first + n_rows)
        chances = classifier.predict_proba(X.iloc[rows] if hasattr(X, "iloc") else X[rows])
        parts.append(_best(classifier, chances, k))
        first += n_rows
        if sp.issparse(chances):  # a row of it is shorter than expected
            n_rows = max(n_rows, _PIECE * chances.shape[0] // max(1, chances.nnz))
    labels, chances = zip(*parts, strict=True)
    return np.concatenate(labels), np.concatenate(chances)


def _best(classifier: Any, chances: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    chances = as_matrix(chances, classifier)
    if not sp.issparse(chances):
        return best_of_dense(chances, k, None, never_seen(classifier))
    chances = canonical_csr(chances)
    rows = np.repeat(np.arange(chances.shape[0]), np.diff(chances.indptr))
    order = np.lexsort((-chances.data, rows))  # stable: ties go to the smaller label
    rank = np.arange(len(rows)) - chances.indptr[rows]
    kept = rank < k
    at = rows[kept], rank[kept]
    labels = np.full((chances.shape[0], k), -1, np.int64)
    values = np.full(labels.shape, -np.inf)
    labels[at], values[at] = chances.indices[order[kept]], chances.data[order[kept]]
    return labels, values


def count_named(who: str, estimator: Any, X: Any, y: Any) -> tuple[int, int, int]:
    """Return how many pairs ``predict`` names, how many of these are right, and how many are true.

    Parameters
    ----------
    who : str
        The display, for messages.
    estimator, X, y
        As in ``pairs_of_estimator``.
    """
    true_y, counts, classes = encoded(who, estimator, y)
    named_y, _, _ = encoded(who, estimator, estimator.predict(X))
    true, named = check_y_true(true_y, classes), check_y_true(named_y, classes)
    width = 1 + max(int(true.columns.max(initial=0)), int(named.columns.max(initial=0)))
    right = np.isin(_keys(named, width), _keys(true, width), assume_unique=True).sum()
    n_true = int((true.counts if counts is None else counts).sum())
    return len(named.rows), int(right), n_true


def _keys(labels: TrueLabels, width: int) -> np.ndarray:
    return labels.rows * width + labels.columns

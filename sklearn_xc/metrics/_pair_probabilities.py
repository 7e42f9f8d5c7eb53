"""Probabilities of pairs of an instance and a label, beside the truth about them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import check_count
from sklearn_xc.metrics._csr_topk import topk_of_csr
from sklearn_xc.metrics.check import (
    TrueLabels,
    as_array,
    check_k_of_csr,
    check_sample_weight,
    check_sparse_scores,
    check_topk,
    check_y_true,
)
from sklearn_xc.metrics.hits import is_true


class PairProbabilities(NamedTuple):
    """Pairs that a model gave a probability.

    Attributes
    ----------
    labels : ndarray of shape (n_pairs,), int64
    probability : ndarray of shape (n_pairs,), float64
        In [0, 1].
    is_true : ndarray of shape (n_pairs,), bool
    weight : ndarray of shape (n_pairs,), float64
    true : TrueLabels
        All true labels, scored or not.
    """

    labels: np.ndarray
    probability: np.ndarray
    is_true: np.ndarray
    weight: np.ndarray
    true: TrueLabels


def find_pairs(
    Y_true: Any, Y_prob: Any, k: Any, sample_weight: Any, classes: Any
) -> PairProbabilities:
    """Check the arguments, and return the pairs, of the k best of each row or of all."""
    k = None if k is None else check_count(k, "k")
    true = check_y_true(Y_true, classes)
    if isinstance(Y_prob, tuple):
        rows, labels, probability = _of_arrays(Y_prob, k, true)
    else:
        rows, labels, probability = _of_matrix(Y_prob, k, true)
    wrong = ~((probability >= 0) & (probability <= 1))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(
            f"Y_prob: expected probabilities, in [0, 1]. Got {probability[at]} for label "
            f"{labels[at]} of row {rows[at]}; scores become probabilities in predict_proba."
        )
    weight = check_sample_weight(sample_weight, len(true.counts))
    of_pairs = np.ones(len(rows)) if weight is None else weight[rows]
    if not of_pairs.any():
        raise ValueError(
            "Y_prob: expected a probability for at least one pair (of a weight above 0). Got none."
        )
    return PairProbabilities(labels, probability, is_true(true, rows, labels), of_pairs, true)


def _of_arrays(
    Y_prob: tuple, k: int | None, true: TrueLabels
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and probabilities of ``(indices, probabilities)``."""
    if k is None:
        shape = np.shape(as_array(Y_prob[0], "Y_prob", "rows of one length")) if Y_prob else ()
        k = shape[1] if len(shape) == 2 else 1
    positions = check_topk(Y_prob, k, true, "Y_prob", may_rise=True)
    kept = positions >= 0
    probability = np.asarray(Y_prob[1], np.float64)[:, :k]
    return np.nonzero(kept)[0], positions[kept], probability[kept]


def _of_matrix(
    Y_prob: Any, k: int | None, true: TrueLabels
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same of the stored entries of a sparse matrix, or of all of a dense one."""
    scores = check_sparse_scores(
        Y_prob if sp.issparse(Y_prob) else _all_stored(Y_prob), true, "Y_prob"
    )
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    labels, probability = scores.indices.astype(np.int64), scores.data.astype(np.float64)
    if k is None:
        return rows, labels, probability
    check_k_of_csr(k, scores, "Y_prob")
    positions = topk_of_csr(scores, k)
    kept = positions >= 0
    best_rows, best = np.nonzero(kept)[0], positions[kept]
    # Rows are in order and so are their labels: each best pair is found by a single key.
    width = 1 + int(labels.max(initial=0))
    place = np.searchsorted(rows * width + labels, best_rows * width + best)
    return best_rows, best, probability[place]


def _all_stored(Y_prob: Any) -> sp.csr_array:
    """Return a dense matrix as a CSR in which zeros are stored."""
    dense = as_array(Y_prob, "Y_prob", "a matrix of probabilities")
    if dense.ndim != 2 or dense.dtype.kind != "f":
        raise ValueError(
            "Y_prob: expected a matrix of probabilities, sparse or dense, of shape (n_samples, "
            f"n_labels), or a tuple (indices, probabilities). Got dtype {dense.dtype} and shape "
            f"{dense.shape}."
        )
    n_rows, n_labels = dense.shape
    indptr = np.arange(n_rows + 1) * n_labels
    return sp.csr_array((dense.ravel(), np.tile(np.arange(n_labels), n_rows), indptr), dense.shape)

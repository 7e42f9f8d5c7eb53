"""Scores of pairs of an instance and a label, and the shortlist of labels to score."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from sklearn_xc._input.data import CsrRows, as_csr_rows, read_only, shares_any
from sklearn_xc._parallel.threads import for_row_ranges
from sklearn_xc._state.schema import Array, Record, declares
from sklearn_xc._training.kernels.row_moves import squared_norms
from sklearn_xc._weights.label_weights import LabelWeights
from sklearn_xc.embedding._examples import LabelMeans, joined_rows
from sklearn_xc.embedding._inputs import as_csr_matrix, sparse_features
from sklearn_xc.embedding.kernels.scores import score_features, score_vectors
from sklearn_xc.search import ExactIndex
from sklearn_xc.search.label_index import LabelIndex

#: Instances that are scored together; chunks are multiples, so that a search cuts them alike.
CHUNK_ROWS = 256


@declares(
    rows=Record("CsrRows", rows="labels", columns="features"),
    _is_used=Array("bool", "features"),
    _weights=Record("LabelWeights"),
)
class KnownFeatures:
    """Features of the labels, in rows of norm 1, with an inverted index for searches.

    Parameters
    ----------
    rows : CsrRows of shape (n_labels, n_features)
        Of any norm.
    """

    def __init__(self, rows: CsrRows) -> None:
        self._set_rows(as_csr_rows(normalize(as_csr_matrix(rows))))

    def joined(self, rows: CsrRows, order: np.ndarray) -> "KnownFeatures":
        """Return these labels and then others, in an order of all; bits of these stay."""
        out = KnownFeatures(rows)
        out._set_rows(joined_rows(self.rows, out.rows).take(order))
        return out

    def taking_labels(self, places: np.ndarray) -> "KnownFeatures":
        """Return the features of some labels."""
        out = copy.copy(self)
        out._set_rows(self.rows.take(places))
        return out

    def _set_rows(self, rows: CsrRows) -> None:
        self.rows = rows
        self._is_used = np.zeros(rows.shape[1], bool)
        self._is_used[rows.indices] = True
        matrix = as_csr_matrix(rows)
        self._weights = LabelWeights(matrix, np.zeros(rows.shape[0], matrix.dtype))

    def shares_any(self, X: CsrRows) -> np.ndarray:
        """Return which instances have a feature that some label has, too."""
        return shares_any(X, self._is_used)

    def nearest(
        self, X: CsrRows, k: int, n_jobs: int | None, excluded: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels of the largest cosines, and these, best first; (n, k) each."""
        weights = self._weights
        if excluded.size:
            intercept = np.zeros_like(weights.intercept)
            intercept[excluded] = -np.inf
            weights = weights.with_intercept(intercept)
        labels, products = weights.topk(X, k, n_jobs)
        squares = squared_norms(read_only(X.indptr[:-1]), np.diff(X.indptr), read_only(X.data))
        norms = np.sqrt(np.where(squares > 0, squares, 1)).astype(products.dtype)
        return labels, products / norms[:, None]


def is_exact(parameter: Any) -> bool:
    """Return whether an index scores all labels."""
    return isinstance(parameter, ExactIndex) or (
        isinstance(parameter, str) and parameter == "exact"
    )


class LabelRanking:
    """Scores of labels: embedding, classifier; features, mean, mean of features if known.

    Parameters
    ----------
    embeddings, classifiers : ndarray of float of shape (n_labels, dim)
    features : KnownFeatures or None
        If they are known, instances that are texts must come with features.
    means : LabelMeans or None
    unseen : ndarray of int of shape (n_unseen,)
        Labels that nothing is known about, ascending; they are in no list. Not all labels.
    n_jobs : int or None
    index : LabelIndex or None, default=None
        Finds the best classifiers; None finds them exactly.

    Attributes
    ----------
    n_known : int
        Labels except the unseen ones.
    """

    def __init__(
        self,
        embeddings: np.ndarray,
        classifiers: np.ndarray,
        features: KnownFeatures | None,
        means: LabelMeans | None,
        unseen: np.ndarray,
        n_jobs: int | None,
        index: LabelIndex | None = None,
    ) -> None:
        self._features, self._means, self._classifiers = features, means, classifiers
        self._n_jobs, self._index, self.unseen = n_jobs, index, unseen
        self._known = np.delete(np.arange(len(classifiers)), unseen)
        self.n_known = len(self._known)
        #: What each score compares: vectors of the labels, or their features.
        self._components: Sequence[np.ndarray | CsrRows] = [
            embeddings,
            classifiers,
            *([] if features is None else [features.rows]),
            *([] if means is None else [means.vectors]),
            *([] if means is None or means.words is None else [means.words]),
        ]

    @property
    def n_scores(self) -> int:
        """Number of scores of a pair."""
        return len(self._components)

    def is_blank(self, X: CsrRows, V: np.ndarray) -> np.ndarray:
        """Return which instances score 0 with all labels, bool of shape (n,)."""
        is_blank = np.asarray(~V.any(axis=1))
        if self._features is None:
            return is_blank
        return is_blank & ~self._features.shares_any(_features_of(X))

    def shortlist(self, X: CsrRows, V: np.ndarray, size: int, at_least: int = 1) -> np.ndarray:
        """Return the labels with the best classifiers, nearest features and nearest means.

        Means are searched if features are known and the index is exact. Labels without a feature
        in common with the instance are not near.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
        V : ndarray of shape (n, dim)
            Embeddings of X.
        size : int
            Labels of each kind.
        at_least : int
            If an index finds fewer labels than this, all are found exactly.

        Returns
        -------
        ndarray of int64 of shape (n, size), (n, 2 * size) or (n, 3 * size)
            Each label once, in no order; -1 where there are no more.
        """
        if size >= self.n_known:
            return np.tile(self._known, (len(V), 1))
        if self._index is None:
            labels = self._nearest(self._classifiers, V, size)
        else:
            found, counts = self._index.query(V, size, self._n_jobs)
            labels = found.astype(np.int64)
            short = np.flatnonzero(counts < at_least)
            if short.size:
                labels[short] = self._nearest(self._classifiers, V[short], size)
        if self._features is None:
            return labels
        near, cosines = self._features.nearest(_features_of(X), size, self._n_jobs, self.unseen)
        listed = [labels, np.where(cosines > 0, near, -1)]
        if self._index is None:
            listed.append(self._nearest(self._means.vectors, V, size))
        labels = np.sort(np.concatenate(listed, axis=1), axis=1)
        labels[:, 1:][labels[:, 1:] == labels[:, :-1]] = -1
        return labels

    def scores(self, X: CsrRows, V: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return all scores of the labels listed for each instance.

        `labels` is int64 of shape (n, m), -1 for none; the result is of shape (n, m, n_scores),
        -inf for none.
        """
        out = np.empty((*labels.shape, self.n_scores), V.dtype)
        instances = sparse_features(X)

        def work(first: int, last: int) -> None:
            rows, own = read_only(V[first:last]), read_only(labels[first:last])
            values = np.zeros(0 if instances is None else instances.shape[1])
            for column, known in enumerate(self._components):
                if isinstance(known, np.ndarray):
                    score_vectors(rows, read_only(known), own, column, out[first:last])
                    continue
                assert instances is not None
                bounds = instances.indptr[first : last + 1]
                part = tuple(map(read_only, (bounds, instances.indices, instances.data)))
                features = tuple(map(read_only, known.arrays))
                score_features(part, features, own, values, column, out[first:last])

        for_row_ranges(work, len(V), CHUNK_ROWS, self._n_jobs)
        return out

    def _nearest(self, vectors: np.ndarray, V: np.ndarray, k: int) -> np.ndarray:
        """Return the k labels of the largest inner products, best first."""
        index = ExactIndex(self._n_jobs)
        index.build(vectors[self._known] if self.unseen.size else vectors)
        return self._known[index.query(np.ascontiguousarray(V), k).labels]


def _features_of(X: CsrRows) -> CsrRows:
    """Return the features of instances, which must have some."""
    features = sparse_features(X)
    assert features is not None
    return features

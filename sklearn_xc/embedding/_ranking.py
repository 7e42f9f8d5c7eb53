"""What a label scores for an instance, and which labels are worth to be scored."""

import copy

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from sklearn_xc._blank_rows import shares_any
from sklearn_xc._data import CsrRows, as_csr_rows, read_only
from sklearn_xc._declared_state import Array, Record, declares
from sklearn_xc.embedding._label_features import joined_rows
from sklearn_xc.embedding._label_means import LabelMeans
from sklearn_xc.embedding._memory import TOGETHER
from sklearn_xc.embedding._shortlist import ShortlistIndex, is_exact
from sklearn_xc.embedding._texts import features_beside
from sklearn_xc.kernels.embedding.pair_scores import score_pairs
from sklearn_xc.kernels.steps.row_moves import squared_norms
from sklearn_xc.mips import ExactIndex
from sklearn_xc.parallel.row_ranges import for_row_ranges
from sklearn_xc.weights.label_weights import LabelWeights


@declares(
    rows=Record("CsrRows", rows="labels", columns="features"),
    _is_used=Array("bool", "features"),
    _weights=Record("LabelWeights"),
)
class KnownFeatures:
    """Features of the labels, in rows of norm 1, and the same by feature, as a search reads them.

    Parameters
    ----------
    rows : CsrRows of shape (n_labels, n_features)
        Of any norm.

    Attributes
    ----------
    rows : CsrRows of shape (n_labels, n_features)
        Of norm 1, or 0.
    """

    def __init__(self, rows: CsrRows) -> None:
        matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        self._keep(as_csr_rows(normalize(matrix)))

    def joined(self, rows: CsrRows, order: np.ndarray) -> "KnownFeatures":
        """Return the features of these labels and then further ones, in an order of all.

        Those of these labels keep their bits: to scale a row of norm 1 again may round it.
        """
        out = KnownFeatures(rows)
        out._keep(joined_rows(self.rows, out.rows).take(order))
        return out

    def of_labels(self, places: np.ndarray, n_labels: int) -> "KnownFeatures":
        """Return the features of some labels."""
        out = copy.copy(self)
        out._keep(self.rows.take(places))
        return out

    def _keep(self, rows: CsrRows) -> None:
        self.rows = rows
        self._is_used = np.zeros(rows.shape[1], bool)
        self._is_used[rows.indices] = True
        matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        self._weights = LabelWeights(matrix, np.zeros(rows.shape[0], matrix.dtype))

    def shares_any(self, X: CsrRows) -> np.ndarray:
        """Return which instances have a feature that some label has, too."""
        return shares_any(X, self._is_used)

    def nearest(
        self, X: CsrRows, k: int, n_jobs: int | None, passed_over: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels of the largest cosines, and these, best first; (n, k) each.

        There must be as many besides those passed over.
        """
        weights = self._weights
        if passed_over.size:
            intercept = np.zeros_like(weights.intercept)
            intercept[passed_over] = -np.inf
            weights = weights.with_intercept(intercept)
        labels, products = weights.topk(X, k, n_jobs)
        squares = squared_norms(read_only(X.indptr[:-1]), np.diff(X.indptr), read_only(X.data))
        norms = np.sqrt(np.where(squares > 0, squares, 1)).astype(products.dtype)
        return labels, products / norms[:, None]


class Ranking:
    """Scores of labels: cosines with embeddings, with classifiers, and of features, if known.

    Where features are compared, instances that are texts have some beside them.

    Parameters
    ----------
    embeddings, classifiers : ndarray of float of shape (n_labels, dim)
    features : KnownFeatures or None
    unseen : ndarray of int of shape (n_unseen,)
        Labels of which nothing is known, rising: they are in no list. Not all labels.
    n_jobs : int or None
        Threads, on which nothing depends.
    index : ShortlistIndex or None, default=None
        Finds the labels of a shortlist; None finds them exactly.
    means : LabelMeans or None, default=None
        Means of the labels' instances. Those of embeddings are searched exactly, and have a part in
        shortlists where there are features, and no inexact index.

    Attributes
    ----------
    n_scores : int
        Of a pair: 2, one more with features, one with means, and one with means of features.
    n_known : int
        Labels except the unseen ones.
    unseen : ndarray of int of shape (n_unseen,)
    """

    def __init__(
        self, embeddings: np.ndarray, classifiers: np.ndarray, features: KnownFeatures | None,
        unseen: np.ndarray, n_jobs: int | None, index: ShortlistIndex | None = None,
        means: LabelMeans | None = None,
    ) -> None:  # fmt: skip
        self._embeddings, self._classifiers = embeddings, classifiers
        self._features, self._n_jobs = features, n_jobs
        self.unseen, self._index, self._means = unseen, index, means
        self.n_known = len(classifiers) - len(unseen)
        self.n_scores = 2 + (features is not None)
        if means is not None:
            self.n_scores += 1 + (means.words is not None)

    def is_blank(self, component: str, X: CsrRows, V: np.ndarray) -> np.ndarray:
        """Return which instances have a score of 0 with all labels, whatever these are.

        Parameters
        ----------
        component : {"embedding", "classifier", "features", "mean", "fused"}
        X : CsrRows of shape (n, n_features)
        V : ndarray of shape (n, dim)
            Embeddings of X.

        Returns
        -------
        ndarray of bool of shape (n,)
        """
        is_blank = np.asarray(~V.any(axis=1))
        if self._features is None or component in ("embedding", "classifier", "mean"):
            return is_blank
        shares_none = ~self._features.shares_any(_features_of(X))
        return shares_none if component == "features" else shares_none & is_blank

    def best(
        self, component: str, X: CsrRows, V: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels of the best scores of one kind, and these, best first.

        Parameters
        ----------
        component : {"embedding", "classifier", "features", "mean"}
        X : CsrRows of shape (n, n_features)
        V : ndarray of shape (n, dim)
            Embeddings of X.
        k : int
            At most ``n_known``.

        Returns
        -------
        labels : ndarray of int64 of shape (n, k)
        scores : ndarray of float of shape (n, k)
        """
        if component == "features":
            assert self._features is not None
            return self._features.nearest(_features_of(X), k, self._n_jobs, self.unseen)
        vectors = self._embeddings if component == "embedding" else self._classifiers
        if component == "mean":
            assert self._means is not None
            vectors = self._means.vectors
        index = ExactIndex(self._n_jobs)
        if not self.unseen.size:
            index.build(vectors)
            found = index.query(V, k)
            return found.labels.astype(np.int64), found.scores
        known = self._known()
        index.build(vectors[known])
        found = index.query(V, k)
        return known[found.labels], found.scores

    def place_of(self, component: str) -> int:
        """Return which of the scores of a pair is that of "embedding", "classifier", ..."""
        order = ["embedding", "classifier", *["features"] * (self._features is not None), "mean"]
        return order.index(component)

    def _known(self) -> np.ndarray:
        """Return the labels that are not unseen, rising."""
        return np.delete(np.arange(len(self._classifiers)), self.unseen)

    def shortlist(self, X: CsrRows, V: np.ndarray, size: int, at_least: int = 1) -> np.ndarray:
        """Return the labels with the best classifiers, the nearest means and nearest features.

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
            Each label once, in no order; -1 where there are no more. Labels without a feature in
            common with the instance are not near.
        """
        if size >= self.n_known:
            return np.tile(self._known(), (len(V), 1))
        labels = self._best_classifiers(X, V, size, at_least)
        if self._features is None:
            return labels
        near, cosines = self._features.nearest(_features_of(X), size, self._n_jobs, self.unseen)
        listed = [labels, np.where(cosines > 0, near, -1)]
        is_searched = self._index is None or is_exact(self._index.parameter)
        if self._means is not None and is_searched:
            listed.append(self.best("mean", X, V, size)[0])
        return each_once(np.concatenate(listed, axis=1))

    def _best_classifiers(self, X: CsrRows, V: np.ndarray, size: int, at_least: int) -> np.ndarray:
        if self._index is None:
            return self.best("classifier", X, V, size)[0]
        labels, counts = self._index.query(V, size)
        short = np.flatnonzero(counts < at_least)
        if short.size:
            rows = np.ascontiguousarray(V[short])
            labels[short] = self.best("classifier", X, rows, size)[0]
        return labels

    def scores(self, X: CsrRows, V: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return all scores of some labels of each instance.

        Parameters
        ----------
        X : CsrRows of shape (n, n_features)
        V : ndarray of shape (n, dim)
            Embeddings of X.
        labels : ndarray of int64 of shape (n, m)
            -1 is none.

        Returns
        -------
        ndarray of float of shape (n, m, n_scores)
            Embedding, classifier, features, mean, mean of features; -inf where there is no label.
        """
        vectors = tuple(map(read_only, (self._embeddings, self._classifiers)))
        words = None if self._means is None else self._means.words
        if self._features is not None or words is not None:
            X = _features_of(X)
        # Without features X stands in, which nobody reads.
        known = X if self._features is None else self._features.rows
        features = tuple(map(read_only, (known.indptr, known.indices, known.data)))
        out = np.empty((*labels.shape, self.n_scores), V.dtype)
        parts = [(vectors, features, [0, 1] if self._features is None else [0, 1, 2])]
        if self._means is not None:  # the kernel scores two vectors of each label
            means = read_only(self._means.vectors)
            if words is None:
                parts.append(((means, means), features, [0]))
            else:
                rows = tuple(map(read_only, (words.indptr, words.indices, words.data)))
                parts.append(((means, means), rows, [0, 2]))

        def work(first: int, last: int) -> None:
            instances = tuple(map(read_only, (X.indptr[first : last + 1], X.indices, X.data)))
            rows, own, done = read_only(V[first:last]), read_only(labels[first:last]), 0
            for of_labels, known, columns in parts:
                n = max(2, columns[-1] + 1)
                scores = np.empty((*own.shape, n), V.dtype)
                buffer = np.zeros(X.shape[1] if n > 2 else 0)
                score_pairs(rows, *of_labels, instances, known, own, buffer, scores)
                out[first:last, :, done : done + len(columns)] = scores[:, :, columns]
                done += len(columns)

        for_row_ranges(work, len(V), TOGETHER, self._n_jobs)
        return out


def _features_of(X: CsrRows) -> CsrRows:
    """Return the features of instances, which must have some."""
    features = features_beside(X)
    assert features is not None
    return features


def each_once(labels: np.ndarray) -> np.ndarray:
    """Return the labels of each row, rising, with -1 in place of all but one of equal ones."""
    labels = np.sort(labels, axis=1)
    labels[:, 1:][labels[:, 1:] == labels[:, :-1]] = -1
    return labels

"""What a fitted model with dense weights behind a hidden layer answers."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._state import reads_one_state
from sklearn_xc._topk import check_topk_size, padded
from sklearn_xc._validation import CsrRows, DenseRows, check_rows, read_only
from sklearn_xc.base import XCClassifier
from sklearn_xc.mips import INDEXES, ExactIndex
from sklearn_xc.solvers.batch_sgd import HiddenLayer, MovingRows


class EmbeddingModel(XCClassifier):
    """Scores that are inner products of embedded instances and labels."""

    classes_: np.ndarray
    coef_: np.ndarray
    feature_embedding_: np.ndarray | None
    threshold_: float

    @reads_one_state
    def embed(self, X: Any) -> np.ndarray:
        """Return what scores are linear in: a vector for each instance.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, dim)
            With a hidden layer ``X @ feature_embedding_``, else the dense X. The score of label k
            is the inner product with ``coef_[k]``.
        """
        check_is_fitted(self)
        return self._embedded(X)

    @reads_one_state
    def predict_topk(self, X: Any, k: int = 5, exact: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        exact : bool, default=True
            Whether to score all labels. False asks the index for ``n_candidates_`` labels (at least
            k), and scores them exactly: some of the best may be missed. It is built on first use.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf.
        """
        check_is_fitted(self)
        k = check_topk_size(k, X)
        if exact:
            return self._topk_scores(X, k)
        labels, scores = self._search(self._embedded(X), min(k, len(self.classes_)))
        self._require_finite(scores)
        return padded(labels, scores, k)

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, scores = self._best(self._embedded(X), min(k, len(self.classes_)))
        self._require_finite(scores)
        return padded(labels, scores, k)

    def _best(self, V: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of embedded instances, at most all, and their scores."""
        index = ExactIndex(self.n_jobs)
        index.build(self.coef_)
        found = index.query(V, k)
        return found.labels, found.scores

    def _all_scores(self, X: Any) -> np.ndarray:
        V = self._embedded(X)
        W = self.coef_[1:] - self.coef_[:1] if self._is_binary else self.coef_
        with np.errstate(over="ignore", invalid="ignore"):
            scores = V @ W.T
        self._require_finite(scores)
        return scores

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, scores = self._topk_scores(X, k)
        return labels, scores - self.threshold_

    def _all_margins(self, X: Any) -> np.ndarray:
        return self._all_scores(X) - self.threshold_

    def _search(self, V: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best k among the candidates of the index."""
        from sklearn_xc.kernels.candidates import rank_labels

        index = self.__dict__.get("_search_index")
        if index is None:
            index = INDEXES[self._index_name()](n_jobs=self.n_jobs)
            index.build(np.ascontiguousarray(self.coef_))
            self._search_index = index
        n_candidates = max(k, self.n_candidates_)
        found = index.query(read_only(V), n_candidates)
        labels, scores = np.full((len(V), k), -1, np.int32), np.full((len(V), k), -np.inf, V.dtype)
        counts = np.empty(len(V), np.int64)
        rank_labels(
            read_only(self.coef_), 0, read_only(V), 0, found.labels, found.counts, labels, scores,
            counts,
        )  # fmt: skip
        return labels, scores

    def _index_name(self) -> str:
        raise NotImplementedError  # this class is not an estimator by itself

    def _embedded(self, X: Any) -> np.ndarray:
        """Check X, and return what scores are linear in."""
        instances = check_rows(self, X, reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            V = self._embed(instances)
        self._require_finite(V)
        return V

    def _require_finite(self, values: np.ndarray) -> None:
        """Raise an error for embeddings or scores of instances that overflowed."""
        # A NaN is the smallest entry and the largest.
        if values.size and not np.isfinite([values.min(), values.max()]).all():
            raise ValueError(
                f"{type(self).__name__}: X has entries that are too large, scores overflow in "
                f"{self.coef_.dtype}. Scale X as in fit."
            )

    def _embed(self, instances: CsrRows | DenseRows) -> np.ndarray:
        vectors, dtype = self.feature_embedding_, self.coef_.dtype
        if vectors is None:
            return instances.to_dense().values.astype(dtype, copy=False)
        X = instances.to_csr().astype(dtype)
        return HiddenLayer(X, MovingRows(vectors, None)).forward(np.arange(X.shape[0]))

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_search_index", None)  # is built again where it is asked for
        return state

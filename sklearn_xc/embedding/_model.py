"""What a trained model of embeddings, classifiers and fused scores answers."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._state import reads_one_state
from sklearn_xc._topk import check_topk_size, padded
from sklearn_xc._validation import CsrRows, check_instances
from sklearn_xc.base import XCClassifier
from sklearn_xc.embedding._fusion import ScoreFusion
from sklearn_xc.embedding._ranking import KnownFeatures, Ranking
from sklearn_xc.encoders.protocol import Encoder

COMPONENTS = ("fused", "embedding", "classifier", "features")
#: Pairs of an instance and a label that are scored at a time.
_PAIRS = 2**22


class RankingModel(XCClassifier):
    """Answers of an encoder, a vector or two for each label, and a fusion of their scores.

    A subclass sets the attributes below in fit, and has the parameters ``shortlist_size``,
    ``top_k`` and ``n_jobs``.
    """

    classes_: np.ndarray
    coef_: np.ndarray
    label_embeddings_: np.ndarray
    label_counts_: np.ndarray
    encoder_: Encoder
    fusion_: ScoreFusion | None
    threshold_: float
    shortlist_size: int
    top_k: int
    n_jobs: int | None
    _features: KnownFeatures | None

    @reads_one_state
    def embed(self, X: Any) -> np.ndarray:
        """Return the embeddings of instances.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances, or other texts with the same features.

        Returns
        -------
        ndarray of shape (n, embedding_dim)
            Unit vectors; 0 for a row without features.
        """
        check_is_fitted(self)
        return self._embed(check_instances(self, X, reset=False))

    @reads_one_state
    def embed_labels(self) -> np.ndarray:
        """Return the embeddings of the labels: a copy of ``label_embeddings_``.

        Returns
        -------
        ndarray of shape (n_labels, embedding_dim)
            Unit vectors; 0 for a label of which nothing is known.
        """
        check_is_fitted(self)
        return self.label_embeddings_.copy()

    @reads_one_state
    def predict_topk(
        self, X: Any, k: int = 5, component: str = "fused"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        component : {"fused", "embedding", "classifier", "features"}, default="fused"
            What scores: the cosine with the label's embedding, with its classifier, that of the
            features of both without any training, where label features are known; or all of these
            and the tree, for the ``shortlist_size`` labels (at least k; both of two classes) of the
            best classifiers, and as many of the nearest features.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf.
        """
        check_is_fitted(self)
        k = check_topk_size(k, X)
        if component not in COMPONENTS:
            raise ValueError(f"component must be one of {COMPONENTS}, got {component!r}.")
        if component == "features" and self._features is None:
            raise ValueError(
                f"component='features' needs label_features, of which {type(self).__name__} had "
                "none in fit."
            )
        return self._topk_of(check_instances(self, X, reset=False), k, component)

    def _embed(self, instances: CsrRows) -> np.ndarray:
        return self.encoder_.encode(instances, n_jobs=self.n_jobs)

    @property
    def _ranking(self) -> Ranking:
        return Ranking(self.label_embeddings_, self.coef_, self._features, self.n_jobs)

    def _topk_of(self, instances: CsrRows, k: int, component: str) -> tuple[np.ndarray, np.ndarray]:
        V, ranking, n_labels = self._embed(instances), self._ranking, len(self.classes_)
        if component != "fused":
            return padded(*ranking.best(component, instances, V, min(k, n_labels)), k)
        n = instances.shape[0]
        size = n_labels if self._is_binary else max(self.shortlist_size, k)
        best = np.empty((n, min(k, n_labels)), np.int64), np.empty((n, min(k, n_labels)), V.dtype)
        step = max(1, _PAIRS // (2 * size))
        for first in range(0, n, step):
            rows = np.arange(first, min(first + step, n))
            part = instances if len(rows) == n else instances.take(rows)
            labels = ranking.shortlist(part, V[rows], size)
            scores = self._fused(ranking.scores(part, V[rows], labels), labels)
            order = np.lexsort((labels, -scores), axis=1)[:, :k]
            for all_, of_rows in zip(best, (labels, scores), strict=True):
                all_[rows] = np.take_along_axis(of_rows, order, axis=1)
        return padded(*best, k)

    def _fused(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return fused scores of some labels of each instance, from all scores of each."""
        if self.fusion_ is None:
            return scores.sum(axis=-1)
        return self.fusion_(scores, self.label_counts_[labels])

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(check_instances(self, X, reset=False), k, "fused")

    def _all_scores(self, X: Any) -> np.ndarray:
        instances, n_labels = check_instances(self, X, reset=False), len(self.classes_)
        V, ranking, n = self._embed(instances), self._ranking, instances.shape[0]
        scores = np.empty((n, n_labels), V.dtype)
        step = max(1, _PAIRS // n_labels)
        for first in range(0, n, step):
            rows = np.arange(first, min(first + step, n))
            labels = np.tile(np.arange(n_labels), (len(rows), 1))
            of_pairs = ranking.scores(instances.take(rows), V[rows], labels)
            scores[rows] = self._fused(of_pairs, labels)
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, scores = self._topk_scores(X, k)
        return labels, scores - self.threshold_

    def _all_margins(self, X: Any) -> np.ndarray:
        return self._all_scores(X) - self.threshold_

"""A classifier that any author might write, with no part of this package: it honours a sparse y."""

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted


class CentroidXC(ClassifierMixin, BaseEstimator):
    """A label holds where its instances' mean is nearer than that of all others."""

    def __init__(self, *, top_k=100, n_jobs=None):
        self.top_k = top_k
        self.n_jobs = n_jobs

    def fit(self, X, y, sample_weight=None):
        X, (Y, classes, kind, dtype) = self.read(X), self.read_targets(y)
        if X.shape[0] != Y.shape[0]:
            raise ValueError(f"y has {Y.shape[0]} rows and X has {X.shape[0]}.")
        weight = np.ones(len(y) if kind == "classes" else Y.shape[0])
        weight = weight if sample_weight is None else np.asarray(sample_weight, float)
        if weight.shape != (X.shape[0],):
            raise ValueError(f"sample_weight must have {X.shape[0]} entries.")
        weighted = sp.diags_array(weight) @ Y
        near, count = (weighted.T @ X).tocsr(), np.asarray(weighted.sum(axis=0)).ravel()
        total, rest = sp.csr_array(weight[None] @ X), weight.sum() - count
        near = sp.diags_array(1 / np.maximum(count, 1)) @ near
        # The mean of the others, times how many they are, is the total without these.
        far = np.asarray(total.toarray()) - near.toarray() * count[:, None]
        far = np.where(rest[:, None] > 0, far / np.maximum(rest, 1e-300)[:, None], 0)
        near = near.toarray()
        self.coef_ = np.where(count[:, None] > 0, near - far, 0)
        self.intercept_ = np.where(count > 0, ((far**2).sum(1) - (near**2).sum(1)) / 2, -1.0)
        self.n_features_in_, self.classes_ = X.shape[1], classes
        self._kind, self._dtype = kind, dtype
        return self

    def read(self, X):
        if sp.issparse(X):
            X = X.tocsr()
            X.check_format(full_check=True)
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        if not np.isfinite(X.data).all():
            raise ValueError("X contains NaN or infinity.")
        return X

    def read_targets(self, y):
        if not sp.issparse(y) and np.ndim(y) == 1:
            classes, places = np.unique(y, return_inverse=True)
            return sp.csr_array(np.eye(len(classes))[places]), classes, "classes", None
        dtype = y.dtype if sp.issparse(y) else np.asarray(y).dtype
        kind = {True: "matrix", False: "array"}[isinstance(y, sp.spmatrix)]
        Y = self.read(y)
        if not np.isin(Y.data, [0, 1]).all():
            raise ValueError("y must be an indicator of 0 and 1.")
        return Y, np.arange(Y.shape[1]), kind if sp.issparse(y) else "dense", dtype

    def pieces(self, X):
        check_is_fitted(self)
        X = self.read(X)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} features, expected {self.n_features_in_}.")
        step = max(1, 2**22 // len(self.classes_))
        for first in range(0, X.shape[0], step):
            yield self.scores(X[first : first + step])

    def scores(self, X):
        return X @ self.coef_.T + self.intercept_

    def best(self, scores, k):
        if scores.shape[1] > 1000 > k:  # where sorting all of them takes long
            some = np.sort(np.argpartition(-scores, k, axis=1)[:, :k], axis=1)
            order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
            order = np.take_along_axis(some, order, axis=1)
        else:
            order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        labels = np.full((len(scores), k), -1)
        found = np.full((len(scores), k), -np.inf)
        labels[:, : order.shape[1]] = order
        found[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
        return labels, found

    def best_of(self, X, k):
        parts = [self.best(scores, k) for scores in self.pieces(X)]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def predict_topk(self, X, k=5):
        return self.best_of(X, k)

    def answer(self, X, of_scores, is_kept=None):
        if self._kind in ("dense", "classes"):
            return of_scores(np.concatenate(list(self.pieces(X))))
        labels, scores = self.best_of(X, min(self.top_k, len(self.classes_)))
        kept = np.ones_like(labels, bool) if is_kept is None else is_kept(scores)
        container = sp.csr_matrix if self._kind == "matrix" else sp.csr_array
        indptr = np.r_[0, kept.sum(axis=1).cumsum()]
        shape = (len(labels), len(self.classes_))
        made = container((of_scores(scores)[kept], labels[kept], indptr), shape=shape)
        made.sort_indices()
        return made

    def decision_function(self, X):
        return self.answer(X, lambda scores: scores)

    def predict_proba(self, X):
        return self.answer(X, expit)

    def predict_log_proba(self, X):
        return self.answer(X, lambda scores: -np.logaddexp(0, -scores))

    def predict(self, X):
        check_is_fitted(self)
        if self._kind == "classes":
            return self.classes_[self.best_of(X, 1)[0][:, 0]]
        return self.answer(X, lambda s: (s > 0).astype(self._dtype), lambda s: s > 0)

    def score(self, X, y, sample_weight=None):
        best = self.best_of(X, 1)[0][:, 0]
        Y = self.read(y) if self._kind != "classes" else sp.csr_array(y[:, None] == self.classes_)
        hits = np.asarray(Y[np.arange(len(best)), best]).ravel()
        return float(np.average(hits, weights=sample_weight))

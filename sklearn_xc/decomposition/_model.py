"""What a fitted model with dense weights behind a hidden layer answers."""

import copy
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._allowed_labels import AllowedLabels
from sklearn_xc._best_allowed import Scorer, best_of_pairs, rows_of_like_size
from sklearn_xc._checks import check_rows
from sklearn_xc._data import CsrRows, DenseRows, read_only
from sklearn_xc._declared_state import Array, Number, Record, declares
from sklearn_xc._parts import same_part
from sklearn_xc._state import reads_one_state
from sklearn_xc.base import XCClassifier
from sklearn_xc.decomposition._intercept import log_odds_of_blank
from sklearn_xc.decomposition._metric import subtract_norms
from sklearn_xc.decomposition.course import with_intercepts
from sklearn_xc.kernels.search.candidates import rank_labels, score_labels
from sklearn_xc.mips import ExactIndex, MipsIndex, copy_index, index_bytes, make_index
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.row_ranges import for_row_ranges
from sklearn_xc.solvers.layers import HiddenLayer, IdentityLayer
from sklearn_xc.solvers.moving_rows import MovingRows

#: Values of embedded instances that are held at a time.
_TOGETHER = 2**23
#: Instances that a thread scores at a time.
_QUERIES = 256
#: Without max_memory, arrays of fewer bytes are made without a look at the memory that is left.
_SMALL = 2**26

#: The labels and scores of some instances, best first.
Found = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class SearchIndex:
    """An index for answers, and of which model.

    Attributes
    ----------
    coef, intercept : ndarray
        Of the model; for others another index is built.
    kind : str or MipsIndex
        A name, or a copy of the instance that was asked for.
    labels : ndarray of int32
        The labels that it has, those with a training instance.
    index : MipsIndex
        Never changed.
    """

    coef: np.ndarray
    intercept: np.ndarray
    kind: str | MipsIndex
    labels: np.ndarray
    index: MipsIndex


class _Building:
    """Who builds an index has this, so that threads that need one wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_building = _Building()
if hasattr(os, "register_at_fork"):  # a thread that builds is not in the child
    os.register_at_fork(after_in_child=_building.__init__)  # type: ignore[misc]


@declares(
    coef_=Array("real", "labels", lambda model: model._width()),
    intercept_=Array("real", "labels"),
    feature_embedding_=Array("real", "features", "dim", optional=True),
    embedding_dim_=Number("int", least=0),
    n_candidates_=Number("int", least=1),
    threshold_=Number(),
    _course=Record("Course", dim=lambda model: model._width()),
)
class HiddenLayerModel(XCClassifier):
    """Scores that are inner products of embedded instances and labels."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    feature_embedding_: np.ndarray | None
    n_candidates_: int
    threshold_: float
    max_memory: Any
    n_jobs: int | None

    @reads_one_state
    def embed(self, X: Any) -> np.ndarray:
        """Return the vector of each instance in which scores are linear.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, dim)
            ``X @ feature_embedding_`` with a hidden layer, otherwise the dense X. Scores are
            ``embed(X) @ coef_.T + intercept_``, except for instances without features; where
            scores are distances, the squared norm of the embedding is subtracted.

        Raises
        ------
        MemoryBudgetError
            If it does not fit into `max_memory` or the machine's free memory.
        """
        check_is_fitted(self)
        instances = check_rows(self, X, reset=False)
        n, dim = instances.shape[0], self.coef_.shape[1]
        self._require_bytes(
            n * dim * self.coef_.itemsize, f"the embedding, {n} instances x {dim}",
            "Ask for fewer instances at a time.",
        )  # fmt: skip
        return self._embedded(instances)

    @property
    def metric_(self) -> np.ndarray:
        """Return the M of a Mahalanobis distance, ``(x - p)' M (x - p)``.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Positive semidefinite: ``feature_embedding_ @ feature_embedding_.T``.

        Raises
        ------
        AttributeError
            Before a fit, and for a model with another metric.
        MemoryBudgetError
            If it does not fit into `max_memory` or the machine's free memory.
        """
        name = type(self).__name__
        if not hasattr(self, "coef_"):
            raise AttributeError(f"metric_: this {name} is not fitted yet.")
        L = self.feature_embedding_
        if L is None or self._course.metric != "mahalanobis":
            raise AttributeError(
                f"metric_: this {name} was fitted with metric={self._course.metric!r}, and only "
                "'mahalanobis' learns one."
            )
        d = len(L)
        self._require_bytes(
            d * d * L.itemsize, f"the metric, {d} x {d} features", "Use feature_embedding_."
        )
        return L @ L.T

    @reads_one_state
    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        exact: bool = True,
        *,
        candidates: Any = None,
        exclude: Any = None,
    ) -> Found:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        exact : bool, default=True
            Whether to score all labels. False asks the index for ``n_candidates_`` labels (at
            least k) and scores these exactly: some of the best may be missed. The index is built
            on first use.
        candidates : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may be returned: members of ``classes_``, for all instances; or a
            sparse matrix or array whose non-zeros mark the labels allowed for each instance. None
            allows all. They are all scored, whatever `exact` is: nothing is searched.
        exclude : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may not be returned, in the same forms. Not together with `candidates`.
            The index is asked for that many more labels.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position. Labels
            without a training instance come last.
        scores : ndarray of float of shape (n, k)
            Their scores, padded with -inf.

        Raises
        ------
        ValueError
            For a number of features other than in fit, NaN, a `k` that is not a positive integer,
            and numbers so large that scores overflow.
        MemoryBudgetError
            If the answer or the index does not fit into `max_memory` or the machine's free memory.

        Examples
        --------
        The search finds most of the best labels, and is faster where there are many labels:

        >>> from sklearn.datasets import load_digits
        >>> from sklearn_xc import DecompMIPSClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = DecompMIPSClassifier(random_state=0).fit(X / 16, y)
        >>> all_scored, _ = clf.predict_topk(X / 16, k=1)
        >>> searched, _ = clf.predict_topk(X / 16, k=1, exact=False)
        >>> bool((all_scored == searched).mean() > 0.95)
        True
        """
        check_is_fitted(self)
        k = self._check_topk_size(k, X)
        if not isinstance(exact, bool | np.bool_):
            raise ValueError(f"{type(self).__name__}: exact must be True or False. Got {exact!r}.")
        allowed = self._read_allowed(X, candidates, exclude)
        if allowed is not None:
            return self._allowed_topk(X, k, allowed, exact=exact)
        return self._unseen_last(*self._topk(X, k, self._best if exact else self._search))

    def _width(self) -> str:
        """Return which length the vectors of labels have."""
        return "features" if self.feature_embedding_ is None else "dim"

    def _topk_scores(self, X: Any, k: int) -> Found:
        return self._topk(X, k, self._best)

    def _topk_longer(self, X: Any, k: int, n_more: int, *, exact: bool = True, **how: Any) -> Found:
        if exact:
            return self._topk(X, k, self._best)
        return self._topk(X, k, lambda V, k: self._search(V, k, n_more))

    def _best_of_rows(self, X: Any, k: int, allowed: AllowedLabels, **how: Any) -> Found:
        instances = check_rows(self, X, reset=False)
        n, dtype = instances.shape[0], self.coef_.dtype
        labels, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype)
        W, offsets = read_only(self.coef_), read_only(self.intercept_)
        for rows, size in rows_of_like_size(allowed.counts, 0, _TOGETHER):
            for own, V in self._parts(instances.take(rows), self._embedded) if size else ():
                some = allowed.take(rows[own])
                best = np.full((len(V), min(k, size)), -1, np.int32)
                found = np.full(best.shape, -np.inf, dtype)
                chosen, counts = some.table(size).astype(np.int32), some.counts
                blank, V = self._blank(V), read_only(V)

                def rank(
                    first: int, last: int, V: Any = V, chosen: Any = chosen, counts: Any = counts,
                    best: Any = best, found: Any = found,
                ) -> None:  # fmt: skip
                    part = slice(first, last)
                    rank_labels(
                        W, 0, V, first, offsets, chosen[part], counts[part], best[part],
                        found[part], np.empty(last - first, np.int64),
                    )  # fmt: skip

                for_row_ranges(rank, len(V), _QUERIES, self.n_jobs)
                self._as_scores(V, found)
                self._require_finite(found[best >= 0])
                labels[rows[own], : best.shape[1]] = best
                scores[rows[own], : best.shape[1]] = found
                if blank.size:
                    few = some.take(blank)
                    log_odds = log_odds_of_blank(self._course.frequencies, dtype)
                    of_blank = log_odds[few.labels] + dtype.type(self.threshold_)
                    at = rows[own][blank]
                    labels[at], scores[at] = best_of_pairs(few, of_blank, k)
        return labels, scores

    def _scorer_of(self, labels: np.ndarray, **how: Any) -> Scorer:
        n, dim, itemsize = len(labels), self.coef_.shape[1], self.coef_.itemsize
        self._require_bytes(
            n * dim * itemsize, f"the vectors of {n} candidates x {dim}",
            "Ask for fewer candidates.",
        )  # fmt: skip
        W, offsets = read_only(self.coef_[labels]), self.intercept_[labels]
        blank = log_odds_of_blank(self._course.frequencies, W.dtype)[labels]

        def score(X: Any) -> np.ndarray:
            instances = check_rows(self, X, reset=False)
            scores = np.empty((instances.shape[0], len(W)), W.dtype)
            for own, V in self._parts(instances, self._embedded):
                out, V = scores[own], read_only(V)

                def multiply(first: int, last: int, V: Any = V, out: np.ndarray = out) -> None:
                    score_labels(W, 0, len(W), 0, V, first, out[first:last])

                for_row_ranges(multiply, len(V), _QUERIES, self.n_jobs)
                out += offsets
                self._as_scores(V, out)
                out[self._blank(V)] = blank + blank.dtype.type(self.threshold_)
            self._require_finite(scores)
            return scores

        return score

    def _topk(self, X: Any, k: int, find: Callable[[np.ndarray, int], Found]) -> Found:
        """Return the k best labels, unseen ones last, and their scores, padded."""
        instances = check_rows(self, X, reset=False)
        n, dtype = instances.shape[0], self.coef_.dtype
        labels, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype)
        unseen = self._unseen_labels
        n_trained = len(self.classes_) - len(unseen)
        k_trained = min(k, n_trained)
        for own, V in self._parts(instances, self._embedded):
            found = find(V, k_trained)
            self._as_scores(V, found[1])
            blank = self._blank(V)
            if blank.size:
                found[0][blank], found[1][blank] = self._most_frequent(V[blank[:1]], k_trained)
            labels[own, :k_trained], scores[own, :k_trained] = found
        self._require_finite(scores[:, :k_trained])
        k_all = min(k, len(self.classes_))
        labels[:, n_trained:k_all] = unseen[: max(0, k_all - n_trained)]
        return labels, scores

    def _blank(self, V: np.ndarray) -> np.ndarray:
        """Return which instances have no features, if frequencies are to speak for them."""
        if not self._course.has_intercept:
            return np.empty(0, np.intp)
        some = np.flatnonzero(V[:, 0] == 0)
        return some[~V[some].any(axis=1)]

    def _most_frequent(self, V: np.ndarray, k: int) -> Found:
        """Return the answer for an instance without features."""
        labels, log_odds = self._best(V, k, log_odds_of_blank(self._course.frequencies, V.dtype))
        return labels, log_odds + log_odds.dtype.type(self.threshold_)

    def _best(self, V: np.ndarray, k: int, intercepts: np.ndarray | None = None) -> Found:
        """Return the k best labels of embedded instances, of those trained, and their scores."""
        offsets = self._offsets(self.intercept_ if intercepts is None else intercepts)
        index = ExactIndex(self.n_jobs, offsets)
        index.build(self.coef_)
        found = index.query(V, k)
        return found.labels, found.scores

    def _search(self, V: np.ndarray, k: int, n_more: int = 0) -> Found:
        """Return the best k among the candidates of the index, and `n_more` than else."""
        search = self._search_index_for_answers()
        index = search.index
        if hasattr(index, "n_jobs"):
            index = copy.copy(index)
            index.n_jobs = self.n_jobs
        n_candidates = min(max(k, self.n_candidates_ + n_more), len(search.labels))
        queries, offsets = V, np.empty(0, V.dtype)
        if self._course.is_trained:
            queries, offsets = with_intercepts(V, np.ones(len(V), V.dtype)), self.intercept_
        found = index.query(read_only(queries), n_candidates)
        chosen, n, offsets = search.labels[found.labels], len(V), read_only(offsets)
        labels, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, V.dtype)
        counts, W, V = np.empty(n, np.int64), read_only(self.coef_), read_only(V)

        def rank(first: int, last: int) -> None:
            own = slice(first, last)
            rank_labels(
                W, 0, V, first, offsets, chosen[own], found.counts[own], labels[own], scores[own],
                counts[own],
            )  # fmt: skip

        for_row_ranges(rank, n, _QUERIES, self.n_jobs)
        short = np.flatnonzero(counts < k)
        if short.size:  # an index may find fewer than it is asked for
            labels[short], scores[short] = self._best(np.ascontiguousarray(V[short]), k)
        return labels, scores

    def _search_index_for_answers(self) -> SearchIndex:
        """Return the index of these weights, which is built on first use."""
        kind = self._index_kind()

        def held() -> SearchIndex | None:
            found = self.__dict__.get("_search_index")
            if found is None or not same_part(found.kind, kind):
                return None
            is_own = found.coef is self.coef_ and found.intercept is self.intercept_
            return found if is_own else None

        if held() is None:
            with _building.lock:
                if held() is None:
                    self._search_index = self._build_index(kind)
        search = held()
        assert search is not None
        return search

    def _build_index(self, kind: str | MipsIndex) -> SearchIndex:
        n_labels, dim = self.coef_.shape
        labels = np.delete(np.arange(n_labels, dtype=np.int32), self._unseen_labels)
        has_intercept = self._course.is_trained  # others are 0
        is_copy = has_intercept or len(labels) < n_labels
        itemsize = self.coef_.itemsize
        index = make_index(kind, self.n_jobs, f"{type(self).__name__}: index")
        self._require_bytes(
            is_copy * len(labels) * dim * itemsize
            + index_bytes(index, (len(labels), dim), itemsize),
            f"the index, of {len(labels)} labels x {dim} x {itemsize} bytes",
            "Use exact=True, or index='product'.",
        )
        W = self.coef_ if len(labels) == n_labels else self.coef_[labels]
        if has_intercept:
            W = with_intercepts(W, self.intercept_[labels])
        index.build(np.ascontiguousarray(W))
        return SearchIndex(self.coef_, self.intercept_, copy_index(kind), labels, index)

    def _as_scores(self, V: np.ndarray, products: np.ndarray) -> None:
        """Turn inner products with the vectors of labels into scores, in place."""
        if self._course.metric != "inner_product":
            with np.errstate(over="ignore", invalid="ignore"):
                subtract_norms(V, products)

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray | None:
        if self._course.metric != "inner_product":
            return None
        w = self.coef_[position]
        if self._is_binary:
            w = w - self.coef_[1 - position]
        if self.feature_embedding_ is None:
            return w[instance.indices]
        return self.feature_embedding_[instance.indices] @ w

    def _all_scores(self, X: Any) -> np.ndarray:
        instances = check_rows(self, X, reset=False)
        W, offsets = self.coef_, self.intercept_
        if self._is_binary:
            W, offsets = W[1:] - W[:1], offsets[1:] - offsets[:1]
        n, n_scores = instances.shape[0], len(W)
        self._require_bytes(
            n * n_scores * W.itemsize, f"the scores, {n} instances x {n_scores} labels",
            "Ask for fewer instances at a time, use predict_topk, or fit with a sparse y.",
        )  # fmt: skip
        scores = np.empty((n, n_scores), W.dtype)
        for own, V in self._parts(instances, self._embedded):
            out = scores[own]

            @np.errstate(over="ignore", invalid="ignore")
            def multiply(first: int, last: int, V: np.ndarray = V, out: np.ndarray = out) -> None:
                np.matmul(V[first:last], W.T, out=out[first:last])
                out[first:last] += offsets

            for_row_ranges(multiply, len(V), _QUERIES, self.n_jobs)
            if not self._is_binary:
                self._as_scores(V, out)
            blank = self._blank(V)
            if blank.size:
                log_odds = log_odds_of_blank(self._course.frequencies, W.dtype)
                if self._is_binary:
                    log_odds = log_odds[1:] - log_odds[:1]
                out[blank] = log_odds + log_odds.dtype.type(self.threshold_)
        self._require_finite(scores)
        if self._is_binary and len(self._unseen_labels):
            scores[:] = 1.0 if self._unseen_labels[0] == 0 else -1.0
        return scores

    def _topk_margins(self, X: Any, k: int) -> Found:
        labels, scores = self._topk_scores(X, k)
        return labels, scores - self.threshold_

    def _all_margins(self, X: Any) -> np.ndarray:
        scores = self._all_scores(X)
        scores -= self.threshold_
        return scores

    def _offsets(self, intercepts: np.ndarray) -> np.ndarray | None:
        """Return intercepts, -inf for labels without a training instance; None if all are 0."""
        if not len(self._unseen_labels):
            return intercepts if intercepts.any() else None
        offsets = intercepts.copy()
        offsets[self._unseen_labels] = -np.inf
        return offsets

    def _index_kind(self) -> str | MipsIndex:
        raise NotImplementedError  # this class is not an estimator by itself

    def _parts(
        self, instances: CsrRows | DenseRows, embed: Callable[[CsrRows | DenseRows], np.ndarray]
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield some instances at a time: where they are, and what their scores are linear in."""
        n, n_together = instances.shape[0], max(1, _TOGETHER // self.coef_.shape[1])
        if n <= n_together:
            yield slice(0, n), embed(instances)
            return
        for first in range(0, n, n_together):
            last = min(first + n_together, n)
            yield slice(first, last), embed(instances.take(np.arange(first, last)))

    def _embedded(self, instances: CsrRows | DenseRows) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            V = self._embed(instances)
        self._require_finite(V)
        return V

    def _embed(self, instances: CsrRows | DenseRows) -> np.ndarray:
        vectors, dtype = self.feature_embedding_, self.coef_.dtype
        rows = np.arange(instances.shape[0])
        if vectors is None:
            return IdentityLayer(instances.astype(dtype)).forward(rows)
        # Terms are added four at a time: a stored zero may change how a sum is rounded.
        X = instances.to_csr().astype(dtype).without_zeros()
        return HiddenLayer(X, MovingRows(vectors, None)).forward(rows)

    def _require_finite(self, values: np.ndarray) -> None:
        """Raise an error for embeddings or scores of instances that overflowed."""
        # A NaN is the smallest entry and the largest.
        if values.size and not np.isfinite([values.min(), values.max()]).all():
            raise ValueError(
                f"{type(self).__name__}: X has entries that are too large, scores overflow in "
                f"{self.coef_.dtype}. Scale X as in fit."
            )

    def _require_bytes(self, needed: int, what: str, advice: str) -> None:
        """Raise an error if an array does not fit into max_memory, or the memory that is left."""
        allowed = self._allowed_bytes()
        if allowed is not None or needed > _SMALL:
            require_bytes(needed, allowed, what, advice, type(self).__name__)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_search_index", None)  # is built again where it is asked for
        return state

"""The fitted model: dense label vectors, after a hidden layer for sparse instances."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_topk_size
from sklearn_xc._input.checks import check_rows
from sklearn_xc._input.data import CsrRows, DenseRows, LabelFrequencies, read_only
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.best_allowed import Scorer, best_of_pairs, rows_of_like_size
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.threads import for_row_ranges
from sklearn_xc._state.fitted import reads_snapshot
from sklearn_xc._state.schema import Array, Choice, Number, Record, declares
from sklearn_xc.base import ThresholdedScores, XCClassifier
from sklearn_xc.decomposition._weights import log_odds_of_blank
from sklearn_xc.decomposition.layers import make_layer
from sklearn_xc.decomposition.moving_rows import with_intercepts
from sklearn_xc.search import ExactIndex, MipsIndex
from sklearn_xc.search.kernels.candidates import rank_labels, score_labels
from sklearn_xc.search.label_index import label_index

#: Embedded values per chunk of rows, and rows per call of a kernel.
_CHUNK_VALUES = 2**23
_CHUNK_ROWS = 256

#: Labels and scores, best first.
Found = tuple[np.ndarray, np.ndarray]


@declares(
    coef_=Array("real", "labels", lambda model: model._width()),
    intercept_=Array("real", "labels"),
    feature_embedding_=Array("real", "features", "dim", optional=True),
    embedding_dim_=Number("int", least=0),
    n_candidates_=Number("int", least=1),
    threshold_=Number(),
    _metric=Choice("inner_product", "euclidean", "mahalanobis"),
    _has_intercept=Number("bool"),
    _trains_intercept=Number("bool"),
    _frequencies=Record("LabelFrequencies"),
    _epochs_done=Number(least=0),
)
class HiddenLayerModel(ThresholdedScores, XCClassifier):
    """Scores that are inner products of embedded instances and label vectors."""

    classes_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    feature_embedding_: np.ndarray | None
    n_candidates_: int
    max_memory: Any
    n_jobs: int | None
    _metric: str
    _has_intercept: bool  # frequencies answer for instances without features
    _trains_intercept: bool  # intercept_ may be other than 0
    _frequencies: LabelFrequencies
    _epochs_done: float

    @reads_snapshot
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
        shape = instances.shape[0], self.coef_.shape[1]
        self._require_dense(shape, "the embedding, {} instances x {}")
        return self._embedded(instances)

    @reads_snapshot
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
        k = check_topk_size(k, X, self)
        if not isinstance(exact, bool | np.bool_):
            raise ValueError(f"{type(self).__name__}: exact must be True or False. Got {exact!r}.")
        allowed = self._read_allowed(X, candidates, exclude)
        if allowed is not None:
            return self._allowed_topk(X, k, allowed, exact=exact)
        return self._unseen_last(*self._topk(X, k, self._best if exact else self._search))

    def _width(self) -> str:
        """Return the symbol of the length of label vectors."""
        return "features" if self.feature_embedding_ is None else "dim"

    # The ranked answers

    def _topk_scores(self, X: Any, k: int) -> Found:
        return self._topk(X, k, self._best)

    def _topk_longer(self, X: Any, k: int, n_more: int, *, exact: bool = True, **how: Any) -> Found:
        if exact:
            return self._topk(X, k, self._best)
        return self._topk(X, k, lambda V, k: self._search(V, k, n_more))

    def _topk(self, X: Any, k: int, find: Callable[[np.ndarray, int], Found]) -> Found:
        """Return the k best labels, unseen ones last, and their scores, padded."""
        instances = check_rows(self, X, reset=False)
        n = instances.shape[0]
        dtype = self.coef_.dtype
        labels, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype)
        unseen = self._unseen_labels
        n_trained = len(self.classes_) - len(unseen)
        k_trained = min(k, n_trained)
        for own, V in self._pieces(instances):
            found = find(V, k_trained)
            self._as_scores(V, found[1])
            blank = self._blank(V)
            if blank.size:
                best = self._best(V[blank[:1]], k_trained, log_odds_of_blank(self))
                found[0][blank], found[1][blank] = best[0], best[1] + dtype.type(self.threshold_)
            labels[own, :k_trained], scores[own, :k_trained] = found
        self._require_finite(scores[:, :k_trained])
        k_all = min(k, len(self.classes_))
        labels[:, n_trained:k_all] = unseen[: max(0, k_all - n_trained)]
        return labels, scores

    def _best(self, V: np.ndarray, k: int, intercepts: np.ndarray | None = None) -> Found:
        """Return the k best trained labels of embedded instances, from all scores."""
        offsets = self.intercept_ if intercepts is None else intercepts
        if len(self._unseen_labels):
            offsets = offsets.copy()
            offsets[self._unseen_labels] = -np.inf
        index = ExactIndex(self.n_jobs, offsets if offsets.any() else None)
        index.build(self.coef_)
        found = index.query(V, k)
        return found.labels, found.scores

    def _search(self, V: np.ndarray, k: int, n_more: int = 0) -> Found:
        """Return the k best of at least ``n_candidates_ + n_more`` labels of the index."""
        kind = self._index_kind()
        intercept = self.intercept_ if self._trains_intercept else None
        index = label_index(self, kind, intercept, self._require_index)
        queries = V if intercept is None else with_intercepts(V, np.ones(len(V), V.dtype))
        n_candidates = max(k, self.n_candidates_ + n_more)
        found = index.query(queries, n_candidates, self.n_jobs)
        labels, scores, counts = self._ranked(V, *found, k)
        short = np.flatnonzero(counts < k)  # an index may find fewer than it is asked for
        if short.size:
            labels[short], scores[short] = self._best(np.ascontiguousarray(V[short]), k)
        return labels, scores

    def _ranked(
        self, V: np.ndarray, candidates: np.ndarray, n_candidates: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the k best of the candidates of each row, and how many there are."""
        n, W, offsets, V = len(V), read_only(self.coef_), read_only(self.intercept_), read_only(V)
        labels, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, W.dtype)
        counts = np.empty(n, np.int64)

        def rank(first: int, last: int) -> None:
            own = slice(first, last)
            table = candidates[own], n_candidates[own], labels[own], scores[own], counts[own]
            rank_labels(W, 0, V, first, offsets, *table)

        for_row_ranges(rank, n, _CHUNK_ROWS, self.n_jobs)
        return labels, scores, counts

    def _best_of_rows(self, X: Any, k: int, allowed: AllowedLabels, **how: Any) -> Found:
        instances = check_rows(self, X, reset=False)
        n = instances.shape[0]
        dtype = self.coef_.dtype
        labels, scores = np.full((n, k), -1, np.int64), np.full((n, k), -np.inf, dtype)
        for rows, size in rows_of_like_size(allowed.counts, 0, _CHUNK_VALUES):
            for own, V in self._pieces(instances.take(rows)) if size else ():
                some = allowed.take(rows[own])
                table = some.table(size).astype(np.int32)
                best, found, _ = self._ranked(V, table, some.counts, min(k, size))
                self._as_scores(V, found)
                self._require_finite(found[best >= 0])
                labels[rows[own], : best.shape[1]] = best
                scores[rows[own], : best.shape[1]] = found
                blank = self._blank(V)
                if blank.size:
                    few = some.take(blank)
                    at = rows[own][blank]
                    of_blank = log_odds_of_blank(self)[few.labels] + dtype.type(self.threshold_)
                    labels[at], scores[at] = best_of_pairs(few, of_blank, k)
        return labels, scores

    # Dense scores

    def _scorer_of(self, labels: np.ndarray, **how: Any) -> Scorer:
        self._require_dense((len(labels), self.coef_.shape[1]), "vectors of {} candidates x {}")
        W = read_only(self.coef_[labels])
        offsets = self.intercept_[labels]
        of_blank = log_odds_of_blank(self)[labels]

        def multiply(V: np.ndarray, out: np.ndarray) -> None:  # rounds as predict_topk does
            score_labels(W, 0, len(W), 0, read_only(V), 0, out)

        return lambda X: self._scores(X, multiply, offsets, of_blank)

    def _all_scores(self, X: Any) -> np.ndarray:
        W = self.coef_
        offsets = self.intercept_
        of_blank = log_odds_of_blank(self)
        if self._is_binary:
            W, offsets, of_blank = (a[1:] - a[:1] for a in (W, offsets, of_blank))

        def multiply(V: np.ndarray, out: np.ndarray) -> None:
            np.matmul(V, W.T, out=out)

        scores = self._scores(X, multiply, offsets, of_blank)
        if self._is_binary and len(self._unseen_labels):
            scores[:] = 1.0 if self._unseen_labels[0] == 0 else -1.0
        return scores

    def _scores(
        self,
        X: Any,
        multiply: Callable[[np.ndarray, np.ndarray], None],
        offsets: np.ndarray,
        of_blank: np.ndarray,
    ) -> np.ndarray:
        """Return dense scores: products plus offsets, `of_blank` for rows without features."""
        instances = check_rows(self, X, reset=False)
        shape = instances.shape[0], len(offsets)
        self._require_dense(shape, "the scores, {} instances x {} labels")
        scores = np.empty(shape, self.coef_.dtype)
        for own, V in self._pieces(instances):
            out = scores[own]

            @np.errstate(over="ignore", invalid="ignore")
            def score(first: int, last: int, V: np.ndarray = V, out: np.ndarray = out) -> None:
                multiply(V[first:last], out[first:last])
                out[first:last] += offsets

            for_row_ranges(score, len(V), _CHUNK_ROWS, self.n_jobs)
            if not self._is_binary:
                self._as_scores(V, out)
            blank = self._blank(V)
            if blank.size:
                out[blank] = of_blank + of_blank.dtype.type(self.threshold_)
        self._require_finite(scores)
        return scores

    def _as_scores(self, V: np.ndarray, products: np.ndarray) -> None:
        """Turn inner products with label vectors into scores, in place."""
        if self._metric != "inner_product":
            with np.errstate(over="ignore", invalid="ignore"):
                products -= np.einsum("ij,ij->i", V, V)[:, None]
                np.minimum(products, 0, out=products)  # no distance is rounded below 0

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray | None:
        if self._metric != "inner_product":
            return None
        w = self.coef_[position]
        if self._is_binary:
            w = w - self.coef_[1 - position]
        if self.feature_embedding_ is None:
            return w[instance.indices]
        return self.feature_embedding_[instance.indices] @ w

    # The index of predict_topk(exact=False)

    def _index_kind(self) -> str | MipsIndex:
        """Return the index of a parameter; defined by the estimator."""
        raise NotImplementedError

    def _require_index(self, n_bytes: int) -> None:
        n_labels, dim = self.coef_.shape
        self._require_bytes(
            n_bytes,
            f"the index, of {n_labels} labels x {dim} x {self.coef_.itemsize} bytes",
            "Use exact=True, or index='product'.",
        )

    # Embedded instances

    def _pieces(self, instances: CsrRows | DenseRows) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield row ranges, and the embedded instances of each."""
        n = instances.shape[0]
        step = max(1, _CHUNK_VALUES // self.coef_.shape[1])
        for first in range(0, n, step):
            last = min(first + step, n)
            rows = instances if n <= step else instances.take(np.arange(first, last))
            yield slice(first, last), self._embedded(rows)

    def _embedded(self, instances: CsrRows | DenseRows) -> np.ndarray:
        rows = np.arange(instances.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            V = make_layer(instances.astype(self.coef_.dtype), self.feature_embedding_).forward(
                rows
            )
        self._require_finite(V)
        return V

    def _blank(self, V: np.ndarray) -> np.ndarray:
        """Return the instances without features, if label frequencies answer for them."""
        if not self._has_intercept:
            return np.empty(0, np.intp)
        some = np.flatnonzero(V[:, 0] == 0)
        return some[~V[some].any(axis=1)]

    def _require_finite(self, values: np.ndarray) -> None:
        """Raise ValueError for embeddings or scores that overflowed."""
        if values.size and not np.isfinite([values.min(), values.max()]).all():
            raise ValueError(
                f"{type(self).__name__}: X has entries that are too large, scores overflow in "
                f"{self.coef_.dtype}. Scale X as in fit."
            )

    def _require_dense(self, shape: tuple[int, int], what: str) -> None:
        """Raise MemoryBudgetError for a dense answer that does not fit."""
        advice = "Ask for fewer instances at a time, use predict_topk, or fit with a sparse y."
        self._require_bytes(shape[0] * shape[1] * self.coef_.itemsize, what.format(*shape), advice)

    def _require_bytes(self, needed: int, what: str, advice: str) -> None:
        require_bytes(needed, self._allowed_bytes(), what, advice, type(self).__name__)

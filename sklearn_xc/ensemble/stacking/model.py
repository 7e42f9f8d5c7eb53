"""Answers of a fitted stack."""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count, refuse_disguised
from sklearn_xc._input.sklearn_private import safe_indexing
from sklearn_xc._input.sparse import check_sparse
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.best_allowed import rows_of_like_size
from sklearn_xc._labels.out_of_fold import Answers, as_rows, ask, in_parts, n_rows
from sklearn_xc._labels.some_labels import estimator_of_labels, estimator_with_classes
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.row_ranges import openmp_threads
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc._state.fitted import reads_one_state
from sklearn_xc._state.schema import Estimator, Number, Record, Texts, declares
from sklearn_xc.base import XCClassifier, logarithms
from sklearn_xc.ensemble.stacking.candidates import (
    Candidates,
    among,
    best_of_pairs,
    describe,
    gather,
)
from sklearn_xc.ensemble.stacking.learner import probabilities
from sklearn_xc.ensemble.wrapped import AnswersBlankRows
from sklearn_xc.metrics.objective import gains_of, propensities_of

#: Members are queried for this multiple of `n_candidates`, to score the candidates of others.
_DEPTH = 2.5
_CHUNK_ROWS = 4_096
#: Candidates, and places of answers, in a chunk of rows with labels of their own.
_CHUNK_CANDIDATES = 2**18

Values = Callable[[Candidates, np.ndarray], np.ndarray]


@declares(
    named_estimators_=Estimator(lists=True),
    estimators_=Estimator(lists=True),
    pair_features_=Texts("inputs"),
    final_estimator_=Record("Mixture", "Votes", foreign="predict_proba", inputs="inputs"),
    threshold_=Number(),
)
class StackedModel(AnswersBlankRows, XCClassifier):
    """Orders candidates by the probabilities of ``final_estimator_``.

    Where X is a matrix of features to all members, an instance without features is answered by the
    labels' frequencies, as by each of them.
    """

    named_estimators_: Any
    estimators_: list[Any]
    final_estimator_: Any
    threshold_: float
    n_candidates: int
    n_jobs: int | None

    def _take_labels(self, places: np.ndarray) -> None:
        super()._take_labels(places)
        self._change_members(lambda member: estimator_of_labels(member, places))

    def _name_labels(self, classes: np.ndarray) -> None:
        super()._name_labels(classes)
        self._change_members(lambda member: estimator_with_classes(member, classes))

    def _change_members(self, change: Callable[[Any], Any]) -> None:
        members = {name: change(member) for name, member in self.named_estimators_.items()}
        self.named_estimators_ = type(self.named_estimators_)(**members)
        self.estimators_ = list(members.values())

    objective: str
    _has_shortlist = True

    @reads_one_state
    def predict_proba(self, X: Any) -> Any:
        """Return the probability that each label is relevant, in the container of y in fit.

        Parameters
        ----------
        X : object of n instances
            As in fit.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a 1-D fit, rows sum to 1, and classes that are not candidates share what is left.
            Otherwise each label has a separate probability, 0 for labels that are not candidates;
            after a sparse fit, those of the ``top_k`` best labels are stored.
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, chances = self._topk_of(X, self._n_considered(X), _chances)
            return self._csr(labels, chances, chances > 0)
        chances = np.maximum(self._dense(X, _chances), 0.0)
        chances[:, self._unseen_labels] = 0.0
        if self._targets_kind == "dense":
            return chances
        is_other = chances == 0.0
        is_other[:, self._unseen_labels] = False
        n_others = is_other.sum(axis=1)
        left = np.where(n_others > 0, 1.0 - chances.sum(axis=1), 0.0).clip(0.0)
        chances += is_other * (left / np.maximum(n_others, 1))[:, None]
        return chances / chances.sum(axis=1, keepdims=True)

    @reads_one_state
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the entries of :meth:`predict_proba`, -inf for 0.

        Parameters
        ----------
        X : object of n instances
            As in fit.

        Returns
        -------
        ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
        """
        return logarithms(self.predict_proba(X))

    def _ask(
        self,
        members: list[tuple[str, Any]],
        X: Any,
        k: int = 0,
        allowed: AllowedLabels | None = None,
    ) -> list[Answers]:
        """Return the best labels of all members, at least k and as many as features need."""
        k = min(max(k, self._depth()), len(self.classes_)) if allowed is None else k
        who, are_columns = type(self).__name__, self._targets_kind != "classes"

        def ask_member(name: str, fitted: Any) -> Answers:
            how: Any = {"are_columns": are_columns, "unseen": self._unseen_labels}
            part = f"estimator {name!r}"
            return ask(part, fitted, X, k, self.classes_, who, allowed=allowed, **how)

        workers = min(count_threads(self.n_jobs, f"{who}: n_jobs"), len(members))
        if workers == 1:
            return [ask_member(*member) for member in members]
        jobs = (delayed(ask_member)(*member) for member in members)
        return Parallel(n_jobs=workers, require="sharedmem")(jobs)

    def _depth(self) -> int:
        return int(_DEPTH * check_count(self.n_candidates, f"{type(self).__name__}: n_candidates"))

    def _propensities(self) -> np.ndarray:
        return propensities_of(self.label_counts_, self.n_samples_fit_)

    def _gains(self) -> np.ndarray:
        """Return what a hit of each label counts."""
        return gains_of(self.objective, self.label_counts_, self.n_samples_fit_)

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._worth)

    def _topk_longer(
        self, X: Any, k: int, n_more: int, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._worth, n_more)

    def _best_among(
        self, X: Any, k: int, labels: np.ndarray, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._worth, 0, AllowedLabels(len(self.classes_), labels))

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._topk_of(X, k, self._worth, 0, allowed)

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, chances = self._topk_of(X, k, _chances)
        return labels, chances - self.threshold_

    def _all_scores(self, X: Any) -> np.ndarray:
        scores = self._dense(X, self._worth)
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores

    def _all_margins(self, X: Any) -> np.ndarray:
        return self._dense(X, _chances) - self.threshold_

    def _worth(self, pairs: Candidates, chances: np.ndarray) -> np.ndarray:
        return chances * self._gains()[pairs.labels]

    def _dense(self, X: Any, values: Values) -> np.ndarray:
        n, n_labels = n_rows(X, type(self).__name__), len(self.classes_)
        require_bytes(
            16 * n * n_labels,
            None,
            f"the dense scores, {n} instances x {n_labels} labels",
            "Ask for fewer instances at a time, or use predict_topk.",
            type(self).__name__,
        )
        labels, found = self._topk_of(X, n_labels, values)
        scores = np.empty((n, n_labels), found.dtype)
        np.put_along_axis(scores, labels, found, axis=1)
        return scores

    def _topk_of(
        self,
        X: Any,
        k: int,
        values: Values,
        n_more: int = 0,
        allowed: AllowedLabels | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k labels with the largest values, some rows after the other.

        Shortlists are longer by `n_more`. Of `allowed`, candidates, each is described, but no more
        for all rows than a member is asked for, or k.
        """
        name = type(self).__name__
        check_sparse(X, "X", name)
        refuse_disguised(X, f"{name}: X")
        n, blank = n_rows(X, name), self._are_blank(X)
        if allowed is not None and allowed.indptr is not None:
            labels, best = np.full((n, k), -1, np.int64), None
            for rows, size in rows_of_like_size(allowed.counts, k, _CHUNK_CANDIDATES):
                part = X if len(rows) == n else safe_indexing(as_rows(X), rows)
                of_rows = blank[rows], k, values, 0, allowed.take(rows), size
                found = self._topk_of_part(part, *of_rows)
                best = np.full((n, k), -np.inf, found[1].dtype) if best is None else best
                labels[rows], best[rows] = found
            return labels, best  # type: ignore[return-value]
        parts = [
            self._topk_of_part(part, blank[first : first + _CHUNK_ROWS], k, values, n_more, allowed)
            for first, part in zip(
                range(0, n, _CHUNK_ROWS), in_parts(X, n, _CHUNK_ROWS), strict=True
            )
        ]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore

    def _topk_of_part(
        self,
        X: Any,
        blank: np.ndarray,
        k: int,
        values: Values,
        n_more: int,
        allowed: AllowedLabels | None,
        most: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        members, depth = list(self.named_estimators_.items()), self._depth()
        answers = self._ask(members, X, max(k, depth + n_more) if allowed is None else 0)
        plain = [Answers(*(a[:, :depth] for a in both)) for both in answers]
        shortlist = self._seen(gather(plain, self.n_candidates))
        pairs = shortlist
        if n_more:
            longer = [Answers(*(a[:, : depth + n_more] for a in both)) for both in answers]
            n_candidates = self.n_candidates + n_more
            pairs = self._seen(among(plain, longer, shortlist, n_candidates, 0))
        if allowed is not None:
            of_each = allowed.indptr is not None
            n_asked = most if of_each else min(len(allowed.labels), max(k, depth))
            asked = self._ask(members, X, max(1, n_asked), allowed)
            n_candidates = n_asked if of_each else max(k, self.n_candidates)
            pairs = self._seen(among(plain, asked, shortlist, n_candidates, depth))
        features = describe(pairs, self.label_counts_, shortlist)
        with openmp_threads(count_threads(self.n_jobs)):
            chances = probabilities(self.final_estimator_, features)
        if blank.any():
            of_blank = blank[pairs.rows]
            chances[of_blank] = self._blank_chances()[pairs.labels[of_blank]]
        dtype = np.result_type(*(scores.dtype for _, scores in answers))
        worth = values(pairs, chances).astype(dtype)
        counts = np.bincount(pairs.rows, minlength=pairs.n)
        if allowed is None and (counts < min(k, len(self.classes_))).any():
            pairs, worth = self._with_others(pairs, worth, answers)
        return best_of_pairs(pairs, worth, k)

    def _seen(self, pairs: Candidates) -> Candidates:
        return pairs.take(~np.isin(pairs.labels, self._unseen_labels))

    def _with_others(
        self, pairs: Candidates, worth: np.ndarray, answers: list[Answers]
    ) -> tuple[Candidates, np.ndarray]:
        """Add what members rank further down: below 0 by the best rank, unseen labels last."""
        n_labels = len(self.classes_)
        everything = gather(answers, n_labels)
        rank = np.nanmin(everything.ranks, axis=1) if len(everything.rows) else np.empty(0)
        filled = (-rank / n_labels).astype(worth.dtype)
        filled[np.isin(everything.labels, self._unseen_labels)] -= 2.0
        keys, known = (part.rows * n_labels + part.labels for part in (everything, pairs))
        filled[np.searchsorted(keys, known)] = worth
        return everything, filled


def _chances(pairs: Candidates, chances: np.ndarray) -> np.ndarray:
    return chances

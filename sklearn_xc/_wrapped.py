"""A classifier that is another one, with something learned from its answers to held-out rows."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._allowed_labels import AllowedLabels
from sklearn_xc._arguments import check_count, refuse_disguised
from sklearn_xc._checks import check_targets, check_weights, require_labels
from sklearn_xc._clone_fits import CloneFits, Job, Watch
from sklearn_xc._data import Targets
from sklearn_xc._declared_state import Array, Estimator, declares
from sklearn_xc._explanation import Explanation
from sklearn_xc._held_out import draw_rows, split
from sklearn_xc._made_features import made_features
from sklearn_xc._out_of_fold import (
    Answers,
    RoutesFit,
    as_rows,
    ask,
    classes_of,
    known_counts,
    n_rows,
    tagger_in,
    unknown_to,
)
from sklearn_xc._pruning_notes import PruningNotes
from sklearn_xc._scored_pairs import PAIR_BYTES, ScoredPairs, scored_pairs
from sklearn_xc._seeds import draw_seed
from sklearn_xc._shared_memory import Share
from sklearn_xc._sklearn import safe_indexing
from sklearn_xc._some_labels import apart, estimator_with_classes
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc._state import reads_one_state
from sklearn_xc._topk import unwrap
from sklearn_xc.base import XCClassifier
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.progress import Fit, Progress

#: From the caller of ``fit`` to ``_train``: two decorators, fit and ``_learn_pairs`` are between.
_STACKLEVEL = 6


@declares(
    estimator_=Estimator(labels="labels", features="features"),
    group_edges_=Array(
        "int64", None, least=1, rises=True, below=lambda model: model.n_samples_fit_ + 1
    ),
)
class WrappedClassifier(RoutesFit, XCClassifier):
    """Scores and ranks as ``estimator_`` does.

    A subclass calls ``_learn_pairs`` in fit, and has the parameters ``estimator``, ``cv``,
    ``top_k``, ``max_memory``, ``n_jobs`` and ``random_state``.
    """

    estimator: Any
    estimator_: Any
    cv: Any
    top_k: int
    n_jobs: int | None
    random_state: Any

    @reads_one_state
    def predict(self, X: Any) -> Any:
        """Return the labels of each instance; the container follows that of y in fit.

        Parameters
        ----------
        X : object of n instances
            As in fit.

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a 1-D fit the class that ``estimator_`` predicts. Otherwise an indicator of the
            labels past the threshold; after a sparse fit only the ``top_k`` best of each row are
            considered.
        """
        check_is_fitted(self)
        if self._targets_kind == "classes":
            check_sparse(X, "X", type(self).__name__)
            return self.estimator_.predict(X)
        return super().predict(X)

    @property
    def _reads_matrix(self) -> bool:
        return getattr(self.estimator, "_reads_matrix", True)

    @available_if(lambda self: hasattr(self._inner, "explain"))
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that made the score of ``estimator_`` for one label and instance.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,)
            The instance.
        label : object
            A member of ``classes_``.
        feature_names : array-like of str of shape (n_features,), default=None
            Names; None takes those of fit, else column numbers.
        n_features : int or None, default=10
            How many features to list at most; None for all with a contribution.

        Returns
        -------
        Explanation
            As of the estimator.
        """
        check_is_fitted(self)
        return self.estimator_.explain(x, label, feature_names=feature_names, n_features=n_features)

    def _name_labels(self, classes: np.ndarray) -> None:
        self.classes_ = classes
        self.estimator_ = estimator_with_classes(self.estimator_, classes)

    @property
    def _inner(self) -> Any:
        """The estimator, fitted or not."""
        return getattr(self, "estimator_", self.estimator)

    def _routed_parts(self) -> dict[str, Any]:
        return {} if isinstance(self.cv, str) else {"estimator": self.estimator}

    def _learn_pairs(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        params: dict[str, Any],
        fit: Fit,
        *,
        of_classes: bool = True,
    ) -> tuple[ScoredPairs, np.ndarray]:
        """Fit ``estimator_``, and return out-of-fold answers.

        Without `of_classes` no row is held out of a 1-D y, and there are no pairs. `params` are
        further arguments of ``fit``; `fit` is told of the fits.

        Returns
        -------
        pairs : ScoredPairs
            Of the ``top_k`` best labels of each held-out row.
        seconds : ndarray of float of shape (n_folds + 1,)
            Of the training without the rows of each fold, and with all.
        """
        who = type(self).__name__
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise TypeError(f"{who}: estimator must be a classifier. Got {self.estimator!r}.")
        if tagger_in(self.estimator) is not None:
            raise TypeError(
                f"{who}: estimator must take y as a classifier does, and this one takes names. Put "
                f"{who} inside: TextClassifierXC(vectorizer, {who}(classifier))."
            )
        check_sparse(X, "X", who)
        refuse_disguised(X, f"{who}: X")
        n = n_rows(X, who)
        is_prefit = isinstance(self.cv, str)
        targets = self._check_prefit(y, n) if is_prefit else check_targets(self, y, n)
        given = check_weights(self, sample_weight, n)
        weight = np.ones(n) if given is None else given
        indptr, _ = targets.by_instance(n)
        require_labels(self, targets, np.flatnonzero((np.diff(indptr) > 0) & (weight > 0)), least=1)
        seed = draw_seed(self.random_state)
        self._keep_targets(targets)
        self._count_instances(targets, weight)
        learns, routed = of_classes or self._has_columns, self._routed(given, params)
        if is_prefit:
            rows = np.flatnonzero(weight > 0) if learns else np.empty(0, np.int64)
            return self._ask_prefit(X, targets, weight, draw_rows(rows, seed)), np.zeros(1)
        cv = self._folds_of(int(np.count_nonzero(weight > 0)))
        of_split = routed.cv.split
        folds = split(cv, X, y, targets, weight, seed, who, of_split) if learns else []
        return self._train(X, y, targets, routed.estimator.fit, weight, folds, fit)

    def _folds_of(self, n_rows: int) -> Any:
        """Return the `cv` for so many rows: a subclass may know what to take for None."""
        return self.cv

    def _check_prefit(self, y: Any, n: int) -> Targets:
        """Check the y of rows that a fitted estimator is asked about: of its classes, perhaps few.

        Raises
        ------
        ValueError
            For other classes or label columns.
        """
        who = type(self).__name__
        check_is_fitted(self.estimator, msg=f"{who}: cv is 'prefit', and estimator is not fitted.")
        known = classes_of(self.estimator)
        is_indicator = sp.issparse(y) or (np.ndim(y) == 2 and np.shape(y)[1] > 1)
        if is_indicator and np.shape(y)[1] != len(known):
            raise ValueError(
                f"{who}: y must have a column for each of the {len(known)} labels of the fitted "
                f"estimator. Got shape {np.shape(y)}."
            )
        return check_targets(self, y, n, known)

    def _ask_prefit(
        self, X: Any, targets: Targets, weight: np.ndarray, rows: np.ndarray
    ) -> ScoredPairs:
        self._require_pairs(len(rows))
        counted = known_counts([self.estimator], self.classes_, are_columns=self._has_columns)
        if counted is not None:
            self.label_counts_, self.n_samples_fit_ = counted
        self._keep_estimator(apart(self.estimator))
        if not len(rows):
            return scored_pairs([], [], [], targets, weight)
        answers = self._ask(self.estimator, safe_indexing(as_rows(X), rows), self._depth())
        return scored_pairs([answers], [rows], [self.label_counts_], targets, weight)

    def _train(
        self,
        X: Any,
        y: Any,
        targets: Targets,
        params: dict[str, Any],
        weight: np.ndarray,
        folds: list[tuple[np.ndarray, np.ndarray]],
        fit: Fit,
    ) -> tuple[ScoredPairs, np.ndarray]:
        who, notes = type(self).__name__, PruningNotes()
        self._require_pairs(sum(len(test) for _, test in folds))

        costs = [*(len(train) for train, _ in folds), len(weight)]
        progress = fit.parts("fold", len(costs), unit="fit", costs=costs, in_order=False)
        last = len(folds)
        jobs = [
            Job("estimator", self.estimator, *rows, progress.part(number))
            for number, rows in enumerate(folds)
        ]
        task = progress.part(last, name="last fit")
        jobs.append(Job("estimator", self.estimator, None, None, task))
        texts = [*(f"without {len(test)} rows" for _, test in folds), "with all rows"]
        fits = CloneFits(
            X, y, {"estimator": params}, self._depth(), self.classes_, who, targets,
            Share(self._allowed_bytes(), self._pairs_bytes(sum(len(test) for _, test in folds))),
            made_features(X),
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLabelWarning)  # there is one of our own
            done = fits.run(jobs, self.n_jobs, _Told(progress, texts))
        progress.close()
        notes.found = [note for one in done for note in one.notes]
        notes.tell(who, _STACKLEVEL)
        found, seconds, _ = zip(*done, strict=True)
        self._keep_estimator(found[-1])
        frequencies = []
        for train, _ in folds:
            # Of all rows: frequent labels would fall among rarer ones otherwise.
            scale = np.count_nonzero(weight) / len(np.unique(train))
            counts = targets.counts_among(train, len(weight))
            frequencies.append(np.rint(counts * scale).astype(np.int64))
        rows = [test for _, test in folds]
        pairs = scored_pairs(list(found[:-1]), rows, frequencies, targets, weight)
        return pairs, np.array(seconds)

    def _depth(self) -> int:
        top_k = check_count(self.top_k, f"{type(self).__name__}: top_k")
        return min(top_k, len(self.classes_))

    def _pairs_bytes(self, n: int) -> int:
        """Return what the pairs of n held-out rows take."""
        return n * self._depth() * PAIR_BYTES

    def _require_pairs(self, n: int) -> None:
        require_bytes(
            self._pairs_bytes(n), self._allowed_bytes(),
            f"the pairs, {n} held-out instances x {self._depth()} labels",
            "Hold out fewer instances (cv), or lower top_k.", type(self).__name__,
        )  # fmt: skip

    def _keep_estimator(self, fitted: Any) -> None:
        self.estimator_ = fitted
        if self._has_columns and np.array_equal(self.classes_, np.arange(len(self.classes_))):
            self.classes_ = classes_of(fitted)  # which may have been given names
        self._unseen_labels = self._find_unseen()
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    @property
    def _nor_known_by(self) -> str:  # type: ignore[override]
        return getattr(unwrap(self.estimator_, None)[0], "_nor_known_by", "")

    def _find_unseen(self) -> np.ndarray:
        """Return the labels that ``estimator_`` knows nothing of."""
        fitted = [self.estimator_] if hasattr(self, "estimator_") else []
        return unknown_to(fitted, self.label_counts_, is_prefit=isinstance(self.cv, str))

    def _ask(self, fitted: Any, X: Any, k: int, allowed: AllowedLabels | None = None) -> Answers:
        how: Any = {"are_columns": self._has_columns, "unseen": self._unseen_labels}
        who = type(self).__name__
        return ask("estimator", fitted, X, k, self.classes_, who, allowed=allowed, **how)

    def _allowed_topk(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._ask(self.estimator_, X, k, allowed)

    @property
    def _has_columns(self) -> bool:
        """Whether y was an indicator."""
        return self._targets_kind != "classes"

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self._ask(self.estimator_, X, k)

    def _all_scores(self, X: Any) -> np.ndarray:
        n, n_labels = n_rows(X, type(self).__name__), len(self.classes_)
        require_bytes(
            32 * n * n_labels, self._allowed_bytes(),
            f"the dense scores, {n} instances x {n_labels} labels",
            "Ask for fewer instances at a time, or use predict_topk.", type(self).__name__,
        )  # fmt: skip
        own = classes_of(self.estimator_)
        if hasattr(self.estimator_, "decision_function") and len(own) == n_labels:
            scores = self.estimator_.decision_function(X)
            if not sp.issparse(scores):
                scores = np.asarray(scores)
                return scores[:, None] if scores.ndim == 1 else scores
        labels, found = self._ask(self.estimator_, X, n_labels)
        scores = np.full((n, n_labels), -np.inf, found.dtype)
        at, ranks = np.nonzero(labels >= 0)
        scores[at, labels[at, ranks]] = found[at, ranks]
        return scores[:, 1:] - scores[:, :1] if self._is_binary else scores


class _Told(Watch):
    """Tells of the fits without a fold each, and of the last."""

    def __init__(self, progress: Progress, texts: list[str]) -> None:
        self._progress, self._texts = progress, texts

    def ends(self, number: int) -> None:
        """Print a line."""
        self._progress.ended(self._texts[number], number)

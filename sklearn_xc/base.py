"""Base class of the estimators: top-k prediction, and the answers derived from it."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import check_count, check_topk_size
from sklearn_xc._input.checks import check_classes, check_indicator, check_instances, check_weights
from sklearn_xc._input.data import CsrRows, Targets, check_sparse, in_parts, n_rows
from sklearn_xc._input.parts import ParameterizedParts
from sklearn_xc._input.sklearn_private import CallbackSupportMixin, Options
from sklearn_xc._labels.allowed import AllowedLabels, read_allowed
from sklearn_xc._labels.best_allowed import BestAllowed, Scorer
from sklearn_xc._labels.changes import ChangeableLabels
from sklearn_xc._labels.explanation import Explanation, as_row, check_names, explained
from sklearn_xc._labels.names import position_of
from sklearn_xc._parallel.memory import parse_bytes
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc._state.fitted import SavedEstimator, reads_snapshot, shallow_copy
from sklearn_xc._state.schema import Array, Choice, Number, Tested, declares
from sklearn_xc._topk import just_below
from sklearn_xc._warnings import warn
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.metrics import precision_at_k

#: Counters of loops are int64.
_LARGEST_INT = 2**62
#: Scores of all labels held at a time, if only some labels are wanted.
_CHUNK_SCORES = 2**22
#: Instances from which on it is a concern that most of them are predicted no label.
_FEW_ROWS = 20


@declares(
    classes_=Array("any", "labels"),
    label_counts_=Array("int64", "labels", below=lambda model: model.n_samples_fit_ + 1),
    n_samples_fit_=Number("int", least=0),
    n_features_in_=Number("int", "features", optional="missing"),
    feature_names_in_=Array("any", "features", optional="missing"),
    _targets_kind=Choice("classes", "dense", "sparse"),
    _targets_container=Choice(None, sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix),
    _targets_dtype=Tested("a dtype", lambda value, require: isinstance(value, np.dtype)),
    _unseen_labels=Array("int64", None, below="labels", ascending=True),
)
class XCClassifier(
    ParameterizedParts,
    ChangeableLabels,
    SavedEstimator,
    CallbackSupportMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Base class of all classifiers: every answer follows from the best-scored labels.

    A subclass calls ``_keep_targets(targets)`` and ``_count_instances(targets, weight)`` in fit,
    has a parameter ``top_k``, and defines ``_topk_scores(X, k)`` and ``_all_scores(X)`` with
    columns in the order of ``classes_``; after a 1-D fit of two classes ``_all_scores`` has the
    single column of the second. ``_topk_scores`` ranks ``_unseen_labels``, those without a training
    instance, below all others; their scores are set here. An indicator fit predicts the labels with
    positive scores; ``_topk_margins`` and ``_all_margins`` shift them for other thresholds.
    """

    label_counts_: np.ndarray
    n_samples_fit_: int
    #: Positions of labels without training instance (or other information), ascending.
    _unseen_labels: np.ndarray = np.empty(0, np.int64)
    #: Other information that ``_unseen_labels`` lack, for the warning.
    _also_lacking = ""

    @reads_snapshot
    def predict_topk(
        self, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance and their scores, best first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        candidates : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may be returned: members of ``classes_``, for all instances; or, for
            each instance, a row of a sparse matrix or array whose non-zeros mark the labels. None
            allows all.
        exclude : sequence, or indicator of shape (n, n_labels), default=None
            The labels that may not be returned, in the same forms. Not together with `candidates`.

        Returns
        -------
        indices : ndarray of int64 of shape (n, k)
            Positions in ``classes_``, padded with -1. Ties go to the smaller position.
        scores : ndarray of float of shape (n, k)
            Scores of these labels, padded with -inf. Labels without a training instance come last,
            1 below the lowest other score of the row, or at -inf if the row has no others.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            If `k` is not a positive integer, if X has another number of features or holds NaN or
            infinity, or if `candidates` or `exclude` name unknown labels, have the wrong shape, or
            are both given.
        MemoryBudgetError
            If an answer with k columns does not fit into memory.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> labels, scores = clf.predict_topk(X, k=1)
        >>> clf.classes_[labels].tolist()
        [['soup'], ['bread'], ['soup']]

        Exclude labels that an instance already has, or that no instance may get:

        >>> labels, scores = clf.predict_topk(X, k=2, exclude=["soup"])
        >>> labels
        array([[ 1, -1],
               [ 1, -1],
               [ 1, -1]])
        """
        check_is_fitted(self)
        k = check_topk_size(k, X, self)
        allowed = self._read_allowed(X, candidates, exclude)
        if allowed is not None:
            return self._allowed_topk(X, k, allowed)
        return self._unseen_last(*self._topk_scores(X, k))

    @reads_snapshot
    def decision_function(self, X: Any) -> Any:
        """Return scores; the container follows that of y in fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n, n_labels) or (n,), or CSR of shape (n, n_labels)
            After a sparse fit, a CSR with the ``top_k`` best scores of each row: a missing entry
            means that it was not scored, not that it is zero. Otherwise the scores of all labels,
            or after a 1-D fit of two classes the score of the second class. Labels without a
            training instance are absent from a CSR, and otherwise score 1 below the lowest of the
            others.

        Examples
        --------
        After a sparse fit, only the `top_k` best labels of a row are scored:

        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> OvALinearXC().fit(X, Y).decision_function(X).shape
        (3, 2)
        >>> scores = OvALinearXC(top_k=1).fit(X, csr_array(Y)).decision_function(X)
        >>> scores.shape, scores.indices.tolist()
        ((3, 2), [0, 1, 0])
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, scores = self._topk_scores(X, self._n_considered(X))
            return self._csr(labels, scores, labels >= 0)
        scores = self._below_trained(self._all_scores(X))
        return scores[:, 0] if self._is_binary else scores

    @reads_snapshot
    def predict(self, X: Any) -> Any:
        """Return the labels of each instance; the container follows that of y in fit.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.

        Returns
        -------
        ndarray of shape (n,), ndarray of shape (n, n_labels), or CSR of shape (n, n_labels)
            After a 1-D fit, the best class. Otherwise an indicator of the labels that score above
            a threshold: 0 in one-vs-all, ``threshold_`` where there is one, and in softmax a
            probability of 1 / (2 m), where m is the average number of labels of an instance. After
            a sparse fit, only the ``top_k`` best labels of each row are considered.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> clf.predict(X)
        array([[1, 0],
               [0, 1],
               [1, 1]])

        One class for each instance, by name:

        >>> OvALinearXC().fit(X, ["soup", "bread", "both"]).predict(X)
        array(['soup', 'bread', 'both'], dtype='<U5')
        """
        check_is_fitted(self)
        if self._targets_kind == "sparse":
            labels, scores = self._topk_margins(X, self._n_considered(X))
            positive = scores > 0
            self._warn_of_empty(positive)
            ones = np.ones_like(scores, dtype=self._targets_dtype)
            return self._csr(labels, ones, positive)
        if self._targets_kind == "dense":
            positive = self._all_margins(X) > 0
            positive[:, self._unseen_labels] = False
            self._warn_of_empty(positive)
            return positive.astype(self._targets_dtype)
        if self._is_binary:
            second = self._all_scores(X)[:, 0] > 0
            if self._unseen_labels.size:
                second[:] = self._unseen_labels[0] == 0
            return self.classes_[second.astype(np.int64)]
        labels, _ = self._topk_scores(X, check_topk_size(1, X, self))
        return self.classes_[labels[:, 0]]

    @reads_snapshot
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return precision@1: the share of instances whose best label is one of theirs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            True classes or labels, as in fit.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        float
            In [0, 1]; the accuracy after a 1-D fit.

        Raises
        ------
        ValueError
            If y or `sample_weight` differs in length from X, if y is of another kind than in fit,
            or if ``fit`` would refuse either. Classes that fit has not seen count as missed.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> clf.score(X, Y)
        1.0

        If soup is the only true label of each instance, the second prediction is wrong:

        >>> round(clf.score(X, [[1, 0], [1, 0], [1, 0]]), 3)
        0.667
        """
        check_is_fitted(self)
        if self._targets_kind == "classes":
            predicted = self.predict(X)
            hits = predicted == check_classes(self, y, len(predicted))
            weight = check_weights(self, sample_weight, len(hits))
            return float(np.average(hits, weights=weight))
        labels, _ = self.predict_topk(X, 1)
        n, n_labels = len(labels), len(self.classes_)
        y = check_indicator(self, y, n, n_labels)
        weight = check_weights(self, sample_weight, n)
        return precision_at_k(y, labels, k=1, sample_weight=weight)

    @reads_snapshot
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that contribute to the score of one label for one instance.

        If the score is a weighted sum of features, the contributions are its terms and add up to
        it. Otherwise (:class:`~sklearn_xc.NGAMEEmbeddingXC`, :class:`~sklearn_xc.StackingXC`), the
        contribution of a feature is how much lower the score is without it.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,)
            The instance.
        label : object
            A member of ``classes_``: a class after a 1-D fit, otherwise the name or number of a
            column.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the features, such as ``vectorizer.get_feature_names_out()``. None uses
            ``feature_names_in_`` if fit saw names, otherwise column numbers.
        n_features : int or None, default=10
            Maximum number of features to list; None for all with a contribution.

        Returns
        -------
        Explanation
            Features in descending order of the magnitude of their contribution; displayed as a
            table.

        Raises
        ------
        ValueError
            If `x` is not a single numeric instance, if `label` is unknown, or if the classifier
            reads texts.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> clf.explain([[1.0, 1.0]], "soup", feature_names=["stock", "flour"])
        soup: score +0.206
          +0.654  stock
          -0.414  flour
          -0.034  (intercept)
        """
        check_is_fitted(self)
        caller = type(self).__name__
        if not self._reads_matrix:
            raise ValueError(
                f"{caller}: explain needs a matrix of features as X. This classifier reads texts."
            )
        if n_features is not None:
            n_features = check_count(n_features, f"{caller}: n_features")
        instance = check_instances(self, as_row(x, caller), reset=False).without_zeros()
        if instance.shape[0] != 1:
            raise ValueError(
                f"{caller}: explain takes one instance, x has {instance.shape[0]} rows."
            )
        position = self._position(label)
        d = instance.shape[1]
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", np.arange(d))
        names = check_names(feature_names, d, f"{caller}: feature_names")
        weights = self._feature_weights(instance, position)

        def score(rows: Any) -> np.ndarray:
            return self._scores_of(rows, position)

        n_labels = len(self.classes_)
        return explained(score, instance, weights, n_labels, label, names, n_features)

    @property
    def _reads_matrix(self) -> bool:
        """Whether X is a matrix of features rather than texts."""
        return bool(self.__sklearn_tags__().input_tags.two_d_array)

    def _feature_weights(self, instance: CsrRows, position: int) -> np.ndarray | None:
        """Return a label's weights of an instance's features; None if its score is no such sum."""
        return None

    def _scores_of(self, X: Any, position: int) -> np.ndarray:
        """Return the scores of one label, (n,), of instances that have been checked."""
        known = {name: value for name, value in vars(self).items() if name != "feature_names_in_"}
        scores = shallow_copy(self, known)._all_scores(X)
        if self._is_binary:
            return scores[:, 0] if position else -scores[:, 0]
        return scores[:, position]

    def _position(self, label: Any) -> int:
        """Return the position of a label in ``classes_``."""
        place = position_of(label, self.classes_, type(self).__name__)
        if place in self._unseen_labels:
            raise ValueError(
                f"{type(self).__name__}: label {label!r} has no training instance: no feature "
                "makes a score."
            )
        return place

    def _keep_targets(self, targets: Targets) -> None:
        """Set ``classes_``, and the container and dtype of answers."""
        self.classes_ = targets.classes
        self._targets_kind = targets.kind
        self._targets_dtype = targets.dtype
        self._targets_container: Any = targets.container

    def _count_instances(self, targets: Targets, weight: np.ndarray) -> None:
        """Set ``label_counts_`` and ``n_samples_fit_``; instances of weight 0 do not count."""
        self.label_counts_ = targets.label_counts(weight > 0).astype(np.int64)
        self.n_samples_fit_ = int(np.count_nonzero(weight))
        self._unseen_labels = self._find_unseen()

    def _find_unseen(self) -> np.ndarray:
        """Return the positions of labels without training instance, ascending."""
        return np.flatnonzero(self.label_counts_ == 0)

    def _warn_of_unseen(self) -> None:
        """Warn of unseen labels."""
        unseen = self._unseen_labels
        if not unseen.size:
            return
        some = ", ".join(repr(label) for label in self.classes_[unseen[:5]].tolist())
        warn(
            f"{type(self).__name__}: {unseen.size} of {len(self.classes_)} labels have no training "
            f"instance{self._also_lacking} ({some}{', ...' if unseen.size > 5 else ''}). They are "
            "never predicted, and rank below all others.",
            UnseenLabelWarning,
        )

    def _warn_of_empty(self, positive: np.ndarray) -> None:
        """Warn, once, if no score of most instances exceeds 0, though they should have labels."""
        n, name = len(positive), type(self).__name__
        is_untuned = type(self)._topk_margins is XCClassifier._topk_margins
        has_labels = self.label_counts_.sum() >= self.n_samples_fit_
        n_empty = n - np.count_nonzero(positive.any(axis=1))
        if is_untuned and has_labels and n >= _FEW_ROWS and 2 * n_empty > n:
            warn(
                f"{name}: predict gave {n_empty} of {n} instances no label, because scores of rare "
                f"labels seldom exceed 0. ThresholdTuner({name}()) tunes thresholds; predict_topk "
                "ranks labels. This is said once.",
                once="empty",
            )

    def _n_considered(self, X: Any = ()) -> int:
        """Return the number of labels in a row of sparse answers: at most ``top_k``."""
        top_k = check_count(self.top_k, f"{type(self).__name__}: top_k")
        n_considered = min(top_k, len(self.classes_) - len(self._unseen_labels))
        check_topk_size(max(1, n_considered), X, self)
        return n_considered

    def _read_allowed(self, X: Any, candidates: Any, exclude: Any) -> AllowedLabels | None:
        """Return which labels may be returned, None for all."""
        if candidates is None and exclude is None:
            return None
        caller = type(self).__name__
        check_sparse(X, "X", caller)
        return read_allowed(candidates, exclude, self.classes_, n_rows(X, caller), caller)

    def _allowed_topk(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best of the labels that each instance may have, padded.

        `how` has further arguments of a subclass's ``predict_topk``, for the hooks below. The hooks
        need not handle ``_unseen_labels`` and two classes. Subclasses with a shortlist define
        ``_topk_longer``, ``_best_among`` and ``_best_of_rows``, the others ``_scorer_of``.
        """
        return BestAllowed(self, X, k, allowed, how).found()

    def _topk_longer(
        self, X: Any, k: int, n_more: int, **how: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``_topk_scores``, from a shortlist that is longer by `n_more` labels."""
        return self._topk_scores(X, k)

    #: Whether only the labels of a shortlist are scored.
    _has_shortlist = False

    def _scorer_of(self, labels: np.ndarray, **how: Any) -> Scorer:
        """Return a function from X to the scores of some labels, (n, len(labels)).

        `labels` are ascending, and none is unseen. Not called for two classes.
        """

        def score(X: Any) -> np.ndarray:
            n = n_rows(X, type(self).__name__)
            step = max(1, _CHUNK_SCORES // len(self.classes_))
            return np.concatenate(
                [self._all_scores(part)[:, labels] for part in in_parts(X, n, step)]
            )

        return score

    def _best_among(
        self, X: Any, k: int, labels: np.ndarray, **how: Any
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the k best of the same labels for all rows; None to score them all."""
        return None

    def _best_of_rows(
        self, X: Any, k: int, allowed: AllowedLabels, **how: Any
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the k best candidates of each row; None to take them from all scores."""
        return None

    def _unseen_last(self, labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Score unseen labels, which ``_topk_scores`` ranks last, 1 below the last trained one."""
        n_trained = len(self.classes_) - len(self._unseen_labels)
        n_labels = len(self.classes_)
        if 0 < n_trained < min(n_labels, labels.shape[1]):
            scores[:, n_trained:n_labels] = just_below(scores[:, n_trained - 1 : n_trained])
        return labels, scores

    def _below_trained(self, scores: np.ndarray) -> np.ndarray:
        """Set dense scores of labels without training instances to 1 below all others, in place."""
        unseen = self._unseen_labels
        if 0 < len(unseen) < scores.shape[1]:
            trained = np.ones(scores.shape[1], bool)
            trained[unseen] = False
            lowest = scores.min(axis=1, where=trained, initial=np.inf)
            scores[:, unseen] = just_below(lowest)[:, None]
        return scores

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the best labels, and margins that are positive for predicted ones."""
        return self._topk_scores(X, k)

    def _all_margins(self, X: Any) -> np.ndarray:
        """Return margins that are positive for predicted labels, (n, n_labels)."""
        return self._all_scores(X)

    @property
    def _is_binary(self) -> bool:
        return self._targets_kind == "classes" and len(self.classes_) == 2

    def _csr(self, labels: np.ndarray, values: np.ndarray, kept: np.ndarray) -> Any:
        """Return a CSR of the user's kind with the kept entries, columns sorted within rows."""
        order = np.argsort(labels, axis=1)
        labels, values, kept = (
            np.take_along_axis(a, order, axis=1) for a in (labels, values, kept)
        )
        indptr = np.concatenate(([0], np.cumsum(kept.sum(axis=1))))
        shape = (len(labels), len(self.classes_))
        matrix = issubclass(self._targets_container or sp.csr_array, sp.spmatrix)
        make = sp.csr_matrix if matrix else sp.csr_array
        return make((values[kept], labels[kept], indptr), shape=shape)

    def _validate_params(self) -> None:
        """Check declared constraints, booleans as numbers, huge integers, n_jobs and max_memory."""
        name = type(self).__name__
        parameters = self.get_params(deep=False)
        with np.errstate(over="ignore"):  # a float16 next to a bound
            super()._validate_params()
        for parameter, value in parameters.items():
            declared = self._parameter_constraints.get(parameter, ["boolean"])
            if isinstance(value, bool | np.bool_) and not any(
                one in ("boolean", "verbose")
                if isinstance(one, str)
                else isinstance(one, Options) and value in one.options
                for one in declared
            ):
                raise ValueError(f"{name}: {parameter} must be a number. Got {value!r}.")
            if isinstance(value, Integral) and not -_LARGEST_INT < int(value) < _LARGEST_INT:
                raise ValueError(f"{name}: {parameter} must be below 2**62. Got {value!r}.")
        count_threads(getattr(self, "n_jobs", None), f"{name}: n_jobs")
        self._allowed_bytes()

    def _allowed_bytes(self) -> int | None:
        """Return `max_memory` in bytes; None for no limit but the machine's."""
        max_memory = getattr(self, "max_memory", None)
        if max_memory is None:
            return None
        return parse_bytes(max_memory, f"{type(self).__name__}: max_memory")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.two_d_labels = True
        return tags


def threshold_for(scores: np.ndarray, n_labels: int) -> float:
    """Return the threshold at which as many labels are predicted as are true.

    Parameters
    ----------
    scores : ndarray of float of shape (n, k)
        Of the best labels of some instances; not padded.
    n_labels : int
        True labels of these instances, at least 1.

    Returns
    -------
    float
        Halfway between the last score to exceed it and the next, or just below the smallest where
        there are not enough; of equal scores all exceed it or none.
    """
    best = np.sort(scores, axis=None)[::-1]
    if n_labels < len(best):
        return float(0.5 * (best[n_labels - 1] + best[n_labels]))
    return float(np.nextafter(best[-1], -np.inf))


class ThresholdedScores(XCClassifier):
    """An indicator fit predicts the labels whose scores exceed ``threshold_``."""

    threshold_: float

    def _topk_margins(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        labels, scores = self._topk_scores(X, k)
        return labels, scores - self.threshold_

    def _all_margins(self, X: Any) -> np.ndarray:
        scores = self._all_scores(X)
        scores -= self.threshold_
        return scores


def map_entries(function: np.ufunc, scores: Any) -> Any:
    """Return scores with `function` applied, in place, to all, or to the stored entries of a CSR.

    It turns probabilities into their logarithms, -inf for 0, and back.
    """
    values = scores.data if sp.issparse(scores) else scores
    with np.errstate(divide="ignore"):
        function(values, out=values)
    return scores

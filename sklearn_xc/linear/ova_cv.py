"""One-vs-all linear classification with C chosen by cross-validation."""

import inspect
import math
import warnings
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import (
    KFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)

from sklearn_xc._arguments import check_count, check_numbers
from sklearn_xc._checks import check_targets, check_training_instances, check_weights
from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._folds import ListedFolds, check_folds, is_list_of_folds
from sklearn_xc._sklearn import Interval, fit_context, safe_indexing
from sklearn_xc._state import built_apart
from sklearn_xc.exceptions import ConvergenceWarning
from sklearn_xc.linear.ova import OvALinearXC
from sklearn_xc.linear.path import at_cost, solve_path
from sklearn_xc.linear.problem import build_problem, check_init
from sklearn_xc.linear.training import same_problems
from sklearn_xc.metrics import TopKScorer, get_scorer
from sklearn_xc.parallel.progress import Progress

#: Powers of ten between which an int `Cs` is spread; see docs/one_vs_all.md for scores by C.
GRID = (-1.5, 1.0)

_STRATIFIED = (
    RepeatedStratifiedKFold, StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit,
)  # fmt: skip


class OvALinearXCCV(OvALinearXC):
    """One-vs-all linear classifier that chooses C by cross-validation.

    An :class:`OvALinearXC` whose ``fit`` scores every C on held-out rows, and then trains on all
    rows with the best one. In each fold a label is solved for one C after the other, each time from
    where its last two solutions point. This takes about half the time of
    ``GridSearchCV(OvALinearXC(), {"C": Cs})`` and scores the same, up to the stopping rule.

    Parameters
    ----------
    Cs : int or array-like of float of shape (n_Cs,), default=10
        Values of C to try, or how many (at most 10,000), on a logarithmic grid from 0.03 to 10:
        rows of unit length, as those of tf-idf, have their best C within it.
    cv : int, splitter or iterable of (train, test), default=5
        An int, or None for 5, is a number of folds: stratified for one class per row, as in
        scikit-learn, shuffled for an indicator. Of an iterable, `train` and `test` are row numbers
        or masks over all rows; a generator is used up by the first fit.
    scoring : str or callable, default="P@1"
        A name that :func:`sklearn_xc.metrics.get_scorer` knows, or a scorer that returns a number.
        Larger is better; the smallest C wins a tie.
    loss, init, tol, max_iter, fit_intercept, regularize_intercept, positive_weight, \
negative_weight, prune, top_k, max_memory, n_jobs, verbose
        As in :class:`OvALinearXC`. `init` starts the largest C of each fold, and the final fit.
    random_state : int, RandomState instance or None, default=0
        Shuffles the rows where `cv` is an int and y an indicator. None shuffles anew in each fit.

    Attributes
    ----------
    C_ : float
        The best C.
    Cs_ : ndarray of float64 of shape (n_Cs,)
        The values tried, in rising order.
    scores_ : ndarray of float64 of shape (n_folds, n_Cs)
        Scores on the held-out rows.
    best_index_ : int
        Place of `C_` in `Cs_`.
    best_score_ : float
        Mean score of `C_` over the folds.
    path_report_ : dict of ndarray of shape (n_folds, n_Cs)
        ``n_iter`` and ``n_products``, Newton steps and products with the Hessian, means over the
        labels; ``n_unsolved``, labels that stopped before their stopping rule held.
    classes_, coef_, intercept_, label_counts_, n_samples_fit_, n_iter_, fit_report_
        Of the final fit, as in :class:`OvALinearXC`: the model is, bit for bit, that of
        ``OvALinearXC(C=C_)``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    OvALinearXC : With a given C.
    sklearn_xc.metrics.TopKScorer : For searches over other parameters, by GridSearchCV.

    Notes
    -----
    A label without positives among a fold's training rows is solved as in :class:`OvALinearXC`.
    `sample_weight` reaches the fits, and the scorer if it takes weights.

    Memory: beside that of :class:`OvALinearXC`, the pruned weights for all Cs of one fold, and for
    each thread five times the weights of 128 labels before pruning, which `max_memory` covers.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXCCV
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXCCV(Cs=[0.1, 1, 10], cv=3).fit(X, Y)
    >>> clf.scores_.shape
    (3, 3)
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **{
            name: constraint
            for name, constraint in OvALinearXC._parameter_constraints.items()
            if name != "C"
        },
        "Cs": [Interval(Integral, 1, 10_000, closed="both"), "array-like"],
        "cv": ["cv_object"],
        "scoring": [str, callable],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        Cs=10,
        *,
        cv=5,
        scoring="P@1",
        loss="squared_hinge",
        init="msi",
        tol=None,
        max_iter=100,
        fit_intercept=True,
        regularize_intercept=True,
        positive_weight=None,
        negative_weight=None,
        prune=0.01,
        top_k=100,
        max_memory=None,
        n_jobs=None,
        random_state=0,
        verbose=0,
    ):
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.regularize_intercept = regularize_intercept
        self.positive_weight = positive_weight
        self.negative_weight = negative_weight
        self.prune = prune
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OvALinearXCCV":
        """Choose C by cross-validation and train with it on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances, in the fits and in the scores.

        Returns
        -------
        OvALinearXCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            As in :class:`OvALinearXC`; for Cs that are not positive; without folds, for those that
            cannot be made, have no training or test rows or only such of weight zero, or hold row
            numbers that do not exist; for scores that are no finite numbers.
        MemoryBudgetError
            If the work space does not fit into memory; nothing was allocated yet.

        Warns
        -----
        ConvergenceWarning
            If labels stopped before their stopping rule held, in the folds or in the final fit.
        PruningWarning, UnseenLabelWarning
            Of the final fit, as in :class:`OvALinearXC`.
        """
        instances = check_training_instances(self, X)
        targets = check_targets(self, y, instances.shape[0])
        weight = check_weights(self, sample_weight, instances.shape[0])
        Cs = self._check_grid()
        scorer = _check_scoring(self.scoring)
        folds = self._split(X, y, targets)
        self.Cs_ = Cs
        self._score_paths(scorer, folds, X, y, (instances, targets, weight))
        self._train(X, y, sample_weight, self.C_)
        self._warn()
        self._warn_of_unseen()
        return self

    def _check_grid(self) -> np.ndarray:
        """Return the Cs in rising order."""
        name = "OvALinearXCCV: Cs"
        if isinstance(self.Cs, Integral):
            return np.logspace(*GRID, check_count(self.Cs, name))
        Cs = check_numbers(self.Cs, name, None, "value of C to try")
        if not Cs.size or not (Cs > 0).all():
            raise ValueError(f"{name} must be positive. Got {Cs.min() if Cs.size else 'none'}.")
        return np.unique(Cs)

    def _split(self, X: Any, y: Any, targets: Targets) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the row numbers of each fold's training and test rows."""
        cv: Any = 5 if self.cv is None else self.cv
        if isinstance(cv, Integral) and targets.kind != "classes":
            cv = KFold(cv, shuffle=True, random_state=self.random_state)
        elif is_list_of_folds(cv):
            cv = ListedFolds(cv)
        elif isinstance(cv, bytes | np.ndarray):
            raise ValueError(
                "OvALinearXCCV: cv must be a number of folds, a splitter or a list of folds. Got "
                f"{cv!r}."
            )
        else:
            cv = check_cv(cv, y, classifier=True)
        if targets.kind != "classes" and isinstance(cv, _STRATIFIED):
            raise ValueError(
                f"OvALinearXCCV: cv: {cv} keeps the shares of classes, which an indicator does not "
                "have. Use KFold, ShuffleSplit or a number of folds."
            )
        X, y = _with_rows(X), _with_rows(y)
        return check_folds(cv.split(X, y), X.shape[0], "OvALinearXCCV", self.cv)

    def _score_paths(
        self, scorer: Any, folds: list[tuple[np.ndarray, np.ndarray]], X: Any, y: Any, checked: Any
    ) -> None:
        """Score each C in each fold, and set what follows from the scores."""
        X, y = _with_rows(X), _with_rows(y)
        weight = checked[2]
        scores = np.empty((len(folds), len(self.Cs_)))
        report = {name: np.empty_like(scores) for name in ("n_iter", "n_products")}
        report["n_unsolved"] = np.empty(scores.shape, np.int64)
        progress = Progress(type(self).__name__, "fold", len(folds))
        for fold, (train, test) in enumerate(folds):
            _check_fold_weight(weight, train, f"training rows of fold {fold}")
            _check_fold_weight(weight, test, f"test rows of fold {fold}")
            X_test, y_test = safe_indexing(X, test), safe_indexing(y, test)
            weight_test = None if weight is None else weight[test]
            for c, model in enumerate(self._fit_path(train, *checked)):
                scores[fold, c] = _score(scorer, model, X_test, y_test, weight_test)
                for name in ("n_iter", "n_products"):
                    report[name][fold, c] = model.fit_report_[name].mean()
                report["n_unsolved"][fold, c] = (model.fit_report_["status"] != "converged").sum()
            if self.verbose:
                progress.show(fold + 1, "scored")
        self.scores_, self.path_report_ = scores, report
        mean = scores.mean(axis=0)
        self.best_index_ = int(np.argmax(mean))
        self.best_score_ = float(mean[self.best_index_])
        self.C_ = float(self.Cs_[self.best_index_])
        self._warn_of_folds()

    def _fit_path(
        self,
        train: np.ndarray,
        instances: CsrRows | DenseRows,
        targets: Targets,
        weight: np.ndarray | None,
    ) -> Iterator[OvALinearXC]:
        """Yield the model of each C, trained on the rows `train`."""
        # A row that a splitter draws twice has twice the weight.
        rows, repeats = np.unique(train, return_counts=True)
        row_weight = repeats.astype(np.float64) if weight is None else repeats * weight[rows]
        rows, row_weight = rows[row_weight > 0], row_weight[row_weight > 0]
        kept = np.zeros(instances.shape[0], bool)
        kept[rows] = True
        instances, targets = instances.take(rows), targets.take(kept)
        problem = build_problem(self, 1.0, instances, targets, row_weight)
        initialiser = check_init(self, problem)
        solutions, row_of_label = solve_path(
            problem, self.Cs_, initialiser, same_problems(problem, initialiser),
            self._allowed_bytes(), self.n_jobs,
        )  # fmt: skip
        for C in self.Cs_:
            model = self._single(float(C))
            model.n_features_in_ = self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
            model._keep_targets(targets)
            model._count_instances(targets, row_weight)
            model._keep(at_cost(problem, C), solutions.pop(0), row_of_label)
            yield model

    def _single(self, C: float) -> OvALinearXC:
        """Return an unfitted classifier for one C, with the parameters of this one."""
        shared = set(OvALinearXC._get_param_names()) - {"C"}
        return OvALinearXC(C, **{name: getattr(self, name) for name in shared})

    def _warn_of_folds(self) -> None:
        n_unsolved = self.path_report_["n_unsolved"]
        if n_unsolved.any():
            warnings.warn(
                f"OvALinearXCCV: in {(n_unsolved > 0).sum()} of {n_unsolved.size} fits to the "
                f"folds, up to {n_unsolved.max()} labels stopped before their stopping rule held. "
                "Raise max_iter or tol, or leave out the largest Cs; path_report_ has their "
                "numbers.",
                ConvergenceWarning,
                stacklevel=6,
            )


def _check_scoring(scoring: Any) -> Any:
    """Return the scorer that `scoring` names or is."""
    try:
        scorer = get_scorer(scoring)
    except ValueError as error:
        raise ValueError(f"OvALinearXCCV: {error}") from None
    if isinstance(scorer, TopKScorer) and np.size(scorer.ks) * len(scorer.metrics) > 1:
        raise ValueError(
            f"OvALinearXCCV: scoring must give one number to choose C by, {scorer!r} gives "
            'several. Pass one of its names, such as "P@1".'
        )
    return scorer


def _score(scorer: Any, model: OvALinearXC, X: Any, y: Any, weight: np.ndarray | None) -> float:
    """Return the score of a model, weighted if the scorer takes weights."""
    if weight is not None and _takes_weight(scorer):
        value = scorer(model, X, y, sample_weight=weight)
    else:
        value = scorer(model, X, y)
    if isinstance(value, Mapping) and len(value) == 1:
        (value,) = value.values()
    if not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(
            f"OvALinearXCCV: scoring must give one finite number, {scorer!r} gave {value!r} for "
            f"C={model.C:g}."
        )
    return float(value)


def _takes_weight(scorer: Any) -> bool:
    accepts = getattr(scorer, "_accept_sample_weight", None)
    if accepts is not None:
        return accepts()
    return "sample_weight" in inspect.signature(scorer).parameters


def _check_fold_weight(weight: np.ndarray | None, rows: np.ndarray, which: str) -> None:
    if weight is not None and not weight[rows].any():
        raise ValueError(
            f"OvALinearXCCV: the {which} must hold a row of positive sample_weight. Got "
            f"{rows.size} rows of weight 0."
        )


def _with_rows(array: Any) -> Any:
    """Return X or y in a container that has its rows at hand."""
    if sp.issparse(array):
        return array.tocsr()
    return array if hasattr(array, "shape") else np.asarray(array)

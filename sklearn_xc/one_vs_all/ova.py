"""One-vs-all linear classification for very many labels."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import to_array
from sklearn_xc._input.checks import (
    check_rows,
    check_targets,
    check_training_instances,
    check_weights,
    with_pair_weight,
)
from sklearn_xc._input.data import CsrRows, DenseRows, Targets
from sklearn_xc._input.sklearn_private import Interval, Options, StrOptions, fit_context
from sklearn_xc._labels.changes import are_names, with_new_names
from sklearn_xc._labels.names import column_names
from sklearn_xc._parallel.engines import Engine, active_engine
from sklearn_xc._parallel.progress import Fit
from sklearn_xc._state.fitted import fits_in_one_step
from sklearn_xc._state.schema import declares
from sklearn_xc._weights.label_weights import LabelWeights
from sklearn_xc.one_vs_all.checkpoints import BlockStore, block_store
from sklearn_xc.one_vs_all.losses import LOSSES, Logistic, MarginLoss
from sklearn_xc.one_vs_all.model import LinearModel
from sklearn_xc.one_vs_all.problem import build_problem, constant_scores, loss_of
from sklearn_xc.one_vs_all.solver.newton_cg import BlockSolution
from sklearn_xc.one_vs_all.starts import INITIALISERS, Initialiser
from sklearn_xc.one_vs_all.training import (
    assemble_weights,
    check_init,
    check_memory,
    fit_report,
    room_for_weights,
    solve_all,
    stacked,
    warn_of_fit,
)
from sklearn_xc.one_vs_all.warm_start import FittedWeights


@declares()
class OvALinearXC(LinearModel):
    """One-vs-all linear classifier, exact for each of very many labels.

    For every label j, with y in {-1, +1}, minimises over w and b::

        0.5 (|w|^2 + b^2) + C * sum_i phi(y_i (w.x_i + b))

    with a Newton method whose conjugate-gradient steps read only the instances that still have a
    loss. It starts from a vector that separates the mean of the positives from the mean of all
    instances [1]_. There is no sampling and no tree: each label's weights are the optimum of its
    own convex problem up to the stopping rule below, certified in float64.

    Parameters
    ----------
    C : float, default=None
        Weight of the summed loss relative to the ridge. None takes the loss's own default, which is
        meant for rows of norm 1: 0.5 for the hinges, 16 for "logistic".
    loss : {"squared_hinge", "logistic", "huber_hinge"} or MarginLoss, default="squared_hinge"
        phi. The hinges are faster, because instances far from the margin drop out; "logistic"
        gives probabilities (:meth:`predict_proba`). A
        :class:`~sklearn_xc.one_vs_all.losses.MarginLoss` may be your own, with its own parameters.
    init : {"msi", "zero", "bias", "ovap", "ovap++"}, Initialiser, or {array-like, sparse matrix} \
            of shape (n_labels, n_features) or (n_labels, n_features + 1), default="msi"
        Start vectors: mean-separating; zero; a negative intercept; the solution of the
        all-negative problem; the solution of a label with similar positives; an object from
        ``sklearn_xc.one_vs_all.starts`` with its own parameters; or given vectors, where an
        additional column holds intercepts. They affect the training time, not the optimum.
    tol : float, default=None
        eps0 of the stopping rule ``|g(w)| <= eps0 max(1, min(|P|, |N|)) / n |g(0)|``, with P and N
        the label's positives and negatives. None means a certificate instead: the distance of the
        objective from its minimum, bounded by ``|g(w)|^2 / 2``, is at most 0.001 of the label's
        objective, or the rule holds with 0.01 where the precision of X allows no more. The paper's
        values, 0.01 for sparse X and 1.0 for dense X, have no such bound.
    max_iter : int, default=100
        Maximum number of Newton steps for a label.
    fit_intercept : bool, default=True
        Whether to add a constant feature. The ridge includes its weight, the intercept.
    class_weight : float, array of shape (n_labels,), dict, "balanced" or "propensity", default=None
        Factors on the loss of each label's positives, as in scikit-learn's one-vs-rest
        classifiers; None means 1. A dict may give factors for some labels only. "balanced" is the
        mean frequency of labels divided by the label's own; "propensity" is the inverse propensity
        [2]_, for data where positives are missing. With two classes, a dict and "balanced" also
        weight the first.
    prune : float, default=0.01
        Weights of smaller magnitude are set to zero after training; the intercept never is.
    warm_start : bool, default=False
        Whether a further ``fit`` starts at the weights of the last one, which saves Newton steps if
        most instances are the same. Labels are matched by their names in ``classes_``, features by
        their names or, without names, by position if they are as many as before. Labels that are
        new, or whose positives mostly are, start at `init`. The optimum does not change.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, strings or integers, which become ``classes_``.
        None takes the column names of a data frame, otherwise the column numbers.
    top_k : int, default=100
        After a fit to a sparse y, how many of the best labels predict and decision_function
        consider.
    max_memory : int or str, default=None
        Limit, in bytes or as a string such as "8GB", on what a fit may hold beyond what the
        process held when the fit began, the model included, and on an answer. It sets block sizes;
        copies of X and weights that do not fit go to files in ``TMPDIR``. None takes a fixed size
        per thread.
    n_jobs : int, default=None
        Number of threads. The model is bit-for-bit the same for any number.
    numa : {"auto", False}, default="auto"
        Whether to pin threads to the NUMA nodes of a machine that has several. Each node gets its
        own copy of X if that takes at most a quarter of the node's free memory and there is no
        `max_memory`; otherwise X is spread over all nodes. The model is the same.
    verbose : int, default=0
        If not 0, print progress.
    checkpoint_dir : str or PathLike, default=None
        A folder in which ``fit`` saves finished blocks of labels. If the process ends before the
        fit does, the same call resumes from there and gives the same bytes, with any `n_jobs` or
        `max_memory`. Other data, parameters or versions are refused. The folder stays after the
        fit, takes as much room as the model, and is yours to remove. Use one folder per fit; it is
        not for searches, whose candidates would share it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, otherwise the names or numbers of the columns.
    coef_ : read-only csr_array of shape (n_labels, n_features)
        Weights after pruning (a single row after a 1-D fit of two classes).
    intercept_ : ndarray of shape (n_labels,)
        Intercepts; (1,) after a 1-D fit of two classes, as are ``n_iter_`` and ``fit_report_``.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of instances with each label (or of each class).
    n_samples_fit_ : int
        Instances seen in fit.
    n_iter_ : ndarray of int64 of shape (n_labels,)
        Newton steps of each label.
    fit_report_ : dict of ndarray of shape (n_labels,)
        ``n_iter``; ``n_products``, the products with the Hessian; ``status``, "converged",
        "max_iter" or "stalled" (at the precision of the dtype); ``objective``, ``gradient_norm``
        and ``suboptimality``, an upper bound on the objective's distance from the minimum, all in
        float64 at the weights before pruning; ``gradient_tolerance``, the stopping rule's right
        side; ``pruned``, the share of the weights' squared norm that pruning removed; ``seconds``,
        an estimate. ``pandas.DataFrame(clf.fit_report_)`` shows it as a table.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Memory: X and a copy of it, the pruned weights, and for each thread about 64 (10 n_features + 5
    n) bytes in float32 or 64 (18 n_features + 5 n) in float64, with 1.5 n where n is above 524,288;
    for a loss that is never zero, 64 (17 n_features + n) and 64 (32 n_features + 2 n). The bound on
    the suboptimality is ``|g|^2 / 2``, as the objective is 1-strongly convex. Where instances of
    little loss are left out of a label's working set, their loss is added to it, and
    `gradient_norm` is that of the same bound. Labels with the same instances are solved once. An
    instance none of whose features has a weight is scored by the training frequencies of the
    labels, not by `intercept_`.

    Source: method and constants of [1]_, section 2. It differs in solving labels in blocks that
    share the product with X, and in the float64 certificate.

    References
    ----------
    .. [1] E. Schultheis and R. Babbar, "Speeding-up one-versus-all training for extreme
       classification via mean-separating initialization", Machine Learning 111, 2022.
    .. [2] H. Jain, Y. Prabhu and M. Varma, "Extreme multi-label loss functions for recommendation,
       tagging, ranking and other missing label applications", KDD 2016.

    Examples
    --------
    >>> from sklearn_xc import OvALinearXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=600, n_features=300, n_labels=80, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC().fit(X[:400], Y[:400])
    >>> labels, scores = clf.predict_topk(X[400:], k=3)
    >>> labels.shape
    (200, 3)
    >>> from sklearn_xc.metrics import precision_at_k
    >>> precision_at_k(Y[400:], labels, k=[1, 3]).round(1)
    array([0.7, 0.4])
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "C": [Interval(Real, 0, None, closed="neither"), None],
        "loss": [StrOptions(set(LOSSES)), MarginLoss],
        "init": [StrOptions(set(INITIALISERS)), Initialiser, "array-like", "sparse matrix"],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "class_weight": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"balanced", "propensity"}),
            dict,
            "array-like",
            None,
        ],
        "prune": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "label_names": ["array-like", None],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "numa": [StrOptions({"auto"}), Options(bool, {False})],
        "verbose": ["verbose"],
        "checkpoint_dir": [str, PathLike, None],
    }

    def __init__(
        self,
        C=None,
        *,
        loss="squared_hinge",
        init="msi",
        tol=None,
        max_iter=100,
        fit_intercept=True,
        class_weight=None,
        prune=0.01,
        warm_start=False,
        label_names=None,
        top_k=100,
        max_memory=None,
        n_jobs=None,
        numa="auto",
        verbose=0,
        checkpoint_dir=None,
    ):
        self.C = C
        self.loss = loss
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.prune = prune
        self.warm_start = warm_start
        self.label_names = label_names
        self.top_k = top_k
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.numa = numa
        self.verbose = verbose
        self.checkpoint_dir = checkpoint_dir

    def _start_at(
        self, fitted: Any, feature_names: np.ndarray | None, present: tuple[np.ndarray, np.ndarray]
    ) -> None:
        """Let the next fit, of this estimator or a clone, start at the weights of a fitted one.

        Parameters
        ----------
        fitted : object
            Without weights, the fit starts as configured.
        feature_names : ndarray of str or None
            Names of its features; ``RefittableFeatures.names`` has those of the next fit.
        present : (ndarray of shape (n_labels,), ndarray of int64 of shape (n_labels,))
            The labels of all rows and their instances.
        """
        can_start = "warm_start" in self._get_param_names()
        if can_start and isinstance(fitted, OvALinearXC) and hasattr(fitted, "_weights"):
            start = FittedWeights(fitted)
            start.feature_names, start.present = feature_names, present
            vars(self)["_start"] = start

    def __sklearn_clone__(self) -> "OvALinearXC":
        other = super().__sklearn_clone__()
        vars(other).update({"_start": self._start} if "_start" in vars(self) else {})
        return other

    @fit_context(prefer_skip_nested_validation=True)
    @fits_in_one_step
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, pair_weight: Any = None
    ) -> "OvALinearXC":
        """Train one linear classifier per label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept; other dtypes become float64. A dense X of
            which more than four fifths are zeros is read as sparse.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse. A sparse one is never
            made dense.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances. A weight of 2 is a repeated row, a weight of 0 a missing one.
        pair_weight : {array-like, sparse matrix} of shape (n, n_labels), default=None
            Relevance of each label of each instance, for an indicator y: factors on the loss of its
            positive entries. A positive number where y is 1, nothing elsewhere.
            The frequencies that `class_weight` reads do not count it.

        Returns
        -------
        OvALinearXC
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, a `pair_weight` that does not fit it, incompatible
            parameters, or a `checkpoint_dir` of another fit.
        OSError
            If `checkpoint_dir` cannot be written; blocks already saved stay.
        MemoryBudgetError
            If the work space does not fit into memory; raised before anything is allocated.

        Warns
        -----
        ConvergenceWarning
            If the training of labels ended before their stopping rule held.
        PruningWarning
            If pruning removed more than 10% of the weights' squared norm.
        UnseenLabelWarning
            If labels have no training instance.
        """
        has_weights = self.warm_start and hasattr(self, "_weights")
        previous = FittedWeights(self) if has_weights else vars(self).pop("_start", None)
        progress = Fit(self, X, y, sample_weight)
        instances = check_training_instances(self, X)
        targets = check_targets(self, y, instances.shape[0])
        targets = with_pair_weight(self, targets, pair_weight, instances.shape[0])
        weight = check_weights(self, sample_weight, instances.shape[0])
        with self._store(instances, targets, weight, start=previous and previous.arrays) as store:
            self._train(instances, targets, weight, self._fitted_cost, progress, store, previous)
            progress.end()
        warn_of_fit(self)
        self._warn_of_unseen()
        return self

    @contextmanager
    def _store(self, *data: Any, **others: Any) -> Iterator[BlockStore | None]:
        """Yield the blocks in `checkpoint_dir`; None without one."""
        yield None if self.checkpoint_dir is None else block_store(self, *data, **others)

    def _train(
        self,
        instances: CsrRows | DenseRows,
        targets: Targets,
        weight: np.ndarray | None,
        C: float,
        progress: Fit,
        store: BlockStore | None,
        previous: FittedWeights | None = None,
    ) -> None:
        """Solve the problems of all labels and set the fitted attributes."""
        self._keep_targets(targets)
        self._count_instances(targets, np.ones(instances.shape[0]) if weight is None else weight)
        if weight is not None and not weight.all():
            kept = weight > 0
            instances, weight = instances.take(np.flatnonzero(kept)), weight[kept]
            targets = targets.take(kept)
        in_files = check_memory(self, instances, targets)
        problem = build_problem(self, C, instances, targets, weight, in_files)
        initialiser = check_init(self, problem)
        if previous is not None:
            initialiser = previous.initialiser(self, initialiser, problem)
        solutions, row_of_label = solve_all(
            problem,
            initialiser,
            max_memory=self._allowed_bytes(),
            n_jobs=self.n_jobs,
            engine=self._engine(),
            fit=progress,
            store=store,
        )
        room = room_for_weights(problem, self._allowed_bytes())
        prior = constant_scores(problem)
        del problem, initialiser  # copies of X make room for the model
        self._set_solutions(solutions[0], row_of_label, prior, room)

    def _set_solutions(
        self,
        solutions: list[BlockSolution],
        row_of_label: np.ndarray,
        prior: np.ndarray,
        room: int | None,
    ) -> None:
        """Set the report and the weights; weights of more bytes than `room` go to files."""
        self.fit_report_ = fit_report(solutions, row_of_label)
        self.n_iter_ = self.fit_report_["n_iter"]
        self._is_logistic = type(loss_of(self)) is Logistic
        intercept = stacked(solutions, row_of_label, "intercepts")
        owner = type(self).__name__
        coef = assemble_weights(solutions, row_of_label, self.n_features_in_, room, owner)
        unseen = () if self._is_binary else self._unseen_labels
        self._weights = LabelWeights(coef, intercept, prior, unseen)

    def _engine(self) -> Engine:
        """Return the engine that solves the blocks; a memory limit excludes copies of X."""
        may_copy = self.max_memory is None
        is_verbose = bool(self.verbose)
        return active_engine(self.numa, self.n_jobs, may_copy=may_copy, is_verbose=is_verbose)

    @property
    def _fitted_cost(self) -> float:
        """C, or the default of the loss."""
        return float(loss_of(self).default_cost if self.C is None else self.C)

    @fit_context(prefer_skip_nested_validation=True)
    @fits_in_one_step
    def add_labels(
        self,
        X: Any = None,
        y: Any = None,
        *,
        label_features: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> "OvALinearXC":
        """Train further labels; nothing about the existing ones changes.

        Training some labels and adding others, on the same instances, gives the same as training
        all at once.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances: those of ``fit`` or others. They are read in the dtype of the model.
        y : {array-like, sparse matrix} of shape (n, n_new)
            A binary indicator of the new labels.
        label_features : None
            Not used: labels are learnt from instances.
        classes : array-like of shape (n_new,), default=None
            Names of the new labels, if those of the model have names; None takes the column names
            of a data frame. If the model numbers its columns, the new ones get the next numbers.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        OvALinearXC
            Itself. New labels come after the others; ``n_samples_fit_`` is the larger of the old
            and new number.

        Raises
        ------
        ValueError
            After a 1-D y, where a further class would be a negative of the existing ones; for
            names already in use; and as in ``fit``.

        Warns
        -----
        ConvergenceWarning, PruningWarning, UnseenLabelWarning
            As in ``fit``, for the new labels.

        Notes
        -----
        `class_weight="balanced"` uses the mean frequency of the labels that are trained together.
        Arrays of weights or start vectors must be those of the new labels: set them with
        ``set_params``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> clf = clf.add_labels(X, [[0], [0], [1]], classes=["sandwich"])
        >>> clf.classes_.tolist()
        ['soup', 'bread', 'sandwich']
        >>> clf.predict(X)
        array([[1, 0, 0],
               [0, 1, 0],
               [1, 1, 1]])
        """
        check_is_fitted(self)
        caller = type(self).__name__
        if label_features is not None:
            raise ValueError(f"{caller}.add_labels: label_features must be None: give X and y.")
        if self._targets_kind == "classes":
            raise ValueError(
                f"{caller}.add_labels needs a model of an indicator y: instances of a further "
                "class would be negatives of those before. Fit anew."
            )
        if X is None or y is None:
            raise ValueError(f"{caller}.add_labels: X and y must be given. Got None.")
        if np.ndim(y) != 2:
            raise ValueError(
                f"{caller}.add_labels: y must be an indicator of the new labels, with two "
                f"dimensions. Got {np.ndim(y)}."
            )
        instances = check_rows(self, X, reset=False).astype(self._weights.intercept.dtype)
        n_old = len(self.classes_)
        names = column_names(y) if classes is None and are_names(self.classes_) else classes
        if np.shape(y)[1] == 1 and not sp.issparse(y):  # else one column is read as classes
            y = sp.csc_array(to_array(y))
        every = with_new_names(f"{caller}.add_labels", self.classes_, names, np.shape(y)[1])
        new = with_cost(self, self._fitted_cost)
        new.set_params(label_names=every[n_old:], checkpoint_dir=None)
        if isinstance(new.class_weight, dict):
            of_new = set(every[n_old:].tolist())
            new.class_weight = {k: one for k, one in new.class_weight.items() if k in of_new}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # given below
            new.fit(_as_given(instances), y, sample_weight)
        self._append(new)
        self.classes_ = every
        self.n_samples_fit_ = max(self.n_samples_fit_, new.n_samples_fit_)
        self._unseen_labels = self._find_unseen()
        self._weights.unseen = self._unseen_labels
        warn_of_fit(new)
        new._warn_of_unseen()
        return self

    def _append(self, other: "OvALinearXC") -> None:
        """Append the labels of another model of the same features."""
        own, new = self._weights, other._weights
        self.label_counts_ = np.concatenate([self.label_counts_, other.label_counts_])
        self.fit_report_ = {
            name: np.concatenate([column, other.fit_report_[name]])
            for name, column in self.fit_report_.items()
        }
        self.n_iter_ = self.fit_report_["n_iter"]
        self._weights = LabelWeights(
            sp.vstack([own.coef, new.coef], "csr"),
            np.concatenate([own.intercept, new.intercept]),
            np.concatenate([own.prior, new.prior]),
        )

    def _take_labels(self, places: np.ndarray) -> None:
        weights = self._weights
        place = np.full(len(self.classes_), -1)
        place[places] = np.arange(len(places))
        unseen = place[self._unseen_labels]
        self._unseen_labels = np.sort(unseen[unseen >= 0])
        self.classes_, self.label_counts_ = self.classes_[places], self.label_counts_[places]
        self.fit_report_ = {name: column[places] for name, column in self.fit_report_.items()}
        self.n_iter_ = self.fit_report_["n_iter"]
        # A compact model does not stay compact: its rounding depends on the weights of all labels.
        self._weights = LabelWeights(
            weights.coef[places],
            weights.intercept[places],
            None if weights.prior is None else weights.prior[places],
            self._unseen_labels,
        )


def with_cost(estimator: Any, C: float) -> OvALinearXC:
    """Return an unfitted classifier for one C, with the other parameters of an estimator."""
    shared = set(OvALinearXC._get_param_names()) - {"C", "warm_start"}
    return OvALinearXC(C, **{name: getattr(estimator, name) for name in shared})


def _as_given(instances: CsrRows | DenseRows) -> Any:
    """Return checked instances as an X that ``fit`` takes."""
    if isinstance(instances, DenseRows):
        return instances.values
    X = sp.csr_array(instances.shape, dtype=instances.dtype)
    X.data, X.indices, X.indptr = instances.data, instances.indices, instances.indptr
    return X

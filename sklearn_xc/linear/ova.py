"""One-vs-all linear classification for very many labels."""

import functools
import sys
import time
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._arguments import check_count, check_numbers, refuse_disguised
from sklearn_xc._blank_rows import LabelFrequencies, is_blank
from sklearn_xc._checks import (
    check_instances,
    check_targets,
    check_training_instances,
    check_weights,
)
from sklearn_xc._data import CsrRows, DenseRows, Targets
from sklearn_xc._sklearn import Interval, StrOptions, fit_context
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc._state import built_apart, reads_one_state
from sklearn_xc._topk import check_topk_size
from sklearn_xc.base import XCClassifier
from sklearn_xc.exceptions import ConvergenceWarning, PruningWarning
from sklearn_xc.initialisers import INITIALISERS, Given, Initialiser
from sklearn_xc.kernels.one_vs_all.constant_scores import constant_scores_kernel
from sklearn_xc.linear.assembly import assemble_weights, group_identical_labels, in_callers_features
from sklearn_xc.linear.explanation import Explanation
from sklearn_xc.linear.training import solve_blocks
from sklearn_xc.losses import LOSSES, MarginLoss
from sklearn_xc.losses.margin import check_margin_loss
from sklearn_xc.metrics import propensity
from sklearn_xc.model.anytime import AnytimeTopK, TimeBudget
from sklearn_xc.model.label_weights import LabelWeights
from sklearn_xc.parallel.blocks import BlockPlan, plan_blocks
from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.solvers.layouts import arranged
from sklearn_xc.solvers.newton_cg import (
    STATUS_NAMES,
    BlockSolution,
    largest_array,
    solve_block,
    workspace_bytes,
)
from sklearn_xc.solvers.problem import InstanceSums, OneVsAllProblem
from sklearn_xc.solvers.pruning import sum_up

#: Time between two lines of progress.
PROGRESS_SECONDS = 1.0


class OvALinearXC(XCClassifier):
    """One-vs-all linear classifier, exact for each of very many labels.

    For every label j, with y in {-1, +1}, minimises over w and b::

        0.5 (|w|^2 + b^2) + C * sum_i phi(y_i (w.x_i + b))

    with a Newton method whose conjugate-gradient steps read only the instances that still have a
    loss, started from a vector that separates the mean of the positives from the mean of all
    instances [1]_. No sampling and no tree: each label's weights are the optimum of its own
    convex problem to the stopping rule below, certified in float64.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed loss against the ridge.
    loss : {"squared_hinge", "logistic", "huber_hinge"} or MarginLoss, default="squared_hinge"
        phi. The hinges are several times faster: far instances drop out. A
        :class:`~sklearn_xc.losses.MarginLoss` may be one of yours, with parameters of its own.
    init : {"msi", "zero", "bias", "ovap", "ovap++"}, Initialiser or array, default="msi"
        Start vectors: mean-separating, zero, a negative intercept, the all-negative problem's
        solution, that of a label with similar positives; one of ``sklearn_xc.initialisers`` with
        parameters of its own; or given ones, of shape (n_labels, n_features), dense or sparse,
        where a further column holds intercepts. The optimum does not depend on them, the time does.
    tol : float, default=None
        eps0 of the stopping rule ``|g(w)| <= eps0 max(1, min(|P|, |N|)) / n |g(0)|``, with P and N
        the label's positives and negatives. None means 0.01 for sparse X and 1.0 for dense X.
    max_iter : int, default=100
        Most Newton steps for a label.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    regularize_intercept : bool, default=True
        Whether the ridge covers the intercept. If not, no bound on the suboptimality is known.
    positive_weight, negative_weight : float, array of shape (n_labels,) or "propensity", \
default=None
        Factors on the loss of each label's positives and negatives; None means 1. "propensity"
        (positives only) is the inverse propensity of the label [2]_, for data where positives are
        missing.
    prune : float, default=0.01
        Weights of smaller magnitude are set to zero after training, never the intercept.
    top_k : int, default=100
        After a sparse fit, how many of the best labels predict and decision_function consider.
    max_memory : int or str, default=None
        Bytes, or a text as "8GB", for the work space of all threads together. Block sizes follow
        from it. None takes a fixed size per thread.
    n_jobs : int, default=None
        Threads. The model is the same, bit for bit, for any number.
    verbose : int, default=0
        If not 0, print progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Class labels after a 1-D y, else column numbers.
    coef_ : csr_array of shape (n_labels, n_features)
        Weights after pruning (a single row after a 1-D fit of two classes).
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Instances with each label (or of each class).
    n_samples_fit_ : int
        Instances seen in fit.
    n_iter_ : ndarray of int64 of shape (n_labels,)
        Newton steps of each label.
    fit_report_ : dict of ndarray of shape (n_labels,)
        ``n_iter``; ``n_products``, with the Hessian; ``status``, "converged", "max_iter" or
        "stalled" (at the precision of the dtype); ``objective``, ``gradient_norm`` and
        ``suboptimality``, an upper bound on the objective's distance from the minimum, all in
        float64 at the weights before pruning; ``gradient_tolerance``, the stopping rule's right
        side; ``pruning_increase``, what pruning adds to the objective; ``seconds``, an estimate.
        ``pandas.DataFrame(clf.fit_report_)`` shows it as a table.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Memory: X, about 2 (n + n_features) x 32 values per thread, and the pruned weights.
    The bound is ``|g|^2 / 2``, as the objective is 1-strongly convex; with a free intercept it is
    infinite. Labels with the same instances are solved once. An instance of which no feature has a
    weight is scored by how frequent labels are in training, not by `intercept_`.

    Source: method and constants of [1]_, section 2; differs in that labels are solved in blocks
    that share the product with X, and in the float64 certificate.

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
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = OvALinearXC().fit(X, Y)
    >>> labels, scores = clf.predict_topk(X[:2], k=3)
    >>> labels.shape
    (2, 3)
    """

    #: Named first in messages: OvALinearXCCV has these models trained.
    _who = "OvALinearXC"
    _parameter_constraints: dict = {  # noqa: RUF012
        "C": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions(set(LOSSES)), MarginLoss],
        "init": [StrOptions(set(INITIALISERS)), Initialiser, "array-like", "sparse matrix"],
        "tol": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "regularize_intercept": ["boolean"],
        "positive_weight": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"propensity"}),
            "array-like",
            None,
        ],
        "negative_weight": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "prune": [Interval(Real, 0, None, closed="left")],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "max_memory": [Interval(Real, 0, None, closed="neither"), str, None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C=1.0,
        *,
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
        verbose=0,
    ):
        self.C = C
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
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OvALinearXC":
        """Train one linear classifier per label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances. float32 and float64 are kept, other dtypes become float64. Dense X with more
            than four fifths zeros is read as sparse.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator, dense or sparse. Nothing dense of its
            size is made from a sparse one.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances. A weight of 2 is a repeated row, a weight of 0 a missing one.

        Returns
        -------
        OvALinearXC
            The fitted estimator.

        Raises
        ------
        ValueError
            For NaN, a y that is not binary, or parameters that do not fit together.
        MemoryBudgetError
            If the work space does not fit into memory; nothing was allocated yet.

        Warns
        -----
        ConvergenceWarning
            If labels stopped before their stopping rule held.
        PruningWarning
            If pruning notably lowered precision@1, precision@5 or the F1 of what ``predict``
            returns on a sample of the training instances.
        UnseenLabelWarning
            If labels have no training instance.
        """
        self._train(X, y, sample_weight)
        self._warn()
        self._warn_of_unseen()
        return self

    def _train(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the fitted attributes; what there is to warn of, they tell."""
        instances = check_training_instances(self, X)
        targets = check_targets(self, y, instances.shape[0])
        weight = check_weights(self, sample_weight, instances.shape[0])
        self._keep_targets(targets)
        counted = np.ones(instances.shape[0]) if weight is None else weight
        self._count_instances(targets, counted)
        if weight is not None and not weight.all():
            kept = weight > 0
            instances, targets = instances.take(np.flatnonzero(kept)), targets.take(kept)
            weight = weight[kept]
        problem = self._build_problem(instances, targets, weight)
        initialiser = self._check_init(problem)
        solutions, row_of_label = self._solve(problem, initialiser)
        self._keep(problem, solutions, row_of_label)

    def _build_problem(
        self, instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
    ) -> OneVsAllProblem:
        n = instances.shape[0]
        dtype = instances.dtype
        if isinstance(instances, CsrRows):
            instances = instances.without_zeros()
        layout = arranged(instances)
        row_weight = np.ones(n) if weight is None else weight
        # Weights from 1 to 2 fit into float32, squared too; a power of two changes no digit.
        exponent = int(np.frexp(row_weight.max())[1]) - 1
        row_weight = np.ldexp(row_weight, -exponent)
        label_of_entry = np.repeat(np.arange(targets.n_problems), np.diff(targets.indptr))
        # Summed label by label: a sum that runs on would tie a label to those before it.
        positive = np.bincount(
            label_of_entry, weights=row_weight[targets.rows], minlength=targets.n_problems
        )
        total = float(row_weight.sum())
        tol = self.tol if self.tol is not None else (0.01 if instances.was_sparse else 1.0)
        least = np.maximum(np.ldexp(1.0, -exponent), np.minimum(positive, total - positive))
        plus, minus = (
            self._label_weight(name, positive, total, exponent)
            for name in ("positive_weight", "negative_weight")
        )
        return OneVsAllProblem(
            instances=layout.instances,
            columns=layout.features,
            y_indptr=targets.indptr,
            y_rows=_rearranged(targets, layout.order),
            weight=row_weight[layout.order].astype(dtype),
            plus=plus,
            minus=minus,
            relative_tolerance=tol * np.minimum(least / total, 1.0),
            margin_loss=self._check_loss(),
            fit_intercept=self.fit_intercept,
            regularize_intercept=self.regularize_intercept,
            max_iter=self.max_iter,
            prune=self.prune,
        )

    def _label_weight(
        self, name: str, positive: np.ndarray, total: float, exponent: int
    ) -> np.ndarray:
        """Return C times the loss weight of each binary problem, from the parameter `name`.

        The weights of each label's instances and of all, `positive` and `total`, are to be
        multiplied by ``2**exponent``, and so is what is returned: the rows are too small by that.
        """
        value = getattr(self, name)
        n_problems = len(positive)
        if value is None or isinstance(value, Real):
            weight = np.full(n_problems, 1.0 if value is None else float(value))
        elif isinstance(value, str):
            with np.errstate(over="ignore"):
                counts, n = np.ldexp(positive, exponent), float(np.ldexp(total, exponent))
            if not 3.0 <= n < np.inf:
                raise ValueError(
                    f"{self._who}: {name}='propensity' needs a sample_weight that sums to a number "
                    f"of instances, at least 3, got {n:.3g}."
                )
            weight = 1.0 / propensity(counts, n)
        else:
            weight = check_numbers(value, f"{self._who}: {name}", n_problems, "label")
            if not (weight > 0).all():
                at = int(np.argmin(weight))
                raise ValueError(
                    f"{self._who}: {name} must be positive, label {at} has {weight[at]}."
                )
        with np.errstate(over="ignore", under="ignore"):  # the solver's check says what to change
            return np.ldexp(self.C * weight, exponent)

    def _check_loss(self) -> MarginLoss:
        """Return the loss that the parameter `loss` names, or is."""
        loss = LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss
        check_margin_loss(loss, f"{self._who}: loss")
        return loss

    def _check_init(self, problem: OneVsAllProblem) -> Initialiser:
        """Return the initialiser that the parameter `init` names, is, or holds vectors for."""
        if isinstance(self.init, (str, Initialiser)):
            initialiser = INITIALISERS[self.init]() if isinstance(self.init, str) else self.init
            initialiser.check()
            if initialiser.needs_intercept and not self.fit_intercept:
                raise ValueError(f"{self._who}: init={self.init!r} needs fit_intercept=True.")
            return initialiser
        n_labels, d = problem.n_labels, problem.n_features
        widths = (d, d + 1) if self.fit_intercept else (d,)
        expected = f"({n_labels}, {d})" + (
            f" or ({n_labels}, {d + 1}) with intercepts" if self.fit_intercept else ""
        )
        start = _start_vectors(self.init, expected, self._who)
        if start.ndim != 2 or start.shape[0] != n_labels or start.shape[1] not in widths:
            raise ValueError(
                f"{self._who}: init must have shape {expected}, shape {start.shape} came."
            )
        values = start.data if sp.issparse(start) else start
        if not np.isfinite(values).all():
            raise ValueError(f"{self._who}: init contains NaN or infinity.")
        # Features in the order of the problem; intercepts stay last.
        order = np.concatenate([problem.columns, np.arange(d, start.shape[1])])
        return Given(start[:, order])

    def _solve(
        self, problem: OneVsAllProblem, initialiser: Initialiser
    ) -> tuple[list[BlockSolution], np.ndarray]:
        """Solve all distinct problems, in parallel over blocks.

        Returns
        -------
        solutions : list of BlockSolution
            One for each block.
        row_of_label : ndarray of int64 of shape (n_labels,)
            The row of each label in the stacked solutions.
        """
        group = _group_labels(problem, initialiser)
        plan = self._plan(problem, np.unique(group))
        return solve_blocks(
            problem, initialiser, group, plan.blocks, plan.n_workers,
            functools.partial(_solve_block, plan.n_lanes), self._progress(problem.n_labels, group),
        )  # fmt: skip

    def _plan(self, problem: OneVsAllProblem, distinct: np.ndarray) -> BlockPlan:
        n, d, itemsize = problem.n_samples, problem.n_features, problem.dtype.itemsize
        return plan_blocks(
            distinct,
            np.diff(problem.y_indptr)[distinct],
            lambda lanes: workspace_bytes(n, d, lanes, itemsize),
            lambda lanes: largest_array(n, d, lanes, itemsize),
            self._allowed_bytes(),
            count_threads(self.n_jobs, f"{self._who}: n_jobs"),
        )

    def _progress(self, n_labels: int, group: np.ndarray) -> Callable[[np.ndarray], None] | None:
        """Return what prints how many labels are done, if verbose."""
        if not self.verbose:
            return None
        began = time.perf_counter()
        shown = -PROGRESS_SECONDS
        labels_of = np.bincount(group, minlength=n_labels)
        done = 0

        def show(labels: np.ndarray) -> None:
            nonlocal done, shown
            done += int(labels_of[labels].sum())
            seconds = time.perf_counter() - began
            if seconds < shown + PROGRESS_SECONDS and done < n_labels:
                return
            shown = seconds
            print(
                f"[{self._who}] {done:,} of {n_labels:,} labels "
                f"({done / n_labels:.0%}) in {seconds:.1f} s",
                file=sys.stdout,
                flush=True,
            )

        return show

    def _keep(
        self,
        problem: OneVsAllProblem,
        solutions: list[BlockSolution],
        row_of_label: np.ndarray,
    ) -> None:
        """Set the fitted attributes."""

        def stacked(name: str) -> np.ndarray:
            return np.concatenate([getattr(s, name) for s in solutions])[row_of_label]

        gradient_norm, objective = stacked("gradient_norm"), stacked("objective")
        bounded = self.regularize_intercept or not self.fit_intercept
        self.n_iter_ = stacked("n_iter")
        self.fit_report_ = {
            "n_iter": self.n_iter_,
            "n_products": stacked("n_products"),
            "status": np.array(STATUS_NAMES)[stacked("status")],
            "objective": objective,
            "gradient_norm": gradient_norm,
            "gradient_tolerance": stacked("gradient_tolerance"),
            "suboptimality": (
                0.5 * gradient_norm**2 if bounded else np.full_like(gradient_norm, np.inf)
            ),
            "pruning_increase": stacked("pruned_objective") - objective,
            "seconds": stacked("seconds") / np.bincount(row_of_label)[row_of_label],
        }
        samples = [s.sample for s in solutions if s.sample is not None]
        self._pruning_cost = sum_up(samples) if samples else None
        intercepts = stacked("intercepts")
        self._weights = LabelWeights(
            assemble_weights(solutions, row_of_label, problem.n_features),
            intercepts,
            _prior(problem),
            () if self._is_binary else self._unseen_labels,
        )

    def _warn(self) -> None:
        """Warn of what went less than well. For ``fit`` itself to call: see `stacklevel`."""
        name, report = type(self).__name__, self.fit_report_
        # What a label without instances is solved to shows nowhere.
        matters = np.ones(len(report["status"]), bool)
        if not self._is_binary:
            matters[self._unseen_labels] = False
        out = np.flatnonzero((report["status"] == "max_iter") & matters)
        if out.size:
            warnings.warn(
                f"{name}: {out.size} of {len(report['status'])} labels did not converge "
                f"within max_iter={self.max_iter} Newton steps (labels {_some(out)}). Raise "
                "max_iter or tol, or lower C; fit_report_ holds a bound on the error of each.",
                ConvergenceWarning,
                stacklevel=5,
            )
        stalled = np.flatnonzero((report["status"] == "stalled") & matters)
        if stalled.size:
            warnings.warn(
                f"{name}: {stalled.size} of {len(report['status'])} labels stopped at the "
                f"precision of {self.intercept_.dtype} before their stopping rule held (labels "
                f"{_some(stalled)}). Raise tol, scale X to rows of about unit length, or pass X as "
                "float64 if it is not.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if self._pruning_cost is None:  # nothing was pruned
            return
        has_threshold = self._is_binary or self._targets_kind != "classes"
        lower = self._pruning_cost.losses(len(self.intercept_), has_threshold)
        if lower:
            fell = " and ".join(f"{metric} from {a:.3f} to {b:.3f}" for metric, a, b in lower)
            warnings.warn(
                f"{name}: prune={self.prune} lowered {fell} on {self._pruning_cost.n_sampled} "
                "of the training instances. Lower it: weights are the smaller, the larger X is.",
                PruningWarning,
                stacklevel=5,
            )

    @property
    def coef_(self) -> sp.csr_array:
        """Weights after pruning, csr_array of shape (n_labels, n_features)."""
        return self._fitted_weights("coef_").coef

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, ndarray of shape (n_labels,)."""
        return self._fitted_weights("intercept_").intercept

    def _fitted_weights(self, name: str) -> LabelWeights:
        try:
            return self.__dict__["_weights"]
        except KeyError:
            raise AttributeError(f"{name}: this {self._who} is not fitted yet.") from None

    def _topk_scores(self, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        instances = check_instances(self, X, reset=False)
        if not self._is_binary:
            return self._weights.topk(instances, k, self.n_jobs)
        score = self._binary_scores(instances)
        second = score > 0
        labels = np.full((len(score), max(k, 2)), -1, np.int64)
        scores = np.full((len(score), max(k, 2)), -np.inf, score.dtype)
        labels[:, 0], labels[:, 1] = second, ~second
        scores[:, 0], scores[:, 1] = np.abs(score), -np.abs(score)
        return labels[:, :k], scores[:, :k]

    def _all_scores(self, X: Any) -> np.ndarray:
        instances = check_instances(self, X, reset=False)
        if self._is_binary:
            return self._binary_scores(instances)[:, None]
        return self._weights.scores(instances, self.n_jobs, self._allowed_bytes())

    def _binary_scores(self, instances: CsrRows) -> np.ndarray:
        """Return the scores of the second of two classes, (n,); never for one that is unseen."""
        scores = self._weights.scores(instances, self.n_jobs)[:, 0]
        if not self._unseen_labels.size:
            return scores
        least = np.finfo(scores.dtype).tiny
        sign = 1 if self._unseen_labels[0] == 0 else -1
        return sign * np.maximum(np.abs(scores), least)

    @reads_one_state
    def predict_topk_anytime(self, X: Any, k: int = 5, *, time_budget: float) -> AnytimeTopK:
        """Return the best labels that can be found in a time per instance, best first.

        Features are read in a fixed order, those first that move scores most for their work. When
        the time is up, the most promising labels are evaluated to the end, and an upper bound on
        the features not read says what may have been missed.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        k : int, default=5
            How many labels; may exceed their number.
        time_budget : float
            Seconds per instance, for reading weights: what comes before and after, some tens of
            microseconds and the selection among n_labels scores, is not in it. May be 0 or inf.

        Returns
        -------
        indices, scores : ndarray of int64 and float, of shape (n, k)
            As of ``predict_topk``; the scores are those of all features.
        exact : ndarray of bool of shape (n,)
            Whether the row's labels and their order are those of ``predict_topk``. Always after an
            infinite budget, when all arrays equal its own, bit for bit.
        bound_on_missed_score : ndarray of float64 of shape (n,)
            No label that is not returned scores more. Where `exact`, at most the last score.

        Raises
        ------
        ValueError
            If `k` is not a positive integer or `time_budget` no number of at least 0.

        Notes
        -----
        Source: the bound is that of MaxScore [1]_; differs in that it does not skip postings but
        judges an early stop. One thread, row after row.

        References
        ----------
        .. [1] H. Turtle and J. Flood, "Query evaluation: strategies and optimizations",
           Information Processing and Management 31, 1995.
        """
        check_is_fitted(self)
        budget, k = TimeBudget(_check_seconds(time_budget)), check_topk_size(k, X)
        if not self._is_binary:
            instances = check_instances(self, X, reset=False)
            return self._with_unseen(self._weights.topk_anytime(instances, k, budget), k)
        labels, scores = self._topk_scores(X, k)  # a single problem is always solved to the end
        bound = np.full(len(labels), -np.inf) if k > 1 else scores[:, 0].astype(np.float64)
        return AnytimeTopK(labels, scores, np.ones(len(labels), bool), bound)

    def _with_unseen(self, answer: AnytimeTopK, k: int) -> AnytimeTopK:
        """Score labels without training instances as ``predict_topk`` does, and bound them."""
        labels, scores = self._unseen_last(answer.indices, answer.scores)
        n_labels = len(self.classes_)
        if not 0 < n_labels - len(self._unseen_labels) <= k:
            return answer
        missed = scores[:, k - 1].astype(np.float64)
        if k >= n_labels:
            missed[:] = -np.inf
        return AnytimeTopK(labels, scores, answer.exact, missed)

    @reads_one_state
    def explain(
        self, x: Any, label: Any, *, feature_names: Any = None, n_features: int | None = 10
    ) -> Explanation:
        """Return the features that made the score of one label for one instance.

        Parameters
        ----------
        x : {array-like, sparse matrix} of shape (1, n_features) or (n_features,)
            The instance.
        label : object
            A member of ``classes_``: a class after a 1-D fit, else a column number.
        feature_names : array-like of str of shape (n_features,), default=None
            Names, for instance ``vectorizer.get_feature_names_out()``. None takes
            ``feature_names_in_`` where fit saw names, else column numbers.
        n_features : int or None, default=10
            How many features to return at most; None for all with a contribution.

        Returns
        -------
        Explanation
            Features by falling magnitude of their contribution; ``print`` shows a table.

        Raises
        ------
        ValueError
            If `x` is not one instance, or `label` is unknown.
        """
        check_is_fitted(self)
        if n_features is not None:
            n_features = check_count(n_features, f"{self._who}: n_features")
        instance = check_instances(self, _as_row(x, self._who), reset=False).without_zeros()
        if instance.shape[0] != 1:
            raise ValueError(f"explain takes one instance, x has {instance.shape[0]} rows.")
        row, sign = self._position(label), 1.0
        if self._is_binary:
            row, sign = 0, 1.0 if row == 1 else -1.0
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", np.arange(instance.shape[1]))
        names = _check_names(feature_names, instance.shape[1])
        weights = sign * self.coef_[[row]].toarray()[0][instance.indices]
        contributions = instance.data * weights
        intercept = sign * float(self._weights.base_of(instance, row))
        order = np.argsort(-np.abs(contributions), kind="stable")
        order = order[contributions[order] != 0][:n_features]
        return Explanation(
            label=label,
            score=float(contributions.sum()) + intercept,
            intercept=intercept,
            features=names[instance.indices[order]],
            values=instance.data[order],
            weights=weights[order],
            contributions=contributions[order],
        )

    def _position(self, label: Any) -> int:
        """Return the position of a label in ``classes_``."""
        is_strange = np.ndim(label) > 0 or (
            isinstance(label, bool | np.bool_) and self.classes_.dtype.kind != "b"
        )
        places = np.flatnonzero(self.classes_ == label) if not is_strange else np.empty(0, np.intp)
        if len(places) != 1:
            raise ValueError(f"label {label!r} is not one of the {len(self.classes_)} in classes_.")
        if places[0] in self._unseen_labels:
            raise ValueError(f"label {label!r} has no training instance: no feature makes a score.")
        return int(places[0])


def _start_vectors(init: Any, expected: str, who: str) -> Any:
    """Return given start vectors as a float64 array or CSR, of any shape."""
    check_sparse(init, "init", who)
    refuse_disguised(init, f"{who}: init")
    try:
        start = init if sp.issparse(init) else np.asarray(init)
    except (ValueError, TypeError) as error:  # rows of different lengths
        raise ValueError(f"{who}: init is no array of shape {expected}.") from error
    if start.dtype.kind not in "biuf":
        raise ValueError(
            f"{who}: init must be a name, an Initialiser, or numbers of shape {expected}, "
            f"{type(init).__name__} of dtype {start.dtype} came."
        )
    return sp.csr_array(start, dtype=np.float64) if sp.issparse(start) else start.astype(np.float64)


def _prior(problem: OneVsAllProblem) -> np.ndarray:
    """Return the score that suits each label best if no instance had features."""
    labels = np.repeat(np.arange(problem.n_labels), np.diff(problem.y_indptr))
    frequencies = LabelFrequencies.of(
        problem.y_rows, labels, problem.weight, is_blank(problem.instances), problem.n_labels
    )
    positive = frequencies.of_blank()
    out = np.empty(problem.n_labels)
    constant_scores_kernel(problem.loss)(
        problem.plus * positive, problem.minus * (frequencies.total - positive), out
    )
    return out.astype(problem.dtype)


def _as_row(x: Any, who: str) -> Any:
    """Return one instance in two dimensions; anything else as it is."""
    try:
        is_flat = not sp.issparse(x) and np.ndim(x) == 1
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{who}: x must be one instance of numbers.") from error
    if not is_flat:
        return x
    refuse_disguised(x, f"{who}: x")
    return np.asarray(x).reshape(1, -1)


def _check_names(feature_names: Any, n_features: int) -> np.ndarray:
    """Return names of features as an array of texts or integers."""
    refuse_disguised(feature_names, "feature_names")
    try:
        names = np.asarray(feature_names)
    except ValueError as error:
        raise ValueError(f"feature_names must be {n_features} texts.") from error
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}, expected ({n_features},).")
    texts = names.dtype.kind in "UTiu" or (
        names.dtype == object and all(isinstance(name, str) for name in names)
    )
    if not texts:
        raise ValueError(
            f"feature_names must be texts, got {names.tolist()[0]!r} (dtype {names.dtype})."
        )
    return names


def _check_seconds(time_budget: Any) -> float:
    valid = isinstance(time_budget, Real) and not isinstance(time_budget, bool | np.timedelta64)
    if not valid or not time_budget >= 0:
        raise ValueError(
            f"time_budget must be a number of seconds of at least 0, got {time_budget!r}."
        )
    return float(time_budget) if time_budget < 1e300 else np.inf


def _rearranged(targets: Targets, order: np.ndarray) -> np.ndarray:
    """Return the positive rows of each label, rising, for instances in another order."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    rows = place[targets.rows]
    # Two transpositions sort the rows of each label.
    shape = (len(order), targets.n_problems)
    columns = sp.csc_array((np.empty(len(rows), np.int8), rows, targets.indptr), shape=shape)
    return columns.tocsr().tocsc().indices.astype(np.int32, copy=False)


def _group_labels(problem: OneVsAllProblem, initialiser: Initialiser) -> np.ndarray:
    """Return for each label the first label with the same problem and the same start."""
    if isinstance(initialiser, Given):
        return np.arange(problem.n_labels)
    return group_identical_labels(problem.y_indptr, problem.y_rows, problem.plus, problem.minus)


def _solve_block(
    n_lanes: int,
    problem: OneVsAllProblem,
    sums: InstanceSums,
    initialiser: Initialiser,
    prepared: Any,
    labels: np.ndarray,
    stop: StopFlag,
) -> BlockSolution:
    """Return a block's solution, as ``solve_blocks`` asks for it, over the caller's features."""
    solution = solve_block(problem, sums, initialiser, prepared, labels, n_lanes, stop)
    return in_callers_features(solution, problem.columns)


def _some(labels: np.ndarray) -> str:
    """Name a few labels for a message."""
    return ", ".join(map(str, labels[:5])) + (", ..." if len(labels) > 5 else "")

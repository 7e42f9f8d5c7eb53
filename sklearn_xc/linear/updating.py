"""A fitted one-vs-all that further instances change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._checks import (
    check_further_targets,
    check_rows,
    check_weights,
)
from sklearn_xc._sklearn import fit_context
from sklearn_xc._state import built_apart
from sklearn_xc.initialisers import Initialiser
from sklearn_xc.initialisers.kept import Kept
from sklearn_xc.linear.all_rows import Examples, one_after_another
from sklearn_xc.linear.assembly import assemble_weights
from sklearn_xc.linear.drift import losses_as_negatives
from sklearn_xc.linear.facts import Facts
from sklearn_xc.linear.label_sets import replaced
from sklearn_xc.linear.memory import room_for_weights
from sklearn_xc.linear.problem import build_problem, check_init, copies_in_files
from sklearn_xc.linear.report import fit_report, stacked
from sklearn_xc.linear.training import solve_all
from sklearn_xc.parallel.progress import Fit
from sklearn_xc.solvers.newton_cg import BlockSolution
from sklearn_xc.solvers.problem import OneVsAllProblem
from sklearn_xc.solvers.pruning import SampleScores, sum_up, together
from sklearn_xc.storage.history import RowHistory, opened_history
from sklearn_xc.weights.label_weights import CompactLabelWeights, LabelWeights

#: A label whose bound is at most so many times that of a new solution is not solved again.
_WORTH = 2.0**0.5
_KEPT = "kept"
#: Share of new positives from which on a label is solved as if it were new: the old weights are no
#: nearer then. 0.2 to 0.5 serve alike; 1, where all start at the old weights, took twice as long.
MOSTLY_NEW = 0.3


def _has_history(estimator: Any) -> bool:
    if estimator.history_dir is None:
        raise AttributeError(
            f"{type(estimator).__name__}: partial_fit needs history_dir, a folder for the rows "
            "that it is given: labels are solved on all of them. Without one, call update, and "
            "give the old rows too."
        )
    return True


class UpdatableModel:
    """``update`` and ``partial_fit``; ``_first_fit`` is the fit of a subclass."""

    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def update(
        self: Any, X: Any, y: Any, sample_weight: Any = None, *, X_old: Any = None,
        y_old: Any = None, sample_weight_old: Any = None,
    ) -> Any:  # fmt: skip
        """Learn from further instances, solving again only the labels that they concern.

        Labels with new positives are solved again, on old and new instances, starting from their
        current weights. All others keep their weights, with a bound on how far these are from the
        optimum over all instances, ``fit_report_["distance"]``. Where the bound exceeds
        `max_drift` times the norm of the weights, they are solved again too.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            New instances.
        y : {array-like, sparse matrix} of shape (n_new,) or (n_new, n_labels)
            Their classes or labels, those of ``classes_``.
        sample_weight : array-like of shape (n_new,), default=None
            Their weights.
        X_old : {array-like, sparse matrix} of shape (n_old, n_features), default=None
            All instances of ``fit`` and of later calls; None takes them from `history_dir`.
        y_old : {array-like, sparse matrix} of shape (n_old,) or (n_old, n_labels), default=None
            Their classes or labels.
        sample_weight_old : array-like of shape (n_old,), default=None
            Their weights.

        Returns
        -------
        estimator
            Itself. ``label_counts_`` and ``n_samples_fit_`` grow; ``fit_report_["reason"]`` tells
            why each label was solved: "new positives", "drift" or "parameters" (the weights of its
            loss, or the loss itself, have changed); or that it was "kept".

        Raises
        ------
        ValueError
            If the old instances are not as many, in all and for each label, as the model has seen;
            for other labels; for models that are compact or of some labels only (`label_range`);
            and as in ``fit``.

        Warns
        -----
        ConvergenceWarning, PruningWarning, UnseenLabelWarning
            As ``fit`` does.

        Notes
        -----
        The bound is ``|w - w*|^2 <= 2 (F(w) - F(w*))``, as the objective F is 1-strongly convex.
        The fit knows its right-hand side, pruning included; new negatives add their loss at w to
        F(w), and at least 0 to F(w*). With an unregularised intercept, or after a fit by another
        version of the package, there is no bound, and all labels are solved again; likewise with
        ``class_weight="balanced"`` or "propensity", whose weights follow from all instances.

        Examples
        --------
        After ten further instances, labels that none of them has keep their weights:

        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> from sklearn_xc.datasets import make_xc_classification
        >>> X, Y = make_xc_classification(
        ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
        ... )
        >>> clf = OvALinearXC().fit(X[:490], Y[:490])
        >>> clf = clf.update(X[490:], Y[490:], X_old=X[:490], y_old=Y[:490])
        >>> reasons, counts = np.unique(clf.fit_report_["reason"], return_counts=True)
        >>> dict(zip(reasons.tolist(), counts.tolist()))
        {'kept': 32, 'new positives': 18}
        """
        check_is_fitted(self)
        new = self._further(X, y, None, sample_weight, "update")
        with self._learned(new, X_old, y_old, sample_weight_old):
            self._warn()
            self._warn_of_unseen()
        return self

    @available_if(_has_history)
    @fit_context(prefer_skip_nested_validation=True)
    @built_apart
    def partial_fit(
        self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Learn from instances that arrive in parts; needs `history_dir`.

        The first call is ``fit``; each later one is :meth:`update` with all earlier rows, which
        are kept in `history_dir`. A call that was killed may be repeated.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, n_features)
            Instances.
        y : {array-like, sparse matrix} of shape (n,) or (n, n_labels)
            One class per instance, or a binary indicator.
        classes : array-like of shape (n_labels,), default=None
            All classes, in the first call with a 1-D y that lacks some of them.
        sample_weight : array-like of shape (n,), default=None
            Weights of the instances.

        Returns
        -------
        estimator
            Itself.

        Raises
        ------
        ValueError
            As in ``fit`` and ``update``, and if `history_dir` holds other rows than those that the
            model has seen.
        SavedModelError
            If the rows in `history_dir` are damaged.
        OSError
            If rows cannot be written; nothing has changed then.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf = OvALinearXC(history_dir=folder)
        ...     clf = clf.partial_fit(X[:2], Y[:2])
        ...     clf = clf.partial_fit(X[2:], Y[2:])
        >>> clf.n_samples_fit_
        3
        >>> bool(abs(clf.coef_ - OvALinearXC().fit(X, Y).coef_).max() < 0.01)
        True
        """
        if not hasattr(self, "_weights"):
            training = self._first_fit(X, y, sample_weight, classes)
        else:
            training = self._learned_with_history(
                self._further(X, y, classes, sample_weight, "partial_fit")
            )
        with training:  # an error for a warning keeps no rows
            self._warn()
            self._warn_of_unseen()
        return self

    @contextmanager
    def _learned(
        self: Any, new: Examples, X_old: Any, y_old: Any, sample_weight_old: Any
    ) -> Iterator[None]:
        """Take up examples, with the old ones as they come."""
        who = f"{type(self).__name__}.update"
        if X_old is None and y_old is None and self.history_dir is not None:
            with self._learned_with_history(new):
                yield
            return
        if X_old is None or y_old is None:
            raise ValueError(
                f"{who}: X_old and y_old must be all instances of before, or history_dir a folder "
                "that has them. Got None."
            )
        rows = check_rows(self, X_old, reset=False).astype(self._weights.dtype)
        targets = check_further_targets(self, y_old, rows.shape[0])
        weight = check_weights(self, sample_weight_old, rows.shape[0])
        old = Examples(rows, targets, weight).as_trained()
        self._require_seen(old, f"{who}: X_old and y_old")
        in_files = copies_in_files(self, old.instances, old.targets)
        self._learn(one_after_another([old, new], in_files, type(self).__name__), new)
        self.__dict__.pop("_seen_rows", None)
        yield

    def _further(
        self: Any, X: Any, y: Any, classes: Any, sample_weight: Any, method: str
    ) -> Examples:
        """Return checked new examples of a model that can be updated."""
        who = f"{type(self).__name__}.{method}"
        if isinstance(self._weights, CompactLabelWeights):
            raise ValueError(
                f"{who}: the model is compact, its weights are rounded. Update the one that it was "
                "made of, and make that compact."
            )
        if getattr(self, "_slice", None) is not None:
            raise ValueError(f"{who}: the model has some labels only, by label_range. Merge first.")
        if self._targets_kind == "classes" and self.label_counts_.sum() != self.n_samples_fit_:
            raise ValueError(
                f"{who}: classes were dropped, whose instances are negatives of the others. Fit "
                "anew, or to an indicator."
            )
        rows = check_rows(self, X, reset=False).astype(self._weights.dtype)
        targets = check_further_targets(self, y, rows.shape[0], classes)
        return Examples(rows, targets, check_weights(self, sample_weight, rows.shape[0]))

    def _require_seen(self: Any, old: Examples, what: str) -> None:
        """Raise ValueError unless examples are as many as the model has seen, of each label."""
        n = int(np.count_nonzero(old.weights))
        if n != self.n_samples_fit_:
            raise ValueError(
                f"{what} must be all instances that the model was fitted to, "
                f"{self.n_samples_fit_} of weight above 0. Got {n}."
            )
        counts = old.targets.label_counts(old.weights > 0)
        other = np.flatnonzero(counts != self.label_counts_)
        if other.size:
            at = int(other[0])
            raise ValueError(
                f"{what} must be all instances that the model was fitted to, "
                f"{self.label_counts_[at]} of label {self.classes_[at]!r}. Got {counts[at]}."
            )

    def _learn(self: Any, every: Examples, new: Examples) -> None:
        """Take up examples, the last of `every`."""
        used, came = every.weighted(), new.weighted()
        problem = build_problem(self, self._fitted_cost, used.instances, used.targets, used.weight)
        distance, reason = self._judge(problem, came)
        self._count_instances(new.targets, new.weights, is_further=True)
        allowed = self._allowed_bytes()
        facts = Facts.of(problem, room_for_weights(problem, allowed))
        weights, unseen = self._weights, () if self._is_binary else self._unseen_labels
        which = np.flatnonzero(reason != _KEPT)
        if len(which):
            solutions, row_of_label, sample = self._solve_again(problem, which, came)
            costs = facts.costs[0][which], facts.costs[1][which]
            report = fit_report(solutions, row_of_label, facts.is_bounded, costs, reason[which])
            intercepts = stacked(solutions, row_of_label, "intercepts")
            coef = assemble_weights(
                solutions, row_of_label, facts.n_features, facts.room, facts.owner
            )
            changed = LabelWeights(coef, intercepts, None)
            columns, weights = replaced(self, which, changed, report, allowed)
            self._pruning_cost = None if sample is None else sum_up(sample)
        else:
            columns = dict(self.fit_report_)
        kept = reason == _KEPT
        columns["distance"] = np.where(kept, distance, columns["distance"])
        self.fit_report_ = {**columns, "reason": reason}
        self.n_iter_ = columns["n_iter"]
        self._terms = facts.terms
        self._weights = LabelWeights(weights.coef, weights.intercept, facts.prior, unseen)

    def _solve_again(
        self: Any, problem: OneVsAllProblem, labels: np.ndarray, new: Examples
    ) -> tuple[list[BlockSolution], np.ndarray, SampleScores | None]:
        """Solve labels on all instances: from where they stand, or as a fit does, if mostly new."""
        afresh = check_init(self, problem)
        has_parents = type(afresh).parents is not Initialiser.parents
        counts = np.diff(problem.y_indptr)[labels]
        n_new = np.diff(new.targets.indptr)[labels]
        is_new = (n_new > MOSTLY_NEW * counts) & (not has_parents)
        kept = Kept(self._weights.coef, self._weights.intercept, problem.columns)
        solutions: list[BlockSolution] = []
        row_of_label, samples = np.empty(len(labels), np.int64), []
        for some, init in ((is_new, afresh), (~is_new, kept)):
            if some.any():
                found, rows, sample = solve_all(
                    problem, init, self._allowed_bytes(), self.n_jobs, self._engine(),
                    Fit.untold(self), None, labels[some],
                )  # fmt: skip
                row_of_label[some] = rows + sum(len(one.labels) for one in solutions)
                solutions += found
                samples.append(sample)
        return solutions, row_of_label, together(samples)

    def _judge(self: Any, problem: OneVsAllProblem, new: Examples) -> tuple[np.ndarray, np.ndarray]:
        """Return how far labels may be from their optima, and why they are solved again or kept.

        Parameters
        ----------
        problem : OneVsAllProblem
            Of all instances.
        new : Examples
            Those of them that are new.

        Returns
        -------
        distance : ndarray of float64 of shape (n_problems,)
            inf where there is no bound.
        reason : ndarray of str of shape (n_problems,)
        """
        report, (plus, minus), weights = self.fit_report_, problem.costs, self._weights
        n_problems = problem.n_labels
        distance, reason = np.full(n_problems, np.inf), np.full(n_problems, "new positives")
        is_same = np.zeros(n_problems, bool)
        if getattr(self, "_terms", None) == Facts.terms_of(problem):  # else there may be no costs
            is_same = (report["positive_cost"] == plus) & (report["negative_cost"] == minus)
        reason[~is_same] = "parameters"
        labels = np.flatnonzero(is_same & (np.diff(new.targets.indptr) == 0))
        if not len(labels):
            return distance, reason
        added = losses_as_negatives(
            new.instances, new.weights, weights, minus, labels, problem.loss, self.n_jobs
        )
        squares = report["distance"][labels] ** 2 + 2.0 * added
        solved = 2.0 * np.maximum(report["suboptimality"] + report["pruning_increase"], 0.0)[labels]
        coef = weights.coef
        norms = np.add.reduceat(
            np.append(np.square(coef.data, dtype=np.float64), 0.0), coef.indptr[:-1]
        )
        norms[np.diff(coef.indptr) == 0] = 0.0
        norms = norms[labels] + weights.intercept[labels].astype(np.float64) ** 2
        is_far = (squares > self.max_drift**2 * norms) & (squares > _WORTH**2 * solved)
        is_far |= ~np.isfinite(squares)
        distance[labels] = np.sqrt(squares)
        reason[labels] = np.where(is_far, "drift", _KEPT)
        return distance, reason

    @contextmanager
    def _keeping_rows(self: Any, first: Examples) -> Iterator[None]:
        """Keep the rows of a first fit in `history_dir`, if that trains."""
        self.__dict__.pop("_seen_rows", None)
        if self.history_dir is None:
            yield
            return
        who = type(self).__name__
        if getattr(self, "label_range", None) is not None:
            raise ValueError(f"{who}: history_dir must be None with a label_range.")
        with self._history(first) as history:
            given = first.instances, first.targets, first.weight
            is_there = len(history.batches) == 1 and history.is_last(*given)
            if history.batches and not is_there:
                raise ValueError(
                    f"{history.where} holds the rows of another model. Give each model a folder of "
                    "its own, and one that is empty to fit anew."
                )
            if not is_there:
                history.append(*given)
            self._seen_rows = np.array([history.seen_after(1)])
            yield
            history.commit()

    @contextmanager
    def _learned_with_history(self: Any, new: Examples) -> Iterator[None]:
        """Take up examples, and keep their rows once the ``with`` comes to a good end."""
        with self._history(new) as history:
            given = self._as_kept(history, new)
            n_batches, seen = len(history.batches), getattr(self, "_seen_rows", None)
            has_seen = [
                n for n in (n_batches, n_batches - 1)
                if n > 0 and seen is not None and seen[0] == history.seen_after(n)
            ]  # fmt: skip
            is_again = n_batches - 1 in has_seen and history.is_last(*given)
            if not has_seen or (n_batches not in has_seen and not is_again):
                raise ValueError(
                    f"{history.where} must hold the rows that the model has seen. It holds "
                    f"{n_batches} batches, which are not those, or not in the labels of the model: "
                    "fit anew with another folder, or call update with X_old and y_old."
                )
            if not is_again:  # a call that was killed after its rows were kept
                history.append(*given)
            every = Examples(*history.read(new.targets))
            self._learn(every, new)
            self._seen_rows = np.array([history.seen_after(len(history.batches))])
            yield
            history.commit()

    def _history(self: Any, examples: Examples) -> Any:
        return opened_history(
            self.history_dir, type(self).__name__, examples.instances,
            len(examples.targets.classes),
        )  # fmt: skip

    def _as_kept(self, history: RowHistory, new: Examples) -> tuple[Any, Any, Any]:
        """Return the instances as the rows of the history are, sparse or dense, and the rest."""
        X = new.instances
        return X.to_csr() if history.kind["sparse"] else X.to_dense(), new.targets, new.weight

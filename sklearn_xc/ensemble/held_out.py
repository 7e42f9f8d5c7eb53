"""Estimators fitted to some of the rows, and their answers for those held out.

The one mechanism from which stacks, thresholds and probabilities are learned: ``split`` chooses the
rows, ``HeldOutFits`` fits clones in threads or on a cluster, and ``LearnsFromHeldOut`` does both
for an estimator with members.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import KFold
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.arguments import (
    ListedFolds,
    check_folds,
    draw_seed,
    is_list_of_folds,
    refuse_masks_and_dates,
)
from sklearn_xc._input.checks import check_targets, check_weights, require_labels
from sklearn_xc._input.data import Targets, as_rows, check_sparse, n_rows
from sklearn_xc._input.refits import RefittableFeatures, may_refit, refittable_features
from sklearn_xc._input.routing import RoutesFit
from sklearn_xc._input.sklearn_private import (
    Interval,
    StrOptions,
    check_method_params,
    safe_indexing,
)
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.changes import independent_copy
from sklearn_xc._parallel.engines import active_engine
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.progress import Fit, Progress, Task
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc.base import XCClassifier
from sklearn_xc.ensemble.members import (
    Answers,
    fit_clone,
    known_counts,
    named_errors,
    predict_topk_of,
    unknown_to,
)
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.metrics.hits import find_hits

#: Bytes of a pair, and of the copies that are made of it while something is learned from it.
PAIR_BYTES = 120
#: Without `cv`, this share of the rows is held out, at least `_FEWEST`; fewer rows than `_SMALL`
#: are all predicted out of fold. On 12,000 questions five folds gave 0.3 points more of precision@1
#: than a held-out tenth, for three times the time.
_HELD_OUT = 0.1
_FEWEST = 1_000
_SMALL = 5_000
_FOLDS = 5
#: Held-out rows that are learned from, at most; drawn at random from more.
MOST_ROWS = 20_000

Members = Sequence[tuple[str, Any]]


class HeldOutAnswers(NamedTuple):
    """Answers of members to rows that they were not trained on.

    Attributes
    ----------
    answers : list of list of Answers
        Of each fold, and in it of each member.
    rows : list of ndarray of int64
        The held-out rows of each fold.
    counts : list of ndarray of int64 of shape (n_labels,)
        Instances of each label that the members of each fold were trained on. With those of all
        rows, the labels of held-out instances would leak.
    scales : list of float
        All instances, for each training instance of the fold.
    seconds : ndarray of float of shape (n_members,)
        Of all fits.
    targets, weight
        Of all instances.
    seed : int
    """

    answers: list[list[Answers]]
    rows: list[np.ndarray]
    counts: list[np.ndarray]
    scales: list[float]
    seconds: np.ndarray
    targets: Targets
    weight: np.ndarray
    seed: int

    def of_folds(self, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> "HeldOutAnswers":
        """Return the same with the rows, counts and scales of folds (training, held-out rows)."""
        n, n_there = len(self.weight), np.count_nonzero(self.weight)
        return self._replace(
            rows=[test for _, test in folds],
            counts=[self.targets.counts_among(train, n) for train, _ in folds],
            scales=[n_there / len(np.unique(train)) for train, _ in folds],
        )

    @property
    def truth(self) -> sp.csr_array:
        """The labels of all instances, an indicator of shape (n, n_labels)."""
        n = len(self.weight)
        indptr, labels = self.targets.by_instance(n)
        shape = (n, len(self.targets.classes))
        return sp.csr_array((np.ones(len(labels), np.int8), labels, indptr), shape=shape)


class ScoredPairs(NamedTuple):
    """Scores of held-out instances and labels, and whether they are relevant.

    Attributes
    ----------
    rows, labels : ndarray of int64 of shape (n_pairs,)
        Instance, from 0 over those held out, and label. Pairs of an instance are adjacent,
        best first.
    ranks : ndarray of int64 of shape (n_pairs,)
        From 0.
    scores : ndarray of float of shape (n_pairs,)
        Finite.
    relevant : ndarray of bool of shape (n_pairs,)
        Whether the instance has the label.
    weight : ndarray of float64 of shape (n_pairs,)
        Of the instance.
    frequency : ndarray of int64 of shape (n_pairs,)
        Instances with the label that the classifier was trained on. With those of all rows, the
        label of a held-out instance would leak.
    true_labels : ndarray of int64 of shape (n_true,)
        Labels of all relevant pairs, also of those that the classifier did not name.
    true_weight, true_frequency : ndarray of shape (n_true,)
        Likewise.
    n_labels, n : int
        Labels of y; instances.
    """

    rows: np.ndarray
    labels: np.ndarray
    ranks: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray
    weight: np.ndarray
    frequency: np.ndarray
    true_labels: np.ndarray
    true_weight: np.ndarray
    true_frequency: np.ndarray
    n_labels: int
    n: int

    @property
    def n_relevant(self) -> np.ndarray:
        """Summed weights of the instances with each label, float64 of shape (n_labels,)."""
        return np.bincount(self.true_labels, self.true_weight, minlength=self.n_labels)


def scored_pairs(held_out: HeldOutAnswers) -> ScoredPairs:
    """Return the pairs among the answers of the only member to all folds.

    Frequencies are those in the training rows of each fold, scaled to all rows.
    """
    truth = held_out.truth
    weight = held_out.weight
    parts = []
    begin = 0
    folds = zip(held_out.answers, held_out.rows, held_out.counts, held_out.scales, strict=True)
    for ((named, scores),), held, counts, scale in folds:
        frequency = np.rint(counts * scale).astype(np.int64)
        true = truth[held]
        hit = find_hits(true, named, named.shape[1]).hit
        at, ranks = np.nonzero((named >= 0) & np.isfinite(scores))
        true_at = np.repeat(np.arange(len(held)), np.diff(true.indptr))
        found = named[at, ranks]
        true_found = true.indices.astype(np.int64)
        parts.append(
            (
                begin + at,
                found,
                ranks,
                scores[at, ranks],
                hit[at, ranks],
                weight[held][at],
                frequency[found],
                true_found,
                weight[held][true_at],
                frequency[true_found],
            )
        )
        begin += len(held)
    joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return ScoredPairs._make([*joined, truth.shape[1], begin])


def split(
    cv: Any,
    X: Any,
    y: Any,
    targets: Targets,
    weight: np.ndarray,
    seed: int,
    caller: str,
    params: Mapping[str, Any],
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training rows and the held-out rows of each fold.

    Parameters
    ----------
    cv : float, int, splitter, iterable or None
        The parameter of the estimator.
    X, y : object
        Arguments of ``fit``.
    targets : Targets
        y, checked.
    weight : ndarray of float of shape (n,)
        Rows of weight 0 are left out.
    seed : int
    caller : str
        For messages.
    params : dict
        Further arguments of ``cv.split``.

    Returns
    -------
    list of (ndarray of int64, ndarray of int64)
        Together at most ``MOST_ROWS`` held-out rows, sorted. A random fold is left out if all its
        training rows are of one class, or have no label.

    Raises
    ------
    ValueError
        For folds that cannot be made.
    """
    rows = np.flatnonzero(weight > 0)
    n = len(rows)
    if n < 2:
        raise ValueError(f"{caller} holds rows out: X must have at least 2 of them. Got {n}.")
    if cv is None:
        cv = min(_FOLDS, n) if n < _SMALL else max(_HELD_OUT, _FEWEST / n)
    if isinstance(cv, Integral):
        if not 2 <= cv <= n:
            raise ValueError(f"{caller}: cv must be from 2 to {n}, the number of rows. Got {cv}.")
        splitter = KFold(int(cv), shuffle=True, random_state=seed)
        folds = [(rows[train], rows[test]) for train, test in splitter.split(rows)]
    elif isinstance(cv, Real):
        order = rows[np.random.default_rng((seed, 1)).permutation(n)]
        n_held = min(max(1, round(float(cv) * n)), n - 1)
        folds = [(np.sort(order[n_held:]), np.sort(order[:n_held]))]
    else:
        splitter = ListedFolds(cv) if is_list_of_folds(cv) else cv
        if isinstance(cv, bytes) or not hasattr(splitter, "split"):
            raise ValueError(
                f"{caller}: cv must be a share, a number of folds, a splitter or a list of folds. "
                f"Got {cv!r}."
            )
        with named_errors("cv", caller):
            given = list(splitter.split(as_rows(X), y, **params))
        given = check_folds(given, len(weight), caller, cv)
        folds = [(a[weight[a] > 0], b[weight[b] > 0]) for a, b in given]
        if any(not len(train) or not len(test) for train, test in folds):
            raise ValueError(f"{caller}: cv: a fold has only rows of weight zero. Got {cv!r}.")
    if isinstance(cv, Real):
        least = 2 if targets.kind == "classes" else 1
        folds = [
            fold
            for fold in folds
            if np.count_nonzero(targets.counts_among(fold[0], len(weight))) >= least
        ]
        if not folds:
            raise ValueError(
                f"{caller}: no training rows of two classes, or with a label, are left if rows are "
                f"held out. Got {n} rows: give more, or folds as cv."
            )
    chosen = np.zeros(len(weight), bool)
    chosen[draw_rows(np.concatenate([test for _, test in folds]), seed)] = True
    return [(train, test[chosen[test]]) for train, test in folds if chosen[test].any()]


def draw_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows to learn from: at most ``MOST_ROWS``, drawn at random from more."""
    if len(rows) <= MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng((seed, 2)).permutation(rows)[:MOST_ROWS])


class Job(NamedTuple):
    """A clone to fit to `rows`, and to query for `test`; `test` is None to return the clone."""

    part: str
    estimator: Any
    rows: np.ndarray | None
    test: np.ndarray | None
    task: Task


class Done(NamedTuple):
    """The answers or the fitted clone of a job, and the seconds of its fit."""

    result: Any
    seconds: float


@dataclass
class HeldOutFits:
    """Fits clones to some of the rows and queries them.

    Attributes
    ----------
    X, y : object
        All instances and their labels.
    params : dict of str to dict
        Arguments of ``fit`` for each part; those with an entry for each row are cut.
    k : int
        Labels of each instance.
    targets : Targets
        y, checked.
    caller : str
        For messages.
    refittable : RefittableFeatures or None
        If X was made by a vectorizer, it is fitted again to the rows of each clone.
    """

    X: Any
    y: Any
    params: Mapping[str, Mapping[str, Any]]
    k: int
    targets: Targets
    caller: str
    refittable: RefittableFeatures | None

    def run(self, jobs: Sequence[Job], n_jobs: Any, progress: Progress) -> list[Done]:
        """Return the results of all jobs, run in `n_jobs` threads or on the current engine."""
        found: list[Any] = [None] * len(jobs)

        def keep(number: int, done: Done) -> None:
            found[number] = done
            rows = "with all rows" if jobs[number].test is None else "without held-out rows"
            progress.ended(f"{jobs[number].part} {rows}", number)

        def work(number: int) -> None:
            keep(number, self._do(jobs[number]))

        engine = active_engine()
        if engine.is_cluster:
            orders = ((at, (job._replace(task=Task()),)) for at, job in enumerate(jobs))
            for job in jobs:
                job.task.begin()
            with engine.sharing(self, self.caller) as place:
                for number, done in place.run(HeldOutFits._do, orders, engine.count(n_jobs).n):
                    jobs[number].task.end()
                    keep(number, done)
            return found
        workers = min(count_threads(n_jobs, f"{self.caller}: n_jobs"), len(jobs))
        Parallel(n_jobs=workers, require="sharedmem")(
            delayed(work)(number) for number in range(len(jobs))
        )
        return found

    def _do(self, job: Job) -> Done:
        X, y, rows = self.X, self.y, job.rows
        params = check_method_params(X, self.params[job.part], rows)
        refittable = self.refittable
        refitted = None if refittable is None or rows is None else refittable.refitted(rows)
        if refitted is not None:
            refittable = refitted.refittable
            X, y, rows = refittable.features, safe_indexing(as_rows(y), rows), None
        with may_refit(refittable):
            fitted, seconds = fit_clone(
                job.part, job.estimator, X, y, params, rows, self.caller, job.task
            )
        if job.test is None:
            return Done(fitted, seconds)
        is_refitted = refitted is not None
        X = refitted.of(job.test) if is_refitted else safe_indexing(as_rows(self.X), job.test)
        counts = self.targets.counts_among(job.rows, n_rows(self.X, self.caller))
        answers = predict_topk_of(
            job.part,
            fitted,
            X,
            self.k,
            self.targets.classes,
            self.caller,
            are_columns=self.targets.kind != "classes",
            unseen=np.flatnonzero(counts == 0),
        )
        # If y tells which labels there are, one without training rows is surely one of a held-out
        # row, and known by its name alone.
        has_none = self.targets.counts_among(None, n_rows(self.X, self.caller)) == 0
        only_held_out = (counts == 0) & ~has_none
        if np.count_nonzero(only_held_out) > np.count_nonzero(has_none):
            answers = answers.without(only_held_out)
        return Done(answers, seconds)


class LearnsFromHeldOut(RoutesFit, XCClassifier):
    """Trains members on all rows, and learns from answers to held-out rows.

    A subclass has ``cv``, ``n_jobs`` and ``random_state``, and defines ``_routed_parts``,
    ``_depth()``, the labels of each held-out row that members are asked for,
    ``_pair_size(n_members)``, the pairs of a row, their bytes and the parameter that lowers them,
    ``_ask_members(members, X)`` and ``_keep_members(fitted)``.
    """

    cv: Any
    n_jobs: int | None
    random_state: Any
    #: Label columns of y that are needed.
    _least_labels = 1

    _parameter_constraints: dict = {  # noqa: RUF012
        "cv": [Interval(Real, 0, 1, closed="neither"), StrOptions({"prefit"}), "cv_object"],
        "top_k": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _check_prefit(self, y: Any, n: int) -> Targets:
        """Return the checked y of rows for prefit members."""
        return check_targets(self, y, n)

    def _folds_of(self, n: int) -> Any:
        """Return the `cv` for n rows."""
        return self.cv

    def _part_name(self, name: str) -> str:
        return f"estimator {name!r}"

    def _fit_held_out(
        self,
        members: Members,
        X: Any,
        y: Any,
        sample_weight: Any,
        params: dict[str, Any],
        fit: Fit,
        *,
        of_classes: bool = True,
        n_more_parts: int = 0,
    ) -> tuple[HeldOutAnswers, Any, Progress]:
        """Fit the members, and return their answers, routed arguments and the progress.

        Parameters
        ----------
        members : list of (name, estimator)
        X, y, sample_weight, params
            Arguments of ``fit``.
        fit : Fit
            Reports progress.
        of_classes : bool, default=True
            Whether to hold rows out of a 1-D y.
        n_more_parts : int, default=0
            Parts of the fit that follow.
        """
        caller = type(self).__name__
        check_sparse(X, "X", caller)
        refuse_masks_and_dates(X, f"{caller}: X")
        n = n_rows(X, caller)
        is_prefit = isinstance(self.cv, str)
        if is_prefit:
            for name, estimator in members:
                message = f"{caller}: cv is 'prefit', and {name!r} is not fitted."
                check_is_fitted(estimator, msg=message)
        targets = self._check_prefit(y, n) if is_prefit else check_targets(self, y, n)
        given = check_weights(self, sample_weight, n)
        weight = np.ones(n) if given is None else given
        indptr, _ = targets.by_instance(n)
        labelled = np.flatnonzero((np.diff(indptr) > 0) & (weight > 0))
        require_labels(self, targets, labelled, least=self._least_labels)
        seed = draw_seed(self.random_state)
        self._keep_targets(targets)
        self._count_instances(targets, weight)
        routed = self._routed(given, params)
        there = np.flatnonzero(weight > 0)
        holds_out = of_classes or targets.kind != "classes"
        held_out = HeldOutAnswers([], [], [], [], np.zeros(len(members)), targets, weight, seed)
        if is_prefit:
            rows = draw_rows(there, seed) if holds_out else there[:0]
            self._require_pairs(len(rows), len(members))
            progress = fit.parts("part", n_more_parts, in_order=False)
            return self._ask_prefit(members, X, rows, held_out), routed, progress
        folds = []
        if holds_out:
            cv = self._folds_of(len(there))
            folds = split(cv, X, y, targets, weight, seed, caller, routed.cv.split)
        self._require_pairs(sum(len(test) for _, test in folds), len(members))
        costs = [len(train) for train, _ in folds for _ in members] + [n] * len(members)
        progress = fit.parts(
            "fold", len(costs) + n_more_parts, costs=[*costs, *[n] * n_more_parts], in_order=False
        )
        fits = HeldOutFits(
            X,
            y,
            {self._part_name(name): routed[name].fit for name, _ in members},
            min(self._depth(), len(self.classes_)),
            targets,
            caller,
            refittable_features(X),
        )
        return self._fit_folds(members, folds, fits, held_out, progress), routed, progress

    def _ask_prefit(
        self, members: Members, X: Any, rows: np.ndarray, held_out: HeldOutAnswers
    ) -> HeldOutAnswers:
        """Keep fitted members, and return their answers for some rows."""
        are_columns = held_out.targets.kind != "classes"
        counted = known_counts([one for _, one in members], self.classes_, are_columns=are_columns)
        if counted is not None:
            self.label_counts_, self.n_samples_fit_ = counted
        self._keep([(name, independent_copy(estimator)) for name, estimator in members])
        if not len(rows):
            return held_out
        answers = self._ask_members(members, safe_indexing(as_rows(X), rows))
        counts = self.label_counts_
        return held_out._replace(answers=[answers], rows=[rows], counts=[counts], scales=[1.0])

    def _fit_folds(
        self,
        members: Members,
        folds: list[tuple[np.ndarray, np.ndarray]],
        fits: HeldOutFits,
        held_out: HeldOutAnswers,
        progress: Progress,
    ) -> HeldOutAnswers:
        """Fit members without the held-out rows of each fold, and last to all rows."""
        jobs: list[Job] = []
        for train, test in [*folds, (None, None)]:
            for name, estimator in members:
                task = progress.part(len(jobs), name="last fit" if test is None else "fold")
                jobs.append(Job(self._part_name(name), estimator, train, test, task))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLabelWarning)  # this estimator warns itself
            done = fits.run(jobs, self.n_jobs, progress)
        m = len(members)
        by_fold = [done[first : first + m] for first in range(0, len(done), m)]
        self._keep(
            [(name, one.result) for (name, _), one in zip(members, by_fold[-1], strict=True)]
        )
        return held_out.of_folds(folds)._replace(
            answers=[[one.result for one in fold] for fold in by_fold[:-1]],
            seconds=np.sum([[one.seconds for one in fold] for fold in by_fold], axis=0),
        )

    def _keep(self, fitted: list[tuple[str, Any]]) -> None:
        """Keep fitted members and the features of the first; find labels that none knows."""
        self._keep_members(fitted)
        members = [member for _, member in fitted]
        is_prefit = isinstance(self.cv, str)
        self._unseen_labels = unknown_to(members, self.label_counts_, is_prefit=is_prefit)
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(members[0], name):
                setattr(self, name, getattr(members[0], name))

    def _ask_member(
        self, name: str, fitted: Any, X: Any, k: int, allowed: AllowedLabels | None = None
    ) -> Answers:
        """Return the k best labels of a fitted member, as positions in ``classes_``."""
        return predict_topk_of(
            self._part_name(name),
            fitted,
            X,
            k,
            self.classes_,
            type(self).__name__,
            are_columns=self._has_columns,
            allowed=allowed,
            unseen=self._unseen_labels,
        )

    @property
    def _has_columns(self) -> bool:
        """Whether y was an indicator."""
        return self._targets_kind != "classes"

    def _require_pairs(self, n: int, n_members: int) -> None:
        n_pairs, n_bytes, parameter = self._pair_size(n_members)
        require_bytes(
            n * n_pairs * n_bytes,
            None,
            f"the pairs, {n} held-out instances x {n_pairs} labels",
            f"Hold out fewer instances (cv), or lower {parameter}.",
            type(self).__name__,
        )

    def _require_dense(self, X: Any, n_bytes: int, what: str, instead: str) -> tuple[int, int]:
        """Return n and n_labels if there is room for dense answers, `n_bytes` an entry."""
        n = n_rows(X, type(self).__name__)
        n_labels = len(self.classes_)
        require_bytes(
            n_bytes * n * n_labels,
            None,
            f"{what}, {n} instances x {n_labels} labels",
            f"Ask for fewer instances at a time, or use {instead}.",
            type(self).__name__,
        )
        return n, n_labels

"""The choice of an estimator by trials on held-out rows, within a time budget."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import Bunch

from sklearn_xc._input.data import as_rows
from sklearn_xc._input.sklearn_private import BaseComposition, Interval, safe_indexing
from sklearn_xc._labels.features import LabelFeatures
from sklearn_xc._parallel.progress import Fit, OutOfTime, Progress, at_most, duration, say
from sklearn_xc._warnings import warn
from sklearn_xc.ensemble.held_out import (
    HeldOutAnswers,
    HeldOutFits,
    Job,
    LearnsFromHeldOut,
    Members,
)
from sklearn_xc.ensemble.members import Answers
from sklearn_xc.ensemble.stacking import StackingXC
from sklearn_xc.ensemble.thresholds import ThresholdTuner
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.metrics.at_k import ndcg_of_rows
from sklearn_xc.metrics.hits import find_hits
from sklearn_xc.metrics.propensity_scored import propensities_of, psp_at_k

#: Another estimator must be ahead in nDCG@5 by that many standard errors of the difference. nDCG
#: tells gains of a point or two from chance in half the rows that P@1 needs.
_AHEAD, _K = 2.0, 5
_FIRST, _LOGISTIC, _SOFTMAX = "one-vs-all", "one-vs-all, logistic", "softmax"
_MEANS, _NGAME = "label means", "NGAME"
_NONE = (np.nan,) * 3
#: NGAME is trained if it is right, without training, at least that many times as often as the best
#: so far. On seven sets its stack gained up to 4.5 points of P@1 above 0.9, none at 0.7.
_NEAR = 0.8
#: Rows times classes above which the logistic loss is not tried: with 20,560 classes of 77,141 rows
#: it took more than ten minutes, and all the rest of the fit five.
_MOST_PAIRS = 2e8
#: Part of the time budget that is planned, and how much longer than planned a fit may take.
_PLANNED, _SLACK = 0.95, 1.15
#: Seconds that the learner of a stack takes for each held-out row.
_LEARNER = 3e-3
#: Without `cv`, the share of rows to hold out within a time budget: at least that many.
_SHARE, _ENOUGH, _LARGEST_SHARE = 0.1, 1_000, 0.3
#: If time is too short for the first candidate: part of what is left that is planned, and the
#: number of rows that are fitted in any time.
_CAUTION, _FEWEST = 0.5, 100


class Trial:
    """A candidate, its answers to held-out rows, and what these cost.

    Attributes
    ----------
    members : list of (str, classifier)
        The candidate, or the members of a stack; not fitted.
    answers : list of Answers
        For each fold.
    seconds, cpu_seconds : float
    final_seconds : float
        That a fit to all rows is expected to take.
    ndcg : ndarray of float64 of shape (n_held,)
        nDCG@5 of each row.
    precision : float
        P@1.
    """

    def __init__(
        self,
        members: Members,
        answers: list[Answers],
        held_out: HeldOutAnswers,
        began: tuple[float, float],
    ) -> None:
        self.members, self.answers = members, answers
        self.name = " + ".join(name for name, _ in members)
        self.seconds = time.perf_counter() - began[0]
        self.cpu_seconds = time.process_time() - began[1]
        self.final_seconds = _SLACK * self.seconds * np.mean(held_out.scales) / len(answers)
        rows = np.concatenate(held_out.rows)
        self.truth, self.weight = held_out.truth[rows], held_out.weight[rows]
        self.best = np.concatenate([one.labels[:, :_K] for one in answers])
        hits = find_hits(self.truth, self.best, self.best.shape[1])
        self.ndcg = ndcg_of_rows(hits, (self.best.shape[1],))[:, 0]
        self.precision = float(np.average(hits.hit[:, 0], weights=self.weight))

    def is_ahead(self, other: "Trial") -> bool:
        """Return whether the best labels are clearly better, and as many first ones are right."""
        gain = self.weight * (self.ndcg - other.ndcg)
        is_clear = gain.mean() > _AHEAD * gain.std() / np.sqrt(len(gain))
        return bool(is_clear and self.precision >= other.precision)


class AutoXC(ThresholdTuner):
    """The best of several estimators, or of their stacks, chosen by trials on held-out rows.

    Candidates are fitted without the held-out rows, cheapest first, and compared on these rows. The
    first is kept unless another is ahead in nDCG@5 by more than two standard errors of the
    difference, and not behind in P@1; and so is the best beside its stack with the best of another
    class. What is chosen is fitted to all rows, and thresholds are tuned on the answers there are.

    Parameters
    ----------
    estimators : list of (str, classifier), default=None
        Candidates, the cheapest first. A clone that has `label_features`, `label_names`, `n_jobs`
        or `random_state`, and None there, gets those of this estimator. None takes
        ``OvALinearXC()``; ``NGAMEEmbeddingXC(max_iter=0, classifier_max_iter=0)``, which compares
        rows with the means and the features of labels; ``OvALinearXC(C=4)``; for rows with one
        label each ``OvALinearXC(loss="logistic")``, up to 2e8 pairs of a row and a class, and, if
        that is no worse, ``ImplicitSoftmaxSGD()``; and if the means are near the best, and with
        `label_features`, ``NGAMEEmbeddingXC()``.
    label_features : object, default=None
        What is known about each label, as in :class:`~sklearn_xc.NGAMEEmbeddingXC`.
    label_names : array-like of shape (n_labels,), default=None
        Names of the columns of an indicator y, which become ``classes_``.
    time_budget : float, default=None
        Seconds that ``fit`` may take, by the wall clock. Candidates for which time is too short are
        stopped or left out; if it is too short for the first, that one is fitted to some of the
        rows, with a warning. The end of a part of a fit, such as an epoch, is waited for. The first
        fit on a machine also compiles, for up to half a minute. What there was time for decides
        about the model, so that it may differ between runs. With None, all candidates are tried.
    cv : float, int, splitter or iterable of (train, test), default=None
        How to hold rows out, as in :class:`~sklearn_xc.StackingXC`. None holds out a tenth, at
        least 1,000 rows, or makes five folds of fewer than 5,000 rows.
    min_labels, top_k : int, default=0 and 100
        As in :class:`~sklearn_xc.ThresholdTuner`.
    n_jobs : int, default=None
        Number of threads of each candidate.
    random_state : int, RandomState instance or None, default=None
        Draws the held-out rows, and seeds candidates.
    verbose : int, default=0
        If not 0, print a line for each trial.

    Attributes
    ----------
    estimator_ : classifier
        What was chosen, fitted to all rows; a :class:`~sklearn_xc.StackingXC` for a stack.
    fit_report_ : dict of ndarray
        One row per candidate, as ``pandas.DataFrame(clf.fit_report_)`` shows it: ``name``;
        ``P@1``, ``nDCG@5`` and ``PSP@1`` on the held-out rows; ``seconds`` and ``cpu_seconds`` of
        the trial, without the compilation of loops; ``outcome``: "chosen", and of how many rows if
        time was too short for all, "" if another was, or why there is no result.
    named_estimators_ : Bunch
        What was chosen, by name: a single one, or the members of a stack.
    classes_, thresholds_, threshold_, group_edges_, label_counts_, n_samples_fit_
        As in :class:`~sklearn_xc.ThresholdTuner`.
    n_features_in_, feature_names_in_
        The estimator's, if it has them.

    See Also
    --------
    sklearn_xc.StackingXC : Stacks given estimators.
    sklearn.model_selection.GridSearchCV : Compares parameters.

    Examples
    --------
    >>> from sklearn_xc import AutoXC
    >>> from sklearn_xc.datasets import make_xc_classification
    >>> X, Y = make_xc_classification(
    ...     n_samples=500, n_features=300, n_labels=50, random_state=0, return_X_y=True
    ... )
    >>> clf = AutoXC(cv=0.3, random_state=0).fit(X, Y)
    >>> clf.fit_report_["name"].tolist()[:3]
    ['one-vs-all', 'label means', 'one-vs-all, C=4']
    """

    #: Of the thresholds, as by default; the estimator is None before it is chosen.
    estimator = None
    objective, per, beta, min_precision, n_groups = "micro_f1", "frequency_group", 1.0, 0.5, 5
    _part_name = LearnsFromHeldOut._part_name
    _check_members = StackingXC._check_members
    _validate_names = BaseComposition._validate_names

    _parameter_constraints: dict = {  # noqa: RUF012
        **LearnsFromHeldOut._parameter_constraints,
        "min_labels": ThresholdTuner._parameter_constraints["min_labels"],
        "estimators": [list, None],
        "label_features": "no_validation",
        "label_names": ["array-like", None],
        "time_budget": [Interval(Real, 0, None, closed="neither"), None],
        "cv": [Interval(Real, 0, 1, closed="neither"), "cv_object"],
    }

    def __init__(
        self,
        estimators=None,
        *,
        label_features=None,
        label_names=None,
        time_budget=None,
        cv=None,
        min_labels=0,
        top_k=100,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimators = estimators
        self.label_features = label_features
        self.label_names = label_names
        self.time_budget = time_budget
        self.cv = cv
        self.min_labels = min_labels
        self.top_k = top_k
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def named_estimators_(self) -> Bunch:
        """What was chosen, by name."""
        chosen = self.estimator_
        at = np.flatnonzero(np.char.startswith(self.fit_report_["outcome"], "chosen"))[0]
        name = str(self.fit_report_["name"][at])
        is_own = isinstance(chosen, StackingXC) and name not in dict(self.estimators or ())
        return chosen.named_estimators_ if is_own else Bunch(**{name: chosen})

    def _folds_of(self, n: int) -> Any:
        if self.time_budget is None or self.cv is not None:
            return self.cv
        return min(_LARGEST_SHARE, max(_SHARE, _ENOUGH / n))

    def _candidates(self) -> Members:
        if self.estimators is not None:
            return self._check_members()
        # Imported where they are used, as they take a second.
        from sklearn_xc import ImplicitSoftmaxSGD, NGAMEEmbeddingXC, OvALinearXC

        found: list[tuple[str, Any]] = [
            (_FIRST, OvALinearXC()),
            (_MEANS, NGAMEEmbeddingXC(max_iter=0, classifier_max_iter=0)),
            ("one-vs-all, C=4", OvALinearXC(C=4.0)),
            (_LOGISTIC, OvALinearXC(loss="logistic")),
            (_SOFTMAX, ImplicitSoftmaxSGD()),
        ]
        if self.label_features is not None:
            found.append((_NGAME, NGAMEEmbeddingXC()))
        if sklearn.get_config()["enable_metadata_routing"]:
            for _, estimator in found:
                estimator.set_fit_request(sample_weight=True)
        return found

    def _routed_parts(self) -> dict[str, Any]:
        return dict(self._candidates())

    def _learn_held_out(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        params: dict[str, Any],
        fit: Fit,
        *,
        of_classes: bool = True,
    ) -> HeldOutAnswers:
        budget = np.inf if self.time_budget is None else _PLANNED * self.time_budget
        self._ends_at = time.perf_counter() + budget
        members = self._candidates()
        held_out, _, progress = self._fit_held_out(members, X, y, sample_weight, params, fit)
        progress.close()
        return held_out

    def _fit_folds(
        self,
        members: Members,
        folds: list[tuple[np.ndarray, np.ndarray]],
        fits: HeldOutFits,
        held_out: HeldOutAnswers,
        progress: Progress,
    ) -> HeldOutAnswers:
        """Try candidates, and fit the best one to all rows; return its answers."""
        held_out = held_out.of_folds(folds)
        depth = max(fits.k, StackingXC([])._depth())  # a stack learns from more than `top_k`
        fits = replace(fits, k=min(depth, len(self.classes_)))
        course = _Course(self, folds, fits, held_out, progress, vars(self).pop("_ends_at"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenLabelWarning)  # this estimator warns itself
            for name, estimator in members:
                course.consider(name, self._equipped(estimator, held_out.seed))
            held_out = course.finish()
        progress.task.expect(course.n_parts - course.n_expected)
        return held_out

    def _equipped(self, estimator: Any, seed: int) -> Any:
        """Return a clone that has what this estimator was given."""
        features = self.label_features
        if features is not None and not isinstance(features, LabelFeatures):
            features = LabelFeatures(features, classes=self.classes_)  # folds may lack classes
        given = {
            "label_features": features,
            "label_names": self.label_names,
            "n_jobs": self.n_jobs,
            "random_state": seed,
        }
        known = estimator.get_params(deep=False)
        unset = {name: value for name, value in given.items() if known.get(name, 0) is None}
        return clone(estimator).set_params(**unset)

    def _report(self, began: float, **columns: np.ndarray) -> dict[str, np.ndarray]:
        return vars(self).pop("_trial_report")


def _compilation(timer: Any) -> float:
    """Return the seconds of a ``compilation_timer``."""
    return float(timer.duration) if timer is not None and timer.done else 0.0


class _Course:
    """The trials of one fit, and the choice among them."""

    def __init__(
        self,
        owner: AutoXC,
        folds: list[tuple[np.ndarray, np.ndarray]],
        fits: HeldOutFits,
        held_out: HeldOutAnswers,
        progress: Progress,
        ends_at: float,
    ) -> None:
        self.owner, self.folds, self.fits = owner, folds, fits
        self.held_out, self.progress, self.ends_at = held_out, progress, ends_at
        self.trials: list[Trial] = []
        self.best: Trial | None = None
        self.table: list[tuple[Any, ...]] = []
        #: The candidate for which time was too short, and the seconds that it needs.
        self.first: tuple[str, Any] | None = None
        self.needed = 0.0
        self.n_parts, self.n_expected = 0, progress.n_parts
        self.propensities = propensities_of(owner.label_counts_, owner.n_samples_fit_)

    def left(self) -> float:
        """Seconds of the time budget."""
        return self.ends_at - time.perf_counter()

    def consider(self, name: str, estimator: Any) -> None:
        """Try a candidate, unless a default one is of no use here or there is no time."""
        if self.owner.estimators is None and (reason := self._why_not(name)):
            return self._note(name, _NONE, (np.nan, np.nan), reason)
        began = time.perf_counter(), time.process_time()
        if reason := self._try(name, estimator, began):
            spent = time.perf_counter() - began[0], time.process_time() - began[1]
            self._note(name, _NONE, spent, reason)

    def _why_not(self, name: str) -> str:
        """Return why a default candidate is not tried, or nothing."""
        tried = {trial.name: trial.precision for trial in self.trials}
        if name == _NGAME and self.best is not None:
            is_behind = tried.get(_MEANS, 1.0) < _NEAR * self.best.precision
            return "label means are far behind" if is_behind else ""
        if name not in (_LOGISTIC, _SOFTMAX):
            return ""
        n = len(self.held_out.weight)
        indptr, _ = self.fits.targets.by_instance(n)
        if (np.diff(indptr) > 1).any():
            return "rows have several labels"
        if name == _LOGISTIC and n * len(self.owner.classes_) > _MOST_PAIRS:
            return "it looks at every row for every class"
        is_behind = tried.get(_LOGISTIC, 1.0) < tried.get(_FIRST, 0.0)
        return "the logistic loss is behind" if name == _SOFTMAX and is_behind else ""

    def _try(self, name: str, estimator: Any, began: tuple[float, float]) -> str:
        """Fit a candidate without each fold's held-out rows; return why there are no answers."""
        from sklearn_xc._compile.numba_private import compilation_timer  # it imports numba

        owner, n_folds = self.owner, len(self.folds)
        n_fits = n_folds + _SLACK * np.mean(self.held_out.scales)
        seconds = self.left() * n_folds / n_fits
        if self.best is not None:
            seconds = min(seconds, self.left() - self.best.final_seconds)
        n_ended = self.progress.n_ended
        timer: Any = None
        try:
            # Candidates are listed cheapest first.
            dearest = max((one.seconds for one in self.trials), default=0.0)
            if seconds <= dearest or self.first is not None:
                raise OutOfTime(0.0)
            with at_most(seconds), compilation_timer() as timer:
                done = self._run((name, estimator), self.folds)
        except OutOfTime as error:
            if self.best is None and self.first is None:
                self.first = name, estimator
                done = self.progress.n_ended - n_ended + error.share
                spent = time.perf_counter() - began[0] - _compilation(timer)
                self.needed = spent / max(done, 1e-3)
            return "no time left"
        except Exception as error:
            if self.best is None:
                raise
            warn(f"{type(owner).__name__}: without {name}: {error}", FitFailedWarning)
            return str(error)
        began = began[0] + _compilation(timer), began[1] + _compilation(timer)
        trial = Trial([(name, estimator)], [one.result for one in done], self.held_out, began)
        if self.best is None or trial.is_ahead(self.best):
            self.best = trial
        self.trials.append(trial)
        self._note_trial(trial)
        return ""

    def _note_trial(self, trial: Trial) -> None:
        how: Any = {"k": 1, "propensities": self.propensities, "sample_weight": trial.weight}
        ndcg = float(np.average(trial.ndcg, weights=trial.weight))
        figures = trial.precision, ndcg, psp_at_k(trial.truth, trial.best, **how)
        self._note(trial.name, figures, (trial.seconds, trial.cpu_seconds), "")

    def _run(self, member: tuple[str, Any], folds: Sequence[Any]) -> list[Any]:
        """Fit a member to the rows of each fold; (None, None) are all."""
        name, estimator = member
        jobs = [self._job(name, estimator, *fold) for fold in folds]
        return self.fits.run(jobs, 1, self.progress)

    def _job(self, name: str, estimator: Any, rows: Any, test: Any) -> Job:
        self.n_parts += 1
        task = self.progress.part(self.n_parts - 1, name=name)
        return Job(self.owner._part_name(name), estimator, rows, test, task)

    def finish(self) -> HeldOutAnswers:
        """Fit what is best to all rows; return its answers to held-out rows."""
        if self.best is None:
            return self._fit_to_some_rows()
        chosen, stack = self._stack() or (self.best, None)
        done = [self._run(member, [(None, None)])[0] for member in chosen.members]
        fitted = [(name, one.result) for (name, _), one in zip(chosen.members, done, strict=True)]
        if stack is not None:
            stack._keep_fitted(fitted, self.fits.X, self.held_out)
            fitted = [(chosen.name, stack)]
        self._keep(chosen.name, fitted)
        k = self.owner._depth()
        answers = [[Answers(*(part[:, :k] for part in one))] for one in chosen.answers]
        return self.held_out._replace(answers=answers)

    def _stack(self) -> tuple[Trial, StackingXC] | None:
        """Return a stack of the best and the best of another kind, if it is ahead of both."""
        best, owner = self.best, self.owner
        kind = type(best.members[0][1])
        others = [one for one in self.trials if type(one.members[0][1]) is not kind]
        if not others:
            return None
        other = max(others, key=lambda one: one.precision)
        pair = sorted((best, other), key=self.trials.index)
        members = [one.members[0] for one in pair]
        began = time.perf_counter(), time.process_time()
        needed = best.final_seconds + other.final_seconds + _LEARNER * len(best.ndcg)
        if needed > self.left():
            name = " + ".join(name for name, _ in members)
            self._note(name, _NONE, (0.0, 0.0), "no time left")
            return None
        stack = StackingXC(
            members,
            label_names=owner.label_names,
            top_k=owner.top_k,
            n_jobs=owner.n_jobs,
            random_state=self.held_out.seed,
        )
        answers = [list(of_fold) for of_fold in zip(*(one.answers for one in pair), strict=True)]
        found = stack._learn_alone(self.held_out._replace(answers=answers))
        trial = Trial(members, found, self.held_out, began)
        self._note_trial(trial)
        return (trial, stack) if trial.is_ahead(best) else None

    def _fit_to_some_rows(self) -> HeldOutAnswers:
        """Fit the first candidate to as many rows as there is time for, and query held-out rows."""
        assert self.first is not None
        (name, estimator), owner = self.first, self.owner
        train, test = self.folds[0]
        order = np.random.default_rng((self.held_out.seed, 4)).permutation(train)
        fits = replace(self.fits, refittable=None)
        n = int(_CAUTION * self.left() / self.needed * len(train))
        while True:
            rows = np.sort(order[: max(_FEWEST, n)])
            self.progress.task.expect(1)
            self.n_expected += 1
            job = self._job(name, estimator, rows, None)
            try:
                with at_most(np.inf if n <= _FEWEST else _CAUTION * self.left()):
                    (done,) = fits.run([job], 1, self.progress)
                break
            except OutOfTime as error:
                if n <= _FEWEST:  # of a limit around this fit
                    raise
                n = int(0.5 * error.share * n)
        budget = duration(float(owner.time_budget))
        warn(
            f"{type(owner).__name__}: time_budget={budget} is too short for {name}, which needs "
            f"about {duration(self.needed)} twice: it was fitted to {len(rows)} of {len(order)} "
            "rows, and nothing else was tried."
        )
        held_out = self.held_out.of_folds([(rows, test)])
        self._keep(name, [(name, done.result)], f"chosen, of {len(rows)} of {len(order)} rows")
        X = safe_indexing(as_rows(fits.X), test)
        return held_out._replace(answers=[[owner._ask_member(name, done.result, X, fits.k)]])

    def _keep(self, name: str, fitted: list[tuple[str, Any]], outcome: str = "chosen") -> None:
        """Keep what was chosen, and the table of trials."""
        self.owner._keep(fitted)
        names = "name", "P@1", "nDCG@5", "PSP@1", "seconds", "cpu_seconds", "outcome"
        columns = zip(*self.table, strict=True)
        report = {key: np.array(column) for key, column in zip(names, columns, strict=True)}
        report["outcome"] = np.where(report["name"] == name, outcome, report["outcome"])
        self.owner._trial_report = report

    def _note(
        self,
        name: str,
        figures: tuple[float, float, float],
        spent: tuple[float, float],
        outcome: str,
    ) -> None:
        """Add a row to the table, and print it."""
        self.table.append((name, *figures, *spent, outcome))
        if self.owner.verbose:
            found = outcome or "P@1 {:.1%}, nDCG@5 {:.1%}, PSP@1 {:.1%}".format(*figures)
            say(type(self.owner).__name__, f"{name}: {found}, {duration(spent[0])}")

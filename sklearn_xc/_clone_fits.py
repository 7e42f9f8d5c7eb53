"""Fits of clones to some of the rows, and their answers for others, in threads or on a cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from sklearn_xc._data import Targets
from sklearn_xc._made_features import MadeFeatures, made_from
from sklearn_xc._out_of_fold import as_rows, ask, fit_clone, n_rows
from sklearn_xc._pruning_notes import PruningNote, PruningNotes
from sklearn_xc._shared_memory import Share, array_bytes
from sklearn_xc._sklearn import check_method_params, safe_indexing
from sklearn_xc.parallel.engines import Engine, engine_at_work
from sklearn_xc.parallel.tasks import Task
from sklearn_xc.parallel.threads import count_threads


@dataclass
class Job:
    """A clone to be fitted.

    Attributes
    ----------
    part : str
        What errors call it, such as "estimator 'ova'".
    estimator : estimator
    rows : ndarray of int64 or None
        Which it is fitted to; None for all.
    test : ndarray of int64 or None
        Which it is asked about; None if the clone itself is wanted.
    task : Task
        Which is to fit it, and has not begun.
    """

    part: str
    estimator: Any
    rows: np.ndarray | None
    test: np.ndarray | None
    task: Task


class Watch:
    """Is told of jobs, by number, perhaps from several threads; a subclass listens."""

    def begins(self, number: int) -> None:
        """Hear that a job is begun."""

    def ends(self, number: int) -> None:
        """Hear that it is done."""


class Done(NamedTuple):
    """A job that is done.

    Attributes
    ----------
    result : Answers or estimator
    seconds : float
        Of the fit.
    notes : list of PruningNote
        What the fit has to say of pruning.
    """

    result: Any
    seconds: float
    notes: list[PruningNote]


@dataclass
class CloneFits:
    """Works on jobs.

    Attributes
    ----------
    X, y : object
        All instances and their labels.
    params : dict of str to dict
        Further arguments of ``fit`` for each `part`; those with an entry for each row are cut.
    k : int
        Labels that are asked for of each instance.
    classes : ndarray of shape (n_labels,)
    who : str
        Named in messages.
    targets : Targets
        y, checked.
    share : Share
        What fits may hold; if that is limited, they are made one after the other, and clones that
        were returned count as held.
    made : MadeFeatures or None
        What X is made from, where a vectorizer is to be fitted anew to the rows of a clone.
    """

    X: Any
    y: Any
    params: Mapping[str, Mapping[str, Any]]
    k: int
    classes: np.ndarray
    who: str
    targets: Targets
    share: Share
    made: MadeFeatures | None = None

    def run(self, jobs: Sequence[Job], n_jobs: Any, watch: Watch) -> list[Done]:
        """Do all jobs.

        Parameters
        ----------
        jobs : sequence of Job
        n_jobs : int or None
            Threads, where no cluster is at work.
        watch : Watch
            Is told of each.

        Raises
        ------
        ValueError
            If clones with different rows would share a ``checkpoint_dir``.
        """
        for job in jobs:
            if job.test is not None:
                self._refuse_checkpoints(job)
        found: list[Done | None] = [None] * len(jobs)

        def keep(number: int, done: Done) -> None:
            found[number] = done
            if jobs[number].test is None and self.share.allowed is not None:
                self.share.held += array_bytes(done.result)
            watch.ends(number)

        engine = engine_at_work()
        if engine.is_cluster:
            self._send(engine, jobs, n_jobs, watch, keep)
            return found  # type: ignore[return-value]
        workers = min(count_threads(n_jobs, f"{self.who}: n_jobs"), len(jobs))
        if self.share.allowed is not None:
            workers = 1

        def work(number: int) -> None:
            watch.begins(number)
            keep(number, self._do(jobs[number]))

        if workers < 2:
            for number in range(len(jobs)):
                work(number)
        else:
            Parallel(n_jobs=workers, require="sharedmem")(
                delayed(work)(number) for number in range(len(jobs))
            )
        return found  # type: ignore[return-value]

    def _refuse_checkpoints(self, job: Job) -> None:
        for name, value in job.estimator.get_params().items():
            if value is not None and name.rpartition("__")[2] == "checkpoint_dir":
                raise ValueError(
                    f"{self.who}: {job.part}: {name} must be None, because fits to different rows "
                    f"cannot share a folder. Got {value!r}."
                )

    def _send(
        self,
        engine: Engine,
        jobs: Sequence[Job],
        n_jobs: Any,
        watch: Watch,
        keep: Callable[[int, Done], None],
    ) -> None:
        """Do jobs on a cluster; no callback is told of what goes on within."""

        def orders() -> Iterator[tuple[int, tuple[Job]]]:
            for number, job in enumerate(jobs):
                watch.begins(number)
                job.task.begin()
                yield number, (replace(job, task=Task()),)

        workers, fits = engine.count(n_jobs), self
        if self.share.allowed is not None:  # for all that a process works on at a time
            beside = -(-workers.n // workers.n_processes)
            fits = replace(self, share=Share(self.share.allowed // beside, self.share.held))
        with engine.sharing(fits, self.who) as place:
            for number, done in place.run(CloneFits._do, orders(), workers.n):
                jobs[number].task.end()
                keep(number, done)

    def _do(self, job: Job) -> Done:
        """Do a job."""
        notes, X, y, rows = PruningNotes(), self.X, self.y, job.rows
        params = check_method_params(X, self.params[job.part], rows)
        made = self.made
        refitted = None if made is None or rows is None else made.refitted(rows)
        if refitted is not None:
            made = refitted.made
            X, y, rows = made.features, safe_indexing(as_rows(y), rows), None
        with made_from(made):
            fitted, seconds = fit_clone(
                job.part, job.estimator, X, y, params, rows, self.who, job.task,
                notes=notes, share=self.share,
            )  # fmt: skip
        if job.test is None:
            return Done(fitted, seconds, notes.found)
        if refitted is None:
            asked = safe_indexing(as_rows(self.X), job.test)
        else:
            asked = refitted.of(job.test)
        counts = self.targets.counts_among(job.rows, n_rows(self.X, self.who))
        of_y: Any = {
            "are_columns": self.targets.kind != "classes",
            "unseen": np.flatnonzero(counts == 0),
        }
        answers = ask(job.part, fitted, asked, self.k, self.classes, self.who, **of_y)
        return Done(answers, seconds, notes.found)

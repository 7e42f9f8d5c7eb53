"""Fits of clones to some of the rows, and what these say of others: side by side, or on a cluster.

A job is known by a name, under which the answers are kept where the fit has a ``checkpoint_dir``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from sklearn_xc._kept_fits import KeptFits
from sklearn_xc._made_features import MadeFeatures, made_from
from sklearn_xc._out_of_fold import Answers, as_rows, ask, fit_clone, weight_argument
from sklearn_xc._pruning_notes import PruningNote, PruningNotes
from sklearn_xc._shared_memory import Share, array_bytes
from sklearn_xc._sklearn import safe_indexing
from sklearn_xc.parallel.engines import Engine, engine_at_work
from sklearn_xc.parallel.tasks import Task
from sklearn_xc.parallel.threads import count_threads


@dataclass
class Job:
    """A clone to be fitted.

    Attributes
    ----------
    name : str
        Lower-case letters, digits and hyphens.
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

    name: str
    part: str
    estimator: Any
    rows: np.ndarray | None
    test: np.ndarray | None
    task: Task


class Watch:
    """Is told of jobs, by number, perhaps from several threads; a subclass listens."""

    def begins(self, number: int) -> None:
        """Hear that a job is begun."""

    def ends(self, number: int, *, is_known: bool) -> None:
        """Hear that it is done, or was known."""


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
    weight : ndarray of shape (n,) or None
    k : int
        Labels that are asked for of each instance.
    classes : ndarray of shape (n_labels,)
    who : str
        Named in messages.
    are_columns : bool
        As of ``ask``.
    share : Share
        What fits may hold; if that is limited, they are made one after the other, and clones that
        were returned count as held.
    made : MadeFeatures or None
        What X is made from, where a vectorizer is to be fitted anew to the rows of a clone.
    """

    X: Any
    y: Any
    weight: np.ndarray | None
    k: int
    classes: np.ndarray
    who: str
    are_columns: bool
    share: Share
    made: MadeFeatures | None = None

    def run(self, jobs: Sequence[Job], kept: KeptFits, n_jobs: Any, watch: Watch) -> list[Done]:
        """Do all jobs.

        Parameters
        ----------
        jobs : sequence of Job
        kept : KeptFits
            Where answers are looked for, and kept.
        n_jobs : int or None
            Threads, where no cluster is at work.
        watch : Watch
            Is told of each.
        """
        found: list[Done | None] = [None] * len(jobs)
        for number, job in enumerate(jobs):
            known = None if job.test is None else kept.answers(job.name).get()
            if known is not None:
                answers, seconds, notes = known
                found[number] = Done(Answers(*answers), seconds, notes)
                watch.begins(number)
                job.task.begin().end()
                watch.ends(number, is_known=True)
        rest = [number for number, done in enumerate(found) if done is None]

        def keep(number: int, done: Done) -> None:
            found[number], job = done, jobs[number]
            if job.test is not None:
                answers = tuple(done.result)
                kept.answers(job.name).put(
                    lambda: (answers, done.seconds, done.notes), is_final=True
                )
                kept.forget(job.name)
            elif self.share.allowed is not None:
                self.share.held += array_bytes(done.result)
            watch.ends(number, is_known=False)

        engine = engine_at_work()
        if engine.is_cluster and rest:
            self._send(engine, {n: jobs[n] for n in rest}, kept, n_jobs, watch, keep)
            return found  # type: ignore[return-value]
        workers = min(count_threads(n_jobs, f"{self.who}: n_jobs"), len(rest))
        if self.share.allowed is not None:
            workers = 1

        def work(number: int) -> None:
            watch.begins(number)
            keep(number, self._do(jobs[number], kept))

        if workers < 2:
            for number in rest:
                work(number)
        else:
            Parallel(n_jobs=workers, require="sharedmem")(delayed(work)(one) for one in rest)
        return found  # type: ignore[return-value]

    def _send(
        self, engine: Engine, jobs: dict[int, Job], kept: KeptFits, n_jobs: Any, watch: Watch,
        keep: Callable[[int, Done], None],
    ) -> None:  # fmt: skip
        """Do jobs on a cluster; no callback is told of what goes on within."""

        def orders() -> Iterator[tuple[int, tuple[Job, KeptFits]]]:
            for number, job in jobs.items():
                watch.begins(number)
                job.task.begin()
                yield number, (replace(job, task=Task()), kept)

        workers, fits = engine.count(n_jobs), self
        if self.share.allowed is not None:  # for all that a process works on at a time
            beside = -(-workers.n // workers.n_processes)
            fits = replace(self, share=Share(self.share.allowed // beside, self.share.held))
        with engine.sharing(fits, self.who) as place:
            for number, done in place.run(_do_there, orders(), workers.n):
                jobs[number].task.end()
                keep(number, done)

    def _do(self, job: Job, kept: KeptFits) -> Done:
        """Do a job."""
        notes, X, y, rows = PruningNotes(), self.X, self.y, job.rows
        weight = weight_argument(job.estimator, self.weight, rows)
        made = self.made
        refitted = None if made is None or rows is None else made.refitted(rows)
        if refitted is not None:
            made = refitted.made
            X, y, rows = made.features, safe_indexing(as_rows(y), rows), None
        with made_from(made):
            fitted, seconds = fit_clone(
                job.part, job.estimator, X, y, weight, rows, self.who, job.task,
                notes=notes, kept=kept, name=job.name, share=self.share,
            )  # fmt: skip
        if job.test is None:
            return Done(fitted, seconds, notes.found)
        if refitted is None:
            asked = safe_indexing(as_rows(self.X), job.test)
        else:
            asked = refitted.of(job.test)
        answers = ask(
            job.part, fitted, asked, self.k, self.classes, self.who, are_columns=self.are_columns
        )
        return Done(answers, seconds, notes.found)


def _do_there(fits: CloneFits, job: Job, kept: KeptFits) -> Done:
    """Do a job, in a worker."""
    return fits._do(job, kept.where_shared())

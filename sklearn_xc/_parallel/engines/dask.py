"""Workers of a Dask cluster, under ``joblib.parallel_config("dask")``.

The object that tasks share is sent to one worker, and each of the others fetches it from those that
have it before its first task. Dask runs the task of a worker that has died on another one.
"""

import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from sklearn_xc._parallel.engines.protocol import Numbered, Work, Workers
from sklearn_xc._parallel.engines.remote import PROCESS, Outcome, in_window, work_on
from sklearn_xc._parallel.interrupt import heard_of
from sklearn_xc._parallel.row_ranges import one_blas_thread

#: How often the object is sent, if the workers that have it die.
_ATTEMPTS = 4


class DaskEngine:
    """The workers that a client of Dask knows.

    Parameters
    ----------
    backend : joblib backend
        That of ``parallel_config``, with its client and the options of ``submit``.
    n_jobs : int or None
        That of ``parallel_config``: all workers are used.
    """

    is_cluster = True

    def __init__(self, backend: Any, n_jobs: int | None) -> None:
        self._backend = backend

    def count(self, n_jobs: Any) -> Workers:
        """Return the threads of all workers."""
        n_threads = self._backend.effective_n_jobs(-1)  # waits for the first worker
        return Workers(int(n_threads), len(self._backend.client.ncores()))

    @contextmanager
    def sharing(self, shared: Any, who: str) -> Iterator["_DaskPlace"]:
        """Send an object to a worker, from which others fetch it."""
        with self._backend.retrieval_context():  # in a task of Dask: let others run meanwhile
            yield _DaskPlace(self._backend, shared, who)


class _DaskPlace:
    def __init__(self, backend: Any, shared: Any, who: str) -> None:
        self._client, self._options, self._who = backend.client, backend.submit_kwargs, who
        self._held = _Held(shared)
        self._future: Any = None

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Submit tasks, and yield results."""
        from dask.distributed import as_completed
        from distributed.scheduler import KilledWorker

        self._share()
        done, under_way = as_completed(), dict[str, tuple[Any, Numbered]]()

        def submit(task: Numbered) -> None:
            key = f"sklearn_xc-{work.__name__.strip('_')}-{uuid.uuid4().hex}"
            future = self._client.submit(
                _work, self._future, work, task[1], pure=False, key=key, **self._options
            )
            under_way[future.key] = future, task
            done.add(future)

        def next_done() -> tuple[Outcome, int]:
            while True:
                future = next(done)
                _, task = under_way.pop(future.key)
                try:
                    return future.result(), task[0]
                except CancelledError:  # the workers that had the object have died
                    self._share()
                    submit(task)

        try:
            yield from in_window(tasks, n_workers, submit, next_done)
        except KilledWorker as error:
            raise RuntimeError(
                f"{self._who}: several workers of the Dask cluster died, one after the other: "
                "probably for want of memory. Give workers more of it or fewer threads, or set "
                "max_memory."
            ) from error
        finally:
            self._client.cancel([future for future, _ in under_way.values()])

    def _share(self) -> None:
        """Send the object to a worker, unless one has it."""
        # Not broadcast: that waits for ever if a worker dies meanwhile.
        for _ in range(_ATTEMPTS):
            if self._future is not None and self._future.status == "finished":
                return
            with suppress(OSError):  # the worker died
                (self._future,) = self._client.scatter([self._held], hash=False)
        raise RuntimeError(
            f"{self._who}: {_ATTEMPTS} workers of the Dask cluster died before others had fetched "
            "the data."
        )


class _Held:
    """Keeps the object in one piece, whatever it is."""

    def __init__(self, content: Any) -> None:
        self.content, self.asked_by = content, PROCESS


def _work(held: _Held, work: Work, arguments: tuple[Any, ...]) -> Outcome:
    """Work on a task, in a worker."""
    from dask.distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_unwanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    with heard_of(is_unwanted):
        if held.asked_by == PROCESS:  # workers are threads of the process that asked: it hears all
            with one_blas_thread():
                return Outcome(work(held.content, *arguments), [])
        return work_on(work, held.content, arguments)

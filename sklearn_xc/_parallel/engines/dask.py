"""Workers of a Dask cluster, under ``joblib.parallel_config("dask")``.

The shared object goes to one worker, from which the others fetch it before their first task. Dask
runs the task of a worker that has died on another one.
"""

import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from sklearn_xc._parallel.engines import Engine, Numbered, Work, Workers
from sklearn_xc._parallel.engines.remote import PROCESS, Outcome, in_window, work_on
from sklearn_xc._parallel.threads import one_blas_thread

#: How often the object is sent, if the workers that have it die.
_ATTEMPTS = 4


class DaskEngine(Engine):
    """The workers of the Dask client in joblib's backend; all are used, whatever `n_jobs`."""

    is_cluster = True

    def __init__(self, backend: Any, n_jobs: int | None) -> None:
        self._backend, self._client = backend, backend.client

    def count(self, n_jobs: Any) -> Workers:
        """Return the threads of all workers."""
        n_threads = self._backend.effective_n_jobs(-1)  # waits for the first worker
        return Workers(int(n_threads), len(self._client.ncores()))

    @contextmanager
    def sharing(self, shared: Any, caller: str) -> Iterator[Engine]:
        """Send an object to a worker, from which others fetch it."""
        self._shared = _Shared(shared)
        self._future = None
        self._who = caller
        with self._backend.retrieval_context():  # in a task of Dask: let others run meanwhile
            yield self

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Run tasks on the workers of the cluster, as ``Engine.run`` does on threads."""
        from dask.distributed import as_completed

        self._send()
        done = as_completed()
        under_way = dict[str, tuple[Any, Numbered]]()

        def submit(task: Numbered) -> None:
            key = f"sklearn_xc-{work.__name__.strip('_')}-{uuid.uuid4().hex}"
            options = {"pure": False, "key": key, **self._backend.submit_kwargs}
            future = self._client.submit(_run, self._future, work, task[1], **options)
            under_way[future.key] = future, task
            done.add(future)

        def next_done() -> tuple[Outcome, int]:
            while True:
                future = next(done)
                _, task = under_way.pop(future.key)
                try:
                    return future.result(), task[0]
                except CancelledError:  # the workers that had the object have died
                    self._send()
                    submit(task)

        try:
            yield from in_window(tasks, n_workers, submit, next_done)
        finally:
            self._client.cancel([future for future, _ in under_way.values()])

    def _send(self) -> None:
        """Send the object to a worker, unless one has it."""
        # Not broadcast: that waits for ever if a worker dies meanwhile.
        for _ in range(_ATTEMPTS):
            if self._future is not None and self._future.status == "finished":
                return
            with suppress(OSError):  # the worker died
                (self._future,) = self._client.scatter([self._shared], hash=False)
        raise RuntimeError(
            f"{self._who}: {_ATTEMPTS} workers of the Dask cluster died before others had fetched "
            "the data."
        )


class _Shared:
    """Keeps the object in one piece, whatever it is."""

    def __init__(self, content: Any) -> None:
        self.content, self.sent_by = content, PROCESS


def _run(shared: _Shared, work: Work, arguments: tuple[Any, ...]) -> Outcome:
    """Run a task in a worker."""
    if shared.sent_by == PROCESS:  # workers are threads of this process, and warn by themselves
        with one_blas_thread():
            return Outcome(work(shared.content, *arguments), [])
    return work_on(work, shared.content, arguments)

"""Workers of a Ray cluster, under ``joblib.parallel_config("ray")``.

The shared object is put into Ray's store, which each machine has a copy of: arrays are read where
they are. Ray runs the task of a process that has died in another one.
"""

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn_xc._parallel.engines import Engine, Numbered, Work, Workers
from sklearn_xc._parallel.engines.remote import Outcome, in_window, work_on

#: How often a task is tried again after the death of its process.
_MAX_RETRIES = 3
#: A worker keeps the shared object for this time without a task, in seconds.
_KEPT_SECONDS = 30.0
#: In a worker: the object that was shared last, by its reference, with all that was derived from
#: it, and the timer that removes it, so that Ray's store can give its memory back.
_loaded: dict[Any, Any] = {}
_timers: list[threading.Timer] = []


class RayEngine(Engine):
    """The processors that Ray knows; `n_jobs` of ``parallel_config`` limits them if above 1."""

    is_cluster = True

    def __init__(self, backend: Any, n_jobs: int | None) -> None:
        self._options = backend.ray_remote_args or {}
        self._n_jobs = n_jobs

    def count(self, n_jobs: Any) -> Workers:
        """Return the number of processes."""
        n_workers = _n_processors()
        if self._n_jobs is not None and self._n_jobs > 1:
            n_workers = min(n_workers, self._n_jobs)
        return Workers(n_workers, n_workers)

    @contextmanager
    def sharing(self, shared: Any, caller: str) -> Iterator[Engine]:
        """Put an object into Ray's store."""
        import ray

        _n_processors()
        self._shared = ray.put(shared)
        yield self
        self._shared = None

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Run tasks on the workers of the cluster, as ``Engine.run`` does on threads."""
        import ray

        remote = _remote_run().options(**{"max_retries": _MAX_RETRIES, **self._options})
        under_way = dict[Any, Numbered]()

        def submit(task: Numbered) -> None:
            # in a list, so that Ray does not load it again for each task
            under_way[remote.remote([self._shared], work, task[1])] = task

        def next_done() -> tuple[Outcome, int]:
            (done,), _ = ray.wait(list(under_way), num_returns=1)
            task = under_way.pop(done)
            try:
                return ray.get(done), task[0]
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None

        try:
            yield from in_window(tasks, n_workers, submit, next_done)
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)


def _n_processors() -> int:
    """Return the number of processors of Ray, which is started if necessary."""
    import ray

    if not ray.is_initialized():
        ray.init()  # at RAY_ADDRESS, if it is set
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@functools.cache
def _remote_run() -> Any:
    import ray

    return ray.remote(_run)


def _run(shared: list[Any], work: Work, arguments: tuple[Any, ...]) -> Outcome:
    """Run a task in a worker."""
    import ray

    while _timers:
        _timers.pop().cancel()
    (reference,) = shared
    loaded = _loaded.get(reference)  # a timer may remove it now
    if loaded is None:
        _loaded.clear()
        _loaded[reference] = loaded = [ray.get(reference)]
    try:
        return work_on(work, loaded[0], arguments)
    finally:
        timer = threading.Timer(_KEPT_SECONDS, _loaded.clear)
        timer.daemon = True
        timer.start()
        _timers.append(timer)

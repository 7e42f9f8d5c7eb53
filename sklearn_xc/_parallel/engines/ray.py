"""Workers of a Ray cluster, under ``joblib.parallel_config("ray")``.

The object that tasks share is put into Ray's store, of which each machine has a copy: the arrays in
it are read where they are. Ray runs the task of a process that has died in another one.
"""

import functools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sklearn_xc._parallel.engines.protocol import Numbered, Work, Workers
from sklearn_xc._parallel.engines.remote import Outcome, in_window, work_on

#: How often a task may take its process along before that is an error.
_MOST_DEATHS = 3


class RayEngine:
    """The processors that Ray knows.

    Parameters
    ----------
    backend : joblib backend
        That of ``parallel_config``, with the options of tasks.
    n_jobs : int or None
        That of ``parallel_config``; 1 and None are for all processors.
    """

    is_cluster = True

    def __init__(self, backend: Any, n_jobs: int | None) -> None:
        self._backend, self._n_jobs = backend, n_jobs

    def count(self, n_jobs: Any) -> Workers:
        """Return the number of processes."""
        n_workers = _n_processors()
        if self._n_jobs is not None and self._n_jobs > 1:
            n_workers = min(n_workers, self._n_jobs)
        return Workers(n_workers, n_workers)

    @contextmanager
    def sharing(self, shared: Any, who: str) -> Iterator["_RayPlace"]:
        """Put an object into Ray's store."""
        _n_processors()
        yield _RayPlace(self._backend.ray_remote_args or {}, shared, who)


class _RayPlace:
    def __init__(self, options: dict[str, Any], shared: Any, who: str) -> None:
        import ray

        self._options, self._who = {"max_retries": _MOST_DEATHS, **options}, who
        self._shared = ray.put(shared)

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Submit tasks, and yield results."""
        import ray

        remote, under_way = _remote_work().options(**self._options), dict[Any, Numbered]()

        def submit(task: Numbered) -> None:
            # in a list, so that it is not read anew for each task
            under_way[remote.remote([self._shared], work, task[1])] = task

        def next_done() -> tuple[Outcome, int]:
            (done,), _ = ray.wait(list(under_way), num_returns=1)
            task = under_way.pop(done)
            try:
                return ray.get(done), task[0]
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
                raise RuntimeError(
                    f"{self._who}: several processes of the Ray cluster died, one after the other, "
                    f"at part {task[0]}: probably for want of memory. Let fewer work on a machine, "
                    "or set max_memory."
                ) from error

        try:
            yield from in_window(tasks, n_workers, submit, next_done)
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)


def _n_processors() -> int:
    """Return how many processors Ray has, which is started here if it has not been yet."""
    import ray

    if not ray.is_initialized():
        ray.init()  # RAY_ADDRESS says where, if it is set
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@functools.cache
def _remote_work() -> Any:
    import ray

    return ray.remote(_work)


#: In a worker: a list of the object that was shared last, by its reference. What follows from it,
#: such as X in another form, is made once then. It is let go after so many seconds without a task:
#: until then Ray keeps it in its store.
_held: dict[Any, Any] = {}
_KEPT_SECONDS = 30.0
_letting_go: list[threading.Timer] = []


def _work(shared: list[Any], work: Work, arguments: tuple[Any, ...]) -> Outcome:
    """Work on a task, in a worker."""
    import ray

    while _letting_go:
        _letting_go.pop().cancel()
    (reference,) = shared
    held = _held.get(reference)  # a timer that was about to let go may do so now
    if held is None:
        _held.clear()
        _held[reference] = held = [ray.get(reference)]
    try:
        return work_on(work, held[0], arguments)
    finally:
        timer = threading.Timer(_KEPT_SECONDS, _held.clear)
        timer.daemon = True
        timer.start()
        _letting_go.append(timer)

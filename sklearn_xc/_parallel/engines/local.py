"""Threads of this machine, and the interface of all engines."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from sklearn_xc._parallel.threads import count_threads, is_of_joblib

#: Called as ``work(shared, *arguments)``; a function of a module, so that it can be pickled.
Work = Callable[..., Any]
#: The number of a task, and further arguments of the work.
Numbered = tuple[int, tuple[Any, ...]]


class Workers(NamedTuple):
    """Number of tasks that run at a time, and of the processes that they are divided among."""

    n: int
    n_processes: int = 1


class Engine:
    """Threads of this machine; processes under a ``parallel_config`` that asks for them.

    Attributes
    ----------
    is_cluster : bool
        Whether workers are other processes, which see no later change of an object.
    """

    is_cluster = False

    def count(self, n_jobs: Any) -> Workers:
        """Return the number of workers for a parameter `n_jobs`."""
        if not is_of_joblib(get_active_backend()[0]):  # a backend without an engine here
            return Workers(max(1, effective_n_jobs(n_jobs)))
        return Workers(count_threads(n_jobs))

    @contextmanager
    def sharing(self, shared: Any, who: str) -> Iterator["Engine"]:
        """Send an object, which is only read, once to each process, for the ``with``.

        `who` is the name of the estimator, for messages.
        """
        self._shared = shared
        yield self

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Yield the number of each task with its result, in the order in which they end.

        At most `n_workers` run at a time, and `tasks` is consumed as they end. When the generator
        is closed, no further task begins.
        """
        return Parallel(n_jobs=n_workers, prefer="threads", return_as="generator_unordered")(
            delayed(_numbered)(number, work, self._shared, arguments) for number, arguments in tasks
        )


def _numbered(number: int, work: Work, shared: Any, arguments: tuple[Any, ...]) -> tuple[int, Any]:
    return number, work(shared, *arguments)

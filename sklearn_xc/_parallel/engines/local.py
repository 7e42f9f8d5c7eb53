"""Workers of this machine: threads, or what else joblib has been told to use."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from sklearn_xc._parallel.engines.protocol import Numbered, Work, Workers
from sklearn_xc._parallel.threads import count_threads, is_of_joblib


class LocalEngine:
    """Threads; processes under a ``parallel_config`` that asks for them."""

    is_cluster = False

    def count(self, n_jobs: Any) -> Workers:
        """Return the number of threads."""
        if not is_of_joblib(get_active_backend()[0]):  # one that has no engine here
            return Workers(max(1, effective_n_jobs(n_jobs)))
        return Workers(count_threads(n_jobs))

    @contextmanager
    def sharing(self, shared: Any, who: str) -> Iterator["_LocalPlace"]:
        """Have the object where it is: joblib maps its arrays for processes."""
        yield _LocalPlace(shared)


class _LocalPlace:
    def __init__(self, shared: Any) -> None:
        self._shared = shared

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Work on tasks by joblib."""
        return Parallel(n_jobs=n_workers, prefer="threads", return_as="generator_unordered")(
            delayed(_numbered)(number, work, self._shared, arguments) for number, arguments in tasks
        )


def _numbered(number: int, work: Work, shared: Any, arguments: tuple[Any, ...]) -> tuple[int, Any]:
    return number, work(shared, *arguments)

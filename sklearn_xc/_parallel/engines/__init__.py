"""Where parts of a fit run: in threads, or on a cluster that the user has chosen through joblib.

::

    engine = active_engine()
    with engine.sharing(shared, caller) as sharing:  # sent once to each process
        for number, result in sharing.run(work, tasks, n_workers): ...

``Engine`` is for this machine; ``numa``, ``dask`` and ``ray`` are imported when they are needed. An
engine for a further backend of joblib is an entry in ``ENGINES``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import ThreadingBackend, get_active_backend

from sklearn_xc._parallel.threads import count_threads, is_local_joblib

__all__ = ["ENGINES", "Engine", "Workers", "active_engine"]

#: By the class of joblib's backend: module and class of an engine.
ENGINES = {
    "DaskDistributedBackend": (f"{__name__}.dask", "DaskEngine"),
    "RayBackend": (f"{__name__}.ray", "RayEngine"),
}
#: Holds a folder for each NUMA node, on Linux.
_NODES = Path("/sys/devices/system/node")


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
        if not is_local_joblib(get_active_backend()[0]):  # a backend without an engine here
            return Workers(max(1, effective_n_jobs(n_jobs)))
        return Workers(count_threads(n_jobs))

    @contextmanager
    def sharing(self, shared: Any, caller: str) -> Iterator["Engine"]:
        """Send an object, which is only read, once to each process, for the ``with``.

        `caller` is the name of the estimator, for messages.
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


def active_engine(
    numa: Any = False, n_jobs: Any = None, *, may_copy: bool = True, is_verbose: bool = False
) -> Engine:
    """Return the engine for the current ``joblib.parallel_config``.

    Parameters
    ----------
    numa : {"auto", False}, default=False
        Whether threads are pinned to the NUMA nodes of the machine, if it has several.
    n_jobs : int or None, default=None
        A single thread is not pinned.
    may_copy : bool, default=True
        Whether there is memory for a copy of the shared object on each node; else no thread is
        pinned.
    is_verbose : bool, default=False
        Whether to print that nodes have copies.
    """
    backend, configured = get_active_backend(prefer="threads")
    known = ENGINES.get(type(backend).__name__)
    if known is not None:
        module, name = known
        made: Any = getattr(import_module(module), name)
        return made(backend, configured)  # type: ignore[no-any-return]
    if (
        numa == "auto"
        and may_copy
        and type(backend) is ThreadingBackend
        and len([*_NODES.glob("node*")]) > 1
    ):
        numa_module: Any = import_module(f"{__name__}.numa")
        nodes = numa_module.find_nodes()[: count_threads(n_jobs)]  # each has a thread at least
        if len(nodes) > 1:
            return numa_module.NumaEngine(nodes, is_verbose=is_verbose)  # type: ignore[no-any-return]
    return Engine()

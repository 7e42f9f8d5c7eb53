"""Where parts of a fit run: in threads, or on a cluster that the user has chosen through joblib.

::

    engine = engine_at_work()
    with engine.sharing(shared, who) as place:  # sent once to each process
        for number, result in place.run(work, tasks, n_workers): ...

``local`` is for this machine; ``numa``, ``dask`` and ``ray`` are imported when they are needed. An
engine for a further backend of joblib is an entry in ``ENGINES``.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from joblib.parallel import ThreadingBackend, get_active_backend

from sklearn_xc._parallel.engines.local import Engine, Workers
from sklearn_xc._parallel.threads import count_threads

__all__ = ["ENGINES", "Engine", "Workers", "engine_at_work"]

#: By the class of joblib's backend: module and class of an engine.
ENGINES = {
    "DaskDistributedBackend": (f"{__name__}.dask", "DaskEngine"),
    "RayBackend": (f"{__name__}.ray", "RayEngine"),
}
#: Holds a folder for each NUMA node, on Linux.
_NODES = Path("/sys/devices/system/node")


def engine_at_work(
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
        Whether there is memory for a copy of the shared object on each node; else none is pinned.
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
        from sklearn_xc._parallel.engines.numa import NumaEngine, find_nodes

        nodes = find_nodes()[: count_threads(n_jobs)]  # each has a thread at least
        if len(nodes) > 1:
            return NumaEngine(nodes, is_verbose=is_verbose)
    return Engine()

"""Where parts of a fit run: in threads, or on a cluster that the user has told joblib of.

::

    engine = engine_at_work()
    with engine.sharing(shared, who) as place:  # sent once to each process
        for number, result in place.run(work, tasks, n_workers): ...

An engine for a further backend of joblib is a file here, and an entry in ``ENGINES``.
"""

from importlib import import_module
from typing import Any

from joblib.parallel import ThreadingBackend, get_active_backend

from sklearn_xc._parallel import numa as topology
from sklearn_xc._parallel.engines.local import LocalEngine
from sklearn_xc._parallel.engines.numa import NumaEngine
from sklearn_xc._parallel.engines.protocol import Engine, Place, Workers
from sklearn_xc._parallel.threads import count_threads

__all__ = ["ENGINES", "Engine", "Place", "Workers", "engine_at_work"]

#: By the class of joblib's backend, module and class of an engine.
ENGINES = {
    "DaskDistributedBackend": (f"{__name__}.dask", "DaskEngine"),
    "RayBackend": (f"{__name__}.ray", "RayEngine"),
}


def engine_at_work(
    numa: Any = False, n_jobs: Any = None, *, may_copy: bool = True, is_verbose: bool = False
) -> Engine:
    """Return the engine that the ``joblib.parallel_config`` at work asks for.

    Parameters
    ----------
    numa : {"auto", False}, default=False
        Whether threads are pinned to the NUMA nodes of the machine, if it has several.
    n_jobs : int or None, default=None
        A single thread is not pinned.
    may_copy, is_verbose
        As of ``NumaEngine``.
    """
    backend, configured = get_active_backend(prefer="threads")
    known = ENGINES.get(type(backend).__name__)
    if known is not None:
        module, name = known
        made: Any = getattr(import_module(module), name)
        return made(backend, configured)  # type: ignore[no-any-return]
    if numa == "auto" and type(backend) is ThreadingBackend:
        nodes = topology.nodes()[: count_threads(n_jobs)]  # each has a thread at least
        if len(nodes) > 1:
            return NumaEngine(nodes, may_copy=may_copy, is_verbose=is_verbose)
    return LocalEngine()

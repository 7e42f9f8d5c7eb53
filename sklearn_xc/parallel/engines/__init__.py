"""Where parts of a fit run: in threads, or on a cluster that the user has told joblib of.

::

    engine = engine_at_work()
    with engine.sharing(shared, who) as place:  # sent once to each process
        for number, result in place.run(work, tasks, n_workers): ...

An engine for a further backend of joblib is a file here, and an entry in ``ENGINES``.
"""

from importlib import import_module
from typing import Any

from joblib.parallel import get_active_backend

from sklearn_xc.parallel.engines.local import LocalEngine
from sklearn_xc.parallel.engines.protocol import Engine, Place, Workers

__all__ = ["ENGINES", "Engine", "Place", "Workers", "engine_at_work"]

#: By the class of joblib's backend, module and class of an engine.
ENGINES = {
    "DaskDistributedBackend": (f"{__name__}.dask", "DaskEngine"),
    "RayBackend": (f"{__name__}.ray", "RayEngine"),
}


def engine_at_work() -> Engine:
    """Return the engine that the ``joblib.parallel_config`` at work asks for."""
    backend, n_jobs = get_active_backend()
    known = ENGINES.get(type(backend).__name__)
    if known is None:
        return LocalEngine()
    module, name = known
    made: Any = getattr(import_module(module), name)
    return made(backend, n_jobs)  # type: ignore[no-any-return]

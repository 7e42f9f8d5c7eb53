"""What a report of a problem should say of the machine."""

import platform
import sys
from importlib import metadata

import sklearn_xc

_PACKAGES = (
    *("scikit-learn", "numpy", "scipy", "numba", "llvmlite", "joblib", "threadpoolctl"),
    *("safetensors", "pandas", "polars", "matplotlib", "faiss-cpu", "torch"),
)


def show_versions() -> None:
    """Print the versions of this package, of what it uses, and of the machine.

    Examples
    --------
    >>> import sklearn_xc
    >>> sklearn_xc.show_versions()  # doctest: +ELLIPSIS
    sklearn_xc: ...
    """
    from threadpoolctl import threadpool_info

    from sklearn_xc._parallel.threads import count_threads

    rows = {"sklearn_xc": sklearn_xc.__version__, "python": sys.version.replace("\n", " ")}
    rows |= {"machine": platform.platform(), "threads": str(count_threads(-1, "n_jobs"))}
    for name in _PACKAGES:
        try:
            rows[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            rows[name] = "not installed"
    for name, text in rows.items():
        print(f"{name}: {text}")
    for pool in threadpool_info():
        print(f"{pool['internal_api']}: {pool.get('version')}, {pool['num_threads']} threads")

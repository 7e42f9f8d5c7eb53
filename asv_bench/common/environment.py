"""What a number depends on besides the code: versions, processor, threads, date."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

import sklearn_xc

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")


def environment() -> dict[str, Any]:
    """Return what numbers depend on.

    Returns
    -------
    dict
        ``versions`` of the packages, ``processor``, ``cores``, ``memory_gib``, ``system``,
        ``blas_threads`` and ``date`` (UTC).
    """
    versions = {"sklearn_xc": sklearn_xc.__version__, "Python": platform.python_version()}
    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "versions": versions | {package: _version(package) for package in _PACKAGES},
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "blas_threads": max(blas, default=1),
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
    }


def environment_lines() -> list[str]:
    """Return lines that say on what the numbers below them were measured.

    Returns
    -------
    list of str
        Versions; processor, threads and memory; date.

    Examples
    --------
    >>> from asv_bench.common.environment import environment_lines
    >>> environment_lines()[0]
    'sklearn_xc ..., Python ..., numpy ..., scipy ..., scikit-learn ..., numba ..., joblib ...'
    """
    found = environment()
    return [
        ", ".join(f"{package} {number}" for package, number in found["versions"].items()),
        f"{found['processor']}, {found['cores']} cores, {found['memory_gib']:.0f} GiB, "
        f"{found['system']}, {found['blas_threads']} BLAS threads",
        f"{found['date']} UTC",
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(version unknown)"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()

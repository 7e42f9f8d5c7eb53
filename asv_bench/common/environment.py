"""What a number depends on besides the code: versions, processor, threads, date."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info

import sklearn_xc

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "joblib")


def environment_lines() -> list[str]:
    """Return lines that say on what the numbers below them were measured.

    Returns
    -------
    list of str
        Versions; processor and threads; date.

    Examples
    --------
    >>> from asv_bench.common.environment import environment_lines
    >>> environment_lines()[0]
    'sklearn_xc ..., Python ..., numpy ..., scipy ..., scikit-learn ..., numba ..., joblib ...'
    """
    names = [f"sklearn_xc {sklearn_xc.__version__}", f"Python {platform.python_version()}"]
    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return [
        ", ".join(names + [f"{package} {_version(package)}" for package in _PACKAGES]),
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"{max(blas, default=1)} BLAS threads",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
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

"""Measuring: CPU seconds of a call, fits whose warnings become numbers, peak memory."""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc.exceptions import (
    ConvergenceWarning,
    GridEdgeWarning,
    PruningWarning,
    UnseenLabelWarning,
)

#: Labels of a warm-up fit: the most frequent ones, of all frequencies, and those whose instances
#: have the fewest features. All of them have kernels of their own.
_FREQUENT, _OF_ALL, _NEARLY_EMPTY = 4, 60, 4


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what a call returns, and the CPU seconds that it took in all threads of the process.

    Parameters
    ----------
    function : callable
        What to call.
    *arguments : object
        Its arguments.

    Returns
    -------
    result : object
        What `function` returned.
    seconds : float
        CPU time.
    """
    began = process_time()
    result = function(*arguments)
    return result, process_time() - began


def fit_quietly(model: Any, X: Any, Y: Any) -> Any:
    """Fit an ``OvALinearXC`` without its warnings, such as those on convergence and pruning.

    Parameters
    ----------
    model : OvALinearXC
        The estimator.
    X, Y : array-like or sparse
        What to fit.

    Returns
    -------
    OvALinearXC
        `model`, fitted.
    """
    return quietly(model.fit, X, Y)


def quietly(train: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a method that trains returns, without its warnings.

    The experiments take them as numbers, from ``fit_report_`` and ``label_counts_``.
    """
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, GridEdgeWarning, PruningWarning, UnseenLabelWarning):
            warnings.simplefilter("ignore", category)
        return train(*args, **kwargs)


def warm_up(model: Any, X: Any, Y: Any) -> None:
    """Fit some labels of all kinds and predict, so that compilation is not measured later.

    Parameters
    ----------
    model : OvALinearXC
        The estimator; the loss and the dtype of X decide what is compiled.
    X, Y : sparse
        Of which it takes all rows and 68 labels, or fewer.
    """
    by_label = sp.csc_array(Y)
    counts = np.diff(by_label.indptr)
    order = np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")]
    sizes = np.bincount(
        np.repeat(np.arange(len(counts)), counts),
        weights=np.diff(sp.csr_array(X).indptr)[by_label.indices], minlength=len(counts),
    )  # fmt: skip
    spread = order[np.linspace(0, len(order) - 1, _OF_ALL).astype(int)]
    emptiest = order[np.argsort(sizes[order], kind="stable")[:_NEARLY_EMPTY]]
    few = np.unique(np.concatenate((order[:_FREQUENT], spread, emptiest)))
    fit_quietly(model, X, Y[:, few]).predict_topk(X[:2], 1)


def n_unsolved(model: Any) -> int:
    """Return how many labels of a fitted ``OvALinearXC`` stopped before their stopping rule."""
    return int((model.fit_report_["status"] != "converged").sum())


def peak_bytes() -> int:
    """Return the most memory that this process has had resident so far, in bytes.

    Notes
    -----
    On Linux from the kernel's high-water mark of this process's own address space: the number that
    ``getrusage`` gives there starts from that of the process that started it.

    Raises
    ------
    OSError
        Where the system does not tell.
    """
    try:
        status = Path("/proc/self/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        raise OSError("This system does not tell the peak memory of a process.") from None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_of_children() -> int:
    """Return the most memory of a process that this one started and that has ended, in bytes.

    0 where the system does not tell.
    """
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


def reset_peak() -> None:
    """Let ``peak_bytes`` start anew from what is resident now, where the system can (Linux)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def process_kib() -> dict[str, int]:
    """Return KiB that belong to this process alone, dirty ones, and its share of all (Linux).

    Returns
    -------
    dict
        ``Private`` and ``Pss``: a page that n processes map counts as an nth.
    """
    text = Path("/proc/self/smaps_rollup").read_text()
    found = {key: int(value) for key, value in re.findall(r"(\w+):\s+(\d+) kB", text)}
    return {"Private": found["Private_Dirty"], "Pss": found["Pss"]}

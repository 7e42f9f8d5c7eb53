"""Measures: CPU seconds, peak memory, fits without warnings, precision of a ranking."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc.metrics import precision_at_k, propensity, psp_at_k

#: Ranks at which precision is measured.
KS = (1, 3, 5)
#: Labels of a warm-up: the most frequent ones, of all frequencies, and those whose instances have
#: the fewest features. Each kind has kernels of its own.
_FREQUENT, _OF_ALL, _NEARLY_EMPTY = 4, 60, 4


class Usage(NamedTuple):
    """CPU and wall seconds of a call, and bytes resident before it and at its peak."""

    cpu_s: float
    wall_s: float
    before_bytes: int | None
    peak_bytes: int | None


def watch(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Usage]:
    """Return the result of a call and its :class:`Usage`."""
    reset_peak()
    before = peak_bytes()
    wall, cpu = perf_counter(), process_time()
    result = function(*arguments)
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return result, Usage(cpu, wall, before, peak_bytes())


def cpu_seconds(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return the result of a call, and its CPU seconds in all threads of the process."""
    began = process_time()
    result = function(*arguments)
    return result, process_time() - began


def reset_peak() -> None:
    """Let :func:`peak_bytes` start anew, where the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int | None:
    """Return the peak resident memory of this process, or None outside Linux."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def quietly(train: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a call that trains, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train(*args, **kwargs)


def warm_up(model: Any, X: Any, Y: Any) -> None:
    """Fit some labels of all kinds and predict, so that compilation is not measured later."""
    by_label = sp.csc_array(Y)
    counts = np.diff(by_label.indptr)
    order = np.flatnonzero(counts)[np.argsort(-counts[counts > 0], kind="stable")]
    sizes = np.bincount(
        np.repeat(np.arange(len(counts)), counts),
        weights=np.diff(sp.csr_array(X).indptr)[by_label.indices],
        minlength=len(counts),
    )
    spread = order[np.linspace(0, len(order) - 1, _OF_ALL).astype(int)]
    emptiest = order[np.argsort(sizes[order], kind="stable")[:_NEARLY_EMPTY]]
    few = np.unique(np.concatenate((order[:_FREQUENT], spread, emptiest)))
    quietly(model.fit, X, Y[:, few]).predict_topk(X[:2], 1)


def scores_of(topk: np.ndarray, Y_train: Any, Y_test: Any) -> dict[str, float]:
    """Return P@k and PSP@k in %; propensities are those of the training labels."""
    counts = np.bincount(Y_train.indices, minlength=Y_train.shape[1])
    ks = [k for k in KS if k <= topk.shape[1]]
    precision = precision_at_k(Y_test, topk, ks)
    scored = psp_at_k(Y_test, topk, ks, propensities=propensity(counts, Y_train.shape[0]))
    return {
        f"{name}@{k}": 100 * float(value)
        for name, found in (("P", precision), ("PSP", scored))
        for k, value in zip(ks, found, strict=True)
    }


def n_unsolved(model: Any) -> int:
    """Return how many labels of an ``OvALinearXC`` stopped before their stopping rule."""
    return int((model.fit_report_["status"] != "converged").sum())

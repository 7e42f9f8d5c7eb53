"""The check that no array has a cell for each instance and label."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from checks.comparing import asks, expect, unfitted

N_ROWS, N_ASKED, N_FEATURES, N_LABELS = 1_000, 250, 5, 100_000


def check_no_dense_array(name, estimator):
    """Check that with 100,000 labels a fit and each answer hold less than a dense array.

    That is one of float32 with a row for each of 1,000 instances, or of 250 in answers; pieces of
    some rows or labels are in order. Each row has two labels, of 100 that occur. Of memory, what
    numpy and Python allocate is counted.
    """
    warm = unfitted(estimator).fit(*_many(200, 1_000))
    for ask in asks(warm).values():  # whatever is imported or compiled only once
        ask(_many(200, 1_000)[0])
    X, Y = _many(N_ROWS, N_LABELS)
    model = unfitted(estimator)
    calls: dict[str, Callable[[], Any]] = {"fit": lambda: model.fit(X, Y)}
    for method in asks(warm):
        calls[method] = lambda method=method: asks(model)[method](X[:N_ASKED])  # type: ignore
    for method, call in calls.items():
        n = N_ROWS if method == "fit" else N_ASKED
        peak, most = _peak_bytes(call) / 1e6, 4 * n * N_LABELS / 1e6
        expect(
            peak < most,
            name,
            f"{method} of {n} rows with {N_LABELS} labels must hold less than {most:.0f} MB",
            f"{peak:.0f} MB",
        )


def _many(n: int, n_labels: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Return X (n, 5) and Y (n, n_labels), of whose columns 100 occur, far from each other."""
    X = sp.csr_array(np.random.default_rng(0).random((n, N_FEATURES)))
    labels = np.arange(2 * n) % 100 * (n_labels // 100)
    indptr = np.arange(0, 2 * n + 1, 2)
    return X, sp.csr_array((np.ones(2 * n), labels, indptr), shape=(n, n_labels))


def _peak_bytes(call: Callable[[], Any]) -> int:
    is_running = tracemalloc.is_tracing()
    if is_running:
        tracemalloc.reset_peak()
    else:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not is_running:
            tracemalloc.stop()

"""CPU time, Newton steps and Hessian products of fits from several start vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds, fit_quietly, n_unsolved, warm_up
from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k

#: Precision is measured at these, where there are test rows.
KS = (1, 3, 5)


def measure_starts(
    X: Any,
    Y: Any,
    starts: Mapping[str, Any],
    repeats: int,
    *,
    test: tuple[Any, Any] | None = None,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """Return a row for each start; the fits take turns, so that a slow minute hits all of them.

    Parameters
    ----------
    X : array-like or sparse of shape (n, n_features)
        Instances.
    Y : sparse of shape (n, n_labels)
        Labels.
    starts : mapping of str to str or Initialiser
        What `init` to measure, by its name in the rows; "msi" among them.
    repeats : int
        Fits of each start, of which the median counts.
    test : tuple of (X, Y), default=None
        Test rows, for precision.
    **parameters : object
        Of ``OvALinearXC``.

    Returns
    -------
    list of dict
        ``ratio`` is the time relative to that of "msi"; ``n_iter`` and ``n_products`` are means
        over labels, ``objective`` is their sum; ``P@1``, ``P@3`` and ``P@5`` in percent, if there
        are test rows (and as many labels).
    """

    def make(init: Any) -> OvALinearXC:
        return OvALinearXC(**{"C": 1.0, "n_jobs": 1, "init": init, **parameters})

    for init in starts.values():
        warm_up(make(init), X, Y)
    seconds: dict[str, list[float]] = {start: [] for start in starts}
    model: dict[str, OvALinearXC] = {}
    for _ in range(repeats):
        for start, init in starts.items():
            model[start] = make(init)
            _, spent = cpu_seconds(fit_quietly, model[start], X, Y)
            seconds[start].append(spent)
    base = float(np.median(seconds["msi"]))
    return [
        {
            "init": start,
            "n_labels": Y.shape[1],
            "dtype": str(X.dtype),
            "cpu_s": float(np.median(seconds[start])),
            "spread_s": float(np.ptp(seconds[start]) / 2),
            "ratio": float(np.median(seconds[start])) / base,
            "n_iter": float(model[start].n_iter_.mean()),
            "n_products": float(model[start].fit_report_["n_products"].mean()),
            "objective": float(model[start].fit_report_["objective"].sum()),
            "n_unsolved": n_unsolved(model[start]),
            **_precision(model[start], test),
        }
        for start in starts
    ]


def _precision(model: OvALinearXC, test: tuple[Any, Any] | None) -> dict[str, float]:
    if test is None:
        return {}
    X, Y = test
    ks = [k for k in KS if k <= Y.shape[1]]
    found = precision_at_k(Y, model.predict_topk(X, ks[-1]), ks)
    return {f"P@{k}": 100 * float(value) for k, value in zip(ks, found, strict=True)}

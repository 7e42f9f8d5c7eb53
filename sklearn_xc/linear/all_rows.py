"""Instances that count in a fit."""

import numpy as np

from sklearn_xc._data import CsrRows, DenseRows, Targets


def drop_weightless(
    instances: CsrRows | DenseRows, targets: Targets, weight: np.ndarray | None
) -> tuple[CsrRows | DenseRows, Targets, np.ndarray | None]:
    """Return the instances, targets and weights without instances of weight 0."""
    if weight is None or weight.all():
        return instances, targets, weight
    kept = weight > 0
    return instances.take(np.flatnonzero(kept)), targets.take(kept), weight[kept]

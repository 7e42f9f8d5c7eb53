"""Numbers that are not finite, found and told."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sklearn_xc.decomposition._model import HiddenLayerModel
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.parallel.row_ranges import one_blas_thread


class NotFiniteError(ArithmeticError):
    """Training has come to weights, losses or scores that are not finite."""


@contextmanager
def explained(name: str, learning_rate: float, training: TrainingSet) -> Iterator[None]:
    """Say what is wrong where the body finds numbers that are not finite.

    Raises
    ------
    ValueError
        With what was largest, for a NotFiniteError of the body.
    """
    try:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            yield
    except NotFiniteError as error:
        values, weight = training.instances.arrays[-1], training.given_weight
        raise ValueError(
            f"{name}: training diverged at learning_rate={learning_rate:g}. Lower it, or scale X "
            "(sklearn.preprocessing.normalize), whose largest entry is "
            f"{np.abs(values).max(initial=0):g}, or sample_weight, whose largest is "
            f"{weight.max():g}."
        ) from error


def require_finite_model(model: HiddenLayerModel, training: TrainingSet) -> None:
    """Raise NotFiniteError for weights that overflowed, or scores of training instances."""
    weights = [v for v in (model.coef_, model.feature_embedding_) if v is not None]
    sizes = [_largest(values) for values in (*weights, training.instances.arrays[-1])]
    if not np.isfinite(sizes).all():
        raise NotFiniteError
    # What no sum can reach needs no look at all scores.
    largest = training.instances.shape[1] * model.coef_.shape[1] * math.prod(sizes)
    if largest + _largest(model.intercept_) < np.finfo(weights[0].dtype).max:
        return
    for _, V in model._parts(training.instances.take(training.rows), model._embed):
        for v in V:
            if not np.isfinite(model.coef_ @ v + model.intercept_).all():
                raise NotFiniteError


def _largest(values: np.ndarray) -> float:
    """Return the largest absolute value; NaN if there is one."""
    return float(np.abs([values.min(initial=0), values.max(initial=0)]).max())

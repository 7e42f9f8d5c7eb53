"""From the parameters `class_weight` and `negative_weight` to factors on the loss of each label."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from sklearn_xc._arguments import check_numbers, is_number
from sklearn_xc._data import Targets
from sklearn_xc.metrics import propensity


def loss_factors(
    estimator: Any, targets: Targets, positive: np.ndarray, total: float, exponent: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return factors on the loss of the positives and of the negatives of each binary problem.

    Parameters
    ----------
    estimator : OvALinearXC or OvALinearXCCV
        Has the parameters, and is named in messages.
    targets : Targets
        y.
    positive, total : ndarray of float of shape (n_problems,), float
        Weights of each problem's positives, and of all instances: to be multiplied by
        ``2**exponent``.
    exponent : int

    Returns
    -------
    plus, minus : ndarray of float64 of shape (n_problems,)

    Raises
    ------
    ValueError
        For weights that are not positive, of another number, or of labels that y does not have.
    """
    who, value = type(estimator).__name__, estimator.class_weight
    is_binary = targets.kind == "classes" and len(targets.classes) == 2
    of_negatives = _of_each(estimator.negative_weight, len(positive), f"{who}: negative_weight")
    if isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced"):
        counts = np.array([total - positive[0], positive[0]]) if is_binary else positive
        of_classes = (
            _named(value, targets.classes, who)
            if isinstance(value, Mapping)
            else np.divide(counts.mean(), counts, out=np.ones(len(counts)), where=counts > 0)
        )
        if is_binary:
            return of_classes[1:], of_classes[:1] * of_negatives
        return of_classes, of_negatives
    if isinstance(value, str):
        return _inverse_propensities(positive, total, exponent, who), of_negatives
    return _of_each(value, len(positive), f"{who}: class_weight"), of_negatives


def _of_each(value: Any, n_problems: int, name: str) -> np.ndarray:
    """Return None, a number or an array as a factor for each problem."""
    if value is None or isinstance(value, Real):
        return np.full(n_problems, 1.0 if value is None else float(value))
    weight = check_numbers(value, name, n_problems, "label")
    if not (weight > 0).all():
        at = int(np.argmin(weight))
        raise ValueError(f"{name} must be positive, label {at} has {weight[at]}.")
    return weight


def _named(value: Mapping, classes: np.ndarray, who: str) -> np.ndarray:
    """Return the weights of classes, 1 of those that are not named."""
    places = {name: place for place, name in enumerate(classes.tolist())}
    weight = np.ones(len(classes))
    for name, one in value.items():
        if name not in places:
            raise ValueError(
                f"{who}: class_weight must have labels of y as keys, such as "
                f"{classes[:1].tolist()[0]!r}. Got {name!r}."
            )
        if not is_number(one) or not 0 < one < np.inf:
            raise ValueError(
                f"{who}: class_weight must have positive numbers as values. Got {one!r} for "
                f"{name!r}."
            )
        weight[places[name]] = one
    return weight


def _inverse_propensities(
    positive: np.ndarray, total: float, exponent: int, who: str
) -> np.ndarray:
    with np.errstate(over="ignore"):
        counts, n = np.ldexp(positive, exponent), float(np.ldexp(total, exponent))
    if not 3.0 <= n < np.inf:
        raise ValueError(
            f"{who}: class_weight='propensity' needs a sample_weight that sums to a number of "
            f"instances, at least 3. Got {n:.3g}."
        )
    return 1.0 / propensity(counts, n)

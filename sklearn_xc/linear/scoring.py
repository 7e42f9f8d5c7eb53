"""One number from a scorer: what C is chosen by."""

import inspect
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from sklearn_xc.linear.ova import OvALinearXC
from sklearn_xc.metrics import TopKScorer, get_scorer


def check_scoring(scoring: Any) -> Any:
    """Return the scorer that `scoring` names or is."""
    try:
        scorer = get_scorer(scoring)
    except ValueError as error:
        raise ValueError(f"OvALinearXCCV: {error}") from None
    if isinstance(scorer, TopKScorer) and np.size(scorer.ks) * len(scorer.metrics) > 1:
        raise ValueError(
            f"OvALinearXCCV: scoring must give one number to choose C by, {scorer!r} gives "
            'several. Pass one of its names, such as "P@1".'
        )
    return scorer


def score_model(
    scorer: Any, model: OvALinearXC, X: Any, y: Any, weight: np.ndarray | None, by_rows: bool
) -> tuple[float, np.ndarray | None]:
    """Return the score of a model, weighted if the scorer takes weights, and that of its rows."""
    if by_rows:
        return scorer._score_rows(model, X, y, weight)
    if weight is not None and _takes_weight(scorer):
        value = scorer(model, X, y, sample_weight=weight)
    else:
        value = scorer(model, X, y)
    if isinstance(value, Mapping) and len(value) == 1:
        (value,) = value.values()
    if not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(
            f"OvALinearXCCV: scoring must give one finite number, {scorer!r} gave {value!r} for "
            f"C={model.C:g}."
        )
    return float(value), None


def _takes_weight(scorer: Any) -> bool:
    accepts = getattr(scorer, "_accept_sample_weight", None)
    if accepts is not None:
        return accepts()
    return "sample_weight" in inspect.signature(scorer).parameters

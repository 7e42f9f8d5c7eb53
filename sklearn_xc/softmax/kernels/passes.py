"""Arguments of a pass over (instance, class) pairs: visits, the model, learning rates, draws.

All arrays but those of :class:`Model` are read-only: numba compiles a pass once for each kind of
array.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._compile.arithmetic.sampling import ClassSampler


class Visits(NamedTuple):
    """The pairs, and the order in which the epoch visits them.

    Attributes
    ----------
    X : tuple of ndarray
        CSR rows.
    squared_norms : ndarray of float64 of shape (n_rows,)
        ``|x|^2``.
    rows, classes : ndarray of int32 of shape (n,)
        The pairs.
    weight : ndarray of float64 of shape (n,)
        Of each pair, 1 in the mean.
    order : ndarray of int64 of shape (n_visits,)
        The pair of each visit.
    """

    X: tuple[np.ndarray, ...]
    squared_norms: np.ndarray
    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray
    order: np.ndarray


class Model(NamedTuple):
    """The arrays that steps change.

    Attributes
    ----------
    V, scale : ndarray of shape (n_classes, n_features) and float64 (n_classes,)
        Weights ``scale[k] * V[k]``.
    intercept : ndarray of float64 of shape (n_classes,)
        Added to the scores; trained as the weight of a feature of all instances, of value
        ``sqrt(rates.intercept)``.
    u : ndarray of float64 of shape (n,)
        One variable per pair.
    """

    V: np.ndarray
    scale: np.ndarray
    intercept: np.ndarray
    u: np.ndarray


class Rates(NamedTuple):
    """Learning rates.

    Attributes
    ----------
    start, slowing : float
        The learning rate of visit t, in units of 1 / n, is ``start / (1 + slowing * t)``.
    ridge : float
        alpha / n.
    intercept : float
        Factor on the steps of intercepts; 0 leaves them unchanged.
    """

    start: float
    slowing: float
    ridge: float
    intercept: float


class Draws(NamedTuple):
    """Which classes steps sample.

    Attributes
    ----------
    sampler : ClassSampler
        Shares of the classes.
    n_negatives : int
        How many are drawn at each step, at most.
    key : uint64
        Of the epoch.
    """

    sampler: ClassSampler
    n_negatives: int
    key: np.uint64

"""Where training stands, beside the model that it has come to."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._blank_rows import LabelFrequencies
from sklearn_xc._declared_state import Array, Choice, Number, Numbers, Record, declares
from sklearn_xc.decomposition._guide import Guide
from sklearn_xc.decomposition._passes import InstanceSketch

Rows = np.ndarray | None
#: Numbers that are moved at a time.
_TOGETHER = 2**20


class Weights(NamedTuple):
    """The weights of a model.

    Attributes
    ----------
    coef : ndarray of float of shape (n_labels, dim)
    intercept : ndarray of float of shape (n_labels,)
    features : ndarray of float of shape (n_features, dim) or None
        None where there is no hidden layer.
    """

    coef: np.ndarray
    intercept: np.ndarray
    features: Rows


@declares(
    label_rows=Array("real", "labels", lambda course: course._width(), optional=True),
    feature_rows=Array("real", "features", "dim", optional=True),
    label_squares=Array("real", "labels", lambda course: course._width(), optional=True),
    feature_squares=Array("real", "features", "dim", optional=True),
    optimizer=Choice("sgd", "adagrad"),
    epoch=Number("int", least=0),
    has_intercept=Number("bool"),
    is_trained=Number("bool"),
    frequencies=Record("LabelFrequencies"),
    first=Record("InstanceSketch"),
    seen=Record("InstanceSketch"),
    is_averaged=Number("bool"),
    scales=Numbers(2),
    visits=Number("int", least=0),
    n_passes=Number("int", least=0),
    n_drawn=Number("int", least=0),
    last_look=Number("int", least=0),
    is_seen=Array("bool", "labels", optional=True),
    metric=Choice("inner_product", "euclidean", "mahalanobis"),
)
@dataclass
class Course:
    """What training goes on from: weights that take steps, and all that has been counted.

    Attributes
    ----------
    label_rows : ndarray of float of shape (n_labels, dim) or (n_labels, dim + 1) or None
        Label vectors as they take steps, and a column of intercepts if they do. None between
        calls where the model has these.
    feature_rows : ndarray of float of shape (n_features, dim) or None
        Those of features; None also where there is no hidden layer.
    label_squares, feature_squares : ndarray of float or None
        Sums of squared gradients of both (Adagrad).
    scales : tuple of float
        What both are to be multiplied by.
    optimizer : str
        Of the first call.
    has_intercept, is_trained : bool
        Whether labels have intercepts, and these take steps.
    frequencies : LabelFrequencies
        Of the labels, in all calls.
    first, seen : InstanceSketch
        Of the instances of the first call, and of all calls whose instances come on top of it.
    is_averaged : bool
        Whether the model has averages of these weights.
    epoch : int
        Visits of an epoch of the first call.
    visits, n_passes, n_drawn : int
        Instances, passes, and mini-batches with sampled labels so far.
    last_look : int
        Visits when the averages were last brought up to date.
    is_seen : ndarray of bool of shape (n_labels,) or None
        The labels that have had a training instance in any call.
    guide : Guide or None
        Of the last partial fit, with its index.
    metric : str
        Of the first call.
    """

    label_rows: Rows
    feature_rows: Rows
    label_squares: Rows
    feature_squares: Rows
    optimizer: str
    epoch: int
    has_intercept: bool
    is_trained: bool
    frequencies: LabelFrequencies
    first: InstanceSketch
    seen: InstanceSketch
    is_averaged: bool = False
    scales: tuple[float, float] = (1.0, 1.0)
    visits: int = 0
    n_passes: int = 0
    n_drawn: int = 0
    last_look: int = 0
    is_seen: np.ndarray | None = None
    guide: Guide | None = None
    metric: str = "inner_product"

    @property
    def epoch_of_all(self) -> float:
        """Return the visits of an epoch over the distinct instances of all calls."""
        return self.epoch * self.seen.n_distinct() / self.first.n_distinct()

    def _width(self) -> str:
        """Return which length label vectors have as they take steps."""
        return "dim+1" if self.is_trained else "dim"

    def copied(self) -> "Course":
        """Return one that may be trained, while this one stays as it is."""
        return replace(
            self,
            label_rows=copy_of(self.label_rows),
            feature_rows=copy_of(self.feature_rows),
            label_squares=copy_of(self.label_squares),
            feature_squares=copy_of(self.feature_squares),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "guide": None}  # is built again where it is asked for


def with_intercepts(vectors: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
    """Return both in one array, intercepts in the last column."""
    rows = np.empty((len(vectors), vectors.shape[1] + 1), vectors.dtype)
    rows[:, :-1], rows[:, -1] = vectors, intercepts
    return rows


def without_intercepts(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors and intercepts of an array that is used up: the vectors lie in its memory."""
    intercepts, (n, dim) = rows[:, -1].copy(), (len(rows), rows.shape[1] - 1)
    flat, n_together = rows.reshape(-1), max(1, _TOGETHER // (dim + 1))
    for first in range(0, n, n_together):
        last = min(first + n_together, n)
        flat[first * dim : last * dim] = rows[first:last, :-1].ravel()
    return flat[: n * dim].reshape(n, dim), intercepts


def copy_of(rows: Rows) -> Rows:
    """Return a copy that can be written, also of a memory map."""
    return None if rows is None else np.array(rows, order="C")

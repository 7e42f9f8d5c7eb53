"""The variables of a training: weights, intercepts, u and hard negatives."""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc.softmax.kernels.epoch import fold_scale
from sklearn_xc.softmax.kernels.passes import Model


@dataclass
class SoftmaxState:
    """The variables of a training.

    Attributes
    ----------
    V : ndarray of shape (n_classes, n_features)
        Weights ``scale[k] * V[k]``, of the dtype of X.
    u : ndarray of float64 of shape (n,)
        One variable per pair.
    intercept : ndarray of float64 of shape (n_classes,)
        Intercepts b.
    scale : ndarray of float64 of shape (n_classes,)
        Factors, below 1 where the ridge has shrunk a class.
    hard : ndarray of int32 of shape (n, h)
        Hard negatives of each pair; h is 0 before the first search.
    """

    V: np.ndarray
    u: np.ndarray
    intercept: np.ndarray
    scale: np.ndarray
    hard: np.ndarray

    @classmethod
    def at(
        cls, W: np.ndarray, u: np.ndarray, intercept: np.ndarray | None = None
    ) -> "SoftmaxState":
        """Return the state at given weights, which steps then change in place."""
        b = np.zeros(len(W)) if intercept is None else intercept.astype(np.float64)
        return cls(W, u, b, np.ones(len(W)), np.empty((len(u), 0), np.int32))

    def copy(self) -> "SoftmaxState":
        """Return a copy."""
        arrays = self.V, self.u, self.intercept, self.scale, self.hard
        return SoftmaxState(*(values.copy() for values in arrays))

    @property
    def model(self) -> Model:
        """The arrays that kernels change."""
        return Model(self.V, self.scale, self.intercept, self.u)

    @property
    def weights(self) -> ClassWeights:
        """The current model."""
        return ClassWeights(self.V, self.scale, self.intercept)

    def fold(self) -> None:
        """Multiply the scales into the weights."""
        fold_scale(self.V, self.scale)


def require_finite(*arrays: np.ndarray) -> None:
    """Raise FloatingPointError if an entry is NaN or infinite, without an array of that size."""
    with np.errstate(invalid="ignore"):
        for values in arrays:
            if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
                raise FloatingPointError("the weights are no longer finite")

"""Instances of a mini-batch, and the gradient of their losses by the scores."""

from typing import NamedTuple

import numpy as np


class Batch(NamedTuple):
    """Instances of a mini-batch.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        The vectors in which the scores are linear.
    indptr : ndarray of int64 of shape (n + 1,)
        Where the labels of each instance begin and end.
    positives : ndarray of int32 of shape (indptr[-1],)
        Labels of the instances, at least one each.
    weight : ndarray of float64 of shape (n,)
        Weights of the instances.

    Examples
    --------
    Two instances: the first has labels 0 and 2, the second has label 1.

    >>> import numpy as np
    >>> from sklearn_xc.gradients import Batch
    >>> batch = Batch(
    ...     V=np.array([[2.0, 0.5], [0.0, 1.0]]), indptr=np.array([0, 2, 3]),
    ...     positives=np.array([0, 2, 1], np.int32), weight=np.ones(2),
    ... )
    >>> second = batch.part(1, 2)
    >>> second.V, second.positives
    (array([[0., 1.]]), array([1], dtype=int32))
    """

    V: np.ndarray
    indptr: np.ndarray
    positives: np.ndarray
    weight: np.ndarray

    def part(self, first: int, last: int) -> "Batch":
        """Return some of the instances.

        Parameters
        ----------
        first, last : int
            The instances from `first` up to, but not including, `last`.

        Returns
        -------
        Batch
        """
        indptr = self.indptr[first : last + 1]
        positives = self.positives[indptr[0] : indptr[-1]]
        return Batch(self.V[first:last], indptr - indptr[0], positives, self.weight[first:last])


class LabelGradient(NamedTuple):
    """Gradients with respect to the scores, where not 0; times the weights of the instances.

    Attributes
    ----------
    labels : ndarray of int32 of shape (n, room)
        In row i, the first ``counts[i]`` are valid.
    values : ndarray of float of shape (n, room)
        Gradients of these labels.
    counts : ndarray of int64 of shape (n,)
        Number of labels of each instance.
    losses : ndarray of float64 of shape (n,)
        Losses over the labels considered.

    Examples
    --------
    The max-margin loss for scores 2, 0.5, 1.6 and -2, where label 0 is the true one:

    >>> import numpy as np
    >>> from sklearn_xc.gradients import Batch, LabelGradient, SetLoss
    >>> from sklearn_xc.losses import MaxMargin
    >>> batch = Batch(
    ...     V=np.ones((1, 1)), indptr=np.array([0, 1]), positives=np.array([0], np.int32),
    ...     weight=np.ones(1),
    ... )
    >>> found = LabelGradient.empty(n=1, room=4, dtype=np.float64)
    >>> SetLoss.of(MaxMargin()).over_all(np.array([[2.0, 0.5, 1.6, -2.0]]), batch, found)
    >>> m = found.counts[0]
    >>> found.labels[0, :m], found.values[0, :m].round(6), found.losses.round(6)
    (array([0, 2], dtype=int32), array([-0.3,  0.3]), array([0.09]))
    """

    labels: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    losses: np.ndarray

    @classmethod
    def empty(cls, n: int, room: int, dtype: np.dtype) -> "LabelGradient":
        """Return space for n instances.

        Parameters
        ----------
        n : int
            Number of instances.
        room : int
            Maximum number of labels of each.
        dtype : {numpy.float32, numpy.float64}
            Dtype of the values.

        Returns
        -------
        LabelGradient
            Not initialised.
        """
        return cls(
            np.empty((n, room), np.int32), np.empty((n, room), dtype),
            np.empty(n, np.int64), np.empty(n),
        )  # fmt: skip

    def part(self, first: int, last: int) -> "LabelGradient":
        """Return a view of some of the instances.

        Parameters
        ----------
        first, last : int
            The instances from `first` up to, but not including, `last`.

        Returns
        -------
        LabelGradient
        """
        return LabelGradient(*(array[first:last] for array in self))

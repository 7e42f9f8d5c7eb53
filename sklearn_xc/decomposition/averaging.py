"""Averages of weights during training."""

from collections.abc import Sequence

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._training.kernels.row_moves import blend
from sklearn_xc._training.moving_rows import MovingRows

#: Averages are updated this many times while as many instances are visited as there are rows.
#: They then cost next to nothing, and hardly differ from averages over all steps.
_UPDATES = 8
#: The weights after t visits count as ``t ** (_POWER - 1)``.
_POWER = 4


class WeightAverages:
    """Averages of moving matrices, in which later values count more.

    A step moves label vectors along what instances have in common much farther than along what
    distinguishes their labels, so that the labels visited last score best; averages are free of
    that. The weights after t visits count as ``t ** 3``: polynomial-decay averaging [1]_ with eta
    = 3, which forgets the start.

    Parameters
    ----------
    moving : sequence of MovingRows
        Averaged from their current values on. The last column of the first one is averaged
        separately, if it is an intercept.
    visits : int
        Instances visited so far.

    Attributes
    ----------
    means : list of ndarray of float of shape (n_rows, dim)
    intercept : ndarray of float of shape (n_rows,)
        Average of the last column of the first matrix.

    References
    ----------
    .. [1] O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML 2013.
    """

    def __init__(self, moving: Sequence[MovingRows], visits: int = 0) -> None:
        self._moving, self._updated = moving, visits
        self.means = [np.array(rows.vectors, order="C") for rows in moving]
        self.intercept = moving[0].values[:, -1].copy()
        self._interval = sum(len(mean) for mean in self.means) / _UPDATES

    def visited(self, visits: int) -> None:
        """Update the averages if it is time."""
        if visits - self._updated >= self._interval:
            self.update(visits)

    def update(self, visits: int) -> None:
        """Update the averages."""
        if visits == self._updated:
            return
        weight = 1.0 - (self._updated / visits) ** _POWER
        for moving, mean in zip(self._moving, self.means, strict=True):
            blend(mean, read_only(moving.values), mean.dtype.type(weight))
        last = self._moving[0].values[:, -1]
        self.intercept += self.intercept.dtype.type(weight) * (last - self.intercept)
        self._updated = visits

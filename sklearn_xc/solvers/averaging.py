"""Averages of weights over the course of training."""

from collections.abc import Sequence

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.kernels.steps.averages import blend
from sklearn_xc.solvers.moving_rows import MovingRows

#: Looks at the weights while as many instances are visited as the weights have rows: an average
#: then costs next to nothing, and hardly differs from that over all steps.
_LOOKS = 8
#: The weights after t visits count in proportion to the power of t that is less by one.
_POWER = 4


class CourseAverages:
    """Averages of matrices over the course of training, later values counting more.

    A step moves the label vectors along what instances have in common, much farther than along what
    tells their labels apart: the labels that were visited last score best. An average over many
    steps is rid of that.

    The weights after t visits count as ``t ** 3``: polynomial-decay averaging [1]_ with eta = 3. So
    the start is forgotten, and no one has to say when to begin.

    Parameters
    ----------
    matrices : sequence of tuple (MovingRows, ndarray of float of shape (n_rows, dim))
        What moves, and its average, which is changed in place, of the leading columns.
    last_look : int
        Visits when the averages were last brought up to date.
    intercept : ndarray of float of shape (n_rows,) or None
        The average of the last column of the first matrix, which is not a part of the other one.

    Attributes
    ----------
    means : list of ndarray
        The averages.

    References
    ----------
    .. [1] O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth optimization:
       convergence results and optimal averaging schemes", ICML 2013.
    """

    def __init__(
        self,
        matrices: Sequence[tuple[MovingRows, np.ndarray]],
        last_look: int = 0,
        intercept: np.ndarray | None = None,
    ) -> None:
        self._matrices = matrices
        self.means = [mean for _, mean in matrices]
        self.last_look, self.intercept = last_look, intercept
        self.interval = sum(len(mean) for _, mean in matrices) / _LOOKS

    def visited(self, visits: int) -> None:
        """Take notice of the visits so far; now and then look at the weights."""
        if self._matrices and visits - self.last_look >= self.interval:
            self.look(visits)

    def look(self, visits: int) -> None:
        """Bring the averages up to date."""
        if visits == self.last_look:
            return
        share = 1.0 - (self.last_look / visits) ** _POWER
        for moving, mean in self._matrices:
            number = mean.dtype.type
            blend(mean, read_only(moving.values), number(moving.scale), number(share))
        if self.intercept is not None:
            last = self._matrices[0][0].values[:, -1]
            self.intercept += self.intercept.dtype.type(share) * (last - self.intercept)
        self.last_look = visits

"""What kernels know of a block of labels: the instances, a lane for each label, and work space."""

from typing import Any, NamedTuple

import numpy as np

#: What a lane's trial point is for.
NEWTON, PRUNED = 0, 1


class Rows(NamedTuple):
    """The instances and which of them are positives.

    Attributes
    ----------
    X : tuple of ndarray
        As ``csr_rows`` or ``dense_rows`` reads them.
    weight : ndarray of shape (n,)
    total_weight : float
        Its sum.
    sample : ndarray of int32
        A sample of the instances, for a glance at where a step leads; may be empty.
    y_indptr, y_rows : ndarray of int64 and int32
        Positive rows of each label.
    intercept, ridge : float
        1 or 0: whether there is an intercept, and whether it is regularised.
    gap : float
        A lane rests only where half its squared gradient norm is at most this share of its
        objective; inf for no such condition.
    """

    X: Any
    weight: np.ndarray
    total_weight: float
    sample: np.ndarray
    y_indptr: np.ndarray
    y_rows: np.ndarray
    intercept: float
    ridge: float
    gap: float


class Lanes(NamedTuple):
    """What each lane knows; arrays of length n_lanes unless a shape is given.

    Attributes
    ----------
    label : ndarray of int64
    plus, minus : ndarray of float64
        Weight of a positive's and of a negative's loss.
    points : ndarray of shape (n,)
        For each lane where it stands and its trial point, one behind the other, intercepts last.
    first, width : ndarray of int64
        Where in `points` a lane's two points begin, and the length of each.
    current : ndarray of int64
        Which of the two it stands at.
    purpose : ndarray of int64
        ``NEWTON``, or ``PRUNED``: the trial point is the final one, pruned, and only its objective
        is wanted.
    objective, norm2 : ndarray of float64
        At the point where it stands; inf before the first. Squared norm without the intercept.
    trial_norm2 : ndarray of float64
        Squared norm of the trial point, without the intercept.
    slope : ndarray of float64
        Derivative of the objective towards the trial point.
    n_unseen : ndarray of int64
        How often the trial point was halved unseen.
    n_flat : ndarray of int64
        How many steps were taken that did not lower the objective, as rounding allows.
    active : ndarray of int32 of shape (n_lanes, capacity)
        Rows with a loss where it stands; not kept for losses that are never zero.
    n_active : ndarray of int64
    step_length : ndarray of float64
        What was taken of the last step; 0 if none helped, -1 if the trial was halved unseen.
    gradient_norm : ndarray of float64
    threshold : ndarray of float64
        The gradient norm at which it rests; lowered where ``Rows.gap`` asks for less.
    n_iter, n_products : ndarray of int64
        Steps on a working set, -1 before its start is evaluated; Hessian products since ``advance``
        was called.
    pruned_objective : ndarray of float64
    """

    label: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    points: np.ndarray
    first: np.ndarray
    width: np.ndarray
    current: np.ndarray
    purpose: np.ndarray
    objective: np.ndarray
    norm2: np.ndarray
    trial_norm2: np.ndarray
    slope: np.ndarray
    n_unseen: np.ndarray
    n_flat: np.ndarray
    active: np.ndarray
    n_active: np.ndarray
    step_length: np.ndarray
    gradient_norm: np.ndarray
    threshold: np.ndarray
    n_iter: np.ndarray
    n_products: np.ndarray
    pruned_objective: np.ndarray

    def stand(self, k: int) -> np.ndarray:
        """Return the point where a lane stands."""
        return self._point(k, int(self.current[k]))

    def trial(self, k: int) -> np.ndarray:
        """Return a lane's trial point."""
        return self._point(k, 1 - int(self.current[k]))

    def _point(self, k: int, which: int) -> np.ndarray:
        first = self.first[k] + which * self.width[k]
        return self.points[first : first + self.width[k]]


class WorkingSets(NamedTuple):
    """Rows of their own for some lanes: copies, in features numbered from 0 for each lane.

    Attributes
    ----------
    n_rows : ndarray of int64 of shape (n_lanes,)
        -1 for a lane that reads all of X.
    first_row, first_entry : ndarray of int64 of shape (n_lanes,)
        Where a lane's rows, and their non-zeros, begin.
    indptr : ndarray of int64 of shape (n_rows + n_lanes,)
        Of each lane from 0, one behind the other.
    indices, data : ndarray of int32 and float
    weight : ndarray
        Of each row.
    y_indptr, y_rows : ndarray of int64 and int32
        Positives of each lane, by the number of a row in the lane: they come first.
    gap : ndarray of float64 of shape (n_lanes,)
        In place of ``Rows.gap``.
    max_iter : int
        Most steps.
    """

    n_rows: np.ndarray
    first_row: np.ndarray
    first_entry: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    weight: np.ndarray
    y_indptr: np.ndarray
    y_rows: np.ndarray
    gap: np.ndarray
    max_iter: int


class Scratch(NamedTuple):
    """Work space for one lane at a time.

    Attributes
    ----------
    rows, sign, scores, changes, slopes, curvatures : ndarray of shape (n,)
        Rows at work (int32), 1 or -1 for positives and negatives, scores, their change along a
        step, and derivatives of the loss by the score (float64).
    every_row : ndarray of int32 of shape (n,)
        0, 1, 2, ...
    position, touched : ndarray of int32 of shape (d,) and (d + 1,)
        `position` all -1, and left so.
    local : tuple of ndarray
        Room for a compact copy of rows.
    room : int
        For how many non-zeros.
    derivatives : ndarray of float64 of shape (2, d + 2)
    work : ndarray of shape (6, d + 2)
        Of the dtype of X.
    """

    rows: np.ndarray
    sign: np.ndarray
    scores: np.ndarray
    changes: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray
    every_row: np.ndarray
    position: np.ndarray
    touched: np.ndarray
    local: Any
    room: int
    derivatives: np.ndarray
    work: np.ndarray

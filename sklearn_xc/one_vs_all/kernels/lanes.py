"""State of the labels that are solved side by side: each has a lane."""

import numpy as np

_INTEGERS = ("label", "first", "width", "current", "n_flat", "n_halved", "n_active")
_INTEGERS += ("n_iter", "max_iter", "n_products", "n_rows", "first_row", "first_pointer")
_INTEGERS += ("first_entry", "n_positives", "first_positive")
_NUMBERS = ("plus", "minus", "intercept", "gap", "threshold", "objective", "norm2")
_NUMBERS += ("trial_norm2", "slope", "step_length", "gradient_norm")
#: The numbers of a lane, one record: kernels that take an array for each compile nearly twice as
#: long.
LANE = np.dtype([(name, np.int64) for name in _INTEGERS] + [(name, float) for name in _NUMBERS])


class Lanes:
    """State of some lanes; attributes have one entry a lane unless a shape is given.

    Parameters
    ----------
    points : ndarray of shape (n,)
        The current and the trial point of each lane, one after the other, intercepts last.
    label : ndarray of int64 of shape (m,)
    **given : ndarray
        Other attributes; those not given are 0.

    Attributes
    ----------
    state : structured ndarray of dtype LANE of shape (m,)
        Holds all attributes below.
    plus, minus : ndarray of float64
        Weight of the loss of a positive and of a negative.
    first, width : ndarray of int64
        Position in `points` of a lane's two points, and the length of each.
    current : ndarray of int64
        0 or 1: which of the two is the current point.
    objective, norm2 : ndarray of float64
        At the current point, inf before the first; squared norm without the intercept.
    trial_norm2, slope : ndarray of float64
        Squared norm of the trial point, without the intercept, and derivative of the objective
        towards it.
    n_flat, n_halved : ndarray of int64
        Numbers of steps that lowered the objective by no more than rounding, and of halvings of the
        trial step.
    n_active : ndarray of int64
        Rows with a loss at the current point.
    step_length : ndarray of float64
        Length of the last step; 0 if none helped, -1 if it was halved and is tried again.
    gradient_norm, threshold : ndarray of float64
        Norm of the gradient, and its tolerance, lowered to what `gap` requires.
    gap, intercept : ndarray of float64
        Relative suboptimality to certify, inf for none; 1 or 0, whether there is an intercept.
    n_iter, max_iter, n_products : ndarray of int64
        Steps on a working set, -1 before its start is evaluated, and the most of them, 0 where each
        call of ``advance`` takes one; Hessian products of its last call.
    n_rows, first_row, first_pointer, first_entry : ndarray of int64
        Number of a lane's rows, and where their weights, row pointers and non-zeros begin.
    n_positives, first_positive : ndarray of int64
        Its positives in the list of all positives.
    """

    def __init__(self, points: np.ndarray, label: np.ndarray, **given: np.ndarray | float) -> None:
        self.points = points
        self.state = np.zeros(len(label), LANE)
        for name in LANE.names:  # type: ignore[union-attr]
            setattr(self, name, self.state[name])
        for name, values in (given | {"label": label}).items():
            self.state[name] = values

    def iterate(self, k: int) -> np.ndarray:
        """Return the current point of a lane."""
        return self._point(k, int(self.current[k]))

    def trial(self, k: int) -> np.ndarray:
        """Return the trial point of a lane."""
        return self._point(k, 1 - int(self.current[k]))

    def _point(self, k: int, which: int) -> np.ndarray:
        first = self.first[k] + which * self.width[k]
        return self.points[first : first + self.width[k]]

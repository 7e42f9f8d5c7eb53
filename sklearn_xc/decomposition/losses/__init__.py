"""Losses of the scores of all labels of an instance: the protocol, and a table by name."""

from collections.abc import Callable
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numba

from sklearn_xc._compile.jit import check_compiles, is_function
from sklearn_xc._input.parts import check_part
from sklearn_xc.decomposition.losses.cross_entropy import CrossEntropy
from sklearn_xc.decomposition.losses.max_margin import MaxMargin
from sklearn_xc.decomposition.losses.triplet import Triplet

__all__ = [
    "LABEL_SET_LOSSES",
    "CrossEntropy",
    "LabelSetLoss",
    "MaxMargin",
    "Triplet",
    "make_label_set_loss",
]

LABEL_SET_LOSSES: "dict[str, Callable[..., LabelSetLoss]]" = {
    "margin": MaxMargin,
    "softmax": CrossEntropy,
    "triplet": Triplet,
}
#: Attributes of every loss; see `LabelSetLoss`.
_ATTRIBUTES = ("gradient", "support_floor", "parameters")
_ARRAY = numba.float64[::1]
_FLOAT = numba.float64
_INT = numba.int64


@runtime_checkable
class LabelSetLoss(Protocol):
    """A loss of the scores of all labels of one instance, positives first, in float64.

    `gradient` and `support_floor` are plain Python functions, static methods of the class, that
    :mod:`numba` compiles into the training loops. What they call must be compiled by numba, as by
    ``numba.njit``. Functions of another package are compiled once in each process. Nothing has to
    be inherited; a :class:`~sklearn.base.BaseEstimator` can be searched by its parameters.

    Attributes
    ----------
    gradient : callable
        ``gradient(scores, n_positive, n, parameters, out, work)`` writes the gradient of the
        leading n scores to `out`, and returns the loss, and a score up to which further negatives
        would change next to nothing; -inf if there is none. `work`, of shape (>= 2 n,), may be
        overwritten.
    support_floor : callable
        ``support_floor(largest_negative, smallest_positive, parameters)`` returns a bound on that
        score before the others are known.
    parameters : tuple of float
        Further arguments of both.

    Examples
    --------
    The squared distance of positives from 1 and of negatives from 0:

    >>> class SquaredError:
    ...     parameters = ()
    ...
    ...     @staticmethod
    ...     def gradient(scores, n_positive, n, parameters, out, work):
    ...         loss = 0.0
    ...         for j in range(n):
    ...             out[j] = scores[j] - (1.0 if j < n_positive else 0.0)
    ...             loss += 0.5 * out[j] ** 2
    ...         return loss, -float("inf")
    ...
    ...     @staticmethod
    ...     def support_floor(largest_negative, smallest_positive, parameters):
    ...         return -float("inf")

    Of a label with the score 0.5 and two others:

    >>> import numpy as np
    >>> out = np.empty(3)
    >>> loss, _ = SquaredError.gradient(np.array([0.5, 0.0, 1.0]), 1, 3, (), out, np.empty(6))
    >>> float(loss), out
    (0.625, array([-0.5,  0. ,  1. ]))
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> clf = DecompMIPSClassifier(loss=SquaredError())
    """

    @property
    def gradient(self) -> Callable[..., Any]:
        """Write the gradient, and return the loss and a floor."""

    @property
    def support_floor(self) -> Callable[..., Any]:
        """Return a floor of two scores alone."""

    @property
    def parameters(self) -> tuple[float, ...]:
        """Return the further arguments of both."""


def make_label_set_loss(loss: str | LabelSetLoss, caller: str = "loss") -> LabelSetLoss:
    """Return the loss of a name, or the caller's own.

    Parameters
    ----------
    loss : str or LabelSetLoss
        A key of ``LABEL_SET_LOSSES``, or an object.
    caller : str, default="loss"
        How messages name the argument, such as "DecompMIPSClassifier: loss".

    Returns
    -------
    LabelSetLoss

    Raises
    ------
    ValueError
        If `loss` is neither, or numba cannot compile its functions.

    Examples
    --------
    >>> from sklearn_xc.decomposition.losses import MaxMargin, make_label_set_loss
    >>> make_label_set_loss("softmax")
    CrossEntropy()
    >>> make_label_set_loss(MaxMargin(smoothing=5.0)).parameters
    (5.0,)
    """
    if isinstance(loss, str) and loss in LABEL_SET_LOSSES:
        return LABEL_SET_LOSSES[loss]()
    check_part(
        loss, caller, LABEL_SET_LOSSES, _ATTRIBUTES, "sklearn_xc.decomposition.losses.LabelSetLoss"
    )
    assert not isinstance(loss, str)
    for name in ("gradient", "support_floor"):
        function = getattr(loss, name)
        if not is_function(function):
            raise ValueError(
                f"{caller}: {name} of {type(loss).__name__} must be a static method, a plain "
                f"function of arrays and numbers. Got {function!r}."
            )
    values = loss.parameters
    if not isinstance(values, tuple) or not all(isinstance(value, Real) for value in values):
        raise ValueError(
            f"{caller}: parameters of {type(loss).__name__} must be a tuple of numbers. "
            f"Got {values!r}."
        )
    _check_functions(loss, caller)
    return loss


def _check_functions(loss: LabelSetLoss, caller: str) -> None:
    """Raise ValueError for functions that numba cannot compile, or that return something else."""
    parameters = numba.typeof(tuple(map(float, loss.parameters)))
    arguments = _ARRAY, _INT, _INT, parameters, _ARRAY, _ARRAY
    results = "the loss and a score, two numbers"
    check_compiles(loss.gradient, arguments, f"{caller}: gradient of {loss!r}", results, 2)
    scores = _FLOAT, _FLOAT, parameters
    check_compiles(
        loss.support_floor, scores, f"{caller}: support_floor of {loss!r}", "a number", 1
    )

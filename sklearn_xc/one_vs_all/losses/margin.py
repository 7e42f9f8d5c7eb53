"""Base class of losses of a margin, and their compiled form."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._compile.jit import callable_in_kernels, check_compiles, is_function

#: Margins at which the functions of a loss are checked.
_MARGINS = (-3.21, -0.37, 0.43, 0.87, 1.63, 5.3)
_FUNCTIONS = ("value", "slope", "curvature")

_COMPILED: dict["MarginLoss", "CompiledLoss"] = {}


class CompiledLoss(NamedTuple):
    """The functions of a loss, for kernels to close over.

    Attributes
    ----------
    value, slope, curvature : callable
        Functions of the margin, compiled into the kernels that call them.
    active_below, msi_negative_score : float
        As in `MarginLoss`.
    """

    value: Callable[[float], float]
    slope: Callable[[float], float]
    curvature: Callable[[float], float]
    active_below: float
    msi_negative_score: float

    @property
    def has_kink(self) -> bool:
        """Whether instances beyond a margin have no loss."""
        return math.isfinite(self.active_below)


class MarginLoss(BaseEstimator, ABC):
    """A convex loss of the margin m = y * score, y in {-1, +1}, that does not rise with m.

    To add one, derive a class and pass an object of it, ``OvALinearXC(loss=MyLoss(width=0.5))``.
    Its parameters are those of ``__init__``, as attributes of the same names that can be hashed, so
    that ``set_params`` reaches them, as in a grid of ``loss__width``. Losses with equal parameters
    are equal.

    Attributes
    ----------
    active_below : float, default=inf
        From this margin on, value, slope and curvature are 0. Training is faster if it is finite:
        instances beyond it are skipped.
    msi_negative_score : float, default=-2.0
        The mean score that mean-separating initialisation gives to the negatives, where
        `active_below` is finite or a score of the positives is given.
    default_cost : float, default=0.5
        What ``OvALinearXC(C=None)`` takes for C; the grid of ``OvALinearXCCV`` lies around it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.one_vs_all.losses import MarginLoss
    >>> class QuadraticallySmoothedHinge(MarginLoss):
    ...     active_below = 1.0
    ...
    ...     def __init__(self, width=0.5):
    ...         self.width = width
    ...
    ...     def functions(self):
    ...         one, zero, half = np.float32(1), np.float32(0), np.float32(0.5)
    ...         width = np.float32(self.width)
    ...
    ...         def value(margin):
    ...             gap = max(one - margin, zero)
    ...             return half * gap * gap / width if gap < width else gap - half * width
    ...
    ...         def slope(margin):
    ...             return -min(max(one - margin, zero) / width, one)
    ...
    ...         def curvature(margin):
    ...             return one / width if zero < one - margin < width else zero
    ...
    ...         return value, slope, curvature
    >>> from sklearn_xc import OvALinearXC
    >>> clf = OvALinearXC(loss=QuadraticallySmoothedHinge(0.8))
    >>> clf.get_params()["loss__width"]
    0.8
    """

    active_below: float = math.inf
    msi_negative_score: float = -2.0
    default_cost: float = 0.5

    @abstractmethod
    def functions(self) -> tuple[Callable[[float], float], ...]:
        """Return value, slope and curvature: functions of one margin that numba can compile.

        They may close over numbers. Constants of ``numpy.float32`` keep float32 margins float32; a
        Python float makes them float64, which is slower and equally correct.

        Returns
        -------
        value, slope, curvature : callable
            Of a margin, a float32 or float64.
        """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"


def compiled(loss: MarginLoss) -> CompiledLoss:
    """Return the compiled form of a loss: the same object for equal losses.

    Raises
    ------
    TypeError
        For parameters that cannot be hashed.
    """
    if loss not in _COMPILED:
        value, slope, curvature = map(callable_in_kernels, loss.functions())
        # A copy, as the caller may change the parameters.
        _COMPILED[copy.copy(loss)] = CompiledLoss(
            value, slope, curvature, float(loss.active_below), float(loss.msi_negative_score)
        )
    return _COMPILED[loss]


def check_margin_loss(loss: MarginLoss, name: str) -> None:
    """Raise an error for a loss that cannot be minimised; messages start with `name`.

    Raises
    ------
    ValueError
        For functions that numba cannot compile, values that are not finite, a slope above 0, a
        curvature below 0, and a loss beyond ``active_below``.
    TypeError
        If there are not three functions, or the parameters cannot be hashed.
    """
    try:
        hash(loss)
    except TypeError as error:
        raise TypeError(
            f"{name} must have parameters that can be hashed. Got {loss!r}: {error}."
        ) from error
    _check_functions(loss, name)
    functions = compiled(loss)
    for margin in map(np.float64, _MARGINS):  # float32 constants would make a float float32
        found = [float(function(margin)) for function in functions[:3]]
        for what, number in zip(_FUNCTIONS, found, strict=True):
            if not np.isfinite(number):
                raise ValueError(f"{name}: {what}({margin}) of {loss!r} is {number}.")
        if found[1] > 0.0 or found[2] < 0.0:
            raise ValueError(
                f"{name} must be convex and not rise with the margin. Got slope {found[1]:g} and "
                f"curvature {found[2]:g} of {loss!r} at margin {margin}."
            )
        if margin >= functions.active_below and any(found):
            raise ValueError(
                f"{name}: {loss!r} has active_below={functions.active_below:g}, but a loss, slope "
                f"or curvature at margin {margin}."
            )


def _check_functions(loss: MarginLoss, name: str) -> None:
    """Raise an error unless there are three functions that numba can compile."""
    functions = loss.functions()
    is_three = isinstance(functions, tuple | list) and len(functions) == len(_FUNCTIONS)
    if not is_three or not all(map(is_function, functions)):
        raise TypeError(
            f"{name}: functions() of {loss!r} must return three functions, value, slope and "
            f"curvature. Got {functions!r}."
        )
    for what, function in zip(_FUNCTIONS, functions, strict=True):
        for number in (numba.float32, numba.float64):
            check_compiles(function, (number,), f"{name}: {what} of {loss!r}", "a number", 1)

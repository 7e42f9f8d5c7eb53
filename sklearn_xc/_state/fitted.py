"""Fitted state that changes in one step, so that no thread and no error sees half of it.

A method that trains works on a copy of the estimator, which shares all attributes. At its end the
estimator takes over the copy's dictionary of attributes in one assignment; an error or an interrupt
before that leaves the estimator as it was. A method that predicts reads the dictionary that was
there when it began. Both rely on one rule: attributes are replaced, never changed in place.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np

from sklearn_xc._compile.notices import announced_compilation
from sklearn_xc._input.sklearn_private import callbacks_around
from sklearn_xc._state.saved import EDITED, check_edits

Method = TypeVar("Method", bound=Callable[..., Any])


def built_apart(method: Method) -> Method:
    """Decorate a method that trains: it works on a copy, which takes effect at its end."""

    @functools.wraps(method)
    def build(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = self.get_params(deep=False)
        if method.__name__ != "fit" or given.get("warm_start"):
            check_edits(self)
        outer = vars(self).get(EDITED)
        apart = sharing(self, vars(self) | {k: _as_python(v) for k, v in given.items()})
        vars(apart)[EDITED] = False
        with _announced(self), callbacks_around(apart):
            method(apart, *args, **kwargs)
        state = vars(apart) | given
        if outer is not False:
            del state[EDITED]
        object.__setattr__(self, "__dict__", state)  # one step: our __setattr__ has more
        return self

    return build  # type: ignore[return-value]


def reads_one_state(method: Method) -> Method:
    """Decorate a method that predicts: it reads one fit, whatever other threads do meanwhile."""

    @functools.wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_edits(self)
        same = sharing(self, vars(self))
        with _announced(self):
            return method(same, *args, **kwargs)

    return read  # type: ignore[return-value]


def _announced(estimator: Any) -> AbstractContextManager[None]:
    """Return the context in which a verbose estimator announces that kernels are compiled."""
    verbose = getattr(estimator, "verbose", 0)
    return announced_compilation(verbose) if verbose else nullcontext()


def _as_python(value: Any) -> Any:
    """Return Python's number for one of numpy's, whose arithmetic may end at 255."""
    if isinstance(value, np.timedelta64):  # an integer to numpy
        return value
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value


def sharing(estimator: Any, attributes: dict[str, Any]) -> Any:
    """Return an estimator of the same class over `attributes`."""
    other = object.__new__(type(estimator))
    other.__dict__ = attributes
    return other

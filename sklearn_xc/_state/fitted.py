"""Estimators that are saved, and fitted state that changes in one step.

A method that trains works on a copy of the estimator, which shares all attributes. At its end the
estimator takes over the copy's dictionary of attributes in one assignment; an error or an interrupt
before that leaves the estimator as it was. A method that predicts reads the dictionary that was
there when it began. Both rely on one rule: attributes are replaced, never changed in place.
"""

import functools
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np

from sklearn_xc._compile.notices import announced_compilation
from sklearn_xc._input.sklearn_private import callbacks_around
from sklearn_xc._state.schema import Attribute, MisfitError, check_attributes
from sklearn_xc._state.sklearn_parts import SCHEMAS

#: Attribute that is True once a fitted attribute was assigned, and False during a fit.
EDITED = "_edited"
Method = TypeVar("Method", bound=Callable[..., Any])


class SavedEstimator:
    """Base of estimators that can be saved to a folder."""

    #: Schema of the fitted attributes, from ``declares``.
    _schema: Mapping[str, Attribute] = {}

    def save(self, path: str | os.PathLike[str], *, compact: bool = False) -> None:
        """Save the estimator as a folder that loads fast and without running code.

        Parameters
        ----------
        path : str or PathLike
            A new path, an empty folder, or the folder of a model, which is replaced in one step: if
            the process ends meanwhile, the folder holds the old model or the new one.
        compact : bool, default=False
            Whether to round one-vs-all weights, including those of models inside the estimator, to
            a byte each: the folder is about a quarter as large, and the loaded model predicts as
            one returned by :meth:`OvALinearXC.compact`. The estimator itself is not changed.

        Raises
        ------
        TypeError
            If a parameter or attribute is not on the list of what a folder may hold; a function of
            your own, for example.
        ValueError
            If `compact` is True and there are no one-vs-all weights.
        OSError
            If the folder cannot be written, or holds other files.

        See Also
        --------
        sklearn_xc.load : Open the model.

        Notes
        -----
        The folder holds ``meta.json``, which describes the model, and its arrays in one file in the
        safetensors format.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import sklearn_xc
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> clf = OvALinearXC(label_names=["soup", "bread"]).fit(X, Y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clf.save(folder)
        ...     opened = sklearn_xc.load(folder)
        ...     bool((opened.decision_function(X) == clf.decision_function(X)).all())
        True
        """
        from sklearn_xc._state.files import save_model

        save_model(self, path, compact=compact)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self._schema:
            self.__dict__.setdefault(EDITED, True)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        state.pop("_search_index", None)  # built again on first use
        return {key: value for key, value in state.items() if key != EDITED or value}


def check_edits(estimator: Any) -> None:
    """Check the schema of a fitted estimator, if an attribute was assigned since the last check.

    Raises
    ------
    ValueError
        If the attributes do not fit each other.
    """
    if not vars(estimator).get(EDITED):
        return
    name = type(estimator).__name__
    try:
        check_attributes(estimator, name, schemas=SCHEMAS)
    except MisfitError as error:
        raise ValueError(
            f"{name}: its fitted attributes were changed and do not fit each other: {error}"
        ) from None
    vars(estimator).pop(EDITED, None)


def fits_in_one_step(method: Method) -> Method:
    """Decorate a method that trains: it works on a copy, which takes effect at its end."""

    @functools.wraps(method)
    def build(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = self.get_params(deep=False)
        if method.__name__ != "fit" or given.get("warm_start"):
            check_edits(self)
        outer = vars(self).get(EDITED)
        copy = shallow_copy(self, vars(self) | {k: _as_python(v) for k, v in given.items()})
        vars(copy)[EDITED] = False
        with _announced(self), callbacks_around(copy):
            method(copy, *args, **kwargs)
        state = vars(copy) | given
        if outer is not False:
            del state[EDITED]
        object.__setattr__(self, "__dict__", state)  # one step: our __setattr__ has more
        return self

    return build  # type: ignore[return-value]


def reads_snapshot(method: Method) -> Method:
    """Decorate a method that predicts: it reads one fit, whatever other threads do meanwhile."""

    @functools.wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_edits(self)
        same = shallow_copy(self, vars(self))
        with _announced(self):
            return method(same, *args, **kwargs)

    return read  # type: ignore[return-value]


def _announced(estimator: Any) -> AbstractContextManager[None]:
    """Return the context in which a verbose estimator announces that kernels are compiled."""
    verbose = getattr(estimator, "verbose", 0)
    return announced_compilation(verbose) if verbose else nullcontext()


def _as_python(value: Any) -> Any:
    """Return numpy's numbers as Python's, which do not overflow as ``np.uint8`` does."""
    if isinstance(value, np.timedelta64):  # an integer to numpy
        return value
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value


def shallow_copy(estimator: Any, attributes: dict[str, Any]) -> Any:
    """Return an estimator of the same class over `attributes`."""
    other = object.__new__(type(estimator))
    other.__dict__ = attributes
    return other

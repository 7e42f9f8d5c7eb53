"""Estimators that can be saved: what pickles and folders of models hold of them."""

import os
import warnings
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

import sklearn_xc
from sklearn_xc._declared_state import Lengths, MisfitError, check_record, declarations
from sklearn_xc._plain_state import as_plain, from_plain
from sklearn_xc.exceptions import SavedModelError

#: Raised when the meaning of pickled attributes changes.
STATE_FORMAT = 4
#: The attribute of an opened estimator that holds what was not read of its folder yet.
UNREAD = "_unread"
#: Set to True when a fitted attribute is assigned, and to False on an estimator in training.
EDITED = "_edited"
_VERSION, _FORMAT = "_sklearn_xc_version", "_sklearn_xc_format"


class SavedEstimator:
    """Saves an estimator to a folder, opens it there, and gives its state to pickle.

    Of an estimator that was opened, large attributes are read when they are asked for.
    """

    def save(self, path: str | os.PathLike[str], *, compact: bool = False) -> None:
        """Save the estimator as a folder of arrays that loads fast and without running code.

        Parameters
        ----------
        path : str or PathLike
            A new path, an empty folder, or a folder with a model, which this one replaces in one
            step: whatever happens meanwhile, the folder holds one or the other.
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
            If the folder cannot be written or holds other files, or if another process is saving
            there.

        See Also
        --------
        sklearn_xc.load : Open the model.

        Notes
        -----
        The folder holds ``meta.json``, which describes the model, a .npy file for each array, and
        a .safetensors file for the weights of a network. ``python -m sklearn_xc inspect PATH``
        shows its contents.

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
        from sklearn_xc.storage.models import save_model

        save_model(self, path, compact=compact)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Any:
        """Open a model of this class, as :func:`sklearn_xc.load` does for any class.

        Parameters
        ----------
        path : str or PathLike
            The folder.
        verify : bool, default=False
            Whether to check all of it now, instead of each part before its first use.

        Returns
        -------
        estimator

        Raises
        ------
        SavedModelError
            If the folder holds no model, or a damaged one.
        TypeError
            If it holds a model of another class.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from sklearn_xc import OvALinearXC
        >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
        >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     OvALinearXC(label_names=["soup", "bread"]).fit(X, Y).save(folder)
        ...     OvALinearXC.load(folder).classes_.tolist()
        ['soup', 'bread']
        """
        from sklearn_xc.storage.models import load_model

        model = load_model(path, verify=verify)
        if not isinstance(model, cls):
            raise TypeError(
                f"{os.fspath(path)}: holds {type(model).__name__}, not {cls.__name__}. "
                "sklearn_xc.load opens either."
            )
        return model

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in declarations(type(self)):
            self.__dict__.setdefault(EDITED, True)

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__
        unread = attributes.get(UNREAD)
        if name in attributes or (unread is not None and unread.read(attributes, name)):
            return attributes[name]
        for kind in type(self).__mro__:
            if name in vars(kind):  # what the class has did raise an AttributeError: its own
                return vars(kind)[name].__get__(self, type(self))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        read_all(self)
        held: Any = super().__getstate__()
        state = as_plain(dict(held))
        if not state.get(EDITED):
            state.pop(EDITED, None)
        state[_VERSION] = sklearn_xc.__version__
        state[_FORMAT] = STATE_FORMAT
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        version, written = state.pop(_VERSION, "unknown"), state.pop(_FORMAT, 0)
        name = type(self).__name__
        if written != STATE_FORMAT:
            advice = "Upgrade it." if written > STATE_FORMAT else "Fit the estimator again."
            raise SavedModelError(
                f"{name}: saved by sklearn_xc {version} in state format {written}, this is "
                f"{sklearn_xc.__version__}, which reads format {STATE_FORMAT}. {advice}"
            )
        if version != sklearn_xc.__version__:
            warnings.warn(
                InconsistentVersionWarning(
                    estimator_name=name,
                    current_sklearn_version=f"(sklearn_xc) {sklearn_xc.__version__}",
                    original_sklearn_version=f"(sklearn_xc) {version}",
                ),
                stacklevel=2,
            )
        super().__setstate__(from_plain(state))  # type: ignore[misc]


def read_all(estimator: Any) -> None:
    """Read what an estimator that was opened has not read yet; such as before it is changed."""
    attributes = vars(estimator)
    if UNREAD in attributes:
        attributes[UNREAD].read_all(attributes)
        attributes.pop(UNREAD, None)


def check_edits(estimator: Any) -> None:
    """Check the attributes of a fitted estimator, if any was assigned since the last check.

    Compiled loops trust the lengths and dtypes of fitted attributes.

    Raises
    ------
    ValueError
        If they do not fit each other.
    """
    if not vars(estimator).get(EDITED):
        return
    read_all(estimator)
    name = type(estimator).__name__
    try:
        check_record(estimator, Lengths(), name)
    except MisfitError as error:
        raise ValueError(
            f"{name}: its fitted attributes were changed and do not fit each other: {error}"
        ) from None
    vars(estimator).pop(EDITED, None)

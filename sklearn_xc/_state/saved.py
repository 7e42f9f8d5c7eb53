"""Estimators that can be saved, and notice when a fitted attribute is assigned."""

import os
from typing import Any

from sklearn_xc._state.schema import MisfitError, check_attributes, declarations

#: Attribute that is True once a fitted attribute was assigned, and False during a fit.
EDITED = "_edited"


class SavedEstimator:
    """Base of estimators that can be saved to a folder."""

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
        if name in declarations(type(self)):
            self.__dict__.setdefault(EDITED, True)

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
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
        check_attributes(estimator, name)
    except MisfitError as error:
        raise ValueError(
            f"{name}: its fitted attributes were changed and do not fit each other: {error}"
        ) from None
    vars(estimator).pop(EDITED, None)

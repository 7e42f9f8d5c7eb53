"""States from files that anybody may have written: numbers that lead somewhere are checked.

A checksum tells damage only. Where loops take numbers for places in arrays, numbers that lead
outside would have them read what is not theirs.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows
from sklearn_xc._label_features import LabelFeatures
from sklearn_xc._plain_state import KIND, STATE, Restoring
from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.storage.array_files import DTYPES


def from_foreign(state: Any) -> Any:
    """Return what ``from_plain`` makes of a state, checked.

    Raises
    ------
    SavedModelError
        For a record that does not fit.
    """
    return _Checking().of(state)


def known_dtype(name: str) -> np.dtype:
    """Return the dtype of a name.

    Raises
    ------
    ValueError
        Unless it is that of an array that a model may hold, or of such an array's attributes.
    """
    if name != "|O" and not DTYPES.fullmatch(name.replace(">", "<")):
        raise ValueError(f"{name!r:.50} is no dtype of a saved model")
    return np.dtype(name)


class _Checking(Restoring):
    def replaced(self, value: Any) -> Any:
        if type(value) is dict and value.get(KIND) == "dtype":
            return known_dtype(value[STATE])
        made = super().replaced(value)
        name = type(made).__name__
        if sp.issparse(made) or isinstance(made, CsrRows):
            _check_sparse(made, name)
        elif name in ("Trees", "BoostedTrees"):
            _check_trees(made, name)
        elif name == "LabelFeatures":
            made = LabelFeatures(made.features, made.classes)
        return made


def _check_sparse(matrix: Any, name: str) -> None:
    try:
        if isinstance(matrix, CsrRows):
            arrays = matrix.data, matrix.indices, matrix.indptr
            matrix = sp.csr_array(arrays, shape=matrix.shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise SavedModelError(f"{name}: its arrays do not fit each other ({error}).") from error


def _check_trees(trees: Any, name: str) -> None:
    """Raise an error unless each way through a tree ends in a leaf."""
    n = len(trees.value)
    nodes = np.arange(n)
    of_nodes = (trees.feature, trees.threshold, trees.left, trees.right)
    fits = (
        all(array.shape == (n,) for array in of_nodes)
        and trees.root.ndim == 1
        and bool(((trees.root >= 0) & (trees.root < n)).all())
    )
    if fits:
        inner = trees.left >= 0
        below = [child[inner] for child in (trees.left, trees.right)]
        fits = (
            bool((trees.feature[inner] >= 0).all())
            and all(bool(((child > nodes[inner]) & (child < n)).all()) for child in below)
            # Each node is reached by one way, so that no tree is missing.
            and bool((np.bincount(np.concatenate([trees.root, *below]), minlength=n) == 1).all())
        )
    if fits and name == "BoostedTrees":
        fits = trees.missing_left.shape == (n,)
    if not fits:
        raise SavedModelError(f"{name}: these are no trees.")

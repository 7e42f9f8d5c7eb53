"""Texts and rows of features of the same instances, as one X."""

from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import as_sequence, is_sequence, refuse_masks_and_dates
from sklearn_xc._input.data import check_sparse
from sklearn_xc._state.schema import declares

_NAME = "TextsWithFeatures"


@declares()
class TextsWithFeatures:
    """Texts and features of the same instances, or of the same labels, row by row.

    An encoder that reads texts gets the texts. The features are used for comparisons that need no
    training: cosines and means. They may be any numbers that show what texts have in common:
    tf-idf of the same texts, product identifiers, library codes.

    Parameters
    ----------
    texts : array-like of str of shape (n,)
        A list, a tuple, an array or a pandas Series.
    features : {array-like, sparse matrix, data frame} of shape (n, n_features)
        A row for each text. They are kept without a copy where possible: do not change them.

    Attributes
    ----------
    texts : ndarray of str objects of shape (n,)
    features : CSR matrix or array, ndarray, or data frame of shape (n, n_features)
    shape : tuple of int
        (n, n_features).
    ndim : int
        2.

    Raises
    ------
    TypeError
        If `features` are a masked array.
    ValueError
        If `texts` are not a sequence of texts, or if `features` are not a matrix with as many
        rows, are dates or times, or are a sparse matrix with indices outside its shape.

    See Also
    --------
    sklearn_xc.LabelFeatures : Holds features or texts of labels, or such pairs.

    Notes
    -----
    Rows are selected as in an array, by a slice, a mask or positions, so scikit-learn's splitters,
    cross-validation, searches and Pipelines accept it as X. A single position is refused:
    ``pair[[3]]`` is row 3, as a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import TextsWithFeatures
    >>> pair = TextsWithFeatures(["a red apple", "a fast car", "a pear"], np.eye(3))
    >>> pair
    TextsWithFeatures(3 texts with 3 dense features)
    >>> pair[[0, 2]].texts.tolist()
    ['a red apple', 'a pear']
    """

    texts: np.ndarray
    features: Any
    ndim = 2
    #: Keeps numpy and Python from taking it for a sequence of rows.
    __iter__ = None

    def __init__(self, texts: Any, features: Any) -> None:
        if not is_sequence(texts):
            raise ValueError(f"{_NAME}: texts must be a sequence of texts. Got {shown(texts)}.")
        self.texts = as_texts(texts, f"{_NAME}: texts")
        self.features = _as_matrix(features)
        if len(self.texts) != self.features.shape[0]:
            raise ValueError(
                f"{_NAME}: features must have a row for each of the {len(self.texts)} texts. Got "
                f"{self.features.shape[0]} rows."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n, d = self.features.shape
        return int(n), int(d)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, key: Any) -> "TextsWithFeatures":
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # scikit-learn's way
            key = key[0]
        rows = None if key is None else np.arange(len(self))[key]
        if rows is None or rows.ndim != 1:
            raise TypeError(
                f"{_NAME}: rows are chosen by a slice, a mask or a list of positions. Got "
                f"{key!r}: [[3]] is row 3."
            )
        features = self.features.iloc if hasattr(self.features, "iloc") else self.features
        chosen = type(self).__new__(type(self))
        chosen.texts, chosen.features = self.texts[rows], features[rows]
        return chosen

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse to be an array of numbers."""
        raise TypeError(
            f"{_NAME} are texts and rows of features, no matrix: pass the features alone, or an "
            "encoder that reads texts."
        )

    def __repr__(self) -> str:
        return f"{_NAME}({len(self):,} texts with {self.of_features})"

    @property
    def of_features(self) -> str:
        """Number and kind of the features, in words."""
        kind = "sparse" if sp.issparse(self.features) else "dense"
        return f"{self.shape[1]:,} {kind} features"


def as_texts(texts: Any, name: str) -> np.ndarray:
    """Return texts as an array of Python's str objects.

    Raises
    ------
    ValueError
        For an entry that is no text; the message names `name`.
    """
    given = list(as_sequence(texts))
    for i, text in enumerate(given):
        if not isinstance(text, str):
            raise ValueError(f"{name} must be a sequence of texts. Got {text!r} at position {i}.")
    out = np.empty(len(given), object)
    out[:] = [str(text) for text in given]  # numpy's become Python's
    return out


def _as_matrix(features: Any) -> Any:
    """Return features as a matrix that can be indexed by rows."""
    check_sparse(features, f"{_NAME}: features")
    refuse_masks_and_dates(features, f"{_NAME}: features")
    if sp.issparse(features):
        return features.tocsr()
    try:
        matrix = features if hasattr(features, "iloc") else np.asarray(features)
    except ValueError:  # rows of different lengths
        matrix = None
    if matrix is None or matrix.ndim != 2:
        raise ValueError(
            f"{_NAME}: features must be a matrix with a row for each text. Got {shown(features)}."
        )
    return matrix


def shown(given: Any) -> str:
    """Return the type and shape of an argument, for messages."""
    shape = f" of shape {tuple(given.shape)}" if hasattr(given, "shape") else ""
    return f"{type(given).__name__}{shape}"

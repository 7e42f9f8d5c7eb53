"""``train_test_split`` that stratifies by an indicator."""

from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.model_selection
from sklearn.utils import indexable

from sklearn_xc._checks import check_class_array
from sklearn_xc._containers import to_array
from sklearn_xc._name_lists import are_name_lists
from sklearn_xc._sklearn import num_samples, safe_indexing
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.model_selection._rare_label_split import RareLabelShuffleSplit


def train_test_split(
    *arrays: Any,
    test_size: Any = None,
    train_size: Any = None,
    random_state: Any = None,
    shuffle: bool = True,
    stratify: Any = None,
) -> list:
    """Return a random training part and a test part of each array.

    Like :func:`sklearn.model_selection.train_test_split`, which documents all details, but
    `stratify` may be an indicator, or lists of names: the rows are then split by
    :class:`RareLabelShuffleSplit`, so that every label with two positives or more has one in the
    training part.

    Parameters
    ----------
    *arrays : {array-like, sparse matrix} of shape (n_samples, ...)
        Arrays of the same length.
    test_size : float or int, default=None
        Share of the rows to test on, or their number. None takes what `train_size` leaves, or
        0.25.
    train_size : float or int, default=None
        Share of the rows to train on, or their number. None takes what `test_size` leaves.
    random_state : int, RandomState instance or None, default=None
        Pass an int to get the same split again.
    shuffle : bool, default=True
        Whether to shuffle. False takes the first rows for training; not with `stratify`.
    stratify : {array-like, sparse matrix} of shape (n_samples, n_labels), sequence of n_samples \
            lists of names, or array-like of shape (n_samples,), default=None
        An indicator, names without blanks around them, or classes, which are passed to
        scikit-learn.

    Returns
    -------
    list of length 2 * len(arrays)
        The training and the test part of each array. Sparse matrices become CSR.

    Raises
    ------
    ValueError
        If no arrays are given or their lengths differ; for sizes that leave no rows, missing
        classes, an indicator with values other than 0 and 1, `stratify` without `shuffle`, or a
        sparse matrix whose indices point outside its shape.

    Warns
    -----
    sklearn_xc.exceptions.UnseenLabelWarning
        If labels with two positives or more have none in the training part; see
        :class:`RareLabelShuffleSplit`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.model_selection import train_test_split
    >>> X, Y = np.arange(8).reshape(8, 1), csr_array(np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]])
    >>> X_train, X_test, Y_train, Y_test = train_test_split(X, Y, stratify=Y, random_state=0)
    >>> X_train.shape, X_test.shape, Y_train.sum(axis=0).min()
    ((6, 1), (2, 1), np.float64(1.0))
    """
    for place, part in enumerate(arrays):
        check_sparse(part, f"arrays[{place}]", "train_test_split")
    stratify, is_indicator = _read(stratify)
    if not is_indicator:
        return sklearn.model_selection.train_test_split(
            *arrays,
            test_size=test_size,
            train_size=train_size,
            random_state=random_state,
            shuffle=shuffle,
            stratify=stratify,
        )
    if not arrays:
        raise ValueError("train_test_split: expected at least one array to split. Got none.")
    if not shuffle:
        raise ValueError("train_test_split: stratify needs shuffle=True. Got shuffle=False.")
    parts = indexable(*arrays)
    splitter = RareLabelShuffleSplit(
        1,
        test_size=0.25 if test_size is None and train_size is None else test_size,
        train_size=train_size,
        random_state=random_state,
    )
    n = num_samples(parts[0])
    if num_samples(stratify) != n:
        raise ValueError(
            f"train_test_split: stratify must have {n} rows, as the arrays. Got "
            f"{num_samples(stratify)}."
        )
    try:
        train, test = next(splitter.split(np.empty((n, 0)), stratify))
    except ValueError as error:
        raise ValueError(f"train_test_split: stratify: {error}") from error
    return list(
        chain.from_iterable(
            (safe_indexing(part, train), safe_indexing(part, test)) for part in parts
        )
    )


# Its name begins with "test" to no test runner.
train_test_split.__test__ = False  # type: ignore[attr-defined]


def _read(stratify: Any) -> tuple[Any, bool]:
    """Return what to stratify by, and whether it is an indicator or lists of names."""
    if sp.issparse(stratify) or are_name_lists(stratify):
        return stratify, True
    if stratify is None or isinstance(stratify, str) or np.ma.isMaskedArray(stratify):
        return stratify, False
    values = to_array(stratify)
    if values.ndim == 1:
        return check_class_array(values, "train_test_split: stratify"), False
    if values.ndim != 2 or values.shape[1] < 2 or values.dtype.kind not in "biuf":
        return stratify, False
    return stratify, bool(((values == 0) | (values == 1)).all())

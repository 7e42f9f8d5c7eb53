"""F1 of the labels that ``predict`` gives: micro, macro, and instance by instance."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.metrics._classes import KINDS, of_one_kind
from sklearn_xc.metrics._label_counts import (
    check_over,
    count_labels,
    f1_of_labels,
    mean_over_labels,
)
from sklearn_xc.metrics.check import (
    NAMES_BECOME,
    TrueLabels,
    as_array,
    check_sample_weight,
    pairs_of_dense,
    pairs_of_sparse,
)
from sklearn_xc.metrics.hits import is_true, mean_over_rows


def micro_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return micro-F1: F1 over all pairs of a row and a label together.

    Frequent labels dominate. For one class per row, it is the accuracy.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator of 0 and 1, or one class label per row.
    Y_pred : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Predictions, as returned by ``predict``, of the same kind as `Y_true`; sparse and dense
        indicators may be mixed.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float
        In [0, 1]; 0 if no label is true and none is predicted.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    The same as scikit-learn's ``f1_score(average="micro", zero_division=0)``, in O(nnz log nnz)
    time and O(nnz) memory, whatever the number of labels.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import micro_f1
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> micro_f1(Y, csr_array(np.array([[1, 0, 0, 1], [0, 1, 0, 0]])))
    0.6666666666666666
    """
    n_right, n_named, n_true, weight = _counts_of_rows(Y_true, Y_pred, sample_weight)
    if weight is not None:
        n_right, n_named, n_true = (weight * n for n in (n_right, n_named, n_true))
    total = n_named.sum() + n_true.sum()
    return float(2 * n_right.sum() / total) if total > 0 else 0.0


def macro_f1(
    Y_true: Any, Y_pred: Any, *, over: str | None = None, sample_weight: Any = None
) -> float:
    """Return macro-F1: the mean over labels of the F1 of each.

    Each label counts the same, however rare.

    Parameters
    ----------
    Y_true, Y_pred : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        As in :func:`micro_f1`.
    over : {None, "all", "present", "true"}, default=None
        Which labels the mean is over. "all": all columns of an indicator, where a label that is
        neither true nor predicted counts 0; "present": those that are true or predicted for some
        row; "true": those that are true for some row. None is "all" for indicators and "present"
        for one class per row, as in scikit-learn.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows within each label; a row of weight 0 counts as absent.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    See Also
    --------
    macro_f1_at_k : For the k best labels of each row.

    Notes
    -----
    The same as scikit-learn's ``f1_score(average="macro", zero_division=0)``, in O(nnz log nnz)
    time and O(nnz) memory, whatever the number of labels; ``over="present"`` is its
    ``zero_division=np.nan``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import macro_f1
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> Y_pred = csr_array(np.array([[1, 0, 0, 0], [0, 1, 0, 0]]))
    >>> macro_f1(Y, Y_pred)
    0.5
    >>> round(macro_f1(Y, Y_pred, over="present"), 3)
    0.667
    """
    check_over(over)
    true, named, right = _check_pair(Y_true, Y_pred)
    weight = check_sample_weight(sample_weight, len(true.counts))
    weights = None if weight is None else (weight[true.rows], weight[named.rows])
    counts = count_labels(true.columns, named.columns, right, true.n_labels, weights)
    return mean_over_labels(f1_of_labels(counts), counts, over)


def instance_f1(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Return the mean over rows of the F1 of each row's labels.

    Parameters
    ----------
    Y_true, Y_pred : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        As in :func:`micro_f1`. For one class per row, the result is the accuracy.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the mean.

    Returns
    -------
    float
        In [0, 1]. A row without any true or predicted label counts 0.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    The same as scikit-learn's ``f1_score(average="samples", zero_division=0)``, in O(nnz log nnz)
    time and O(nnz) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import instance_f1
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> instance_f1(Y, csr_array(np.array([[1, 0, 0, 1], [0, 1, 0, 0]])))
    0.75
    """
    n_right, n_named, n_true, weight = _counts_of_rows(Y_true, Y_pred, sample_weight)
    f1 = 2 * n_right / np.maximum(n_named + n_true, 1)
    return float(mean_over_rows(f1[:, None], weight)[0])


def _counts_of_rows(
    Y_true: Any, Y_pred: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return rightly named, named and true labels of each row, and the checked weights."""
    true, named, right = _check_pair(Y_true, Y_pred)
    n_right = np.bincount(named.rows[right], minlength=len(true.counts))
    return n_right, named.counts, true.counts, check_sample_weight(sample_weight, len(true.counts))


def _check_pair(Y_true: Any, Y_pred: Any) -> tuple[TrueLabels, TrueLabels, np.ndarray]:
    """Return the pairs of both arguments, and which of the predicted ones are true."""
    true, named = _dense(Y_true, "Y_true"), _dense(Y_pred, "Y_pred")
    if true.ndim != named.ndim or (true.shape != named.shape):
        raise ValueError(f"Y_pred: expected shape {true.shape}, that of Y_true. Got {named.shape}.")
    if true.shape[0] == 0:
        raise ValueError("Y_true: expected at least one row. Got none; a mean over them is void.")
    if true.ndim == 1:
        first, second = _pairs_of_labels(true, named)
    else:
        first, second = (
            pairs_of_sparse(Y, name) if sp.issparse(Y) else pairs_of_dense(Y, name)
            for Y, name in ((true, "Y_true"), (named, "Y_pred"))
        )
    return first, second, is_true(first, second.rows, second.columns)


def _dense(Y: Any, name: str) -> Any:
    """Return what is sparse as it is, and else an array of one or two dimensions."""
    if sp.issparse(Y):
        check_sparse(Y, name)
        return Y
    array = as_array(
        Y,
        name,
        f"an indicator matrix or one class per row. {NAMES_BECOME}",
    )
    if array.ndim not in (1, 2):
        raise ValueError(f"{name}: expected 1 or 2 dimensions. Got shape {array.shape}.")
    return array


def _pairs_of_labels(y_true: np.ndarray, y_pred: np.ndarray) -> tuple[TrueLabels, TrueLabels]:
    y_true, y_pred = of_one_kind(y_true, "Y_true"), of_one_kind(y_pred, "Y_pred")
    if KINDS[y_true.dtype.kind] != KINDS[y_pred.dtype.kind]:
        raise ValueError(
            f"Y_pred: expected class labels as those in Y_true, {KINDS[y_true.dtype.kind]} of "
            f"dtype {y_true.dtype}. Got dtype {y_pred.dtype}."
        )
    _, at = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    rows, ones = np.arange(len(y_true)), np.ones(len(y_true), np.int64)
    return (
        TrueLabels(rows, at[: len(rows)], ones, None),
        TrueLabels(rows, at[len(rows) :], ones, None),
    )

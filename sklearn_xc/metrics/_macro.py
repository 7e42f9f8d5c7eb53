"""F1, precision and recall of each label among the k best of the rows, averaged over labels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc.metrics._label_counts import (
    LabelCounts,
    check_over,
    count_labels_of_hits,
    f1_of_labels,
    mean_over_labels,
    quotients,
)
from sklearn_xc.metrics.hits import Hits, measure


def macro_f1_at_k(
    Y_true: Any,
    topk: Any,
    k: Any = 5,
    *,
    over: str | None = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    r"""Return macro-F1@k: the mean over labels of F1, where each row is given its first k labels.

    Each label counts the same, however rare. A label that is true for some row but never named has
    an F1 of 0, as does one that is named but never true.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`. A class without a position
        has no F1; all labels that its rows are given are wrong.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    over : {None, "all", "present", "true"}, default=None
        Which labels the mean is over. "all": the whole label set, where a label that is neither
        true nor named counts 0; "present": those that are true for a row or named for one; "true":
        those that are true for a row. None is "all" for an indicator or with `classes`, otherwise
        "present".
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows within each label; a row of weight 0 counts as absent.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    See Also
    --------
    macro_f1 : For labels past a threshold, as ``predict`` gives them.

    Notes
    -----
    .. math:: F_1@k = \frac{1}{m} \sum_l
              \frac{2 \, |\{i : l \in y_i \cap \hat y_i\}|}
                   {|\{i : l \in y_i\}| + |\{i : l \in \hat y_i\}|}

    with :math:`\hat y_i` the first k labels of row i. Source: [1]_. With ``over="all"``, it is
    scikit-learn's ``f1_score(average="macro", zero_division=0)`` of the indicator of the first k
    labels; with "present", it is that with ``zero_division=np.nan``.

    References
    ----------
    .. [1] Schultheis et al., "Generalized Test Utilities for Long-tail Performance in Extreme
       Multi-label Classification", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import macro_f1_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> topk = np.array([[2, 0], [2, 1]])
    >>> macro_f1_at_k(Y, topk, k=[1, 2]).round(3)
    array([0.167, 0.667])
    >>> round(macro_f1_at_k(Y, topk, k=2, over="true"), 3)
    0.889
    """
    check_over(over)
    return measure(_averaged(f1_of_labels, over), Y_true, topk, k, sample_weight, classes)


def macro_precision_at_k(
    Y_true: Any,
    topk: Any,
    k: Any = 5,
    *,
    over: str | None = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    r"""Return macro-precision@k: the mean over labels of how often a named label is right.

    A label that is never among the first k has a precision of 0.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`macro_f1_at_k`.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    over : {None, "all", "present", "true"}, default=None
        Which labels the mean is over, as in :func:`macro_f1_at_k`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows within each label; a row of weight 0 counts as absent.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    With the mean over all labels, the same as scikit-learn's ``precision_score(average="macro",
    zero_division=0)`` of the indicator of the first k labels.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import macro_precision_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> macro_precision_at_k(Y, np.array([[2, 0], [2, 1]]), k=2)
    0.625
    """
    check_over(over)
    return measure(_averaged(_precision_of_labels, over), Y_true, topk, k, sample_weight, classes)


def macro_recall_at_k(
    Y_true: Any,
    topk: Any,
    k: Any = 5,
    *,
    over: str | None = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    r"""Return macro-recall@k: the mean over labels of how often a true label is named.

    A label that is true for no row has a recall of 0; ``over="true"`` leaves such labels out.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`macro_f1_at_k`.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    over : {None, "all", "present", "true"}, default=None
        Which labels the mean is over, as in :func:`macro_f1_at_k`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows within each label; a row of weight 0 counts as absent.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    With the mean over all labels, the same as scikit-learn's ``recall_score(average="macro",
    zero_division=0)`` of the indicator of the first k labels.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import macro_recall_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> macro_recall_at_k(Y, np.array([[2, 0], [2, 1]]), k=2)
    0.75
    >>> macro_recall_at_k(Y, np.array([[2, 0], [2, 1]]), k=2, over="true")
    1.0
    """
    check_over(over)
    return measure(_averaged(_recall_of_labels, over), Y_true, topk, k, sample_weight, classes)


def macro_f1_of_hits(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
    """Return macro-F1@k for each k, shape (len(ks),)."""
    return _averaged(f1_of_labels, None)(hits, ks, weight)


def _averaged(of_labels: Callable[[LabelCounts], np.ndarray], over: str | None) -> Callable:
    """Return a function of the hits: the mean over labels for each k."""

    def metric(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
        values = np.zeros(len(ks))
        for i, k in enumerate(ks):
            counts = count_labels_of_hits(hits, k, weight)
            values[i] = mean_over_labels(of_labels(counts), counts, over)
        return values

    return metric


def _precision_of_labels(counts: LabelCounts) -> np.ndarray:
    return quotients(counts.right, counts.named)


def _recall_of_labels(counts: LabelCounts) -> np.ndarray:
    return quotients(counts.right, counts.true)

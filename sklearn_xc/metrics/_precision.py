"""Precision@k: the share of true labels among the first k."""

from typing import Any

import numpy as np

from sklearn_xc.metrics.hits import Hits, mean_over_rows, measure, up_to


def precision_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return precision@k: the number of true labels among the first k, divided by k.

    The mean is over all rows, including those without a true label; padding counts as a wrong
    label. A row with fewer than k true labels cannot reach 1.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator of 0 and 1, or one class per row: its label if `classes` is given, otherwise its
        position in ``classes_``, -1 for none. A class without a position is never a hit, but
        counts as a true label.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        Integer label positions, best first, padded with -1; or ``(indices, scores)``, as returned
        by ``predict_topk``; or a sparse matrix of scores of shape (n_samples, n_labels), as
        returned by ``decision_function`` after a sparse fit. A score that is not stored does not
        exist, and ties go to the smaller position.
    k : int or sequence of int, default=5
        The cut-offs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the mean.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels, such as strings.

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
    TopKScorer : The same as a scorer for cross-validation and searches.

    Notes
    -----
    .. math:: P@k = \frac{1}{n k} \sum_i \sum_{r=1}^{k} [\,l_{ir} \text{ is true for row } i\,]

    with :math:`l_{ir}` the label at rank r. Source: [1]_; the same as in napkinXC. Takes O(nk log
    nnz) time and O(nk + nnz) memory, as do the other metrics.

    References
    ----------
    .. [1] Bhatia et al., "The Extreme Classification Repository: Multi-label Datasets and Code",
       2016.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import precision_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> topk = np.array([[2, 0, 1], [3, 1, -1]])
    >>> precision_at_k(Y, topk, k=2)
    0.75
    >>> precision_at_k(Y, topk, k=[1, 2])
    array([0.5 , 0.75])

    With one class per row, by name:

    >>> precision_at_k(["bee", "ant"], [[1, 0], [1, 0]], k=1, classes=["ant", "bee"])
    0.5
    """
    return measure(precision_of_hits, Y_true, topk, k, sample_weight, classes)


def precision_of_hits(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
    """Return precision@k for each k, shape (len(ks),)."""
    return mean_over_rows(precision_of_rows(hits, ks), weight)


def precision_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return precision@k of each row for each k, shape (n_samples, len(ks))."""
    return up_to(ks, hits.hit) / np.asarray(ks)

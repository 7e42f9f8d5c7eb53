"""Recall@k: the share of the true labels that the first k hold."""

from typing import Any

import numpy as np

from sklearn_xc.metrics.hits import Hits, mean_over_rows, measure, up_to


def recall_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return recall@k: the share of the true labels that are among the first k.

    This is the mean over all rows of hits divided by true labels. A row without a true label
    counts 0; a row with more than k true labels cannot reach 1.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in the mean.
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
    .. math:: R@k = \frac{1}{n} \sum_i \frac{1}{|y_i|}
              \sum_{r=1}^{k} [\,l_{ir} \text{ is true for row } i\,]

    The same as in napkinXC, with its default ``zero_division=0``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import recall_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> recall_at_k(Y, np.array([[2, 3], [1, 3]]), k=2)
    0.75
    """
    return measure(recall_of_hits, Y_true, topk, k, sample_weight, classes)


def recall_of_hits(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
    """Return recall@k for each k, shape (len(ks),)."""
    return mean_over_rows(recall_of_rows(hits, ks), weight)


def recall_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return recall@k of each row for each k, shape (n_samples, len(ks))."""
    n_true = np.maximum(hits.true.counts, 1)  # an empty row has no hits: 0 / 1
    return up_to(ks, hits.hit) / n_true[:, None]

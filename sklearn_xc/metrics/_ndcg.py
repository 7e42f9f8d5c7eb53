"""nDCG@k: hits count less the later they come."""

from typing import Any

import numpy as np

from sklearn_xc.metrics.hits import Hits, discounts, mean_over_rows, measure, up_to


def ndcg_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return nDCG@k: the discounted gain of the first k labels divided by the best possible gain.

    A hit at rank r gains 1 / log2(r + 1). The gain of each row is divided by its gain if its true
    labels came first; then the mean over all rows is taken. A row without a true label counts 0.

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

    See Also
    --------
    sklearn.metrics.ndcg_score : For dense scores; it averages over ties, this function does not.

    Notes
    -----
    .. math:: nDCG@k = \frac{1}{n} \sum_i
              \frac{\sum_{r=1}^{k} [\,l_{ir} \text{ is true}\,] / \log_2(r + 1)}
                   {\sum_{r=1}^{\min(k, |y_i|)} 1 / \log_2(r + 1)}

    Source: [1]_; the same as in napkinXC with its default ``zero_division=0``.

    References
    ----------
    .. [1] Bhatia et al., "The Extreme Classification Repository: Multi-label Datasets and Code",
       2016.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import ndcg_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> round(ndcg_at_k(Y, np.array([[2, 0], [3, 1]]), k=2), 4)
    0.8155
    """
    return measure(ndcg_of_hits, Y_true, topk, k, sample_weight, classes)


def ndcg_of_hits(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
    """Return nDCG@k for each k, shape (len(ks),)."""
    return mean_over_rows(ndcg_of_rows(hits, ks), weight)


def ndcg_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return nDCG@k of each row for each k, shape (n_samples, len(ks))."""
    gains = up_to(ks, hits.hit * discounts(hits.hit.shape[1]))
    return gains / best_gains(hits.true.counts, ks)


def best_gains(n_true: np.ndarray, ks: tuple[int, ...]) -> np.ndarray:
    """Return the gain of min(k, n_true) labels at the first ranks, shape (n_samples, len(ks)).

    1 where there is no true label, so that it can divide the zero gain of such a row.
    """
    # The same running sum as that of the gains: a perfect row then gives exactly 1.
    best = np.cumsum(discounts(max(ks)))
    return best[np.clip(n_true[:, None], 1, ks) - 1]

"""Metrics of the k best labels: means over rows, coverage and macro-F1."""

from typing import Any

import numpy as np

from sklearn_xc.metrics.hits import Hits, discounts, mean_of, measure, up_to


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
    return measure(mean_of(precision_of_rows), Y_true, topk, k, sample_weight, classes)


def precision_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return precision@k of each row for each k, shape (n_samples, len(ks))."""
    return up_to(ks, hits.hit) / np.asarray(ks)


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
    return measure(mean_of(recall_of_rows), Y_true, topk, k, sample_weight, classes)


def recall_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return recall@k of each row for each k, shape (n_samples, len(ks))."""
    n_true = np.maximum(hits.true.counts, 1)  # an empty row has no hits: 0 / 1
    return up_to(ks, hits.hit) / n_true[:, None]


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
    return measure(mean_of(ndcg_of_rows), Y_true, topk, k, sample_weight, classes)


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


def reciprocal_rank_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return MRR@k: the mean over rows of 1 / rank of the first hit.

    A row without a hit among the first k labels counts 0, as does a row without a true label.

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
    .. math:: MRR@k = \frac{1}{n} \sum_i
              \max_{r \le k} \frac{[\,l_{ir} \text{ is true for row } i\,]}{r}

    Source: [1]_, which looks at the first five.

    References
    ----------
    .. [1] Voorhees, "The TREC-8 Question Answering Track Report", TREC 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import reciprocal_rank_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> reciprocal_rank_at_k(Y, np.array([[2, 0], [3, 1]]), k=2)
    0.75
    """
    return measure(mean_of(reciprocal_rank_of_rows), Y_true, topk, k, sample_weight, classes)


def reciprocal_rank_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return MRR@k of each row for each k, shape (n_samples, len(ks))."""
    ranks = np.arange(1, hits.hit.shape[1] + 1)
    return np.maximum.accumulate(hits.hit / ranks, axis=1)[:, np.asarray(ks) - 1]


def average_precision_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return MAP@k: the mean over rows of the average precision of the first k labels.

    The average precision of a row is the sum of precision@r over the ranks r <= k of its hits,
    divided by min(k, number of true labels): a row whose first labels are all true reaches 1. A row
    without a true label counts 0.

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
    lrap_at_k : Divides by the number of true labels, whatever k is.

    Notes
    -----
    .. math:: MAP@k = \frac{1}{n} \sum_i \frac{1}{\min(k, |y_i|)}
              \sum_{r=1}^{k} [\,l_{ir} \text{ is true for row } i\,] \, P_i@r

    with :math:`P_i@r` the precision@r of row i. Source: [1]_. With one true label per row, it is
    MRR@k.

    References
    ----------
    .. [1] McFee et al., "The Million Song Dataset Challenge", WWW 2012 Companion.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import average_precision_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> average_precision_at_k(Y, np.array([[3, 2], [1, 3]]), k=[1, 2])
    array([0.5  , 0.625])
    """
    return measure(mean_of(average_precision_of_rows), Y_true, topk, k, sample_weight, classes)


def average_precision_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return MAP@k of each row for each k, shape (n_samples, len(ks))."""
    return up_to(ks, _precision_at_hits(hits)) / np.clip(hits.true.counts[:, None], 1, ks)


def lrap_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return LRAP@k: the label ranking average precision, where only the first k labels count.

    For each true label at a rank r <= k, take precision@r; for other true labels, 0. Then take the
    mean over the true labels of each row, and the mean over all rows. A row without a true label
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

    See Also
    --------
    average_precision_at_k : Divides by at most k.
    sklearn.metrics.label_ranking_average_precision_score : For dense scores of all labels.

    Notes
    -----
    .. math:: LRAP@k = \frac{1}{n} \sum_i \frac{1}{|y_i|}
              \sum_{r=1}^{k} [\,l_{ir} \text{ is true for row } i\,] \, P_i@r

    with :math:`P_i@r` the precision@r of row i. Source: [1]_, for rankings of all labels. For
    those, it equals scikit-learn's if no scores are tied and each row has a true label: there, a
    row without one counts 1.

    References
    ----------
    .. [1] Tsoumakas et al., "Mining Multi-label Data", in Data Mining and Knowledge Discovery
       Handbook, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import lrap_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> lrap_at_k(Y, np.array([[2, 3], [1, 3]]), k=1)
    0.75
    """
    return measure(mean_of(lrap_of_rows), Y_true, topk, k, sample_weight, classes)


def lrap_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return LRAP@k of each row for each k, shape (n_samples, len(ks))."""
    return up_to(ks, _precision_at_hits(hits)) / np.maximum(hits.true.counts, 1)[:, None]


def _precision_at_hits(hits: Hits) -> np.ndarray:
    """Return precision@r at each rank r that holds a hit, 0 elsewhere, shape (n_samples, k)."""
    ranks = np.arange(1, hits.hit.shape[1] + 1)
    return hits.hit * np.cumsum(hits.hit, axis=1) / ranks


def hit_rate_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return the hit rate at k: the share of rows with a true label among the first k.

    A row without a true label counts 0.

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
    .. math:: hit@k = \frac{1}{n} \sum_i
              \max_{r \le k} [\,l_{ir} \text{ is true for row } i\,]

    Source: [1]_, where a row has one true label: it is then recall@k.

    References
    ----------
    .. [1] Deshpande and Karypis, "Item-based Top-N Recommendation Algorithms", ACM Transactions on
       Information Systems 22 (1), 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import hit_rate_at_k
    >>> Y = csr_array(np.array([[1, 0, 1, 0], [0, 1, 0, 0]]))
    >>> hit_rate_at_k(Y, np.array([[3, 0], [3, 2]]), k=[1, 2])
    array([0. , 0.5])
    """
    return measure(mean_of(hit_rate_of_rows), Y_true, topk, k, sample_weight, classes)


def hit_rate_of_rows(hits: Hits, ks: tuple[int, ...]) -> np.ndarray:
    """Return whether each row has a hit among its first k, shape (n_samples, len(ks))."""
    return np.minimum(up_to(ks, hits.hit), 1.0)


def coverage_at_k(
    Y_true: Any, topk: Any, k: Any = 5, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    r"""Return coverage@k: the share of labels that are a hit for some row.

    Of the labels that are true for at least one row, the share that are among the first k labels
    of a row for which they are true. A model that only names frequent labels has a low coverage,
    however high its precision.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`. A class without a position
        is not counted.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    sample_weight : array-like of shape (n_samples,), default=None
        Rows of weight 0 are left out. Other weights change nothing: labels are counted, not rows.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`. 0 if no row has a true label.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    .. math:: C@k = \frac{|\{l : \exists i : l \in y_i, l \text{ among the first } k\}|}
                         {|\bigcup_i y_i|}

    Source: [1]_ and [2]_, which divide by the number of all labels, a constant of the data set.
    Here, as in napkinXC, the divisor is the number of labels that occur in `Y_true`, so that a
    perfect ranking reaches 1 if k is large enough for all true labels of a row. Coverage grows
    with the number of rows: compare only on equal test sets.

    References
    ----------
    .. [1] Schultheis et al., "On Missing Labels, Long-tails and Propensities in Extreme
       Multi-label Classification", KDD 2022.
    .. [2] Schultheis et al., "Generalized Test Utilities for Long-tail Performance in Extreme
       Multi-label Classification", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import coverage_at_k
    >>> Y = csr_array(np.array([[1, 1, 0, 0], [1, 0, 1, 0]]))
    >>> coverage_at_k(Y, np.array([[0, 1], [0, 3]]), k=[1, 2]).round(3)
    array([0.333, 0.667])
    """
    return measure(coverage_of_hits, Y_true, topk, k, sample_weight, classes)


def coverage_of_hits(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
    """Return coverage@k for each k, shape (len(ks),)."""
    values = np.zeros(len(ks))
    for i, k in enumerate(ks):
        right, _, true = _count_labels(hits, k, weight)
        n_true = np.count_nonzero(true)
        values[i] = np.count_nonzero(right) / n_true if n_true else 0.0
    return values


def macro_f1_at_k(
    Y_true: Any,
    topk: Any,
    k: Any = 5,
    *,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    r"""Return macro-F1@k: the mean over labels of F1, where each row is given its first k labels.

    Each label counts the same, however rare. A label that is true for some row but never named has
    an F1 of 0, as does one that is named but never true, or neither. The mean is over the whole
    label set; for one class per row without `classes`, over the labels that are true or named.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`. A class without a position
        has no F1; all labels that its rows are given are wrong.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
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
    .. math:: F_1@k = \frac{1}{m} \sum_l
              \frac{2 \, |\{i : l \in y_i \cap \hat y_i\}|}
                   {|\{i : l \in y_i\}| + |\{i : l \in \hat y_i\}|}

    with :math:`\hat y_i` the first k labels of row i. Source: [1]_. It is scikit-learn's
    ``f1_score(average="macro", zero_division=0)`` of the indicator of the first k labels.

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
    """
    return measure(macro_f1_of_hits, Y_true, topk, k, sample_weight, classes)


def macro_f1_of_hits(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
    """Return macro-F1@k for each k, shape (len(ks),)."""
    values = np.zeros(len(ks))
    for i, k in enumerate(ks):
        right, named, true = _count_labels(hits, k, weight)
        either = named + true
        n_labels = hits.true.n_labels or np.count_nonzero(either)
        f1 = 2 * right / np.where(either > 0, either, 1.0)
        values[i] = f1.sum() / n_labels if n_labels else 0.0
    return values


def _count_labels(
    hits: Hits, k: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the (weighted) numbers of hits, of predictions and of true rows of each label.

    Three float64 arrays with an entry for each label that occurs.
    """
    is_named = hits.positions[:, :k] >= 0
    named, right = hits.positions[:, :k][is_named], hits.hit[:, :k][is_named]
    true, of_named, of_true = hits.true.columns, None, None
    if weight is not None:
        rows = np.broadcast_to(np.arange(len(weight))[:, None], is_named.shape)[is_named]
        of_named, of_true = weight[rows], weight[hits.true.rows]
    labels, at = np.unique(np.concatenate([true, named]), return_inverse=True)
    width, true, named = len(labels), at[: len(true)], at[len(true) :]
    of_right = None if of_named is None else of_named[right]
    return (
        np.bincount(named[right], of_right, width).astype(np.float64),
        np.bincount(named, of_named, width).astype(np.float64),
        np.bincount(true, of_true, width).astype(np.float64),
    )

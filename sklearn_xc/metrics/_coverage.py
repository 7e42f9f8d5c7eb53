"""Coverage@k: the share of the labels that are found at all."""

from typing import Any

import numpy as np

from sklearn_xc.metrics._label_counts import count_labels_of_hits
from sklearn_xc.metrics.hits import Hits, measure


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
        counts = count_labels_of_hits(hits, k, weight)
        n_true = np.count_nonzero(counts.true)
        values[i] = np.count_nonzero(counts.right) / n_true if n_true else 0.0
    return values

"""Propensities of labels, and PSP@k and PSnDCG@k: hits weighted by their inverse.

``gains_of`` and ``propensities_of`` serve choices on held-out instances.
"""

from typing import Any

import numpy as np

from sklearn_xc._input.arguments import check_numbers, is_number
from sklearn_xc.metrics.at_k import best_gains
from sklearn_xc.metrics.hits import Hits, discounts, measure, ratio_of, up_to

#: (A, B) as fitted in section 4 of the paper on Wikipedia and Amazon data, and their averages.
PRESETS = {"default": (0.55, 1.5), "wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6)}
#: What an order of labels can be best for, see ``gains_of``.
OBJECTIVES = ("precision", "propensity")


def propensity(label_counts: Any, n_samples: Any, preset: str = "default") -> np.ndarray:
    r"""Return for each label the probability that it is observed if it is relevant.

    In data with large label sets, relevant labels are often missing, rare ones most of all. The
    model has one curve for all data sets, which grows with the label's frequency.

    Parameters
    ----------
    label_counts : array-like of shape (n_labels,)
        Training rows of each label: the attribute ``label_counts_`` of a fitted estimator, or
        ``np.asarray(Y.sum(axis=0)).ravel()``. Zero is allowed.
    n_samples : int or float
        Number of training rows, at least 3: the attribute ``n_samples_fit_``.
    preset : {"default", "wikipedia", "amazon"}, default="default"
        The constants A and B of the curve: "wikipedia" (0.5, 0.4) for WikiLSHTC-325K and
        Wikipedia-500K, "amazon" (0.6, 2.6) for Amazon-670K and Amazon-3M, "default" (0.55, 1.5)
        for all others.

    Returns
    -------
    ndarray of shape (n_labels,), float64
        In (0, 1].

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    Notes
    -----
    .. math:: 1 / p_l = 1 + C (N_l + B)^{-A}, \qquad C = (\log n - 1) (B + 1)^A

    with :math:`N_l` the count of label l and n the number of rows. Source: section 4 of [1]_.
    Compare numbers only for equal constants and equal training sets: the constants were fitted on
    two data sets, and other data may follow another curve.

    References
    ----------
    .. [1] Jain, Prabhu and Varma, "Extreme Multi-label Loss Functions for Recommendation, Tagging,
       Ranking & Other Missing Label Applications", KDD 2016.

    Examples
    --------
    >>> from sklearn_xc.metrics import propensity
    >>> propensity([0, 10, 1000], n_samples=10_000).round(3)
    array([0.084, 0.22 , 0.767])
    """
    check_preset(preset)
    a, b = PRESETS[preset]
    if not is_number(n_samples) or not 3 <= float(n_samples) < np.inf:
        raise ValueError(
            f"n_samples: expected a number of rows of at least 3. Got {n_samples!r}; below that "
            "log(n) - 1 is negative and the model gives no probabilities."
        )
    what = "label (np.asarray(Y.sum(axis=0)).ravel() counts those of a sparse Y)"
    counts = check_numbers(label_counts, "label_counts", None, what)
    bad = counts < 0
    if bad.any():
        raise ValueError(
            "label_counts: expected numbers of at least 0. Got "
            f"{counts[bad.argmax()]} for label {bad.argmax()}."
        )
    c = (np.log(float(n_samples)) - 1.0) * (b + 1.0) ** a
    return 1.0 / (1.0 + c * (counts + b) ** -a)


def check_preset(preset: Any) -> None:
    """Raise ValueError unless `preset` is a name in ``PRESETS``."""
    if not isinstance(preset, str) or preset not in PRESETS:
        raise ValueError(f"preset: expected one of {sorted(PRESETS)}. Got {preset!r}.")


def psp_at_k(
    Y_true: Any,
    topk: Any,
    k: Any = 5,
    *,
    propensities: Any,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    r"""Return propensity-scored precision@k as a fraction of the best attainable value.

    A hit counts 1 / propensity, so that a label that annotators rarely assign is worth more. The
    sum over all rows is divided by the sum for a ranking that puts the true labels of each row
    first, the rarest at the top.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`. A class without a position
        adds to neither sum, since no ranking can hit it.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    propensities : array-like of shape (n_labels,)
        In (0, 1], from the *training* labels: see :func:`propensity`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in both sums.
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
    .. math:: PSP@k = \frac{\sum_i \sum_{r=1}^{k} [\,l_{ir} \text{ is true}\,] / p_{l_{ir}}}
                           {\sum_i \max_{S \subseteq y_i, |S| \le k} \sum_{l \in S} 1 / p_l}

    This is a ratio of sums over rows, not a mean of ratios: the 1/k of a precision cancels, a row
    with fewer than k true labels can be perfect, and a row without any adds nothing. Source: [1]_,
    and the convention of the Extreme Classification Repository; the same as in napkinXC, which
    takes inverse propensities, and as the ratio in pyxclib.

    References
    ----------
    .. [1] Jain, Prabhu and Varma, "Extreme Multi-label Loss Functions for Recommendation, Tagging,
       Ranking & Other Missing Label Applications", KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import psp_at_k
    >>> Y = csr_array(np.array([[1, 1, 0], [1, 0, 1]]))
    >>> frequent_first = np.array([[0, 1, 2], [0, 2, 1]])
    >>> psp_at_k(Y, frequent_first, k=[1, 2], propensities=[0.5, 0.1, 0.25]).round(3)
    array([0.286, 1.   ])
    """
    return measure(ratio_of(psp_of_rows), Y_true, topk, k, sample_weight, classes, propensities)


def psndcg_at_k(
    Y_true: Any,
    topk: Any,
    k: Any = 5,
    *,
    propensities: Any,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    r"""Return propensity-scored nDCG@k as a fraction of the best attainable value.

    A hit at rank r counts 1 / (propensity log2(r + 1)). Each row is divided by its ideal
    *unweighted* discounted gain, as in :func:`ndcg_at_k`; then the sum over all rows is divided by
    the sum for a ranking that puts the true labels of each row first, the rarest at the top.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`psp_at_k`.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    propensities : array-like of shape (n_labels,)
        In (0, 1], from the *training* labels: see :func:`propensity`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows in both sums.
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
    .. math:: PSnDCG@k = \frac{\sum_i g_i / d_i}{\sum_i g_i^* / d_i}, \quad
              g_i = \sum_{r=1}^{k} \frac{[\,l_{ir} \text{ is true}\,]}{p_{l_{ir}} \log_2(r + 1)},
              \quad d_i = \sum_{r=1}^{\min(k, |y_i|)} \frac{1}{\log_2(r + 1)}

    with :math:`g_i^*` the value of :math:`g_i` for the best ranking. Source: [1]_, and the
    convention of the Extreme Classification Repository; the same as in napkinXC (at its default
    ``zero_division=0``) and in pyxclib.

    References
    ----------
    .. [1] Jain, Prabhu and Varma, "Extreme Multi-label Loss Functions for Recommendation, Tagging,
       Ranking & Other Missing Label Applications", KDD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import psndcg_at_k
    >>> Y = csr_array(np.array([[1, 1, 0], [1, 0, 1]]))
    >>> frequent_first = np.array([[0, 1, 2], [0, 2, 1]])
    >>> psndcg_at_k(Y, frequent_first, k=[1, 2], propensities=[0.5, 0.1, 0.25]).round(3)
    array([0.286, 0.777])
    """
    return measure(ratio_of(psndcg_of_rows), Y_true, topk, k, sample_weight, classes, propensities)


def psp_of_rows(
    hits: Hits, ks: tuple[int, ...], propensities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return gain and attainable gain of each row in PSP@k, each (n_samples, len(ks))."""
    flat = np.ones(hits.hit.shape[1])
    return _gains(hits, ks, propensities, flat), _attainable(hits, ks, propensities, flat)


def psndcg_of_rows(
    hits: Hits, ks: tuple[int, ...], propensities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return gain and attainable gain of each row in PSnDCG@k, each (n_samples, len(ks))."""
    discount = discounts(hits.hit.shape[1])
    ideal = best_gains(hits.true.counts, ks)
    return (
        _gains(hits, ks, propensities, discount) / ideal,
        _attainable(hits, ks, propensities, discount) / ideal,
    )


def _gains(
    hits: Hits, ks: tuple[int, ...], propensities: np.ndarray, discount: np.ndarray
) -> np.ndarray:
    """Return the weighted hits of each row among its first k, shape (n_samples, len(ks))."""
    # Only true labels are looked up: others may be padding, or (1-D Y_true) have no propensity.
    inverse = np.zeros(hits.hit.shape)
    inverse[hits.hit] = 1.0 / propensities[hits.positions[hits.hit]]
    return up_to(ks, inverse * discount)


def _attainable(
    hits: Hits, ks: tuple[int, ...], propensities: np.ndarray, discount: np.ndarray
) -> np.ndarray:
    """Return the largest `_gains` of any ranking: the rarest of the true labels first."""
    rows = hits.true.rows
    inverse = 1.0 / propensities[hits.true.columns]
    inverse = inverse[np.lexsort((-inverse, rows))]
    n_samples = len(hits.positions)
    # Not true.counts, which include classes that have no column.
    n_pairs = np.bincount(rows, minlength=n_samples)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)
    attainable = np.empty((n_samples, len(ks)))
    for column, k in enumerate(ks):
        first = rank < k
        gains = inverse[first] * discount[rank[first]]
        attainable[:, column] = np.bincount(rows[first], weights=gains, minlength=n_samples)
    return attainable


def gains_of(objective: str, label_counts: np.ndarray, n_samples: float) -> np.ndarray:
    """Return the gain of a hit of each label; probabilities times gains give the best order.

    Parameters
    ----------
    objective : {"precision", "propensity"}
        What the order is to be best for: precision@k counts hits alike, propensity-scored
        precision@k by the inverse of the label's propensity.
    label_counts : ndarray of shape (n_labels,)
        Training instances of each label, or their summed weights.
    n_samples : int or float
        Number of all training instances, or their summed weight.

    Returns
    -------
    ndarray of float64 of shape (n_labels,)
    """
    if objective == "precision":
        return np.ones(len(label_counts))
    return 1.0 / propensities_of(label_counts, n_samples)


def propensities_of(label_counts: np.ndarray, n_samples: float) -> np.ndarray:
    """Return the propensities of labels, also of fewer than three instances."""
    return propensity(label_counts, max(3, n_samples))

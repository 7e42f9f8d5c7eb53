"""Whether probabilities of pairs are what they say."""

from typing import Any

import numpy as np

from sklearn_xc._arguments import check_count
from sklearn_xc.metrics._pair_probabilities import PairProbabilities, find_pairs

STRATEGIES = ("quantile", "uniform")


def brier_score(
    Y_true: Any,
    Y_prob: Any,
    *,
    k: int | None = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    r"""Return the Brier score: the mean squared error of probabilities.

    The mean is over the scored pairs of an instance and a label: all of them, or those of the k
    best labels of each row. Smaller is better.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`.
    Y_prob : {sparse matrix, array-like} of shape (n_samples, n_labels), or tuple
        Probabilities in [0, 1] as returned by ``predict_proba``, or ``(indices, probabilities)``
        as returned by ``predict_proba_topk``, each of shape (n_samples, >= k), padded with -1 in
        `indices` and ranked in the given order: probabilities may rise along a row. A pair that is
        not stored was not scored and is left out, even if it is true. A stored zero counts.
    k : int, default=None
        How many of the best labels of each row to take; None takes all that have a score.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for each of their pairs.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

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
    expected_calibration_error : How far probabilities are off on average, by their size.

    Notes
    -----
    .. math:: B = \frac{1}{n} \sum_{(i, l)} (p_{il} - [\,l \in y_i\,])^2

    over the n scored pairs. Compare models only if equally many pairs are scored, such as at the
    same k: the mean over more pairs has more easy zeros. For one class per row, it is not the
    multi-class score, which is a sum over labels. Source: [1]_.

    References
    ----------
    .. [1] Brier, "Verification of Forecasts Expressed in Terms of Probability", Monthly Weather
       Review 78 (1), 1950.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import brier_score
    >>> Y = csr_array(np.array([[1, 0, 1], [0, 1, 0]]))
    >>> Y_prob = csr_array(np.array([[0.9, 0.5, 0.0], [0.0, 0.8, 0.2]]))
    >>> round(brier_score(Y, Y_prob), 4)
    0.085
    >>> round(brier_score(Y, Y_prob, k=1), 4)
    0.025
    """
    return brier_of_pairs(find_pairs(Y_true, Y_prob, k, sample_weight, classes))


def expected_calibration_error(
    Y_true: Any,
    Y_prob: Any,
    *,
    k: int | None = None,
    n_bins: int = 15,
    strategy: str = "quantile",
    sample_weight: Any = None,
    classes: Any = None,
) -> float:
    r"""Return the expected calibration error: how much probabilities differ from frequencies.

    The scored pairs are binned by their probability. In each bin, the mean probability is compared
    with the share of pairs that are true; the result is the mean absolute difference, with each
    bin weighted by its number of pairs. Smaller is better.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`.
    Y_prob : {sparse matrix, array-like} of shape (n_samples, n_labels), or tuple
        Probabilities, as in :func:`brier_score`; pairs without a score are left out.
    k : int, default=None
        How many of the best labels of each row to take: 1 tests whether the first label is right
        as often as the model says. None takes all that have a score.
    n_bins : int, default=15
        Number of bins, up to a million.
    strategy : {"quantile", "uniform"}, default="quantile"
        "quantile" makes bins with equally many pairs (equal probabilities stay together),
        "uniform" bins of equal width.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for each of their pairs.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

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
    calibration_by_frequency : The same for rare and for frequent labels.

    Notes
    -----
    .. math:: ECE = \sum_b \frac{n_b}{n} \, | \bar y_b - \bar p_b |

    Source: [1]_ for bins of equal width; [2]_ for bins with equally many pairs, the default, since
    most probabilities are tiny and would share one bin. The bins are those of
    :func:`sklearn.calibration.calibration_curve`, except that an edge between two probabilities is
    the smaller of them. Chance alone makes the error positive, even for a calibrated model: about
    :math:`\sqrt{2 v n_{bins} / (\pi n)}` with v the mean of p (1 - p).

    References
    ----------
    .. [1] Naeini, Cooper and Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian
       Binning", AAAI 2015.
    .. [2] Nguyen and O'Connor, "Posterior Calibration and Exploratory Analysis for Natural Language
       Processing Models", EMNLP 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.metrics import expected_calibration_error
    >>> y = np.array([0, 0, 1, 1])
    >>> first = np.array([[0], [0], [0], [1]])
    >>> probability = np.array([[0.6], [0.6], [0.6], [0.9]])
    >>> round(expected_calibration_error(y, (first, probability), n_bins=2), 3)
    0.075
    """
    n_bins = check_bins(n_bins, strategy)
    pairs = find_pairs(Y_true, Y_prob, k, sample_weight, classes)
    return error_of_pairs(pairs, n_bins, strategy)


def check_bins(n_bins: Any, strategy: Any) -> int:
    """Return `n_bins` as an int, and raise ValueError for what is no number or no strategy."""
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise ValueError(f"strategy: expected one of {list(STRATEGIES)}. Got {strategy!r}.")
    return check_count(n_bins, "n_bins", most=1_000_000)


def mean_of_pairs(values: np.ndarray, pairs: PairProbabilities) -> float:
    """Return the weighted mean of a number for each pair."""
    return float(pairs.weight @ values / pairs.weight.sum())


def brier_of_pairs(pairs: PairProbabilities) -> float:
    """Return the Brier score of some pairs."""
    return mean_of_pairs((pairs.probability - pairs.is_true) ** 2, pairs)


def error_of_pairs(pairs: PairProbabilities, n_bins: int, strategy: str) -> float:
    """Return the expected calibration error of some pairs."""
    order = np.argsort(pairs.probability)
    probability, weight = pairs.probability[order], pairs.weight[order]
    mass = np.cumsum(weight)
    # The largest probability of each bin but the last.
    if strategy == "quantile":
        wanted = mass[-1] * np.arange(1, n_bins) / n_bins
        edges = probability[np.searchsorted(mass, wanted)]
    else:
        edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    # In each bin the weights cancel: what is left is its sum of truth less probability.
    excess = np.cumsum(weight * (pairs.is_true[order] - probability))
    ends = np.r_[np.searchsorted(probability, edges, side="right"), len(probability)]
    total = np.where(ends > 0, excess[ends - 1], 0.0)
    return float(np.abs(np.diff(total, prepend=0.0)).sum() / mass[-1])

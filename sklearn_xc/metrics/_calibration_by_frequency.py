"""Whether probabilities are what they say, for rare and for frequent labels."""

from typing import Any

import numpy as np

from sklearn_xc._frequency_groups import check_length, frequency_groups
from sklearn_xc.metrics._calibration import (
    brier_of_pairs,
    check_bins,
    error_of_pairs,
    mean_of_pairs,
)
from sklearn_xc.metrics._pair_probabilities import PairProbabilities, find_pairs


def calibration_by_frequency(
    Y_true: Any,
    Y_prob: Any,
    label_counts: Any,
    *,
    k: int | None = None,
    n_bins: int = 15,
    strategy: str = "quantile",
    n_groups: int = 10,
    sample_weight: Any = None,
    classes: Any = None,
) -> dict[str, np.ndarray]:
    """Return how well probabilities are calibrated for rare and for frequent labels.

    Labels are divided into groups of similar training frequency, and the scored pairs of each
    group are measured separately. This shows errors of opposite sign on rare and on frequent
    labels, which cancel out in a single number.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`.
    Y_prob : {sparse matrix, array-like} of shape (n_samples, n_labels), or tuple
        Probabilities, as in :func:`brier_score`; pairs without a score are left out.
    label_counts : array-like of int of shape (n_labels,)
        Training instances of each label: ``label_counts_`` of a fitted estimator.
    k : int, default=None
        How many of the best labels of each row to take; None takes all that have a score.
    n_bins : int, default=15
        Number of bins for the calibration error of each group, up to a million.
    strategy : {"quantile", "uniform"}, default="quantile"
        How to bin, as in :func:`expected_calibration_error`.
    n_groups : int, default=10
        Number of groups of about equally many labels, before groups that end at the same frequency
        are merged.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, for each of their pairs.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    dict of str to ndarray of shape (n_groups,)
        A column for each key, rarest group first, ready for ``pandas.DataFrame``:

        * ``lower``, ``upper``: least and largest training frequency in the group. Labels without a
          training instance are a group of their own, from 0 to 0, where there are any.
        * ``n_labels``: labels of the group.
        * ``n_pairs``, ``n_positives``: scored pairs, and those that are true (not weighted).
        * ``mean_probability``, ``share_positive``: equal where probabilities are right on average.
        * ``brier_score``, ``calibration_error``: as the functions of these names.

        Averages are NaN for a group without scored pairs.

    Raises
    ------
    ValueError
        If an argument is invalid; the message names it and says what was expected.
    TypeError
        For a masked array.

    See Also
    --------
    sklearn_xc.inspection.LabelFrequencyDisplay : Precision and recall of such groups, as a figure.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.metrics import calibration_by_frequency
    >>> Y = csr_array(np.array([[1, 0, 1], [0, 1, 0]]))
    >>> Y_prob = csr_array(np.array([[0.9, 0.5, 0.0], [0.0, 0.8, 0.2]]))
    >>> found = calibration_by_frequency(Y, Y_prob, label_counts=[100, 7, 3], n_groups=2)
    >>> found["upper"], found["n_pairs"]
    (array([  7, 100]), array([3, 1]))
    >>> found["mean_probability"]
    array([0.5, 0.9])
    """
    who = "calibration_by_frequency"
    n_bins = check_bins(n_bins, strategy)
    group, lower, upper = frequency_groups(label_counts, n_groups, who)
    pairs = find_pairs(Y_true, Y_prob, k, sample_weight, classes)
    check_length(len(group), pairs.true.n_labels, (pairs.labels, pairs.true.columns), who)
    group = (group + 1) % (len(lower) + 1)  # labels without an instance first
    n_labels = np.bincount(group, minlength=len(lower) + 1)
    wanted = np.flatnonzero(n_labels)
    # Rows of weight 0 are as if they were not there.
    of_pair = np.where(pairs.weight > 0, group[pairs.labels], -1)
    order = np.argsort(of_pair, kind="stable")
    first, last = (np.searchsorted(of_pair[order], wanted, side) for side in ("left", "right"))
    parts = [_part(pairs, order[slice(*ends)]) for ends in zip(first, last, strict=True)]
    columns = {
        "lower": np.r_[0, lower][wanted],
        "upper": np.r_[0, upper][wanted],
        "n_labels": n_labels[wanted],
        "n_pairs": np.array([len(part.labels) for part in parts]),
        "n_positives": np.array([np.count_nonzero(part.is_true) for part in parts]),
    }
    averages = {
        "mean_probability": lambda part: mean_of_pairs(part.probability, part),
        "share_positive": lambda part: mean_of_pairs(part.is_true, part),
        "brier_score": brier_of_pairs,
        "calibration_error": lambda part: error_of_pairs(part, n_bins, strategy),
    }
    for name, average in averages.items():
        columns[name] = np.array([average(part) if len(part.labels) else np.nan for part in parts])
    return columns


def _part(pairs: PairProbabilities, kept: np.ndarray) -> PairProbabilities:
    return PairProbabilities(
        pairs.labels[kept],
        pairs.probability[kept],
        pairs.is_true[kept],
        pairs.weight[kept],
        pairs.true,
    )

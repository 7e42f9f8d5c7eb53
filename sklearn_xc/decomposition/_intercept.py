"""Intercepts: where they start, and the answer for an instance without features.

In dense data, intercepts are trained beside the label vectors. They start at a hundredth of the
log frequency of their label and take smaller steps where labels are many, since every label is a
rival to all instances. In sparse data, what instances have in common is in their vectors already:
trained intercepts improve no answer, and they stay 0. An instance without features is answered by
the log odds of the labels, see ``_blank_rows``.
"""

import math
from typing import Any

import numpy as np

from sklearn_xc._input.blank_rows import LabelFrequencies, is_blank
from sklearn_xc.decomposition._training_set import TrainingSet

#: Fraction of the log frequencies at which intercepts start.
_START = 0.01
#: Intercepts take steps at this over the root of the number of labels, times the learning rate.
_RATE = 3.0
_LEAST_SHARE = np.finfo(np.float64).tiny


def intercept_rate(n_labels: int) -> float:
    """Return the rate of intercepts, relative to the learning rate."""
    return min(1.0, _RATE / math.sqrt(n_labels))


def frequencies_of(training: TrainingSet) -> LabelFrequencies:
    """Return how often labels are on the training instances."""
    bounds, labels = training.labels_of(training.rows)
    of_pair = np.repeat(np.arange(len(training.rows)), np.diff(bounds))
    blank = is_blank(training.instances)[training.rows]
    return LabelFrequencies.of(of_pair, labels, training.weight, blank, training.n_labels)


def first_intercepts(frequencies: LabelFrequencies, dtype: np.dtype) -> np.ndarray:
    """Return the intercepts at which training starts."""
    return (_START * _log_shares(frequencies.counts, frequencies)).astype(dtype)


def log_odds_of_blank(model: Any) -> np.ndarray:
    """Return the log odds that an instance without features has each label of a fitted model."""
    frequencies = model._frequencies
    counts = frequencies.of_blank()
    log_odds = _log_shares(counts, frequencies)
    log_odds -= _log_shares(frequencies.total - counts, frequencies)
    return log_odds.astype(model.coef_.dtype)


def _log_shares(weights: np.ndarray, frequencies: LabelFrequencies) -> np.ndarray:
    """Return logarithms of shares of all instances, at least half that of the rarest label."""
    least = 0.5 * frequencies.counts[frequencies.counts > 0].min()
    shares = np.maximum(weights, least) / frequencies.total
    return np.log(np.maximum(shares, _LEAST_SHARE))

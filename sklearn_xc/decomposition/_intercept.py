"""Where intercepts start, and what an instance without features is answered by.

Two kinds of data want two kinds of intercepts:

* Where instances are dense, an intercept is a part of what there is to learn. It starts at a
  hundredth of the log frequency of its label, and is trained beside its vector. A label is a rival
  to all instances, and with the rate of the vectors the intercepts of many labels swing.
* Where instances are sparse, what they have in common is in their vectors already: trained along,
  intercepts make no answer better. They stay 0.

An instance without features is answered by the log odds of its labels, see ``_blank_rows``.
"""

import math

import numpy as np

from sklearn_xc._blank_rows import LabelFrequencies, is_blank
from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.solvers.moving_rows import entry_places

#: What of the log frequencies intercepts start at.
_START = 0.01
#: The rate of intercepts, as a share of that of vectors, is this divided by the root of the number
#: of labels, and 1 for few.
_RATE = 3.0
#: Shares below it, of weights of very different size, count as it.
_LEAST_SHARE = np.finfo(np.float64).tiny


def intercept_rate(n_labels: int) -> float:
    """Return the rate of intercepts, as a share of that of vectors."""
    return min(1.0, _RATE / math.sqrt(n_labels))


def frequencies_of(training: TrainingSet) -> LabelFrequencies:
    """Return how often labels are on the training instances."""
    rows, sets = training.rows, training.sets
    starts, ends = sets.indptr[rows], sets.indptr[rows + 1]
    at, _ = entry_places(starts, ends - starts)
    of_pair = np.repeat(np.arange(len(rows)), ends - starts)
    blank = is_blank(training.instances)[rows]
    return LabelFrequencies.of(of_pair, sets.labels[at], training.weight, blank, training.n_labels)


def first_intercepts(frequencies: LabelFrequencies, dtype: np.dtype) -> np.ndarray:
    """Return where trained intercepts start; they rise with the frequency."""
    logs = _logs_of_shares(frequencies.counts, frequencies)
    return (_START * logs).astype(dtype)


def log_odds_of_blank(frequencies: LabelFrequencies, dtype: np.dtype) -> np.ndarray:
    """Return the log odds that an instance without features has each label."""
    counts = frequencies.of_blank()
    logs = _logs_of_shares(counts, frequencies)
    return (logs - _logs_of_shares(frequencies.total - counts, frequencies)).astype(dtype)


def _logs_of_shares(weights: np.ndarray, frequencies: LabelFrequencies) -> np.ndarray:
    """Return logarithms of shares, at least that of half the rarest label that there is."""
    least = 0.5 * frequencies.counts[frequencies.counts > 0].min()
    # Shares are the same, to the last bit, after several passes over the same instances.
    shares = np.maximum(weights, least) / frequencies.total
    return np.log(np.maximum(shares, _LEAST_SHARE))

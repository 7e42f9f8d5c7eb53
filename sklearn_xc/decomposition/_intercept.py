"""Where intercepts start, and what is said of an instance without features.

Two kinds of data want two kinds of intercepts:

* Where instances are dense, an intercept is a part of what there is to learn. It starts at a
  hundredth of the log frequency of its label, and is trained beside its vector. A label is a rival
  to all instances, and with the rate of the vectors the intercepts of many labels swing.
* Where instances are sparse, what they have in common is in their vectors already: trained along,
  intercepts make no answer better. They stay 0.

An instance without features, a text of which no word is known, has nothing to be scored by. What is
known of it is how frequent labels are, and trained intercepts are not that: a frequent label is
pushed down by all instances that it is a rival to. So it is answered by the frequencies themselves.
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.solvers.batch_sgd import entry_places

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


@dataclass(frozen=True)
class Frequencies:
    """How often labels are, in what training has seen.

    Attributes
    ----------
    labels : ndarray of float64 of shape (n_labels,)
        Summed weights of the instances of each label.
    total : float
        Of all instances.
    """

    labels: np.ndarray
    total: float

    @classmethod
    def of(cls, examples: TrainingSet, n_labels: int) -> "Frequencies":
        """Return those of some training instances."""
        rows, sets = examples.rows, examples.sets
        starts, ends = sets.indptr[rows], sets.indptr[rows + 1]
        at, _ = entry_places(starts, ends - starts)
        weight = np.repeat(examples.weight, ends - starts)
        labels = np.bincount(sets.labels[at], weights=weight, minlength=n_labels)
        return cls(labels, float(examples.weight.sum()))

    def plus(self, others: "Frequencies") -> "Frequencies":
        """Return those of both."""
        return Frequencies(self.labels + others.labels, self.total + others.total)

    def starts(self, dtype: np.dtype) -> np.ndarray:
        """Return where trained intercepts start; they rise with the frequency."""
        return (_START * self._logs_of_shares(self.labels)).astype(dtype)

    def log_odds(self, dtype: np.dtype) -> np.ndarray:
        """Return the log odds of each label: above 0 if more than half of the instances have it.

        They rise with the frequency.
        """
        logs = self._logs_of_shares(self.labels) - self._logs_of_shares(self.total - self.labels)
        return logs.astype(dtype)

    def _logs_of_shares(self, weights: np.ndarray) -> np.ndarray:
        """Return logarithms of shares, at least that of half the rarest label that there is."""
        least = 0.5 * self.labels[self.labels > 0].min()
        # Shares are the same, to the last bit, after several passes over the same instances.
        shares = np.maximum(weights, least) / self.total
        return np.log(np.maximum(shares, _LEAST_SHARE))

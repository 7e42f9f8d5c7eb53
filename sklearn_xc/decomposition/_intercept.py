"""Intercepts: multiples of the log frequencies of labels, to stay there or to start training from.

An instance without features, a text of which no word is known, scores what the intercepts are, and
should get the frequent labels. Two kinds of data want two kinds of intercepts:

* Where instances are sparse, what they have in common is in their vectors already. Trained along,
  intercepts make no answer better, and end up in another order than the frequencies: a frequent
  label is pushed down by all instances that it is a rival to (on cooking_stackexchange, the rank
  correlation comes to -0.76). So they are not trained. They are so small that they only order what
  ties otherwise: a hundredth of the log frequencies takes half a point of P@1.
* Where instances are dense, an intercept is a part of what there is to learn: iris is classified
  with an accuracy of 0.93 instead of 0.76. It starts at a hundredth of the log frequencies, and is
  trained as the vectors are.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_xc.decomposition._training_set import TrainingSet
from sklearn_xc.solvers.batch_sgd import entry_places

#: Of the log frequencies, for intercepts that are trained and that are not.
_START, _TIE_BREAK = 0.01, 1e-5
#: Shares below it, of weights of very different size, count as it.
_LEAST_SHARE = np.finfo(np.float64).tiny


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

    def intercepts(self, dtype: np.dtype, *, are_trained: bool) -> np.ndarray:
        """Return intercepts, or where they start; they rise with the frequency.

        A label without instances is taken to be half as frequent as the rarest of the others.
        """
        is_seen = self.labels > 0
        half = 0.5 * self.labels[is_seen].min()
        # Shares are the same, to the last bit, after several passes over the same instances.
        shares = np.where(is_seen, self.labels, half) / self.total
        multiple = _START if are_trained else _TIE_BREAK
        return (multiple * np.log(np.maximum(shares, _LEAST_SHARE))).astype(dtype)

"""How held-out instances judge weights: by log-loss, or where they have label sets by rank.

Where each label of an instance is an observation, the log-loss says how well the shares of its
labels are known. That is a detour to the right first label: training goes on to fit shares while
the first label gets worse, or stops at the first scores that are too confident though the order of
labels still gets better. The rank of an instance's first label says that, whatever the scale of
scores.
"""

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.weights.class_weights import ClassWeights

#: Classes at most, where ranks judge. By ranks, P@1 on a sixteenth of the rows of three sets with
#: 151 to 943 labels is higher by 2.8 to 6.2 (Bibtex, Cooking), 1.4 and -0.5 (Delicious), on a
#: quarter by 0.4 to 6.5; of four sets with 3,220 to 5,695, where few instances tell one class from
#: the next, it is between 1.3 lower and 0.5 higher. Each of the sets is judged as the others ask.
_MOST_CLASSES = 2048
#: Of the log-loss, added to what ranks say: it decides where they are all perfect, or all equal.
_SHARE = 0.01


def judged_by_rank(pairs: Pairs, n_classes: int) -> bool:
    """Tell whether ranks judge: where an instance has several classes, but there are not too many.

    Parameters
    ----------
    pairs : Pairs
        Of all instances, not merged: instances of one class each that are equal are no label sets.
    n_classes : int
        K.
    """
    return n_classes <= _MOST_CLASSES and len(np.unique(pairs.rows)) < len(pairs.rows)


class Judge:
    """Pairs of held-out instances.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
        Instances.
    pairs : Pairs
        All pairs of those held out.
    by_rank : bool
        Whether ranks judge.
    n_jobs : int or None
        Threads.
    """

    def __init__(self, X: CsrRows, pairs: Pairs, by_rank: bool, n_jobs: int | None) -> None:
        self._pairs, self._by_rank = pairs, by_rank
        self._asked = X, pairs.rows, pairs.classes, n_jobs
        # The first pair of each instance stands for it.
        rows, self._first, at = np.unique(pairs.rows, return_index=True, return_inverse=True)
        self._weight = np.zeros(len(rows))
        np.maximum.at(self._weight, at, pairs.weight)

    def __call__(self, weights: ClassWeights) -> tuple[float, float]:
        """Return what judges, lower is better, and the mean log-loss of the pairs.

        By rank it is one less the mean of 1 / rank, of the best of an instance's classes among all
        that are not its own, plus a hundredth of the log-loss.
        """
        if not self._by_rank:
            log_loss = self.log_loss(weights)
            return log_loss, log_loss
        above, losses = weights.ranks_and_losses(*self._asked)
        found = np.average(1.0 / (1.0 + above[self._first]), weights=self._weight)
        log_loss = self._mean(losses)
        return float(1.0 - found) + _SHARE * log_loss, log_loss

    def log_loss(self, weights: ClassWeights) -> float:
        """Return the exact mean log-loss of the pairs."""
        return self._mean(weights.log_losses(*self._asked))

    def _mean(self, losses: np.ndarray) -> float:
        return float(np.average(losses, weights=self._pairs.weight))

"""How held-out instances judge weights: by their log-loss at the factor on scores that suits them.

On few instances training soon makes scores too confident, which costs log-loss where the order of
the classes still gets better. A factor below 1 on all scores leaves the order as it is and takes
that cost away: so what is compared is what training is worth once the factor is in the model.

Where instances have sets of labels, the log-loss of each label rewards the right shares among the
labels of an instance. What judges is the log-loss of their sum, the probability that a label drawn
is one of the instance's: it is what the best label is right by.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.softmax.factor import best_factor
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.weights.class_weights import ClassWeights

#: Of factors. Scores of too little confidence are not multiplied, as the few instances that judge
#: are often wrong there: no weights may count as good that need more than the larger bound.
_BOUNDS = 0.05, 1.5
#: Losses that are kept of each epoch, at most, for the standard error of differences.
_MOST_KEPT = 2048


class Verdict(NamedTuple):
    """What held-out instances say of weights.

    Attributes
    ----------
    loss : float
        What judges: the mean log-loss of pairs, or of the sets of instances, at `best`.
    log_loss : float
        The mean log-loss of pairs, at `factor`.
    factor : float
        What scores are to be multiplied by: `best`, but at most 1.
    best : float
        The factor on scores with the lowest log-loss of pairs.
    each : ndarray of float64
        The losses of some pairs or instances, the same ones each time.
    """

    loss: float
    log_loss: float
    factor: float
    best: float
    each: np.ndarray


class Judge:
    """Pairs of held-out instances.

    Parameters
    ----------
    X : CsrRows of shape (n, n_features)
        Instances.
    pairs : Pairs
        Of those held out. All their scores are in memory together.
    by_instance : bool
        Whether an instance is judged by the summed probability of its classes.
    n_jobs : int or None
        Threads.
    """

    def __init__(
        self,
        X: CsrRows,
        pairs: Pairs,
        *,
        by_instance: bool,
        n_jobs: int | None = None,
    ) -> None:
        rows, self._at = np.unique(pairs.rows, return_inverse=True)
        self._X, self._pairs, self._n_jobs = X.take(rows), pairs, n_jobs
        self._by_instance = by_instance
        self.weight = pairs.weight
        if by_instance:
            self.weight = np.zeros(len(rows))
            np.maximum.at(self.weight, self._at, pairs.weight)

    def __call__(self, weights: ClassWeights, first: float = 1.0) -> Verdict:
        """Return the verdict on weights; the search for a factor starts at `first`.

        Raises
        ------
        FloatingPointError
            If scores are not finite.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the loss tells
            return self._judge(weights, first)

    def _judge(self, weights: ClassWeights, first: float) -> Verdict:
        scores, pairs, at = weights.scores(self._X, self._n_jobs), self._pairs, self._at
        scores -= scores.max(axis=1, keepdims=True)
        best, found = best_factor(
            scores, at, pairs.classes, pairs.weight, first=first, bounds=_BOUNDS
        )
        if found == np.inf:  # all scores are equal
            best = 1.0
        own = scores[at, pairs.classes].astype(np.float64)
        totals = _log_totals(scores, best)
        each = totals[at] - best * own
        factor, applied = min(1.0, best), each
        if best > 1.0:
            applied = _log_totals(scores, 1.0)[at] - own
        log_loss = float(np.average(applied, weights=pairs.weight))
        if self._by_instance:
            own *= best
            highest = np.full(len(totals), -np.inf)
            np.maximum.at(highest, at, own)
            each = totals - highest - np.log(np.bincount(at, np.exp(own - highest[at])))
        loss = float(np.average(each, weights=self.weight))
        return Verdict(loss, log_loss, factor, best, each[:_MOST_KEPT])


def _log_totals(scores: np.ndarray, factor: float) -> np.ndarray:
    """Return the logarithm of the summed powers of each row, of scores of at most 0."""
    powers = scores * scores.dtype.type(factor)
    return np.log(np.exp(powers, out=powers).sum(axis=1, dtype=np.float64))


def standard_error(difference: np.ndarray, weight: np.ndarray) -> float:
    """Return the standard error of a weighted mean over instances.

    Parameters
    ----------
    difference : ndarray of shape (m,)
        What some of the instances have.
    weight : ndarray of shape (n,)
        Of all of them, positive; the first m are those of `difference`.
    """
    known = weight[: len(difference)] / weight[: len(difference)].sum()
    spread = float(known @ (difference - known @ difference) ** 2)
    share = weight / weight.sum()
    return float(np.sqrt(spread * (share @ share)))

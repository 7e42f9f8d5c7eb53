"""How sure a model may be of its best class, learned from instances held out of its training.

A softmax that was stopped early has about the right temperature, and yet its best class may be
right in 72 of 100 instances where it says 98: where several classes would do, or where the class of
new instances is one that no training instance had. No temperature mends that. So the probability p
of the best class becomes

    1 / (1 + exp(-(a log p - b log(1 - p) + c)))

and all others share what is left in the proportions that they had. The log-loss of an instance is
that of whether the best class is right, and if it is not, of which other class is. The map changes
the first part alone, and is fitted to it: so it cannot raise the log-loss of what it is fitted to.

Source: the map is that of [1]_. It differs in that it is drawn to what leaves p as it is, since few
instances are held out, and in that the order of classes stays. A temperature comes first, [2]_.

References
----------
.. [1] M. Kull, T. Silva Filho and P. Flach, "Beta calibration: a well-founded and easily
   implemented improvement on logistic calibration for binary classifiers", AISTATS 2017.
.. [2] C. Guo et al., "On calibration of modern neural networks", ICML 2017.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._blank_rows import is_blank
from sklearn_xc._data import CsrRows
from sklearn_xc._declared_state import Number, Numbers, declares
from sklearn_xc.kernels.prediction.class_scores import log_normalisers, topk_scores
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.solvers.bounded_logistic import fit_bounded_logistic
from sklearn_xc.weights.class_weights import ClassWeights

#: What leaves probabilities as they are.
_AS_IT_IS = (1.0, 1.0, 0.0)
#: Temperatures that are tried.
_TEMPERATURES = 2.0 ** (np.arange(-4, 5) / 4)
#: What is added to the log-loss, for each squared unit by which a number of the map differs from
#: the above, and the logarithm of the temperature from 0.
_PULL, _PULL_TO_ONE = 4.0, 200.0
#: By how much the summed log-loss has to fall, that included, or else all stays as it is: with
#: less, held-out instances may say no more than which of them were drawn. Of 24 pairs of a set and
#: an estimator, the nine that gain more than 20 are all better on new instances, by 0.03 to 0.32 in
#: mean log-loss; those that gain less than 8 move by up to 0.02, and some get worse.
_LEAST_GAIN = 10.0
#: Logarithms of p and 1 - p are no lower.
_LOWEST = -30.0
#: The log-odds of the best class against the second are no lower, so that float32 tells them apart.
_AHEAD = 1e-5
#: Scores of the held-out instances that are learned from, about, and the fewest such instances.
_LEARNED_SCORES, _LEAST_LEARNED = 2**25, 512
#: Scores that are looked at together.
ROOM_OF_SCORES = 2**22


@declares(temperature=Number(least=0), best=Numbers(3))
@dataclass(frozen=True)
class Confidence:
    """From scores to probabilities.

    Attributes
    ----------
    temperature : float
        By which scores are divided.
    best : tuple of float
        a, b and c of the map of the best class.
    """

    temperature: float = 1.0
    best: tuple[float, float, float] = _AS_IT_IS

    @property
    def is_plain(self) -> bool:
        """Whether probabilities are the softmax of scores."""
        return self.temperature == 1.0 and self.best == _AS_IT_IS

    def log_proba(self, scores: np.ndarray, weights: ClassWeights) -> None:
        """Turn scores into log-probabilities, in place.

        The scores of rows without features are logarithms of frequencies already, which stay; and
        no class of several that tie for the best is any surer than the others.

        Parameters
        ----------
        scores : ndarray of shape (n, n_classes)
            Of all classes, of the type of the weights.
        weights : ClassWeights
            That made them. Classes without a training instance have no probability.
        """
        unseen = weights.unseen
        if scores.shape[1] - unseen.size < 2 or self.is_plain:
            if unseen.size < scores.shape[1]:
                scores[:, unseen] = -np.inf
            normalisers = np.empty(len(scores))
            log_normalisers(scores, normalisers)
            scores -= normalisers[:, None].astype(scores.dtype)
            return
        size = max(1, ROOM_OF_SCORES // scores.shape[1])
        for first in range(0, len(scores), size):
            self._adjust(scores[first : first + size], weights)

    def _adjust(self, scores: np.ndarray, weights: ClassWeights) -> None:
        rows = np.arange(len(scores))
        is_learned = ~(scores == weights.prior).all(axis=1)
        scores[:, weights.unseen] = -np.inf
        scores[is_learned] /= scores.dtype.type(self.temperature)
        best = scores.argmax(axis=1)
        first = scores[rows, best].astype(np.float64)
        scores[rows, best] = -np.inf
        second = scores.max(axis=1).astype(np.float64)
        rest = np.empty(len(scores))
        log_normalisers(scores, rest)
        odds = first - rest
        mapped = _mapped_odds(odds, self.best)
        odds = np.where(is_learned & (first > second), mapped, odds)
        odds = np.where(first > second, np.maximum(odds, second - rest + _AHEAD), odds)
        scores -= (rest + np.logaddexp(0.0, odds))[:, None].astype(scores.dtype)
        scores[rows, best] = -np.logaddexp(0.0, -odds)


class SureWeights(ClassWeights):
    """Weights of classes that say how probable the best ones are."""

    def topk_log_proba(
        self, X: CsrRows, k: int, confidence: Confidence, n_jobs: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best classes of each row, as ``topk`` does, and their log-probabilities."""
        labels = np.empty((X.shape[0], k), np.int64)
        found = np.empty((X.shape[0], k), self.coef.dtype)

        def task(begin: int, end: int, scores: np.ndarray) -> None:
            ranked = scores.copy() if self.unseen.size else scores
            ranked[:, self.unseen] = -np.inf
            topk_scores(ranked, k, labels[begin:end], found[begin:end])
            confidence.log_proba(scores, self)
            found[begin:end] = np.take_along_axis(scores, labels[begin:end], axis=1)

        self._map_scores(task, X, n_jobs)
        return labels, found


def learn_confidence(
    weights: ClassWeights, X: CsrRows, pairs: Pairs, n_jobs: int | None
) -> Confidence:
    """Return the confidence that suits held-out instances.

    Parameters
    ----------
    weights : ClassWeights
        Trained without them. Its ``unseen`` classes cannot be right: of an instance of such a class
        it is only asked that the best one of the others is not sure.
    X : CsrRows of shape (n, n_features)
        Instances.
    pairs : Pairs
        All pairs of those held out, sorted by content.
    n_jobs : int or None
        Threads.
    """
    n_classes = len(weights.coef)
    is_seen = np.ones(n_classes, bool)
    is_seen[weights.unseen] = False
    if is_seen.sum() < 2:
        return Confidence()
    held = _Held.of(weights, X, pairs, is_seen, n_jobs)
    if not held.weight.any():
        return Confidence()
    plain = int(np.flatnonzero(_TEMPERATURES == 1.0)[0])
    of_softmax = _loss_of_softmax(held.odds[:, plain], held) + held.loss_of_others[plain]
    least, best = of_softmax - _LEAST_GAIN, Confidence()
    for at, temperature in enumerate(_TEMPERATURES):
        numbers, of_best = _fit_map(held.odds[:, at], held)
        loss = of_best + held.loss_of_others[at] + _PULL_TO_ONE * np.log(temperature) ** 2
        if loss < least:
            least, best = loss, Confidence(float(temperature), numbers)
    return best


@dataclass(frozen=True)
class _Held:
    """What the softmax says of held-out instances, at each temperature.

    Attributes
    ----------
    odds : ndarray of float64 of shape (n, n_temperatures)
        Log-odds of the best class.
    weight, right : ndarray of float64 of shape (n,)
        Summed weights of the instance's pairs, and of those that name its best class.
    loss_of_others : ndarray of float64 of shape (n_temperatures,)
        Summed log-loss of all other pairs, of the class among those that are not the best.
    """

    odds: np.ndarray
    weight: np.ndarray
    right: np.ndarray
    loss_of_others: np.ndarray

    @classmethod
    def of(
        cls,
        weights: ClassWeights,
        X: CsrRows,
        pairs: Pairs,
        is_seen: np.ndarray,
        n_jobs: int | None,
    ) -> "_Held":
        n_classes = len(weights.coef)
        rows, place = _by_content(pairs.rows)
        named = np.flatnonzero(~is_blank(X)[rows])[: _n_learned(n_classes)]
        at = np.full(len(rows), -1)
        at[named] = np.arange(len(named))
        place, rows = at[place], rows[named]
        inside = np.flatnonzero(place >= 0)
        pairs, place = pairs.take(inside), place[inside]
        odds = np.empty((len(rows), len(_TEMPERATURES)))
        right, of_others = np.zeros(len(rows)), np.zeros(len(_TEMPERATURES))
        by_row = np.argsort(place, kind="stable")
        size = max(1, ROOM_OF_SCORES // n_classes)
        for first in range(0, len(rows), size):
            part = slice(*np.searchsorted(place[by_row], (first, first + size)))
            own = by_row[part]
            scores = weights.scores(X.take(rows[first : first + size]), n_jobs)
            scores = scores.astype(np.float64)
            scores[:, ~is_seen] = -np.inf
            i, classes, weight = place[own] - first, pairs.classes[own], pairs.weight[own]
            best = scores.argmax(axis=1)
            is_best = classes == best[i]
            right[first : first + len(scores)] = np.bincount(
                i, weight * is_best, minlength=len(scores)
            )
            other = is_seen[classes] & ~is_best
            here = np.arange(len(scores))
            top = scores[here, best]
            scores[here, best] = -np.inf
            rest = np.empty(len(scores))
            for t, temperature in enumerate(_TEMPERATURES):
                tempered = scores / temperature
                log_normalisers(tempered, rest)
                odds[first : first + len(scores), t] = top / temperature - rest
                losses = rest[i] - tempered[i, classes]
                of_others[t] += np.sum(weight[other] * losses[other])
        total = np.bincount(place, pairs.weight, minlength=len(rows))
        return cls(odds, total, right, of_others)


def _by_content(row_of_pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of pairs in the order in which they come, and the place of each pair's."""
    rows, first, place = np.unique(row_of_pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rows[order], rank[place]


def _n_learned(n_classes: int) -> int:
    return max(_LEAST_LEARNED, _LEARNED_SCORES // n_classes)


def _features(odds: np.ndarray) -> np.ndarray:
    """Return log(p), -log(1 - p) and 1 of log-odds, of shape (n, 3)."""
    log_p, log_others = -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)
    return np.column_stack(
        [np.maximum(log_p, _LOWEST), -np.maximum(log_others, _LOWEST), np.ones(len(odds))]
    )


def _mapped_odds(odds: np.ndarray, numbers: tuple[float, float, float]) -> np.ndarray:
    return np.einsum("nj,j->n", _features(odds), np.array(numbers))


def _loss_of_softmax(odds: np.ndarray, held: _Held) -> float:
    """Return the log-loss of whether the best class is right."""
    return float(np.sum(held.weight * np.logaddexp(0.0, odds) - held.right * odds))


def _fit_map(odds: np.ndarray, held: _Held) -> tuple[tuple[float, float, float], float]:
    """Return a, b and c, the former two not below 0, and their log-loss with what is added."""
    found, loss = fit_bounded_logistic(
        _features(odds), held.right, held.weight, np.array(_AS_IT_IS),
        pull=np.full(3, 2.0 * _PULL), lower=np.array([0.0, 0.0, -np.inf]),
    )  # fmt: skip
    a, b, c = (float(number) for number in found)
    return (a, b, c), loss

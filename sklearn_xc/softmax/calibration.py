"""Probabilities that hold on new instances, fitted to those that the search for a rate holds out.

Scores are divided by a temperature [1]_. This does not make the best class right as often as its
probability p says: where several classes would do, or where that of an instance is new, a model is
too sure of its best class at any temperature. So p becomes the logistic function of
``a log(p) - b log(1 - p) + c`` [2]_, and the other classes share the rest in proportion.

References
----------
.. [1] C. Guo et al., "On calibration of modern neural networks", ICML 2017.
.. [2] M. Kull, T. Silva Filho and P. Flach, "Beta calibration", AISTATS 2017.
"""

from typing import NamedTuple

import numpy as np

from sklearn_xc._input.data import CsrRows
from sklearn_xc._training.bounded_logistic import fit_bounded_logistic
from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc._weights.kernels.class_scores import log_normalisers, topk_scores
from sklearn_xc.softmax.start import best_multiple

#: Largest temperature, and inverse of the smallest.
_HOTTEST = 4.0
#: Weight of the pairs at which a temperature is halfway between 1 and the best for them.
_PRIOR = 100.0
#: What a squared unit of distance from the identity adds to the log-loss of the map.
_PULL = 4.0
#: The summed log-loss must fall by this much, or probabilities stay the softmax of scores.
_LEAST_GAIN = 10.0
#: Logarithms of p and 1 - p are no lower.
_LOWEST = -30.0
#: The log-odds of the best class over the second are no lower, so that float32 keeps their order.
_AHEAD = 1e-5
#: Scores that are adjusted at a time.
_CHUNK_SCORES = 2**22


class Calibration(NamedTuple):
    """A map from scores to probabilities.

    Attributes
    ----------
    temperature : float
        Divides the scores.
    best_map : tuple of float
        a, b and c of the map of the best class.
    """

    temperature: float = 1.0
    best_map: tuple[float, float, float] = (1.0, 1.0, 0.0)

    def log_proba(self, scores: np.ndarray, weights: ClassWeights) -> None:
        """Turn the scores of all classes by `weights` into log-probabilities, in place.

        Rows without features keep the frequencies of the classes; classes that tie stay equal.
        """
        unseen = weights.unseen
        if scores.shape[1] - unseen.size < 2 or self == Calibration():
            if unseen.size < scores.shape[1]:
                scores[:, unseen] = -np.inf
            normalisers = np.empty(len(scores))
            log_normalisers(scores, normalisers)
            scores -= normalisers[:, None].astype(scores.dtype)
            return
        size = max(1, _CHUNK_SCORES // scores.shape[1])
        for first in range(0, len(scores), size):
            self._adjust(scores[first : first + size], weights)

    def _adjust(self, scores: np.ndarray, weights: ClassWeights) -> None:
        rows = np.arange(len(scores))
        has_features = ~(scores == weights.prior).all(axis=1)
        scores[:, weights.unseen] = -np.inf
        scores[has_features] /= scores.dtype.type(self.temperature)
        best, first, second, rest = _split_best(scores)
        odds = first - rest
        mapped = (_features(odds) * self.best_map).sum(axis=1)
        mapped = np.maximum(mapped, second - rest + _AHEAD)
        odds = np.where(has_features & (first > second), mapped, odds)
        scores -= (rest + np.logaddexp(0.0, odds))[:, None].astype(scores.dtype)
        scores[rows, best] = -np.logaddexp(0.0, -odds)


def topk_log_proba(
    weights: ClassWeights, calibration: Calibration, X: CsrRows, k: int, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best classes of each row, as ``weights.topk`` does, and their log-probabilities.

    ``log_proba`` of all classes is read at these.
    """
    labels = np.empty((X.shape[0], k), np.int64)
    found = np.empty(labels.shape, weights.coef.dtype)

    def task(begin: int, end: int, scores: np.ndarray) -> None:
        ranked = scores.copy() if weights.unseen.size else scores
        ranked[:, weights.unseen] = -np.inf
        topk_scores(ranked, k, labels[begin:end], found[begin:end])
        calibration.log_proba(scores, weights)
        found[begin:end] = np.take_along_axis(scores, labels[begin:end], axis=1)

    weights.map_scores(task, X, n_jobs)
    return labels, found


def fit_calibration(
    scores: np.ndarray, at: np.ndarray, classes: np.ndarray, weight: np.ndarray
) -> Calibration:
    """Return the calibration with the lowest log-loss on held-out scores.

    The log-loss of a pair is that of whether the best class is right, and if it is not, of the
    class among the others. The temperature minimises the second part; the map, the first.

    Parameters
    ----------
    scores : ndarray of float of shape (n, n_classes)
        Of instances that the model was not trained on.
    at, classes : ndarray of int of shape (n_pairs,)
        Rows of `scores`, and classes of each; -1 for one that has no score.
    weight : ndarray of float64 of shape (n_pairs,)
        Of the pairs.
    """
    if scores.shape[1] < 3:
        return Calibration()
    n_classes = scores.shape[1]
    best = scores.argmax(axis=1)
    is_best = classes == best[at]
    others = np.flatnonzero((classes >= 0) & ~is_best)
    rows, row = np.unique(at[others], return_inverse=True)
    left = scores[rows][np.arange(n_classes) != best[rows, None]].reshape(-1, n_classes - 1)
    pairs = row, classes[others] - (classes > best[at])[others], weight[others]
    factor = best_multiple(left, *pairs, np.zeros(n_classes - 1))[0] if len(others) else 1.0
    observed = float(np.sum(weight[others]))
    factor = min(max(factor, 1.0 / _HOTTEST), _HOTTEST) ** (observed / (observed + _PRIOR))
    gain = _log_loss(left, *pairs) - _log_loss(left * factor, *pairs)
    _, first, _, rest = _split_best((scores * factor).astype(np.float64))
    numbers, before, after = fit_bounded_logistic(
        _features(first - rest),
        np.bincount(at, weight * is_best, minlength=len(scores)),
        np.bincount(at, weight, minlength=len(scores)),
        np.array(Calibration().best_map),
        pull=np.full(3, 2.0 * _PULL),
        lower=np.array([0.0, 0.0, -np.inf]),
    )
    if gain + before - after < _LEAST_GAIN:
        return Calibration()
    return Calibration(1.0 / factor, tuple(map(float, numbers)))


def _log_loss(scores: np.ndarray, at: np.ndarray, classes: np.ndarray, weight: np.ndarray) -> float:
    """Return the summed log-loss of pairs."""
    normalisers = np.empty(len(scores))
    log_normalisers(scores, normalisers)
    return float(np.sum(weight * (normalisers[at] - scores[at, classes])))


def _split_best(
    scores: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the best classes, their scores, the second ones, and the normalisers of all others.

    The best scores are overwritten with -inf.
    """
    rows = np.arange(len(scores))
    best = scores.argmax(axis=1)
    first = scores[rows, best].astype(np.float64)
    scores[rows, best] = -np.inf
    rest = np.empty(len(scores))
    log_normalisers(scores, rest)
    return best, first, scores.max(axis=1).astype(np.float64), rest


def _features(odds: np.ndarray) -> np.ndarray:
    """Return log(p), -log(1 - p) and 1 of log-odds, of shape (n, 3)."""
    log_p, log_others = -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)
    return np.column_stack(
        [np.maximum(log_p, _LOWEST), -np.maximum(log_others, _LOWEST), np.ones(len(odds))]
    )

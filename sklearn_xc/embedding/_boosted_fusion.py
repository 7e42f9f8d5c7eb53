"""``fusion="boosting"``: how likely a label is relevant, by boosted trees and a logistic model.

The way of the data::

    pairs -> logistic model of some -> pairs with a chance -> such a model and trees, by two thirds
             of the instances, asked of the others -> how much of each -> trees by all these pairs

A single tree has leaves that many labels of an instance share, and too few held-out pairs to fill
them; the sum beside it, on another scale, decides then, or drowns it. P@1 at a sixteenth of the
training rows, 30 to 480 held-out instances, by the tree and a tenth of the sum, the sum alone, and
this: Delicious 47.1, 22.7, 54.3; cooking.stackexchange 47.4, 53.6, 56.1; citeulike-t 36.4, 21.4,
41.3; WordNet 10.3, 9.7, 11.3.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_xc._data import read_only
from sklearn_xc._declared_state import Array, Number, Record, declares
from sklearn_xc._sklearn import boosted_trees
from sklearn_xc.embedding._fusion import Pairs, ScoreFusion, Trees, check_pairs
from sklearn_xc.kernels.embedding.tree_walk import mix_probabilities
from sklearn_xc.parallel.row_ranges import one_blas_thread, openmp_threads
from sklearn_xc.stacking.learner import best_mixture

#: Of the trees. On six fits of a sixteenth of the rows, 100 trees at half the rate were within 0.6
#: points of precision@1 either way; on nine of a quarter, 7 leaves lost up to 1.2.
_TREES, _RATE, _LEAVES, _RIDGE = 30, 0.2, 15, 10.0
#: Pairs in a leaf, at most, and as a share of all.
_PAIRS_OF_LEAF, _SHARE_OF_LEAF = 100, 0.005
#: Pairs that trees are grown by, of each instance on average: those with the best chances. 10 and
#: 16 were as good.
_PROMISING = 32
#: Pairs that the logistic model is fitted to, at most.
_MOST = 2**18
#: Folds of instances in which trees and logistic model are compared.
_FOLDS = 3


@declares(share=Number(), start=Number(), floor=Number(), factor=Number())
class MixtureLevels(NamedTuple):
    """Numbers of a fitted mixture.

    Attributes
    ----------
    share : float
        Of the trees in the probability.
    start : float
        The log-odds that the trees' values add to.
    floor : float
        Below this probability of the logistic model trees are not asked.
    factor : float
        Of such probabilities: the least by which trees change one of the others.
    """

    share: float
    start: float
    floor: float
    factor: float


@declares(
    linear_=Array("float64", lambda fusion: fusion.n_scores_ + 2),
    levels_=Record("MixtureLevels"),
    rarest_=Number(),
)
class BoostedFusion(ScoreFusion):
    """The probability that a label is relevant, by all of its scores and its frequency.

    A logistic model and gradient boosting, whose trees never take a higher score for a worse one,
    are mixed as suits held-out instances best, by log-loss. The trees look at pairs that have a
    chance by the logistic model alone.

    Parameters
    ----------
    random_state : int, default=0
        Chooses folds, and the instances that the logistic model is fitted to if there are many.

    Attributes
    ----------
    trees_ : Trees
        Their values add to a log-odds. None are there if the logistic model alone is best.
    linear_ : ndarray of float64 of shape (n_scores + 2,)
        Weights of the logistic model: of the scores, the logarithm of how often the label's
        frequency is the rarest's, and 1.
    levels_ : MixtureLevels
    rarest_ : float
        The least frequency above 0 that it has learned of; lower ones count as this.
    n_scores_ : int
    """

    gives_chances = True
    linear_: np.ndarray
    levels_: MixtureLevels
    rarest_: float

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, pairs: Pairs, frequencies: np.ndarray) -> "BoostedFusion":
        """Fit both and choose how to mix them; see ``ScoreFusion``.

        Raises
        ------
        ValueError
            Also if all pairs are relevant, or none.
        """
        name = type(self).__name__
        check_pairs(name, pairs, frequencies)
        own = np.asarray(pairs.is_own, bool)
        if not _has_both(own):
            raise ValueError(f"{name}: is_own must hold both kinds of pairs. Got one.")
        self.n_scores_ = pairs.scores.shape[1]
        some = frequencies[frequencies > 0]
        self.rarest_ = float(some.min()) if some.size else 1.0
        features = np.column_stack([pairs.scores, self._last(frequencies)]).astype(np.float32)
        weight = pairs.weight / np.mean(pairs.weight)
        ids, instance = np.unique(pairs.of, return_inverse=True)
        place = np.random.default_rng((self.random_state, 4)).permutation(len(ids))[instance]
        some = np.flatnonzero(place < max(_FOLDS, _MOST * len(ids) // len(own)))
        lesson = _Lesson(features, own, weight, place % _FOLDS)
        with one_blas_thread(), openmp_threads(1):
            return self._learn(lesson, some, len(ids))

    def _learn(self, lesson: "_Lesson", some: np.ndarray, n_instances: int) -> "BoostedFusion":
        """Fit both; the logistic model that says what is promising, to some pairs."""
        own = lesson.own
        self.linear_ = _logistic(lesson.take(some) if _has_both(own[some]) else lesson)
        chances = _chances(self.linear_, lesson.features)
        n_promising = min(len(own), _PROMISING * n_instances)
        floor = float(np.partition(chances, len(own) - n_promising)[len(own) - n_promising])
        floor *= 1.0 - 1e-9  # however kernels round, the last one is promising
        promising = np.flatnonzero(chances >= floor)
        lesson, chances = lesson.take(promising), chances[promising]
        share = self._share_of_trees(lesson)
        self.trees_, self.levels_ = _NO_TREES, MixtureLevels(0.0, 0.0, 0.0, 1.0)
        if share > 0:
            boosting = self._boosting(lesson)
            start, trees, _ = boosted_trees(boosting)  # nothing is missing here
            self.trees_ = Trees(*trees)
            mixed = share * boosting.predict_proba(lesson.features)[:, 1] + (1 - share) * chances
            factor = min(1.0, float((mixed / chances).min()))
            self.levels_ = MixtureLevels(share, start, floor, factor)
        return self

    def _share_of_trees(self, lesson: "_Lesson") -> float:
        """Return the share that suits instances best that neither has seen."""
        chances = np.empty((2, len(lesson.own)))
        for fold in range(_FOLDS):
            out = lesson.fold == fold
            rest, asked = lesson.take(np.flatnonzero(~out)), lesson.features[out]
            if not _has_both(rest.own):
                return 0.0
            if out.any():
                chances[0, out] = self._boosting(rest).predict_proba(asked)[:, 1]
                chances[1, out] = _chances(_logistic(rest), asked)
        return best_mixture(list(chances), lesson.own, lesson.weight)[0]

    def _boosting(self, lesson: "_Lesson") -> HistGradientBoostingClassifier:
        """Return trees that never take a higher score for a worse one."""
        n_in_leaf = int(np.clip(_SHARE_OF_LEAF * len(lesson.own), 1, _PAIRS_OF_LEAF))
        boosting = HistGradientBoostingClassifier(
            max_iter=_TREES,
            learning_rate=_RATE,
            max_leaf_nodes=_LEAVES,
            min_samples_leaf=n_in_leaf,
            l2_regularization=_RIDGE,
            monotonic_cst=[1] * self.n_scores_ + [0],
            early_stopping=False,
            random_state=self.random_state,
        )
        is_weighted = (lesson.weight != lesson.weight[0]).any()
        weight = lesson.weight if is_weighted else None  # with weights, bins take a second
        return boosting.fit(lesson.features, lesson.own, sample_weight=weight)

    def _last(self, frequencies: np.ndarray) -> np.ndarray:
        """Return what is read of frequencies."""
        relative = np.asarray(frequencies, np.float64) / self.rarest_
        return np.log(np.maximum(relative, 1.0)).astype(np.float32)

    def _fuse(
        self, trees: Any, scores: np.ndarray, frequencies: np.ndarray, out: np.ndarray
    ) -> None:
        last, levels = self._last(frequencies), tuple(map(float, self.levels_))
        mix_probabilities(trees, read_only(self.linear_), levels, scores, read_only(last), out)


_NO_TREES = Trees(
    np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32),
    np.empty(0, np.int32), np.empty(0),
)  # fmt: skip


class _Lesson(NamedTuple):
    """Features (n_pairs, n_scores + 1), relevance, weight and fold of pairs."""

    features: np.ndarray
    own: np.ndarray
    weight: np.ndarray
    fold: np.ndarray

    def take(self, kept: np.ndarray) -> "_Lesson":
        return _Lesson(*(part[kept] for part in self))


def _has_both(own: np.ndarray) -> bool:
    """Return whether some pairs are relevant and some are not."""
    return bool(own.any() and not own.all())


def _logistic(lesson: _Lesson) -> np.ndarray:
    """Return the weights of a logistic model, and its intercept."""
    scaler, logistic = StandardScaler(), LogisticRegression(max_iter=500)
    scaled = scaler.fit_transform(lesson.features)
    with np.errstate(
        invalid="ignore"
    ):  # BLAS may tell of lanes beyond the rows, which nobody reads
        logistic.fit(scaled, lesson.own, sample_weight=lesson.weight)
    weights = logistic.coef_[0] / scaler.scale_
    return np.append(weights, logistic.intercept_[0] - np.sum(weights * scaler.mean_))


def _chances(linear: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the probabilities of a logistic model."""
    odds = np.full(len(features), linear[-1])
    for column, weight in zip(features.T, linear, strict=False):
        odds += weight * column
    return expit(odds)

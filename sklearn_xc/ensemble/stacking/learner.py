"""Learners of pairs: the defaults, their mixture, and the threshold of its probabilities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_xc._input.data import read_only
from sklearn_xc._input.sklearn_private import boosted_trees
from sklearn_xc._state.schema import Array, Holds, Number, Numbers, Record, are_trees, declares
from sklearn_xc.ensemble.kernels import sum_trees

#: On thirteen stacks of two members, learned from 300 to 5,000 rows, 100 trees at half the rate
#: had 0.1 points of precision@1 more on average, at twice the time.
_TREES = 30
_RATE = 0.2
_LEAVES = 15
#: Pairs in a leaf, at most, and as a share of all.
_PAIRS_OF_LEAF = 100
_SHARE_OF_LEAF = 0.005
_RIDGE = 10.0
#: Shares of gradient boosting that are tried in a mixture with a logistic model.
_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
_TINY = 1e-12


def default_learners(n_pairs: int, directions: list[int], seed: int) -> list[Any]:
    """Return gradient boosting, where a higher score never lowers a pair, and a logistic model.

    The latter is better where there are few pairs to learn from; ``best_mixture`` decides.

    Parameters
    ----------
    n_pairs : int
        That it will learn from.
    directions : list of int
        As ``monotonic_cst``.
    seed : int
    """
    boosting = HistGradientBoostingClassifier(
        max_iter=_TREES,
        learning_rate=_RATE,
        max_leaf_nodes=_LEAVES,
        min_samples_leaf=int(np.clip(_SHARE_OF_LEAF * n_pairs, 1, _PAIRS_OF_LEAF)),
        l2_regularization=_RIDGE,
        monotonic_cst=directions,
        early_stopping=False,
        random_state=seed,
    )
    return [boosting, ScaledLogistic()]


@declares(
    means_=Array("float64", "inputs"),
    scales_=Array("float64", "inputs"),
    classes_=Array("any", 2),
    coef_=Array("float64", 1, "inputs"),
    intercept_=Array("float64", 1),
)
class ScaledLogistic(ClassifierMixin, BaseEstimator):
    """A logistic model of features of any scale, some of them missing.

    A missing value is the mean. Sums are taken feature by feature, so that no bit of an answer
    depends on the other rows, as it does in a matrix product.
    """

    def fit(self, features: np.ndarray, relevant: np.ndarray, sample_weight: Any = None) -> Any:
        """Fit to features of shape (n_pairs, n_features), NaN where one is missing."""
        values = features.astype(np.float64)
        known = np.isfinite(values)
        values[~known] = 0.0
        counts = np.maximum(known.sum(axis=0), 1)
        self.means_ = values.sum(axis=0) / counts
        values -= self.means_
        values[~known] = 0.0
        scales = np.sqrt((values * values).mean(axis=0))
        self.scales_ = np.where(scales > 0, scales, 1.0)
        values /= self.scales_
        model = LogisticRegression(max_iter=500).fit(values, relevant, sample_weight)
        self.classes_, self.coef_, self.intercept_ = model.classes_, model.coef_, model.intercept_
        return self

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return the probabilities of both classes, (n_pairs, 2)."""
        scores = np.full(len(features), self.intercept_[0])
        for column, weight, mean in zip(
            features.T, self.coef_[0] / self.scales_, self.means_, strict=True
        ):
            scores += np.nan_to_num((column - mean) * weight, nan=0.0)
        found = expit(scores)
        return np.column_stack([1.0 - found, found])


@declares(
    start=Number(),
    root=Array("int32", None),
    feature=Array("int32", "nodes", least=-2, below="inputs"),
    threshold=Array("float64", "nodes"),
    left=Array("int32", "nodes"),
    right=Array("int32", "nodes"),
    value=Array("float64", "nodes"),
    missing_left=Array("bool", "nodes"),
    _are_trees=Holds("trees in which each way ends in a leaf"),
)
class BoostedTrees(NamedTuple):
    """The trees of a gradient boosting, so that saved models need no version of scikit-learn.

    Answers are the same to the bit.

    Attributes
    ----------
    start : float
        Log-odds that the values of all trees add to.
    root, feature, threshold, left, right, value, missing_left : ndarray
        As :func:`~sklearn_xc._input.sklearn_private.boosted_trees` returns them.
    """

    start: float
    root: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray
    missing_left: np.ndarray

    @property
    def _are_trees(self) -> bool:
        return are_trees(self.root, self.left, self.right, self.feature)

    @classmethod
    def replacing(cls, learner: Any) -> Any:
        """Return the trees of a fitted gradient boosting, and any other learner as it is."""
        if not isinstance(learner, HistGradientBoostingClassifier):
            return learner
        start, trees, missing_left = boosted_trees(learner)
        return cls(start, *trees, missing_left)

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return the probabilities of both classes, (n_pairs, 2)."""
        if self.feature.max(initial=-1) >= features.shape[1]:
            raise ValueError(f"the trees read more than {features.shape[1]} features.")
        odds = np.empty(len(features))
        sum_trees(self.start, tuple(map(read_only, self[1:])), read_only(features), odds)
        found = expit(odds)
        return np.column_stack([1.0 - found, found])


@declares(
    shares=Numbers("learners"),
    learners=Record("BoostedTrees", "ScaledLogistic", lists=True, n="learners", inputs="inputs"),
)
class Mixture:
    """Mean probabilities of fitted classifiers.

    Parameters
    ----------
    learners : list of classifier
        Fitted.
    shares : sequence of float
        Of each; they sum to 1.
    """

    def __init__(self, learners: list[Any], shares: Sequence[float]) -> None:
        self.learners = learners
        self.shares = tuple(shares)

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return the mean, (n_pairs, 2)."""
        return sum(
            share * learner.predict_proba(features)
            for share, learner in zip(self.shares, self.learners, strict=True)
        )


def best_mixture(
    probabilities: Sequence[np.ndarray], relevant: np.ndarray, weight: np.ndarray
) -> tuple[float, ...]:
    """Return the shares of learners with the lowest log-loss on pairs that they have not seen.

    Parameters
    ----------
    probabilities : sequence of ndarray of float of shape (n_pairs,)
        Probabilities of two learners.
    relevant : ndarray of bool of shape (n_pairs,)
    weight : ndarray of float of shape (n_pairs,)
        Of the pairs.
    """
    found = []
    for share in _SHARES:
        mean = (share * probabilities[0] + (1.0 - share) * probabilities[1]).clip(
            _TINY, 1.0 - _TINY
        )
        losses = -np.log(np.where(relevant, mean, 1.0 - mean))
        found.append(float(np.dot(losses, weight)))
    share = _SHARES[int(np.argmin(found))]
    return (share, 1.0 - share)


def pair_probabilities(learner: Any, features: np.ndarray) -> np.ndarray:
    """Return how likely pairs are to be relevant, float64 of shape (n_pairs,)."""
    if not len(features):
        return np.empty(0)
    return np.asarray(learner.predict_proba(features))[:, 1].astype(np.float64)


def best_threshold(probabilities: np.ndarray, relevant: np.ndarray, n_relevant: float) -> float:
    """Return the probability above which predicting labels gives the largest micro-averaged F1.

    Parameters
    ----------
    probabilities : ndarray of float of shape (n_pairs,)
        Probabilities of pairs that the learner has not learned from.
    relevant : ndarray of bool of shape (n_pairs,)
    n_relevant : float
        Relevant pairs in all, also those that are no candidates.

    Returns
    -------
    float
        Half-way between two probabilities; 0.5 where no pair is relevant.
    """
    order = np.argsort(-probabilities, kind="stable")
    hits = np.cumsum(relevant[order])
    if not len(hits) or not hits[-1]:
        return 0.5
    scores = 2.0 * hits / (np.arange(1, len(hits) + 1) + n_relevant)
    probabilities = probabilities[order]
    ends = np.append(
        probabilities[:-1] > probabilities[1:], True
    )  # equal ones are predicted together
    best = int(np.argmax(np.where(ends, scores, -1.0)))
    below = probabilities[best + 1] if best + 1 < len(probabilities) else 0.0
    return float(0.5 * (probabilities[best] + below))


@declares()
class Votes:
    """Learner for pairs that are all relevant, or none: ranks by the sum of 1 / rank."""

    def predict_proba(self, features: np.ndarray) -> np.ndarray:
        """Return numbers between 0 and 1 that increase with the votes, (n_pairs, 2)."""
        votes = np.asarray(features, np.float64)[:, -1]
        found = votes / (1.0 + votes)
        return np.column_stack([1.0 - found, found])

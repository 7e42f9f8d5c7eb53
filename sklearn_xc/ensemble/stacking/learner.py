"""Learners of pairs: logistic, trees, their mixture, and the threshold of its probabilities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from sklearn_xc._input.data import read_only
from sklearn_xc._state.schema import Array, Number, Numbers, Record, declares
from sklearn_xc._training.boosting import TREES, are_trees, boosted_trees
from sklearn_xc._training.kernels.trees import sum_trees


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


@declares(start=Number(), **TREES, missing_left=Array("bool", "nodes"))
class BoostedTrees(NamedTuple):
    """The trees of a gradient boosting, so that saved models need no version of scikit-learn.

    Answers for float32 features are the same to the bit.

    Attributes
    ----------
    start : float
        Log-odds that the values of all trees add to.
    root, feature, threshold, left, right, value, missing_left : ndarray
        As :func:`~sklearn_xc._training.boosting.boosted_trees` returns them.
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
        return are_trees(self)

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

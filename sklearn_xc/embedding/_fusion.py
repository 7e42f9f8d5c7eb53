"""Fusion of the scores of a pair, learned from the shortlists of held-out instances.

``fusion="boosting"``: the probability that a label is relevant, by boosted trees and a logistic
model::

    pairs -> logistic model of some -> promising pairs -> such a model and trees, by two thirds
             of the instances, compared on the others -> their shares -> trees by all these pairs

``fusion="tree"``: the paper's F, a regression tree added to the sum of two scores. Its leaves are
shared by many labels of an instance, and the sum, on another scale, decides or hides it.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.progress import check_time
from sklearn_xc._parallel.threads import one_blas_thread, openmp_threads
from sklearn_xc._state.schema import Array, Number, Record, declares
from sklearn_xc._training.boosting import TREES, are_trees, best_share, boosted_trees, boosting
from sklearn_xc.embedding._examples import Examples
from sklearn_xc.embedding._ranking import LabelRanking
from sklearn_xc.embedding.kernels.scores import add_tree_values, mix_probabilities

#: Promising pairs of an instance on average. 10 and 16 were as good.
_PROMISING = 32
#: Pairs that the logistic model is fitted to, at most.
_MOST = 2**18
#: Folds of instances in which trees and logistic model are compared.
_FOLDS = 3


class ShortlistPairs(NamedTuple):
    """Pairs of a held-out instance and a label of its shortlist.

    Attributes
    ----------
    scores : ndarray of float of shape (n_pairs, n_scores)
    label : ndarray of int64 of shape (n_pairs,)
    is_own : ndarray of bool of shape (n_pairs,)
        Whether the instance has the label.
    weight : ndarray of float of shape (n_pairs,)
        The instance's.
    of : ndarray of int64 of shape (n_pairs,)
        The instance, ascending.
    """

    scores: np.ndarray
    label: np.ndarray
    is_own: np.ndarray
    weight: np.ndarray
    of: np.ndarray

    @classmethod
    def of_shortlists(
        cls,
        examples: Examples,
        V: np.ndarray,
        ranking: LabelRanking,
        n_candidates: int,
        n_labels: int,
        *,
        with_own: bool,
    ) -> "ShortlistPairs":
        """Return instances, with embeddings V, paired with the labels of their shortlists.

        An instance's own labels outside its shortlist score low and are always relevant: `with_own`
        adds them, as the paper does.
        """
        known = np.flatnonzero(~ranking.is_blank(examples.X, V))
        examples, V = examples.take(known), V[known]
        X = examples.X
        true = examples.positives
        n = len(known)
        labels = np.sort(ranking.shortlist(X, V, n_candidates), axis=1)
        at = labels >= 0
        pairs = np.nonzero(at)[0] * n_labels + labels[at]
        scores = ranking.scores(X, V, labels)[at]
        own = np.repeat(np.arange(n), np.diff(true.indptr)) * n_labels + true.labels
        if with_own:
            others = np.setdiff1d(own, pairs)
            of, label = np.divmod(others, n_labels)
            of_others = ranking.scores(X.take(of), V[of], label[:, None])[:, 0]
            pairs, scores = np.append(pairs, others), np.concatenate([scores, of_others])
            order = np.argsort(pairs)
            pairs, scores = pairs[order], scores[order]
        of, label = np.divmod(pairs, n_labels)
        return cls(scores, label, np.isin(pairs, own), examples.weight[of], known[of])

    def take(self, kept: np.ndarray) -> "ShortlistPairs":
        """Return some of the pairs."""
        return ShortlistPairs(*(part[kept] for part in self))


@declares(**TREES)
class Trees(NamedTuple):
    """Regression trees in plain arrays, as kernels walk them.

    Attributes
    ----------
    root : ndarray of int32 of shape (n_trees,)
    feature : ndarray of int32 of shape (n_nodes,)
        Number of a score, or of the label frequency after them; -2 in a leaf.
    threshold : ndarray of float64 of shape (n_nodes,)
        Features of at most the threshold go to the left.
    left, right : ndarray of int32 of shape (n_nodes,)
        Numbers of nodes; -1 in a leaf.
    value : ndarray of float64 of shape (n_nodes,)
    """

    root: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    @property
    def _are_trees(self) -> bool:
        return are_trees(self)


@declares(
    n_scores_=Number("int", least=0),
    trees_=Record("Trees", inputs=lambda fusion: fusion.n_scores_ + 1),
)
class ScoreFusion:
    """Fused scores of pairs of an instance and a label.

    ``fit`` takes instances that neither encoder nor classifiers were trained on: on others, the
    classifiers score too high.

    Parameters
    ----------
    random_state : int, default=0

    Attributes
    ----------
    trees_ : Trees
    n_scores_ : int
        Scores of a pair.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def __call__(self, scores: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Return fused scores of shape (...) from scores (..., n_scores), in their dtype.

        Where all scores of a pair are -inf, so is the fused score.
        """
        shape = scores.shape[:-1]
        frequencies = np.broadcast_to(frequencies, shape)
        out = np.empty(frequencies.size, scores.dtype)
        missing_left = np.zeros(len(self.trees_.value), bool)  # NaN goes to the right
        self._fuse(  # of the subclass
            tuple(map(read_only, (*self.trees_, missing_left))),
            read_only(np.ascontiguousarray(scores).reshape(-1, scores.shape[-1])),
            np.ascontiguousarray(frequencies, np.float64).ravel(),
            out,
        )
        return out.reshape(shape)


class TreeFusion(ScoreFusion):
    """The value of a regression tree, plus the sum of the scores.

    The tree, of depth 7, predicts whether a label is relevant to an instance (1 or 0) from the
    scores and the number of the label's training instances.

    Notes
    -----
    Source: appendix C, "Inference (Score Fusion)", of [1]_.

    References
    ----------
    .. [1] K. Dahiya et al., "NGAME: negative mining-aware mini-batching for extreme
       classification", WSDM 2023.
    """

    def fit(self, pairs: ShortlistPairs, frequencies: np.ndarray) -> "TreeFusion":
        """Grow the tree; see ``ScoreFusion``."""
        from sklearn.tree import DecisionTreeRegressor

        features = np.column_stack([pairs.scores, frequencies]).astype(np.float32)
        regressor = DecisionTreeRegressor(max_depth=7, random_state=self.random_state)
        target = np.asarray(pairs.is_own, np.float64)
        grown = regressor.fit(features, target, sample_weight=pairs.weight).tree_
        self.n_scores_ = pairs.scores.shape[1]
        self.trees_ = Trees(
            np.zeros(1, np.int32),
            grown.feature.astype(np.int32),
            grown.threshold.astype(np.float64),
            grown.children_left.astype(np.int32),
            grown.children_right.astype(np.int32),
            grown.value[:, 0, 0].astype(np.float64),
        )
        return self

    def _fuse(
        self, trees: Any, scores: np.ndarray, frequencies: np.ndarray, out: np.ndarray
    ) -> None:
        add_tree_values(trees, scores, read_only(frequencies.astype(np.float32)), out)


@declares(share=Number(), start=Number(), floor=Number(), factor=Number())
class MixtureLevels(NamedTuple):
    """Numbers of a fitted mixture.

    Attributes
    ----------
    share : float
        Weight of the trees in the probability.
    start : float
        Log-odds that the trees' values are added to.
    floor : float
        Pairs with a lower probability by the logistic model are not promising: no trees.
    factor : float
        Applied to their probability: the least ratio by which trees change that of others.
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
    """The probability that a label is relevant, from all of its scores and its frequency.

    A logistic model and gradient boosting, monotonic in the scores, are mixed such that the
    log-loss on held-out instances is lowest. The trees are used for promising pairs alone.

    Parameters
    ----------
    random_state : int, default=0
        Chooses folds, and the instances that the logistic model is fitted to if there are many.

    Attributes
    ----------
    linear_ : ndarray of float64 of shape (n_scores + 2,)
        Weights of the logistic model: of the scores, of the logarithm of the ratio of the label's
        frequency to the rarest's, and the intercept.
    levels_ : MixtureLevels
    rarest_ : float
        The least frequency above 0 in training; lower ones count as this.
    trees_ : Trees
        None of them if the logistic model alone is best.
    """

    def fit(self, pairs: ShortlistPairs, frequencies: np.ndarray) -> "BoostedFusion":
        """Fit both models and choose their mixture; see ``ScoreFusion``."""
        self.n_scores_ = pairs.scores.shape[1]
        known = frequencies[frequencies > 0]
        self.rarest_ = float(known.min()) if known.size else 1.0
        features = np.column_stack([pairs.scores, self._frequency_feature(frequencies)])
        ids, instance = np.unique(pairs.of, return_inverse=True)
        place = np.random.default_rng((self.random_state, 4)).permutation(len(ids))[instance]
        some = np.flatnonzero(place < max(_FOLDS, _MOST * len(ids) // len(instance)))
        weight = pairs.weight / np.mean(pairs.weight)
        own = np.asarray(pairs.is_own, bool)
        data = _Data(features.astype(np.float32), own, weight, place % _FOLDS)
        with one_blas_thread(), openmp_threads(1):
            self._fit_mixture(data, some, len(ids))
        return self

    def _fit_mixture(self, data: "_Data", some: np.ndarray, n_instances: int) -> None:
        """Fit the logistic model to some pairs, and trees to the promising ones."""
        n = len(data.own)
        sample = data.take(some)
        self.linear_ = _logistic(sample if sample.has_both else data)
        by_linear = _probabilities(self.linear_, data.features)
        n_promising = min(n, _PROMISING * n_instances)
        floor = float(np.partition(by_linear, n - n_promising)[n - n_promising])
        floor *= 1.0 - 1e-9  # however kernels round, the last one is promising
        promising = np.flatnonzero(by_linear >= floor)
        data, by_linear = data.take(promising), by_linear[promising]
        share = self._share_of_trees(data)
        self.trees_ = Trees(*(np.empty(0, kind) for kind in ("i4", "i4", "f8", "i4", "i4", "f8")))
        self.levels_ = MixtureLevels(0.0, 0.0, 0.0, 1.0)
        if share > 0:
            model = self._boosting(data)
            start, trees, _ = boosted_trees(model)  # nothing is missing here
            self.trees_ = Trees(*trees)
            by_trees = model.predict_proba(data.features)[:, 1]
            mixed = share * by_trees + (1 - share) * by_linear
            factor = min(1.0, float((mixed / by_linear).min()))
            self.levels_ = MixtureLevels(share, start, floor, factor)

    def _share_of_trees(self, data: "_Data") -> float:
        """Return the share with the lowest log-loss on instances that neither model has seen."""
        by_trees, by_linear = np.empty((2, len(data.own)))
        for fold in range(_FOLDS):
            out = data.fold == fold
            rest = data.take(np.flatnonzero(~out))
            if not rest.has_both:
                return 0.0
            if out.any():
                by_trees[out] = self._boosting(rest).predict_proba(data.features[out])[:, 1]
                by_linear[out] = _probabilities(_logistic(rest), data.features[out])
        return best_share(by_trees, by_linear, data.own, data.weight)

    def _boosting(self, data: "_Data") -> HistGradientBoostingClassifier:
        """Return trees that are monotonic in the scores."""
        check_time()
        model = boosting(len(data.own), [1] * self.n_scores_ + [0], self.random_state)
        is_weighted = (data.weight != data.weight[0]).any()
        weight = data.weight if is_weighted else None  # with weights, bins take a second
        return model.fit(data.features, data.own, sample_weight=weight)

    def _frequency_feature(self, frequencies: np.ndarray) -> np.ndarray:
        relative = np.asarray(frequencies, np.float64) / self.rarest_
        return np.log(np.maximum(relative, 1.0)).astype(np.float32)

    def _fuse(
        self, trees: Any, scores: np.ndarray, frequencies: np.ndarray, out: np.ndarray
    ) -> None:
        last = self._frequency_feature(frequencies)
        levels = tuple(map(float, self.levels_))
        mix_probabilities(trees, read_only(self.linear_), levels, scores, read_only(last), out)


#: The fusions that learn, by name; "sum" is none.
FUSIONS: dict[str, type[ScoreFusion]] = {"boosting": BoostedFusion, "tree": TreeFusion}


class _Data(NamedTuple):
    """Features (n_pairs, n_scores + 1), relevance, weight and fold of pairs."""

    features: np.ndarray
    own: np.ndarray
    weight: np.ndarray
    fold: np.ndarray

    def take(self, kept: np.ndarray) -> "_Data":
        return _Data(*(part[kept] for part in self))

    @property
    def has_both(self) -> bool:
        """Whether some pairs are relevant and some are not."""
        return bool(self.own.any() and not self.own.all())


def _logistic(data: _Data) -> np.ndarray:
    """Return the weights of a logistic model, and its intercept."""
    scaler = StandardScaler()
    logistic = LogisticRegression(max_iter=500)
    scaled = scaler.fit_transform(data.features)
    with np.errstate(invalid="ignore"):  # BLAS may raise flags for unused lanes
        logistic.fit(scaled, data.own, sample_weight=data.weight)
    weights = logistic.coef_[0] / scaler.scale_
    return np.append(weights, logistic.intercept_[0] - np.sum(weights * scaler.mean_))


def _probabilities(linear: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Return the probabilities of a logistic model."""
    odds = np.full(len(features), linear[-1])
    for column, weight in zip(features.T, linear, strict=False):
        odds += weight * column
    return expit(odds)

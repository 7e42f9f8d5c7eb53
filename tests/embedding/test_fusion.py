"""Fused scores: the tree of scikit-learn and the sum, or its boosting and logistic model."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sklearn_xc._training import boosting
from sklearn_xc.embedding import _fusion
from sklearn_xc.embedding._fusion import FUSIONS, BoostedFusion, ShortlistPairs, TreeFusion

WAYS = sorted(FUSIONS)


def make_pairs(n=4000, seed=0, n_scores=3, weighted=False, per_instance=10):
    """Return pairs of instances with ten labels each, and the labels' frequencies.

    The first score is the embedding's; the second is the classifier's, which errs on rare labels;
    the third is that of the features.
    """
    rng = np.random.default_rng(seed)
    relevant = rng.random(n) < 0.2
    frequency = rng.integers(0, 50, n)
    embedding = relevant + rng.normal(size=n)
    classifier = np.where(frequency > 10, 2.0 * relevant, 0) + rng.normal(size=n)
    features = 0.8 * relevant + rng.normal(size=n)
    scores = np.stack([embedding, classifier, features], 1)[:, :n_scores].astype(np.float32)
    of = np.arange(n) // per_instance
    weight = rng.random(of[-1] + 1)[of] if weighted else np.ones(n)
    return ShortlistPairs(scores, rng.integers(0, 99, n), relevant, weight, of), frequency


def features_of(pairs, frequency):
    return np.column_stack([pairs.scores, frequency]).astype(np.float32)


@pytest.fixture(scope="module", params=WAYS)
def fusion(request):
    return FUSIONS[request.param](random_state=0).fit(*make_pairs())


class TestTree:
    @pytest.mark.parametrize(("weighted", "n_scores"), [(False, 3), (True, 2)])
    def test_equals_scikit_learn(self, weighted, n_scores):
        pairs, frequency = make_pairs(n_scores=n_scores, weighted=weighted)
        fusion = TreeFusion(random_state=0).fit(pairs, frequency)
        assert fusion.n_scores_ == n_scores
        tree = DecisionTreeRegressor(max_depth=7, random_state=0)
        tree.fit(features_of(pairs, frequency), pairs.is_own, sample_weight=pairs.weight)
        pairs, frequency = make_pairs(seed=1, n_scores=n_scores)
        expected = tree.predict(features_of(pairs, frequency)) + pairs.scores.sum(axis=1)
        np.testing.assert_allclose(fusion(pairs.scores, frequency), expected, rtol=1e-6, atol=1e-6)


class TestBoosting:
    @pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
    def test_equals_the_mixture(self, share, monkeypatch):
        """Trees of the promising pairs and a logistic model of all, each scikit-learn's."""
        monkeypatch.setattr(boosting, "_SHARES", (share,))
        monkeypatch.setattr(_fusion, "_PROMISING", 3)
        pairs, frequency = make_pairs(weighted=True)
        fusion = BoostedFusion(3).fit(pairs, frequency)
        last = np.log(np.maximum(frequency, 1))
        X = np.column_stack([pairs.scores, last]).astype(np.float32)
        scaler = StandardScaler().fit(X)
        logistic = LogisticRegression(max_iter=500)
        logistic.fit(scaler.transform(X), pairs.is_own, pairs.weight / pairs.weight.mean())
        chances = logistic.predict_proba(scaler.transform(X))[:, 1]
        floor = np.sort(chances)[-3 * 400]
        kept = chances >= floor
        trees = HistGradientBoostingClassifier(
            max_iter=30,
            learning_rate=0.2,
            max_leaf_nodes=15,
            l2_regularization=10,
            min_samples_leaf=int(0.005 * kept.sum()),
            monotonic_cst=[1, 1, 1, 0],
            early_stopping=False,
            random_state=3,
        )
        weight = pairs.weight / pairs.weight.mean()
        trees.fit(X[kept], pairs.is_own[kept], weight[kept])
        mixed = share * trees.predict_proba(X)[:, 1] + (1 - share) * chances
        factor = min(1, (mixed / chances)[kept].min())
        expected = np.where(kept, mixed, factor * chances) if share else chances
        found = fusion(pairs.scores.astype(np.float64), frequency)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        assert (found[kept].min() >= found[~kept].min()) or not share

    def test_a_higher_score_is_never_worse_for_the_trees(self, monkeypatch):
        monkeypatch.setattr(boosting, "_SHARES", (1.0,))
        pairs, frequency = make_pairs()
        fusion = BoostedFusion().fit(pairs, frequency)
        fusion.levels_ = fusion.levels_._replace(floor=0.0)
        raised = fusion(pairs.scores + np.float32(0.3), frequency)
        assert (raised >= fusion(pairs.scores, frequency)).all()

    def test_instances_are_kept_together(self):
        """Pairs of an instance are in one fold: the others say nothing about them."""
        rng = np.random.default_rng(0)
        # The first score names the instance, and half of the instances have all of their labels.
        of = np.repeat(np.arange(300), 10)
        own = of % 2 == 0
        scores = np.stack([rng.random(300)[of], rng.random(3000)], 1).astype(np.float32)
        fusion = BoostedFusion().fit(
            ShortlistPairs(scores, of, own, np.ones(3000), of), np.ones(3000)
        )
        assert fusion.levels_.share == 0


def test_padding_stays_behind(fusion):
    scores = np.array([[[1.0] * 3, [-np.inf] * 3]], np.float32)
    found = fusion(scores, np.array([[5.0, 0.0]]))
    assert np.isfinite(found[0, 0])
    assert found[0, 1] == -np.inf

"""Fused scores: the tree of scikit-learn and the sum, or its boosting and logistic model."""

import pickle
import re

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sklearn_xc._sklearn import boosted_trees
from sklearn_xc.embedding import _boosted_fusion
from sklearn_xc.embedding._boosted_fusion import BoostedFusion, MixtureLevels
from sklearn_xc.embedding._fusion import Pairs, Trees
from sklearn_xc.embedding._fusions import FUSIONS
from sklearn_xc.embedding._tree_fusion import MIN_PAIRS_OF_LEAF, TreeFusion

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
    return Pairs(scores, rng.integers(0, 99, n), relevant, weight, of), frequency


def features_of(pairs, frequency):
    return np.column_stack([pairs.scores, frequency]).astype(np.float32)


@pytest.fixture(scope="module", params=WAYS)
def fusion(request):
    return FUSIONS[request.param](random_state=0).fit(*make_pairs())


class TestTree:
    @pytest.mark.parametrize("n_scores", [1, 2, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("max_depth", [2, 7])
    def test_equals_scikit_learn(self, max_depth, weighted, n_scores):
        pairs, frequency = make_pairs(n_scores=n_scores, weighted=weighted)
        fusion = TreeFusion(max_depth, random_state=0).fit(pairs, frequency)
        assert fusion.n_scores_ == n_scores
        tree = DecisionTreeRegressor(
            max_depth=max_depth, min_samples_leaf=MIN_PAIRS_OF_LEAF, random_state=0
        )
        tree.fit(features_of(pairs, frequency), pairs.is_own, sample_weight=pairs.weight)
        pairs, frequency = make_pairs(seed=1, n_scores=n_scores)
        expected = tree.predict(features_of(pairs, frequency)) + pairs.scores.sum(axis=1)
        np.testing.assert_allclose(fusion(pairs.scores, frequency), expected, rtol=1e-6, atol=1e-6)

    def test_depth_and_leaves(self):
        _, feature, _, left, right, value = TreeFusion(random_state=0).fit(*make_pairs()).trees_
        assert set(feature[left >= 0]) == {0, 1, 2, 3}
        assert (value >= 0).all()
        assert (value <= 1).all()

        def depth(node):
            return 0 if left[node] < 0 else 1 + max(depth(left[node]), depth(right[node]))

        assert depth(0) <= 7

    @pytest.mark.parametrize("n", [1, 2 * MIN_PAIRS_OF_LEAF - 1])
    def test_few_pairs_leave_the_order_of_the_sum(self, n):
        pairs, frequency = make_pairs(n)
        found = TreeFusion().fit(pairs, frequency)(pairs.scores, frequency)
        expected = pairs.scores.sum(axis=1) + pairs.is_own.mean()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)

    def test_leaves_of_many_pairs_are_larger(self, monkeypatch):
        """They hold a share of all; here one that 4,000 pairs come to."""
        monkeypatch.setattr("sklearn_xc.embedding._tree_fusion.MIN_SHARE_OF_LEAF", 0.01)
        pairs, frequency = make_pairs()
        grown = TreeFusion(max_depth=14, random_state=0).fit(pairs, frequency).trees_
        tree = DecisionTreeRegressor(max_depth=14, min_samples_leaf=40, random_state=0)
        expected = tree.fit(features_of(pairs, frequency), pairs.is_own).tree_
        np.testing.assert_array_equal(grown.threshold, expected.threshold)


class TestBoosting:
    def test_trees_in_arrays_are_those_of_scikit_learn(self):
        """The walk over what comes from inside scikit-learn gives what its predict_proba gives."""
        pairs, frequency = make_pairs(seed=4, weighted=True)
        fusion = BoostedFusion().fit(pairs, frequency)
        X = np.column_stack([pairs.scores, fusion._last(frequency)]).astype(np.float32)
        boosting = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=9, random_state=0)
        boosting.fit(X, pairs.is_own)
        start, trees, _ = boosted_trees(boosting)
        assert len(trees[0]) == 20
        fusion.trees_, fusion.levels_ = Trees(*trees), MixtureLevels(1.0, start, 0.0, 1.0)
        other, counts = make_pairs(seed=5)
        X = np.column_stack([other.scores, fusion._last(counts)]).astype(np.float32)
        expected = boosting.predict_proba(X)[:, 1]
        found = fusion(other.scores.astype(np.float64), counts)
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    @pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
    def test_equals_the_mixture(self, share, monkeypatch):
        """Trees of the promising pairs and a logistic model of all, each scikit-learn's."""
        monkeypatch.setattr(_boosted_fusion, "best_mixture", lambda *args: (share, 1 - share))
        monkeypatch.setattr(_boosted_fusion, "_PROMISING", 3)
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
        boosting = HistGradientBoostingClassifier(
            max_iter=30, learning_rate=0.2, max_leaf_nodes=15, l2_regularization=10,
            min_samples_leaf=int(0.005 * kept.sum()), monotonic_cst=[1, 1, 1, 0],
            early_stopping=False, random_state=3,
        )  # fmt: skip
        weight = pairs.weight / pairs.weight.mean()
        boosting.fit(X[kept], pairs.is_own[kept], weight[kept])
        mixed = share * boosting.predict_proba(X)[:, 1] + (1 - share) * chances
        factor = min(1, (mixed / chances)[kept].min())
        expected = np.where(kept, mixed, factor * chances) if share else chances
        found = fusion(pairs.scores.astype(np.float64), frequency)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        assert (found[kept].min() >= found[~kept].min()) or not share

    def test_a_higher_score_is_never_worse_for_the_trees(self, monkeypatch):
        monkeypatch.setattr(_boosted_fusion, "best_mixture", lambda *args: (1.0, 0.0))
        pairs, frequency = make_pairs()
        fusion = BoostedFusion().fit(pairs, frequency)
        fusion.levels_ = fusion.levels_._replace(floor=0.0)
        raised = fusion(pairs.scores + np.float32(0.3), frequency)
        assert (raised >= fusion(pairs.scores, frequency)).all()

    def test_probabilities_are_calibrated(self):
        fusion = BoostedFusion().fit(*make_pairs(20_000))
        pairs, frequency = make_pairs(20_000, seed=7)
        found = fusion(pairs.scores, frequency)
        for low, high in ((0, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 1)):
            some = (found > low) & (found <= high)
            assert found[some].mean() == pytest.approx(pairs.is_own[some].mean(), abs=0.05)

    def test_rarer_labels_count_as_the_rarest(self):
        pairs, frequency = make_pairs()
        fusion = BoostedFusion().fit(pairs, frequency + 2.5)
        scores = pairs.scores[:50]
        np.testing.assert_array_equal(fusion(scores, 0), fusion(scores, 2.5))
        assert (fusion(scores, 0) != fusion(scores, 30)).any()

    def test_instances_are_kept_together(self, monkeypatch):
        """What is asked of an instance has not been learned from its other pairs."""
        asked = []
        choose = _boosted_fusion.best_mixture

        def recorded(chances, own, weight):
            asked.append(np.array(chances))
            return choose(chances, own, weight)

        monkeypatch.setattr(_boosted_fusion, "best_mixture", recorded)
        rng = np.random.default_rng(0)
        # The first score names the instance, and half of the instances have all of their labels.
        of = np.repeat(np.arange(300), 10)
        own = of % 2 == 0
        scores = np.stack([rng.random(300)[of], rng.random(3000)], 1).astype(np.float32)
        BoostedFusion().fit(Pairs(scores, of, own, np.ones(3000), of), np.ones(3000))
        (chances,) = asked
        assert abs(np.corrcoef(chances[0], own[: chances.shape[1]])[0, 1]) < 0.25

    @pytest.mark.parametrize("n_instances", [1, 2, 5])
    def test_few_instances(self, n_instances):
        pairs, frequency = make_pairs(10 * n_instances)
        pairs.is_own[:2] = True, False
        found = BoostedFusion().fit(pairs, frequency)(pairs.scores, frequency)
        assert ((found > 0) & (found < 1)).all()

    @pytest.mark.parametrize("own", [False, True])
    def test_one_kind_of_pairs(self, own):
        pairs, frequency = make_pairs(50)
        pairs.is_own[:] = own
        with pytest.raises(ValueError, match="BoostedFusion: is_own must hold both kinds"):
            BoostedFusion().fit(pairs, frequency)

    def test_weights_are_relative(self):
        pairs, frequency = make_pairs(weighted=True)
        heavier = pairs._replace(weight=2.0**40 * pairs.weight)
        one, other = (BoostedFusion().fit(each, frequency) for each in (pairs, heavier))
        np.testing.assert_array_equal(one(pairs.scores, frequency), other(pairs.scores, frequency))

    def test_many_pairs_are_sampled_by_instance(self, monkeypatch):
        monkeypatch.setattr(_boosted_fusion, "_MOST", 1000)
        seen = []
        fit = _boosted_fusion._logistic
        monkeypatch.setattr(
            _boosted_fusion, "_logistic", lambda lesson: seen.append(len(lesson.own)) or fit(lesson)
        )
        BoostedFusion().fit(*make_pairs())
        assert seen[0] == 1000


def test_tells_relevant_labels_better_than_the_sum(fusion):
    pairs, frequency = make_pairs(seed=2)
    n = np.count_nonzero(pairs.is_own)

    def share_of_relevant(values):
        return pairs.is_own[np.argsort(-values)[:n]].mean()

    total = share_of_relevant(pairs.scores.sum(axis=1))
    assert share_of_relevant(fusion(pairs.scores, frequency)) > total


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 6), (2, 1, 3), (0, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_shape(fusion, shape, dtype):
    rng = np.random.default_rng(0)
    scores, frequency = rng.normal(size=(*shape, 3)).astype(dtype), rng.integers(0, 50, shape)
    found = fusion(scores, frequency)
    assert found.dtype == dtype
    assert found.shape == shape
    flat = [fusion(*pair) for pair in zip(scores.reshape(-1, 3), np.ravel(frequency), strict=True)]
    np.testing.assert_array_equal(np.ravel(found), flat)


def test_strided_read_only_and_broadcast_arrays(fusion):
    scores = np.random.default_rng(0).normal(size=(3, 8, 3))[:, ::2]
    scores.flags.writeable = False
    frequency = np.array([0, 3, 12, 40])
    found = fusion(scores.transpose(1, 0, 2), frequency[:, None])
    expected = fusion(scores.copy(), np.tile(frequency, (3, 1)))
    np.testing.assert_array_equal(found, expected.T)


def test_padding_stays_behind(fusion):
    scores = np.array([[[1.0] * 3, [-np.inf] * 3]], np.float32)
    found = fusion(scores, np.array([[5, 0]]))
    assert np.isfinite(found[0, 0])
    assert found[0, 1] == -np.inf


@pytest.mark.parametrize("way", WAYS)
def test_without_information_on_frequency(way):
    pairs, frequency = make_pairs()
    fusion = FUSIONS[way](random_state=0).fit(pairs, 0 * frequency + 4)
    assert set(fusion.trees_.feature) == {0, 1, 2, -2}
    # Frequencies that were never seen change little or nothing.
    found, other = fusion(pairs.scores, frequency), fusion(pairs.scores, 4)
    np.testing.assert_allclose(found, other, rtol=1e-5)


def test_labels_without_training_instances_have_a_score(fusion):
    assert np.isfinite(fusion(np.array([0.5, -0.1, 0.2], np.float32), 0))


def test_pickles_and_comes_back_from_plain_arrays(fusion):
    pairs, frequency = make_pairs(seed=3)
    expected = fusion(pairs.scores, frequency)
    again = pickle.loads(pickle.dumps(fusion))
    np.testing.assert_array_equal(again(pairs.scores, frequency), expected)
    assert {type(array) for array in fusion.trees_} == {np.ndarray}
    restored = type(fusion)()
    for name, value in vars(fusion).items():
        kept = Trees(*(array.copy() for array in value)) if isinstance(value, Trees) else value
        setattr(restored, name, kept)
    np.testing.assert_array_equal(restored(pairs.scores, frequency), expected)


@pytest.mark.parametrize("way", WAYS)
def test_the_same_twice(way):
    one, other = (FUSIONS[way](random_state=3).fit(*make_pairs()) for _ in range(2))
    for array, again in zip(one.trees_, other.trees_, strict=True):
        np.testing.assert_array_equal(array, again)


@pytest.mark.parametrize("way", WAYS)
class TestErrors:
    def test_call_before_fit(self, way):
        with pytest.raises(ValueError, match=f"{FUSIONS[way].__name__}: there is no tree yet"):
            FUSIONS[way]()(np.ones((2, 2)), 1)

    @pytest.mark.parametrize("name", ["label", "is_own", "weight", "of", "frequencies"])
    def test_wrong_lengths_are_named(self, way, name):
        pairs, frequency = make_pairs(40)
        given = {**pairs._asdict(), "frequencies": frequency}
        given[name] = given[name][:3]
        frequency = given.pop("frequencies")
        with pytest.raises(ValueError, match=rf"{name} must have shape \(40,\).* Got \(3,\)"):
            FUSIONS[way]().fit(Pairs(**given), frequency)

    @pytest.mark.parametrize("shape", [(0, 2), (4, 0), (4,)])
    def test_no_pairs_and_no_scores(self, way, shape):
        pairs = Pairs(np.ones(shape), *np.ones((4, shape[0])))
        with pytest.raises(ValueError, match=r"at least one pair.* Got shape \(") as raised:
            FUSIONS[way]().fit(pairs, np.ones(shape[0]))
        assert f"Got shape {shape}." in str(raised.value)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite_pairs(self, way, value):
        pairs, frequency = make_pairs(40)
        for name in ("scores", "weight"):
            bad = getattr(pairs, name).copy()
            bad[-1] = value
            with pytest.raises(ValueError, match=f"{name} contains NaN or infinity"):
                FUSIONS[way]().fit(pairs._replace(**{name: bad}), frequency)


@pytest.mark.parametrize("shape", [(), (2,), (3, 2), (3, 4)])
def test_another_number_of_scores(shape, fusion):
    came = re.escape(f"scores must have shape (..., 3), as in fit. Got {shape}")
    with pytest.raises(ValueError, match=came):
        fusion(np.ones(shape), 1)


def test_the_kernel_for_one_pair():
    """By hand: two trees of one split, and a logistic model."""
    fusion = BoostedFusion()
    fusion.trees_ = Trees(
        np.array([0, 3], np.int32), np.array([0, -2, -2, 1, -2, -2], np.int32),
        np.array([0.5, 0, 0, 1.0, 0, 0]), np.array([1, -1, -1, 4, -1, -1], np.int32),
        np.array([2, -1, -1, 5, -1, -1], np.int32), np.array([0, -1.0, 1.0, 0, 0.25, 2.0]),
    )  # fmt: skip
    fusion.n_scores_, fusion.rarest_ = 1, 2.0
    fusion.linear_ = np.array([2.0, -0.5, 0.1])
    fusion.levels_ = MixtureLevels(0.75, -0.3, 0.2, 0.4)
    found = fusion(np.array([[0.6]]), np.array([2 * np.e**2]))
    expected = 0.75 * expit(-0.3 + 1.0 + 2.0) + 0.25 * expit(2 * 0.6 - 0.5 * 2 + 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    below = fusion(np.array([[-1.0]]), np.array([1.0]))
    np.testing.assert_allclose(below, 0.4 * expit(-2.0 + 0.1), rtol=1e-12)

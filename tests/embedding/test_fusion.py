"""Fused scores: the tree of scikit-learn plus all scores, in any shape."""

import pickle
import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from sklearn_xc.embedding._fusion import MIN_PAIRS_OF_LEAF, FusionTree, ScoreFusion


def make_pairs(n=4000, seed=0, n_scores=3):
    """Return scores, frequencies and relevance.

    The first score is the embedding's; the second is the classifier's, which errs on rare labels;
    the third is that of the features.
    """
    rng = np.random.default_rng(seed)
    relevant = rng.random(n) < 0.2
    frequency = rng.integers(0, 50, n)
    embedding = relevant + rng.normal(size=n)
    classifier = np.where(frequency > 10, 2.0 * relevant, 0) + rng.normal(size=n)
    features = 0.8 * relevant + rng.normal(size=n)
    scores = np.stack([embedding, classifier, features], 1)[:, :n_scores]
    return scores.astype(np.float32), frequency, relevant


@pytest.fixture(scope="module")
def fusion():
    return ScoreFusion(random_state=0).fit(*make_pairs())


@pytest.mark.parametrize("n_scores", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_depth", [2, 7])
def test_equals_scikit_learn(max_depth, weighted, n_scores):
    scores, frequency, relevant = make_pairs(n_scores=n_scores)
    weight = np.random.default_rng(5).random(4000) if weighted else None
    fusion = ScoreFusion(max_depth, 0.3, random_state=0).fit(scores, frequency, relevant, weight)
    assert fusion.n_scores_ == n_scores
    tree = DecisionTreeRegressor(
        max_depth=max_depth, min_samples_leaf=MIN_PAIRS_OF_LEAF, random_state=0
    )
    pairs = np.column_stack([scores, frequency]).astype(np.float32)
    tree.fit(pairs, relevant, sample_weight=weight)
    scores, frequency, _ = make_pairs(seed=1, n_scores=n_scores)
    pairs = np.column_stack([scores, frequency]).astype(np.float32)
    expected = tree.predict(pairs) + 0.3 * scores.sum(axis=1)
    np.testing.assert_allclose(fusion(scores, frequency), expected, rtol=1e-6, atol=1e-6)


def test_depth_and_leaves(fusion):
    feature, _, left, right, value = fusion.tree_
    assert set(feature[left >= 0]) == {0, 1, 2, 3}
    assert (value >= 0).all()
    assert (value <= 1).all()

    def depth(node):
        return 0 if left[node] < 0 else 1 + max(depth(left[node]), depth(right[node]))

    assert depth(0) <= 7


def test_tells_relevant_labels_better_than_the_sum(fusion):
    scores, frequency, relevant = make_pairs(seed=2)
    n = np.count_nonzero(relevant)

    def share_of_relevant(values):
        return relevant[np.argsort(-values)[:n]].mean()

    assert share_of_relevant(fusion(scores, frequency)) > share_of_relevant(scores.sum(axis=1))


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


@pytest.mark.parametrize("weight", [0.0, 0.1])
def test_padding_stays_behind(weight):
    fusion = ScoreFusion(weight=weight, random_state=0).fit(*make_pairs())
    scores = np.array([[[1.0] * 3, [-np.inf] * 3]], np.float32)
    found = fusion(scores, np.array([[5, 0]]))
    assert np.isfinite(found[0, 0])
    assert found[0, 1] == -np.inf


def test_without_information_on_frequency():
    scores, frequency, relevant = make_pairs()
    fusion = ScoreFusion(random_state=0).fit(scores, 0 * frequency, relevant)
    assert set(fusion.tree_.feature) == {0, 1, 2, -2}
    # Frequencies that were never seen change nothing.
    np.testing.assert_array_equal(fusion(scores, frequency), fusion(scores, 0))


def test_labels_without_training_instances_have_a_score(fusion):
    assert np.isfinite(fusion(np.array([0.5, -0.1, 0.2], np.float32), 0))


@pytest.mark.parametrize("n", [1, 2 * MIN_PAIRS_OF_LEAF - 1])
def test_few_pairs_leave_the_order_of_the_sum(n):
    scores, frequency, relevant = make_pairs(n)
    fusion = ScoreFusion().fit(scores, frequency, relevant)
    found = fusion(scores, frequency)
    expected = fusion.weight * scores.sum(axis=1) + relevant.mean()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_pickles_and_comes_back_from_plain_arrays(fusion):
    pairs = make_pairs(seed=3)[:2]
    expected = fusion(*pairs)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fusion))(*pairs), expected)
    assert {type(array) for array in fusion.tree_} == {np.ndarray}
    restored = ScoreFusion()
    restored.tree_ = FusionTree(*(array.copy() for array in fusion.tree_))
    restored.n_scores_ = 3
    np.testing.assert_array_equal(restored(*pairs), expected)


def test_the_same_twice():
    one, other = (ScoreFusion(random_state=3).fit(*make_pairs()) for _ in range(2))
    for array, again in zip(one.tree_, other.tree_, strict=True):
        np.testing.assert_array_equal(array, again)


def test_call_before_fit():
    with pytest.raises(ValueError, match="no tree yet; call fit"):
        ScoreFusion()(np.ones((2, 2)), 1)


@pytest.mark.parametrize("shape", [(), (2,), (3, 2), (3, 4)])
def test_another_number_of_scores(shape, fusion):
    came = re.escape(f"scores must have shape (..., 3), as in fit. Got {shape}")
    with pytest.raises(ValueError, match=came):
        fusion(np.ones(shape), 1)


@pytest.mark.parametrize("name", ["frequencies", "is_relevant", "weight"])
def test_wrong_lengths_are_named(name):
    pairs = dict.fromkeys(["frequencies", "is_relevant"], np.ones(4))
    pairs[name] = np.ones(3)
    with pytest.raises(ValueError, match=rf"{name} must have shape \(4,\).* Got \(3,\)"):
        ScoreFusion().fit(np.ones((4, 2)), **pairs)


@pytest.mark.parametrize("shape", [(0, 2), (4, 0), (4,)])
def test_no_pairs_and_no_scores(shape):
    with pytest.raises(ValueError, match=r"at least one pair.* Got shape \(") as raised:
        ScoreFusion().fit(np.ones(shape), *np.ones((2, shape[0])))
    assert f"Got shape {shape}." in str(raised.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite_pairs(value):
    good = {"scores": np.ones((2, 2)), "frequencies": np.ones(2), "is_relevant": np.ones(2)}
    for name in good:
        bad = good[name].copy()
        bad[-1] = value
        with pytest.raises(ValueError, match=f"{name} contains NaN or infinity"):
            ScoreFusion().fit(**{**good, name: bad})


def test_leaves_of_many_pairs_are_larger():
    scores, frequency, relevant = make_pairs(400_000)
    grown = ScoreFusion(max_depth=14, random_state=0).fit(scores, frequency, relevant).tree_
    tree = DecisionTreeRegressor(max_depth=14, min_samples_leaf=40, random_state=0)
    expected = tree.fit(np.column_stack([scores, frequency]).astype(np.float32), relevant).tree_
    np.testing.assert_array_equal(grown.threshold, expected.threshold)

"""Fused scores: the tree of scikit-learn plus both scores, in any shape."""

import pickle

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from sklearn_xc.embedding._fusion import MIN_PAIRS_OF_LEAF, FusionTree, ScoreFusion


def make_pairs(n=4000, seed=0):
    """Return both scores, frequencies and relevance; classifiers err on rare labels."""
    rng = np.random.default_rng(seed)
    relevant = rng.random(n) < 0.2
    frequency = rng.integers(0, 50, n)
    embedding = relevant + rng.normal(size=n)
    classifier = np.where(frequency > 10, 2.0 * relevant, 0) + rng.normal(size=n)
    return embedding.astype(np.float32), classifier.astype(np.float32), frequency, relevant


@pytest.fixture(scope="module")
def fusion():
    return ScoreFusion(random_state=0).fit(*make_pairs())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_depth", [2, 7])
def test_equals_scikit_learn(max_depth, weighted):
    pairs, new = make_pairs(), make_pairs(seed=1)
    weight = np.random.default_rng(5).random(4000) if weighted else None
    fusion = ScoreFusion(max_depth, 0.3, random_state=0).fit(*pairs, weight)
    tree = DecisionTreeRegressor(
        max_depth=max_depth, min_samples_leaf=MIN_PAIRS_OF_LEAF, random_state=0
    )
    tree.fit(np.stack(pairs[:3], 1).astype(np.float32), pairs[3], sample_weight=weight)
    expected = tree.predict(np.stack(new[:3], 1).astype(np.float32)) + 0.3 * (new[0] + new[1])
    np.testing.assert_allclose(fusion(*new[:3]), expected, rtol=1e-6, atol=1e-6)


def test_depth_and_leaves():
    fusion = ScoreFusion(random_state=0).fit(*make_pairs())
    feature, _, left, right, value = fusion.tree_
    assert set(feature[left >= 0]) == {0, 1, 2}
    assert (value >= 0).all()
    assert (value <= 1).all()

    def depth(node):
        return 0 if left[node] < 0 else 1 + max(depth(left[node]), depth(right[node]))

    assert depth(0) <= 7


def test_tells_relevant_labels_better_than_the_sum(fusion):
    embedding, classifier, frequency, relevant = make_pairs(seed=2)
    n = np.count_nonzero(relevant)

    def share_of_relevant(scores):
        return relevant[np.argsort(-scores)[:n]].mean()

    assert share_of_relevant(fusion(embedding, classifier, frequency)) > share_of_relevant(
        embedding + classifier
    )


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (1, 6), (2, 1, 3), (0, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_shape(fusion, shape, dtype):
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)
    frequency = rng.integers(0, 50, shape)
    found = fusion(one, other, frequency)
    assert found.dtype == dtype
    assert found.shape == shape
    flat = [
        fusion(*pair)
        for pair in zip(np.ravel(one), np.ravel(other), np.ravel(frequency), strict=True)
    ]
    np.testing.assert_array_equal(np.ravel(found), flat)


def test_strided_read_only_and_broadcast_arrays(fusion):
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(3, 4)), rng.normal(size=(3, 8))[:, ::2]
    one.flags.writeable = False
    frequency = np.array([0, 3, 12, 40])
    found = fusion(one.T, other.T, frequency[:, None])
    expected = fusion(one, other.copy(), np.tile(frequency, (3, 1)))
    np.testing.assert_array_equal(found, expected.T)


def test_padding_stays_behind(fusion):
    scores = np.array([[1.0, -np.inf]], np.float32)
    found = fusion(scores, scores, np.array([[5, 0]]))
    assert np.isfinite(found[0, 0])
    assert found[0, 1] == -np.inf


def test_without_information_on_frequency():
    embedding, classifier, frequency, relevant = make_pairs()
    fusion = ScoreFusion(random_state=0).fit(embedding, classifier, 0 * frequency, relevant)
    assert set(fusion.tree_.feature) == {0, 1, -2}
    # Frequencies that were never seen change nothing.
    np.testing.assert_array_equal(
        fusion(embedding, classifier, frequency), fusion(embedding, classifier, 0)
    )


def test_labels_without_training_instances_have_a_score(fusion):
    assert np.isfinite(fusion(np.float32(0.5), np.float32(-0.1), 0))


@pytest.mark.parametrize("n", [1, 2 * MIN_PAIRS_OF_LEAF - 1])
def test_few_pairs_leave_the_order_of_the_sum(n):
    embedding, classifier, frequency, relevant = make_pairs(n)
    fusion = ScoreFusion().fit(embedding, classifier, frequency, relevant)
    found = fusion(embedding, classifier, frequency)
    expected = fusion.weight * (embedding + classifier) + relevant.mean()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_pickles_and_comes_back_from_plain_arrays(fusion):
    pairs = make_pairs(seed=3)[:3]
    expected = fusion(*pairs)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fusion))(*pairs), expected)
    assert {type(array) for array in fusion.tree_} == {np.ndarray}
    restored = ScoreFusion()
    restored.tree_ = FusionTree(*(array.copy() for array in fusion.tree_))
    np.testing.assert_array_equal(restored(*pairs), expected)


def test_the_same_twice():
    one, other = (ScoreFusion(random_state=3).fit(*make_pairs()) for _ in range(2))
    for array, again in zip(one.tree_, other.tree_, strict=True):
        np.testing.assert_array_equal(array, again)


def test_call_before_fit():
    with pytest.raises(ValueError, match="no tree yet; call fit"):
        ScoreFusion()(np.ones(2), np.ones(2), 1)


def test_scores_of_different_shapes(fusion):
    with pytest.raises(ValueError, match=r"\(2,\), classifier_scores \(3,\)"):
        fusion(np.ones(2), np.ones(3), 1)


@pytest.mark.parametrize(
    "name", ["classifier_scores", "label_frequencies", "is_relevant", "weight"]
)
def test_wrong_lengths_are_named(name):
    pairs = dict.fromkeys(["classifier_scores", "label_frequencies", "is_relevant"], np.ones(4))
    pairs[name] = np.ones(3)
    with pytest.raises(ValueError, match=rf"{name} has shape \(3,\), expected \(4,\)"):
        ScoreFusion().fit(np.ones(4), **pairs)


def test_no_pairs_and_not_finite_pairs():
    with pytest.raises(ValueError, match=r"at least one pair.*shape \(0,\) came"):
        ScoreFusion().fit(*np.ones((4, 0)))
    with pytest.raises(ValueError, match="embedding_scores contains NaN"):
        ScoreFusion().fit(np.array([1, np.nan]), *np.ones((3, 2)))

"""Values of a tree against scikit-learn, and against a walk in plain Python."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from sklearn_xc._input.data import read_only
from sklearn_xc.embedding.kernels.scores import add_tree_values


def plain(tree):
    """Return the arrays of a fitted scikit-learn tree."""
    arrays = (
        np.zeros(1, np.int32),
        tree.feature.astype(np.int32),
        tree.threshold,
        tree.children_left.astype(np.int32),
        tree.children_right.astype(np.int32),
        tree.value[:, 0, 0].copy(),
        np.zeros(tree.node_count, bool),
    )
    return tuple(map(read_only, arrays))


def walk(tree, pairs, dtype=np.float32):
    """Return values for pairs of which the last column is the frequency."""
    scores = read_only(np.ascontiguousarray(pairs[:, :-1], dtype))
    frequencies = read_only(pairs[:, -1].astype(np.float32))
    out = np.full(len(pairs), np.nan, dtype)
    add_tree_values(tree, scores, frequencies, out)
    return out


def grown(rng, n=3000, depth=7, levels=None, n_scores=2):
    pairs = rng.normal(size=(n, n_scores + 1)).astype(np.float32)
    if levels:  # many equal features: thresholds between them, and features equal to thresholds
        pairs = np.round(levels * pairs) / np.float32(levels)
    target = (pairs.sum(1) + rng.normal(size=n) > 0).astype(float)
    return DecisionTreeRegressor(max_depth=depth, random_state=0).fit(pairs, target)


@pytest.mark.parametrize(
    ("n_scores", "depth", "levels", "dtype"),
    [
        (1, 1, None, np.float32),
        (2, 7, 4, np.float32),
        (3, 30, None, np.float32),
        (3, 7, 4, np.float64),
    ],
)
def test_equals_scikit_learn(n_scores, depth, levels, dtype):
    rng = np.random.default_rng(depth)
    regressor = grown(rng, depth=depth, levels=levels, n_scores=n_scores)
    pairs = rng.normal(size=(2000, n_scores + 1))
    if levels:
        pairs = np.round(2 * levels * pairs) / (2 * levels)
    pairs = pairs.astype(dtype)
    expected = regressor.predict(pairs.astype(np.float32)) + pairs[:, :-1].sum(1, dtype=np.float64)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(
        walk(plain(regressor.tree_), pairs, dtype), expected, rtol=0, atol=8 * eps
    )


def test_features_next_to_thresholds_go_where_scikit_learn_sends_them():
    tree = grown(np.random.default_rng(3)).tree_
    inner = tree.children_left >= 0
    at = tree.threshold[inner].astype(np.float32)
    around = np.concatenate([np.nextafter(at, -np.inf), at, np.nextafter(at, np.inf)])
    rng = np.random.default_rng(4)
    pairs = np.stack([rng.permutation(around) for _ in range(3)], 1).astype(np.float32)
    expected = tree.predict(pairs)[:, 0] + pairs[:, :2].sum(1, dtype=np.float64)
    np.testing.assert_allclose(walk(plain(tree), pairs), expected, rtol=0, atol=1e-6)


def test_several_trees_are_summed():
    rng = np.random.default_rng(7)
    one, other = grown(rng), grown(rng, depth=3)
    parts, n = [plain(each.tree_) for each in (one, other)], one.tree_.node_count
    second = list(parts[1])
    second[0] = second[0] + np.int32(n)
    second[3], second[4] = (np.where(x < 0, x, x + n).astype(np.int32) for x in second[3:5])
    both = tuple(read_only(np.concatenate(pair)) for pair in zip(parts[0], second, strict=True))
    pairs = rng.normal(size=(500, 3)).astype(np.float32)
    expected = one.predict(pairs) + other.predict(pairs) + pairs[:, :2].sum(1, dtype=np.float64)
    np.testing.assert_allclose(walk(both, pairs), expected, atol=1e-6)

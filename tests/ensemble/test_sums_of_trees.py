"""Sums of trees against walks in plain Python, over trees of random shapes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from sklearn_xc._input.data import read_only
from sklearn_xc._training.kernels.trees import sum_trees
from sklearn_xc.embedding.kernels.scores import mix_probabilities

shapes = {
    "n": st.integers(0, 6),
    "n_features": st.integers(1, 4),
    "n_trees": st.integers(0, 5),
    "seed": st.integers(0, 2**32 - 1),
}


def grown(rng, n_trees, n_features):
    """Return random trees, some of one leaf, in the arrays that kernels read."""
    root, feature, threshold, left, right, value = ([] for _ in range(6))

    def add(depth):
        at = len(feature)
        for column, filler in ((feature, -2), (threshold, 0.0), (left, -1), (right, -1)):
            column.append(filler)
        value.append(rng.normal())
        if depth < 4 and rng.random() < 0.6:
            feature[at], threshold[at] = rng.integers(n_features), rng.integers(-1, 2)
            left[at] = add(depth + 1)
            right[at] = add(depth + 1)
        return at

    for _ in range(n_trees):
        root.append(add(0))
    integers = [np.array(a, np.int32) for a in (root, feature, left, right)]
    root, feature, left, right = integers
    trees = root, feature, np.array(threshold, float), left, right, np.array(value, float)
    return tuple(map(read_only, trees))


def walked(trees, features, goes_left):
    root, feature, _, left, right, value = trees
    total = np.zeros(len(features))
    for i, row in enumerate(features):
        for node in root.tolist():
            while left[node] >= 0:
                node = left[node] if goes_left(node, row[feature[node]]) else right[node]
            total[i] += value[node]
    return total


@settings(max_examples=60, deadline=None)
@given(**shapes)
def test_sum_trees(n, n_features, n_trees, seed):
    rng = np.random.default_rng(seed)
    trees = grown(rng, n_trees, n_features)
    missing_left = rng.random(len(trees[1])) < 0.5
    features = rng.integers(-2, 3, (n, n_features)).astype(np.float32)
    features[rng.random(features.shape) < 0.3] = np.nan
    out = np.full(n, np.nan)
    sum_trees(0.5, (*trees, read_only(missing_left)), read_only(features), out)

    def goes_left(node, x):
        return missing_left[node] if np.isnan(x) else x <= trees[2][node]

    np.testing.assert_allclose(out, 0.5 + walked(trees, features, goes_left), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(**shapes, share=st.sampled_from([0.0, 0.25, 1.0]), floor=st.sampled_from([0.0, 0.4, 2.0]))
def test_mix_probabilities(n, n_features, n_trees, seed, share, floor):
    rng = np.random.default_rng(seed)
    trees = grown(rng, n_trees, n_features + 1)
    scores = rng.integers(-2, 3, (n, n_features)).astype(np.float32)
    scores[rng.random(n) < 0.3] = -np.inf
    last = rng.integers(0, 3, n).astype(np.float32)
    linear, out = rng.normal(size=n_features + 2), np.full(n, np.nan, np.float32)
    mixture = share, 0.5, floor, 0.75
    with_missing = (*trees, read_only(np.zeros(len(trees[1]), bool)))
    scores, last, linear = map(read_only, (scores, last, linear))
    mix_probabilities(with_missing, linear, mixture, scores, last, out)
    features = np.column_stack([scores, last])
    has_none = np.isneginf(scores).any(axis=1)
    features[has_none] = 0.0
    chances = expit(features @ linear[:-1] + linear[-1])
    of_trees = expit(0.5 + walked(trees, features, lambda node, x: x <= trees[2][node]))
    mixed = np.where(chances < floor, 0.75 * chances, share * of_trees + (1 - share) * chances)
    np.testing.assert_allclose(out, np.where(has_none, -np.inf, mixed), rtol=1e-5)

"""Selection and order of labels with ties, against numpy's sort."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sklearn_xc._compile.jit import kernel
from sklearn_xc._weights.kernels import ranking

select_first = kernel(ranking.select_first)
sort_best_first = kernel(ranking.sort_best_first)
stack = kernel(ranking.sort_stack)


def make(n, n_values, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, n_values, n).astype(np.float32)
    return scores, rng.permutation(n).astype(np.int32)


@given(st.integers(1, 400), st.sampled_from([1, 3, 10**6]), st.integers(0, 99), st.data())
def test_select_and_sort(n, n_values, seed, data):
    k = data.draw(st.integers(1, n))
    scores, labels = make(n, n_values, seed)
    order = np.lexsort((labels, -scores))
    best_labels, best_scores = labels[order], scores[order]
    own_scores, own_labels = scores.copy(), labels.copy()
    select_first(own_scores, own_labels, n, k)
    assert set(own_labels[:k]) == set(best_labels[:k])
    assert ((own_scores[:k].min() >= own_scores[k:]).all()) or k == n
    sort_best_first(scores, labels, n, stack())
    np.testing.assert_array_equal(labels, best_labels)
    np.testing.assert_array_equal(scores, best_scores)


@pytest.mark.parametrize(("n", "dtype"), [(127, "f4"), (128, "f4"), (129, "f4"), (3000, "f8")])
def test_scores_of_all_kinds(n, dtype):
    rng = np.random.default_rng(n)
    scores = (rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n)).astype(dtype)
    scores[:20] = [0.0, -0.0, np.inf, -np.inf] * 5
    scores[20:40] = 7.0
    labels = rng.permutation(n).astype(np.int32)
    order = np.lexsort((labels, -scores))
    expected_labels, expected_scores = labels[order], scores[order]
    sort_best_first(scores, labels, n, stack())
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(scores, expected_scores)

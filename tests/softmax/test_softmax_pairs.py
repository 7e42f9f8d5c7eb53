"""Pairs of an instance and a class, equal ones merged, and their u."""

import numpy as np
import pytest
import scipy.sparse as sp
from softmax_inputs import instances_of, targets_of

from sklearn_xc.softmax.pairs import (
    Normalisers,
    Pairs,
    exact_normalisers,
    largest_sample_id,
    merge_equal,
    pairs_of,
)
from sklearn_xc.weights.class_weights import ClassWeights


class TestPairsOf:
    INDICATOR = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]])

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
    def test_indicators(self, container):
        targets = targets_of(container(self.INDICATOR))
        pairs = pairs_of(targets, np.array([1.0, 2.0, 3.0, 4.0]), False)
        assert pairs.rows.tolist() == [0, 0, 2, 3, 3]
        assert pairs.classes.tolist() == [1, 2, 0, 0, 1]
        assert pairs.weight.tolist() == [1, 1, 3, 4, 4]
        assert pairs.rows.dtype == pairs.classes.dtype == np.int32
        assert pairs.weight.dtype == np.float64

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    def test_the_first_column_only(self, container):
        pairs = pairs_of(targets_of(container(self.INDICATOR)), np.ones(4), True)
        assert pairs.rows.tolist() == [0, 2, 3]
        assert pairs.classes.tolist() == [1, 0, 0]

    def test_weight_zero_is_left_out(self):
        pairs = pairs_of(targets_of(self.INDICATOR), np.array([0.0, 1.0, 1.0, 0.5]), True)
        assert pairs.rows.tolist() == [2, 3]
        assert pairs.weight.tolist() == [1.0, 0.5]

    @pytest.mark.parametrize(
        ("y", "classes"), [("bacb", [1, 0, 2, 1]), ("baab", [1, 0, 0, 1])], ids=["three", "two"]
    )
    @pytest.mark.parametrize("first_only", [False, True])
    def test_classes(self, first_only, y, classes):
        pairs = pairs_of(targets_of(np.array(list(y))), np.array([1.0, 0.0, 2.0, 3.0]), first_only)
        assert pairs.rows.tolist() == [0, 2, 3]
        assert pairs.classes.tolist() == [classes[i] for i in (0, 2, 3)]
        assert pairs.weight.tolist() == [1, 2, 3]

    def test_no_labels(self):
        for first_only in (False, True):
            pairs = pairs_of(targets_of(sp.csr_array((5, 3))), np.ones(5), first_only)
            assert len(pairs.rows) == len(pairs.classes) == len(pairs.weight) == 0


class TestMergeEqual:
    @staticmethod
    def random(seed, n=60):
        rng = np.random.default_rng(seed)
        X = rng.choice([0.0, 1.0, -2.0], (n, 3))
        pairs = Pairs(
            np.arange(n, dtype=np.int32), rng.integers(0, 2, n).astype(np.int32), rng.random(n)
        )
        return X, pairs

    def test_equal_pairs_become_one_with_the_sum_of_their_weights(self):
        X, pairs = self.random(0)
        merged, place = merge_equal(instances_of(X), pairs)
        content = np.column_stack([X[pairs.rows], pairs.classes])
        expected, inverse = np.unique(content, axis=0, return_inverse=True)
        assert len(merged.rows) == len(expected) < 60
        found = np.column_stack([X[merged.rows], merged.classes])
        np.testing.assert_array_equal(found[place], content)
        sums = np.bincount(inverse, weights=pairs.weight)
        np.testing.assert_allclose(merged.weight[place], sums[inverse], rtol=1e-14)
        assert np.bincount(place).min() > 0

    def test_the_order_follows_from_the_content(self):
        X, pairs = self.random(1)
        merged, _ = merge_equal(instances_of(X), pairs)
        order = np.random.default_rng(0).permutation(60)
        shuffled = Pairs(pairs.rows, pairs.classes[order], pairs.weight[order])
        again, place = merge_equal(instances_of(X[order]), shuffled)
        np.testing.assert_array_equal(X[order][again.rows], X[merged.rows])
        np.testing.assert_array_equal(again.classes, merged.classes)
        np.testing.assert_allclose(again.weight, merged.weight, rtol=1e-14)
        np.testing.assert_array_equal(X[order][again.rows][place], X[order])

    def test_values_positions_and_classes_all_count(self):
        X = np.array([[1.0, 0, 0], [0, 1, 0], [2, 0, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]])
        classes = np.array([0, 0, 0, 1, 0, 0], np.int32)
        merged, _ = merge_equal(
            instances_of(X), Pairs(np.arange(6, dtype=np.int32), classes, np.ones(6))
        )
        assert len(merged.rows) == 6

    def test_float32_and_float64_of_the_same_values_give_the_same_order(self):
        X, pairs = self.random(2)
        wide, narrow = (merge_equal(instances_of(X.astype(t)), pairs) for t in ("f8", "f4"))
        np.testing.assert_array_equal(wide[1], narrow[1])

    def test_several_pairs_of_a_row(self):
        pairs = Pairs(np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32), np.ones(3))
        merged, place = merge_equal(instances_of(np.array([[1.0, 2.0], [1.0, 2.0]])), pairs)
        assert sorted(merged.weight.tolist()) == [1, 2]
        assert place[0] == place[2] != place[1]


class TestNormalisers:
    def test_find(self):
        known = Normalisers(np.array([[0, 2], [3, 0], [3, 1]]), np.array([0.1, 0.2, 0.3]))
        asked = np.array([[3, 1], [0, 1], [0, 2], [9, 9 % 3], [3, 0]])
        assert known.find(asked, 3).tolist() == [2, -1, 0, -1, 1]
        assert Normalisers.none().find(asked, 3).tolist() == [-1] * 5
        assert known.find(np.empty((0, 2), np.int64), 3).shape == (0,)

    def test_updated(self):
        known = Normalisers(np.array([[0, 2], [3, 0]]), np.array([0.1, 0.2]))
        new = known.updated(np.array([[5, 0], [3, 0], [0, 0]]), np.array([9.0, 8.0, 7.0]), 3)
        assert new.index.tolist() == [[0, 0], [0, 2], [3, 0], [5, 0]]
        assert new.u.tolist() == [7.0, 0.1, 8.0, 9.0]
        assert known.u.tolist() == [0.1, 0.2]  # what was there is not changed

    def test_largest_sample_id_does_not_wrap(self):
        for n_classes in (2, 3, 1000):
            largest = largest_sample_id(n_classes)
            index = np.array([[0, 0], [largest, n_classes - 1]])
            known = Normalisers.none().updated(index, np.array([1.0, 2.0]), n_classes)
            assert known.index.tolist() == index.tolist()
            assert known.find(index[::-1], n_classes).tolist() == [1, 0]

    def test_exact_normalisers(self):
        rng = np.random.default_rng(0)
        X, W = rng.normal(size=(20, 4)), rng.normal(size=(5, 4))
        pairs = Pairs(
            np.array([0, 0, 7, 19], np.int32), np.array([1, 2, 0, 4], np.int32), np.ones(4)
        )
        found = exact_normalisers(ClassWeights(W), instances_of(X), pairs, None)
        scores = X @ W.T
        expected = np.log(np.exp(scores).sum(axis=1))[pairs.rows]
        expected -= scores[pairs.rows, pairs.classes]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        zero = exact_normalisers(ClassWeights(0 * W), instances_of(X), pairs, None)
        np.testing.assert_array_equal(zero, np.log(5))

"""Training instances, merged and restricted to some labels."""

import itertools

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import as_csr_rows
from sklearn_xc.embedding._examples import Examples, labels_of_rows
from sklearn_xc.embedding.samplers.protocol import Positives

N_LABELS = 6


def rows_of(X):
    return as_csr_rows(sp.csr_array(np.asarray(X, np.float64)))


def positives_of(sets):
    indptr = np.cumsum([0, *map(len, sets)])
    return Positives(indptr, np.array([j for own in sets for j in own], np.int32))


def sets_of(positives):
    indptr, labels = positives
    return [tuple(labels[a:b].tolist()) for a, b in itertools.pairwise(indptr)]


def make(n=200, seed=0):
    """Return few different rows and label sets, so that many are equal, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(np.float64)
    sets = [np.flatnonzero(rng.random(N_LABELS) < 0.15).tolist() for _ in range(n)]
    weight = rng.integers(0, 4, n).astype(np.float64)
    return X, sets, weight


def contents(examples):
    """Return what each instance is, with its weight."""
    found = {}
    dense = examples.X.to_dense().values
    for row, own, weight in zip(dense, sets_of(examples.positives), examples.weight, strict=True):
        assert (tuple(row), own) not in found
        found[tuple(row), own] = weight
    return found


class TestDistinct:
    def test_equal_ones_are_merged(self):
        X, sets, weight = make()
        expected = {}
        for row, own, w in zip(X, sets, weight, strict=True):
            if w > 0 and own:
                key = tuple(row), tuple(own)
                expected[key] = expected.get(key, 0) + w
        examples = Examples.distinct(rows_of(X), positives_of(sets), weight)
        assert contents(examples) == expected
        assert len(expected) < 150
        assert examples.weight.dtype == np.float64

    def test_an_order_of_their_content(self):
        X, sets, _ = make()
        weight = np.random.default_rng(1).random(len(X))
        given = Examples.distinct(rows_of(X), positives_of(sets), weight)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(len(X))
            moved = Examples.distinct(
                rows_of(X[order]), positives_of([sets[i] for i in order]), weight[order]
            )
            for a, b in zip(given.X.arrays, moved.X.arrays, strict=True):
                np.testing.assert_array_equal(a, b)
            for a, b in zip(given.positives, moved.positives, strict=True):
                np.testing.assert_array_equal(a, b)
            assert moved.weight.tobytes() == given.weight.tobytes()


def test_labels_of_rows():
    sets = [[0, 2], [], [1], [3, 4, 5]]
    assert sets_of(labels_of_rows(positives_of(sets), np.array([3, 1, 0]))) == [
        (3, 4, 5),
        (),
        (0, 2),
    ]


class TestOfLabels:
    def test_a_slow_twin(self):
        X, sets, weight = make()
        examples = Examples(as_csr_rows(X), positives_of(sets), weight)
        for labels in (np.array([0, 2, 5]), np.arange(N_LABELS)):
            place = {label: j for j, label in enumerate(labels.tolist())}
            expected = [[place[j] for j in own if j in place] for own in sets]
            own = examples.of_labels(labels, N_LABELS)
            rows = [i for i, each in enumerate(expected) if each]
            assert sets_of(own.positives) == [tuple(each) for each in expected if each]
            assert own.positives.labels.dtype == np.int32
            assert own.positives.indptr.dtype == np.int64
            np.testing.assert_array_equal(own.X.to_dense().values, X[rows])
            np.testing.assert_array_equal(own.weight, weight[rows])

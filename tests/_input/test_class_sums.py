"""Sums of the instances of each class, against numpy."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._input.data import read_only
from sklearn_xc.softmax.kernels.epoch import add_class_sums

K, N, D = 7, 40, 11


def make_data(dtype, n_pairs=90, seed=0):
    """Return dense rows, some of them empty, and pairs; the last class has none."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.4)
    dense[[0, 5, 6, N - 1]] = 0.0
    rows, classes = rng.integers(0, N, n_pairs), rng.integers(0, K - 1, n_pairs)
    rows[:4], classes[:4] = [0, 5, N - 1, 3], 0
    weight = rng.uniform(0.1, 3.0, n_pairs)
    return dense.astype(dtype), rows.astype(np.int32), classes.astype(np.int32), weight


def arrays_of(dense):
    X = sp.csr_array(dense)
    arrays = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
    return tuple(map(read_only, arrays))


def expected_sums(dense, rows, classes, weight, n_classes=K):
    out = np.zeros((n_classes, dense.shape[1]))
    np.add.at(out, classes, weight[:, None] * dense[rows].astype(np.float64))
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_numpy(dtype):
    dense, rows, classes, weight = make_data(dtype)
    out = np.ones((K, D), dtype)
    add_class_sums(arrays_of(dense), rows, classes, weight, out)
    out -= 1
    tolerance = 40 * np.finfo(dtype).eps * weight.sum()
    np.testing.assert_allclose(
        out, expected_sums(dense, rows, classes, weight), rtol=0, atol=tolerance
    )
    assert (out[-1] == 0).all()


def test_pairs_are_added_in_turn():
    """The same pairs in the same order give the same bits."""
    dtype = np.float32
    dense, rows, classes, weight = make_data(dtype, 500)
    X = arrays_of(dense)
    whole, parts = (np.zeros((K, D), dtype) for _ in range(2))
    add_class_sums(X, rows, classes, weight, whole)
    for some in (slice(0, 130), slice(130, 131), slice(131, 500)):
        add_class_sums(X, rows[some], classes[some], weight[some], parts)
    np.testing.assert_array_equal(parts, whole)


def test_empty_rows_and_no_pairs():
    dense, rows, classes, weight = make_data(np.float64)
    out = np.zeros((K, D))
    none = rows[:0], classes[:0], weight[:0]
    add_class_sums(arrays_of(dense), *none, out)
    empty = np.isin(rows, [0, 5, 6, N - 1])
    assert empty.any()
    add_class_sums(arrays_of(dense), rows[empty], classes[empty], weight[empty], out)
    add_class_sums(arrays_of(np.zeros((N, D))), rows, classes, weight, out)
    assert (out == 0).all()

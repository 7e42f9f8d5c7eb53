"""Steps of Adam with sums over few and many instances, against dense matrices."""

import numpy as np
import pytest

from sklearn_xc._training.kernels.row_moves import adam_rows, adam_step, group_entries

K, DIM, N = 12, 19, 11


def expected_step(W, first, second, gradient):
    first = 0.75 * first + 0.25 * gradient
    second = 0.5 * second + 0.5 * gradient**2
    return W - 0.3 * first / (np.sqrt(second) + 0.01), first, second


def start(dtype):
    rng = np.random.default_rng(0)
    W, first = (rng.normal(size=(K, DIM)).astype(dtype) for _ in range(2))
    return W, first, rng.random((K, DIM)).astype(dtype)


def scalars(dtype):
    return (dtype(0.25), dtype(0.5)), dtype(0.3), dtype(0.01)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_a_dense_step(dtype, tol):
    arrays = [array.ravel() for array in start(dtype)]
    gradient = np.random.default_rng(1).normal(size=K * DIM).astype(dtype)
    expected = expected_step(*(array.astype(np.float64) for array in arrays), gradient)
    adam_step(*arrays, gradient, *scalars(dtype))
    for got, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=tol)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_rows_with_any_number_of_entries(dtype, tol):
    """Row k has k entries, 0 to 11; row 0 and those of the other half stay."""
    rng = np.random.default_rng(1)
    G = np.zeros((N, K), dtype)
    for k in range(K):
        G[rng.permutation(N)[:k], k] = rng.normal(size=k)
    V = rng.normal(size=(N, DIM)).astype(dtype)
    counts = (G != 0).sum(axis=1)
    ids, values = np.nonzero(G)[1].astype(np.int32), G[G != 0]
    rows, bounds = np.zeros(K, np.int32), np.zeros(K + 1, np.int64)
    order, owners = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    slots = np.full(K, -1, np.int32)
    n = group_entries(np.cumsum(counts) - counts, counts, ids, slots, rows, bounds, order, owners)
    assert n == K - 1
    arrays = start(dtype)
    before = [array.copy() for array in arrays]
    groups = rows, bounds, order, owners
    done = np.zeros(K, bool)
    for begin, end in ((0, 4), (4, 4), (7, n), (4, 7)):
        adam_rows(*arrays, groups, begin, end, values, V, *scalars(dtype))
        done[rows[begin:end]] = True
        expected = expected_step(
            *(array.astype(np.float64) for array in before), G.T.astype(np.float64) @ V
        )
        for got, wanted, old in zip(arrays, expected, before, strict=True):
            np.testing.assert_allclose(got[done], wanted[done], atol=tol)
            assert got[~done].tobytes() == old[~done].tobytes()
    assert done.sum() == n

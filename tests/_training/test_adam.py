"""Adam against the formulas of the paper, written out number by number."""

import numpy as np
import pytest

from sklearn_xc._parallel.threads import Team
from sklearn_xc._training.adam import Adam, Entries, LazyAdam

K, DIM = 13, 6
DTYPES = pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 2e-5), (np.float64, 1e-12)])


class Reference:
    """Algorithm 1 for each number alone.

    The order of [1], end of section 2, is that without a corrected epsilon.
    """

    def __init__(self, shape, epsilon_is_corrected):
        self.first, self.second, self.t = np.zeros(shape), np.zeros(shape), 0
        self.epsilon_is_corrected = epsilon_is_corrected

    def step(self, values, gradient, rate, is_touched):
        self.t += 1
        for at in np.ndindex(values.shape):
            if not is_touched[at]:
                continue
            self.first[at] = 0.9 * self.first[at] + 0.1 * gradient[at]
            self.second[at] = 0.999 * self.second[at] + 0.001 * gradient[at] ** 2
            unbiased = self.first[at] / (1 - 0.9**self.t)
            square = self.second[at] / (1 - 0.999**self.t)
            epsilon = 1e-8
            if not self.epsilon_is_corrected:
                epsilon /= (1 - 0.999**self.t) ** 0.5
            values[at] -= rate * unbiased / (square**0.5 + epsilon)


@DTYPES
@pytest.mark.parametrize("size", [1.0, 1e-8])  # epsilon counts where gradients are tiny
def test_dense_steps(dtype, tol, size):
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(K, DIM))
    values, adam = expected.astype(dtype), Adam((K, DIM), np.dtype(dtype))
    expected = values.astype(np.float64)
    slow = Reference((K, DIM), epsilon_is_corrected=True)
    for _ in range(60):
        gradient = (size * (rng.normal(size=(K, DIM)) + 0.5)).astype(dtype)
        adam.step(values, gradient, 0.03)
        slow.step(expected, gradient.astype(np.float64), 0.03, np.ones((K, DIM), bool))
    np.testing.assert_allclose(values, expected, atol=tol)
    assert adam.n_steps == 60


def make_step(rng, dtype, n=11):
    """Return entries, V, the gradient and what rows have one: some each step, one seldom."""
    dense = rng.normal(size=(n, K)) * (rng.random((n, K)) < 0.5)
    dense[:, rng.permutation(K)[:6]] = 0.0
    dense[:, 4] = rng.normal(size=n) if rng.random() < 0.1 else 0.0
    dense[:, 12] = 0.0
    dense[3] = 0.0
    dense[:, 2] = rng.normal(size=n)
    counts = (dense != 0).sum(axis=1)
    ends = np.cumsum(counts)
    ids = np.nonzero(dense)[1].astype(np.int32)
    entries = Entries(ends - counts, counts, ids, dense[dense != 0].astype(dtype))
    V = rng.normal(size=(n, DIM)).astype(dtype)
    gradient = dense.astype(dtype).astype(np.float64).T @ V.astype(np.float64)
    return entries, V, gradient, np.repeat(dense.any(axis=0)[:, None], DIM, axis=1)


@DTYPES
@pytest.mark.parametrize("size", [1.0, 1e-8])
def test_rows_that_are_touched_seldom(dtype, tol, size):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(K, DIM)).astype(dtype)
    expected, start = values.astype(np.float64), values.copy()
    adam, slow = LazyAdam((K, DIM), np.dtype(dtype)), Reference((K, DIM), False)
    touched = np.zeros(K, int)
    with Team(1) as team:
        for _ in range(150):
            entries, V, gradient, is_touched = make_step(rng, dtype)
            V = (size * V).astype(dtype)
            before = values.copy()
            adam.step(values, entries, V, 0.03, team)
            slow.step(expected, size * gradient, 0.03, is_touched)
            touched += is_touched[:, 0]
            np.testing.assert_array_equal(values[~is_touched], before[~is_touched])
    np.testing.assert_allclose(values, expected, atol=5 * tol)
    assert 2 < touched[4] < 40
    assert touched[12] == 0
    assert touched[2] == 150
    np.testing.assert_array_equal(values[12], start[12])
    assert not adam.first[12].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_change_no_bit(dtype):
    ends = []
    for n_workers in (1, 2, 3):
        rng = np.random.default_rng(0)
        values = rng.normal(size=(K, DIM)).astype(dtype)
        adam = LazyAdam((K, DIM), np.dtype(dtype))
        with Team(n_workers) as team:
            for _ in range(20):
                entries, V, *_ = make_step(rng, dtype)
                adam.step(values, entries, V, 0.03, team)
        ends.append(values.tobytes() + adam.first.tobytes() + adam.second.tobytes())
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_step_without_entries(n_workers):
    values, adam = np.ones((K, DIM)), LazyAdam((K, DIM), np.dtype(np.float64))
    none = np.zeros(2, np.int64)
    entries = Entries(none, none, np.zeros(0, np.int32), np.zeros(0))
    with Team(n_workers) as team:
        adam.step(values, entries, np.ones((2, DIM)), 0.1, team)
    assert (values == 1).all()
    assert adam.n_steps == 1

"""Averages of weights during training, against the means that define them."""

import numpy as np
import pytest

from sklearn_xc.decomposition.moving_rows import MovingRows
from sklearn_xc.decomposition.training import WeightAverages


def weights(n=9, shape=(4, 3), dtype=np.float64, seed=0):
    """Return the visits at each update, and the weights then."""
    rng = np.random.default_rng(seed)
    visits = np.cumsum(rng.integers(1, 40, n))
    return visits, rng.normal(size=(n, *shape)).astype(dtype)


def mean_of(visits, weights):
    """Return the mean in which weights from visit a to visit b count b^4 - a^4."""
    shares = np.diff(np.r_[0.0, visits.astype(float)] ** 4)
    return np.tensordot(shares / shares.sum(), weights.astype(np.float64), 1)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_later_values_count_more(dtype, atol):
    """Intercepts are the last column; the start is forgotten."""
    visits, seen = weights(dtype=dtype)
    values = np.full_like(seen[0], 7.0)
    moving = MovingRows(values, intercept_rate=1.0)
    averages = WeightAverages([moving])
    for i, at in enumerate(visits):
        values[:] = seen[i]
        averages.update(int(at))
        expected = mean_of(visits[: i + 1], seen[: i + 1])
        np.testing.assert_allclose(averages.means[0], expected[:, :-1], atol=atol)
        np.testing.assert_allclose(averages.intercept, expected[:, -1], atol=atol)


def test_updates_are_an_eighth_of_the_rows_apart():
    a, b = np.zeros((50, 2)), np.zeros((30, 3))
    averages = WeightAverages([MovingRows(a), MovingRows(b)])
    for visits in range(1, 35):
        a += 1
        b += 1
        averages.visited(visits)
    for mean in averages.means:
        expected = (10**5 + 20 * (20**4 - 10**4) + 30 * (30**4 - 20**4)) / 30**4
        np.testing.assert_allclose(mean, expected)

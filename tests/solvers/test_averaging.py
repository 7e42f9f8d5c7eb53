"""Averages of weights over the course of training, beside the means that define them."""

import numpy as np
import pytest

from sklearn_xc.solvers.averaging import CourseAverages
from sklearn_xc.solvers.moving_rows import MovingRows


def course(n_looks=9, shape=(4, 3), dtype=np.float64, seed=0):
    """Return the visits of each look, and the weights that it sees."""
    rng = np.random.default_rng(seed)
    visits = np.cumsum(rng.integers(1, 40, n_looks))
    return visits, rng.normal(size=(n_looks, *shape)).astype(dtype)


def mean_of(visits, weights):
    """Return the mean in which what stands from visit a to visit b weighs b^4 - a^4."""
    shares = np.diff(np.r_[0.0, visits.astype(float)] ** 4)
    return np.tensordot(shares / shares.sum(), weights.astype(np.float64), 1)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_later_values_count_more(dtype, atol):
    visits, seen = course(dtype=dtype)
    values, mean = np.empty_like(seen[0]), np.full_like(seen[0], 7.0)  # the start is forgotten
    averages = CourseAverages([(MovingRows(values, None), mean)])
    for i, at in enumerate(visits):
        values[:] = seen[i]
        averages.look(int(at))
        np.testing.assert_allclose(mean, mean_of(visits[: i + 1], seen[: i + 1]), atol=atol)


def test_another_one_goes_on():
    visits, seen = course()
    values, mean = np.empty_like(seen[0]), np.zeros_like(seen[0])
    last = 0
    for i, at in enumerate(visits):
        averages = CourseAverages([(MovingRows(values, None), mean)], last)
        values[:] = seen[i]
        averages.look(int(at))
        last = averages.last_look
    np.testing.assert_allclose(mean, mean_of(visits, seen), atol=1e-14)


def test_a_second_look_at_the_same_time_changes_nothing():
    values, mean = np.ones((2, 2)), np.zeros((2, 2))
    averages = CourseAverages([(MovingRows(values, None), mean)])
    averages.look(5)
    values += 1
    averages.look(5)
    assert (mean == 1).all()


def test_looks_are_an_eighth_of_the_rows_apart():
    a, b = (np.zeros((50, 2)), np.zeros((50, 2))), (np.zeros((30, 3)), np.zeros((30, 3)))
    averages = CourseAverages([(MovingRows(values, None), mean) for values, mean in (a, b)])
    looks = []
    for visits in range(1, 35):
        for values, _ in (a, b):
            values += 1
        averages.visited(visits)
        if averages.last_look == visits:
            looks.append(visits)
    assert looks == [10, 20, 30]
    for _, mean in (a, b):
        np.testing.assert_allclose(
            mean, (10**5 + 20 * (20**4 - 10**4) + 30 * (30**4 - 20**4)) / 30**4
        )


def test_without_matrices_there_is_nothing_to_do():
    averages = CourseAverages([])
    averages.visited(100)
    assert averages.last_look == 0


def test_what_is_not_finite_stays_to_be_seen():
    values, mean = np.array([[1.0, np.inf, np.nan]]), np.zeros((1, 3))
    averages = CourseAverages([(MovingRows(values, None), mean)])
    averages.look(10)
    values[:] = 0
    averages.look(20)
    assert np.isfinite(mean).tolist() == [[True, False, False]]


def test_rows_that_shrink_are_seen_as_they_are():
    values, mean = np.ones((3, 2)), np.zeros((3, 2))
    moving = MovingRows(values, None)
    averages = CourseAverages([(moving, mean)])
    moving.shrink(1.0)
    averages.look(10)
    assert (mean == 0.5).all()
    moving.shrink(3.0)
    averages.look(20)
    np.testing.assert_allclose(mean, (0.5 * 10**4 + 0.125 * (20**4 - 10**4)) / 20**4)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_intercepts_are_averaged_beside_the_vectors(scale):
    """They are the last column, and are not scaled."""
    visits, seen = course(shape=(4, 3))
    values, mean, intercept = np.empty((4, 3)), np.zeros((4, 2)), np.zeros(4)
    moving = MovingRows(values, None, scale, intercept_rate=1.0)
    averages = CourseAverages([(moving, mean)], intercept=intercept)
    for i, at in enumerate(visits):
        values[:] = seen[i]
        averages.look(int(at))
    expected = mean_of(visits, seen)
    np.testing.assert_allclose(mean, scale * expected[:, :2], atol=1e-14)
    np.testing.assert_allclose(intercept, expected[:, 2], atol=1e-14)

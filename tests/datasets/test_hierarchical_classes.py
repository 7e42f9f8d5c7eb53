import numpy as np
import pytest

from sklearn_xc.datasets import generators, make_hierarchical_classes
from sklearn_xc.exceptions import MemoryBudgetError


@pytest.fixture(scope="module")
def data():
    return make_hierarchical_classes(3, 6, 64, n_per_class=5, n_test=4000, random_state=0)


def test_shapes_and_dtypes(data):
    assert data.X_train.shape == (6**3 * 5, 64)
    assert data.X_test.shape == (4000, 64)
    assert data.X_train.dtype == data.X_test.dtype == data.centers.dtype == np.float32
    assert data.y_train.dtype == data.y_test.dtype == np.int64
    np.testing.assert_array_equal(np.bincount(data.y_train), np.full(6**3, 5))
    np.testing.assert_allclose(np.linalg.norm(data.centers, axis=1), 1, rtol=1e-5)
    assert data.X_train.flags.c_contiguous


def test_relatives_are_as_close_as_their_common_ancestor_is_deep(data):
    np.testing.assert_array_equal(np.sort(data.leaves), np.arange(6**3))
    cosines = data.centers @ data.centers.T
    depth = sum(
        (data.leaves[:, None] // 6**up == data.leaves // 6**up).astype(int) for up in range(3)
    )
    for common in range(3):
        expected = (1 - 0.25**common) / (1 - 0.25**3)  # nodes half as long as their parents
        assert cosines[depth == common].mean() == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("accuracy", [0.5, 0.9])
def test_accuracy_of_the_nearest_centre(accuracy):
    data = make_hierarchical_classes(
        3, 6, 64, n_per_class=1, n_test=4000, accuracy=accuracy, random_state=1
    )
    best = (data.X_test @ data.centers.T).argmax(axis=1)
    assert (best == data.y_test).mean() == pytest.approx(accuracy, abs=0.04)


def test_the_seed_decides():
    def made(seed):
        return make_hierarchical_classes(2, 4, 8, n_per_class=2, n_test=9, random_state=seed)

    first, again, other = made(3), made(3), made(4)
    for name in ("X_train", "y_train", "X_test", "y_test", "centers", "leaves"):
        np.testing.assert_array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ratio": 0}, "ratio must be a number above 0. Got 0"),
        ({"n_levels": 0}, r"n_levels must be an integer from 1 to 2147483647. Got 0"),
        ({"accuracy": "high"}, "accuracy must be a number between 0 and 1. Got 'high'"),
    ],
)
def test_parameters_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        make_hierarchical_classes(**settings)


@pytest.mark.parametrize("settings", [{"n_levels": 10**6}, {"dim": 2**31 - 1}])
def test_data_that_fit_no_memory(settings, monkeypatch):
    monkeypatch.setattr(generators, "check_random_state", lambda seed: pytest.fail("drawn"))
    with pytest.raises(
        MemoryBudgetError, match=r"^make_hierarchical_classes: .*instances of each of .*Ask for"
    ):
        make_hierarchical_classes(**settings)

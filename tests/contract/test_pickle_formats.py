"""What every estimator makes of states that other versions of the package have pickled."""

import numpy as np
import pytest
from registry import ESTIMATORS, made
from sklearn.exceptions import InconsistentVersionWarning

import sklearn_xc
from sklearn_xc.base import STATE_FORMAT


@pytest.fixture(scope="module", params=ESTIMATORS)
def fitted(request):
    return ESTIMATORS[request.param]().fit(*made(5, 0))


def restored(model, **changes):
    again = type(model).__new__(type(model))
    again.__setstate__({**model.__getstate__(), **changes})
    return again


@pytest.mark.parametrize(
    ("written", "advice"), [(99, "Upgrade it"), (STATE_FORMAT - 1, "Fit the estimator again")]
)
def test_another_format_is_refused(fitted, written, advice):
    with pytest.raises(ValueError, match=rf"sklearn_xc 7\.0 in state format {written}.*{advice}"):
        restored(fitted, _sklearn_xc_format=written, _sklearn_xc_version="7.0")


def test_a_state_without_a_format_is_refused(fitted):
    state = fitted.__getstate__()
    assert state.pop("_sklearn_xc_version") == sklearn_xc.__version__
    assert state.pop("_sklearn_xc_format") == STATE_FORMAT
    with pytest.raises(ValueError, match="sklearn_xc unknown in state format 0"):
        type(fitted).__new__(type(fitted)).__setstate__(state)


def test_another_version_of_the_same_format_warns_but_works(fitted):
    with pytest.warns(InconsistentVersionWarning, match=r"\(sklearn_xc\) 0\.0\.9"):
        again = restored(fitted, _sklearn_xc_version="0.0.9")
    X, _ = made(5, 0)
    for one, other in zip(again.predict_topk(X, 3), fitted.predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not [name for name in vars(again) if name.startswith("_sklearn")]

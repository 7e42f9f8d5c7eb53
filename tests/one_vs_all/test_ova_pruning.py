"""The warning of pruning: where answers get worse, and nowhere else."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import PruningWarning, UnseenLabelWarning


@pytest.fixture(scope="module", name="data")
def texts():
    return make_xc_classification(
        n_samples=600, n_features=400, n_labels=60, random_state=0, return_X_y=True
    )


def warnings_of(X, y, make=OvALinearXC, **parameters):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(**parameters).fit(X, y)
    return model, [w for w in caught if not issubclass(w.category, UnseenLabelWarning)]


def hits(model, X, Y, k=5):
    labels, _ = model.predict_topk(X, k)
    return Y.toarray()[np.arange(len(labels))[:, None], labels].sum()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_default_is_silent_on_rows_of_unit_length(loss, data):
    assert not warnings_of(*data, loss=loss, prune=0.01)[1]


@pytest.mark.parametrize(
    ("make_y", "loss"), [(sp.csr_array, "logistic"), (sp.csr_array.toarray, "squared_hinge")]
)
def test_too_much_is_warned_of(make_y, loss, data):
    X, Y = data
    with pytest.warns(PruningWarning, match="OvALinearXC: prune=2.0 removed weights") as caught:
        model = OvALinearXC(prune=2.0, loss=loss).fit(X, make_y(Y))
    assert [w.filename for w in caught if w.category is PruningWarning] == [__file__]
    whole = OvALinearXC(prune=0, loss=loss).fit(X, Y)
    assert hits(model, X, Y) < 0.95 * hits(whole, X, Y)
    np.testing.assert_array_equal(model.intercept_, whole.intercept_)


def test_the_scale_of_x_decides(data):
    """Weights shrink as X grows."""
    (warning,) = warnings_of(100 * data[0], data[1])[1]
    assert warning.category is PruningWarning

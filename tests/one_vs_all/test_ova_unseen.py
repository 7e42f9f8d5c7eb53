"""Labels without a training instance: last in every ranking, absent, never predicted."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.exceptions import UnseenLabelWarning

UNSEEN = [0, 4, 17, 29]


@pytest.fixture(name="data")
def labels_without_instances(make_xy):
    """Return X and Y in which four of thirty labels have none, and none only of weight 0."""
    X, Y = make_xy(n_labels=30)
    Y = Y.toarray()
    Y[:, UNSEEN] = 0
    weight = np.ones(120)
    weight[::10] = 0
    Y[weight == 0, 17] = 1
    return X, sp.csr_array(Y), weight


@pytest.fixture(name="model", params=["one", "cv"])
def fitted(request, data):
    make = OvALinearXC if request.param == "one" else OvALinearXCCV
    more = {} if request.param == "one" else {"Cs": [0.3, 1], "cv": 2}
    return make(prune=0, **more).fit(*data)


@pytest.mark.parametrize("k", [1, 26, 27, 33])
def test_they_come_last_in_order(k, model, data):
    X = data[0]
    labels, scores = model.predict_topk(X, k)
    known, n_trained = min(k, 30), min(k, 26)
    assert not np.isin(labels[:, :n_trained], UNSEEN).any()
    np.testing.assert_array_equal(labels[:, n_trained:known], [UNSEEN[: known - n_trained]] * 120)
    assert (np.diff(scores[:, :known]) <= 0).all()
    assert np.isfinite(scores[:, :known]).all()
    if k > 26:
        assert (scores[:, 26] < scores[:, 25]).all()


@pytest.mark.parametrize("seen", ["no", "yes"])
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")
def test_one_of_two_classes(seen, data):
    X = data[0]
    y = np.where(np.arange(120) % 3 == 0, "yes", "no")
    with pytest.warns(UnseenLabelWarning, match="1 of 2 labels"):
        model = OvALinearXC(prune=0).fit(X, y, (y == seen).astype(float))
    wild = sp.csr_array(1e3 * X.toarray() ** 3)
    for rows in (X, wild, -wild):
        assert (model.predict(rows) == seen).all()
        assert (model.classes_[model.predict_topk(rows, 2)[0][:, 0]] == seen).all()
        assert ((model.decision_function(rows) > 0) == (seen == "yes")).all()

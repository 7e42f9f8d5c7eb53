"""Labels without a training instance: known of, never predicted, below all others."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from registry import ENTRIES, ESTIMATORS
from small_data import made

from sklearn_xc.exceptions import UnseenLabelWarning

#: Between trained ones, so that no order of columns hides a mistake.
UNSEEN = [0, 3, 6]
TRAINED = [1, 2, 4, 5, 7]


@pytest.fixture(scope="module", params=ESTIMATORS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def data():
    X, Y = made(5, 0)
    wide = sp.lil_array((60, 8))
    wide[:, TRAINED] = Y.toarray()
    return X, wide.tocsr()


@pytest.fixture(scope="module")
def fitted(name, data):
    return ESTIMATORS[name]().fit(*data)


def test_a_warning_counts_them_where_fit_is_called(name, data):
    says = (
        rf"^{ENTRIES[name].estimator.__name__}: 3 of 8 labels have no training instance"
        r"( and no known word or feature)? \(0, 3, 6\)"
    )
    with pytest.warns(UnseenLabelWarning, match=says) as caught:
        ESTIMATORS[name]().fit(*data)
    assert {one.filename for one in caught if one.category is UnseenLabelWarning} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenLabelWarning)
        ESTIMATORS[name]().fit(*made(5, 0))


def test_they_come_last(fitted, data):
    labels, scores = fitted.predict_topk(data[0], 10)
    assert np.isin(labels[:, :5], TRAINED).all()
    assert (labels[:, 5:8] == UNSEEN).all()
    assert (labels[:, 8:] == -1).all()
    assert np.isfinite(scores[:, :8]).all()
    assert (scores[:, 5:8] < scores[:, 4:5]).all()
    few, _ = fitted.predict_topk(data[0], 5)
    np.testing.assert_array_equal(few, labels[:, :5])
    labels, _ = copy.copy(fitted).drop_labels([1, 3]).predict_topk(data[0], 6)
    assert (labels[:, 4:] == [0, 4]).all()


def test_they_are_absent_from_sparse_answers(fitted, data):
    for method in ("decision_function", "predict", "predict_proba"):
        if hasattr(fitted, method):
            answer = getattr(fitted, method)(data[0])
            assert np.isin(answer.indices, TRAINED).all()
    assert (np.diff(fitted.decision_function(data[0]).indptr) == 5).all()


def test_they_are_below_all_others_in_dense_answers(name, fitted, data):
    X, Y = data
    dense = ESTIMATORS[name]().fit(X, Y.toarray())
    scores = dense.decision_function(X)
    assert np.isfinite(scores).all()
    assert (scores[:, UNSEEN].max(axis=1) < scores[:, TRAINED].min(axis=1)).all()
    expected = fitted.decision_function(X).toarray()[:, TRAINED]
    np.testing.assert_allclose(scores[:, TRAINED], expected, rtol=1e-6, atol=1e-9)
    assert not dense.predict(X)[:, UNSEEN].any()
    if hasattr(dense, "predict_proba"):
        proba = dense.predict_proba(X)
        assert (proba[:, UNSEEN] == 0).all()
        if ENTRIES[name].chances_of == "all labels":
            np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-9)

"""Models as files, copies and parameters."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import Bias


@pytest.fixture(params=["sparse", "dense", "classes", "two classes"])
def kind(request):
    return request.param


@pytest.fixture
def fitted(kind, xy):
    X, Y = xy
    y = {
        "sparse": Y,
        "dense": Y.toarray(),
        "classes": np.array(["b", "a", "c"])[X.toarray()[:, :3].argmax(axis=1)],
        "two classes": Y[:, [0]].toarray()[:, 0] > 0,
    }[kind]
    return OvALinearXC(prune=0, top_k=3, init=Bias(-1.5)).fit(X, y)


def assert_same_answers(a, b, X):
    for method in ("predict", "decision_function", "predict_topk"):
        p, q = getattr(a, method)(X), getattr(b, method)(X)
        if hasattr(p, "toarray"):
            assert type(p) is type(q)
            p, q = p.toarray(), q.toarray()
        np.testing.assert_array_equal(p, q)
    np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray())
    assert repr(a.get_params()) == repr(b.get_params())


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol, fitted, xy):
    assert_same_answers(pickle.loads(pickle.dumps(fitted, protocol)), fitted, xy[0])
    fitted.predict(xy[0])
    assert_same_answers(pickle.loads(pickle.dumps(fitted, protocol)), fitted, xy[0])


@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_joblib(mmap_mode, fitted, xy, tmp_path):
    joblib.dump(fitted, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
    assert isinstance(again.coef_.data, np.memmap) == (mmap_mode == "r")
    assert_same_answers(again, fitted, xy[0])


def test_copies(fitted, xy):
    assert_same_answers(copy.deepcopy(fitted), fitted, xy[0])
    assert_same_answers(copy.copy(fitted), fitted, xy[0])


def test_an_unfitted_model(xy):
    again = pickle.loads(pickle.dumps(OvALinearXC(C=3.0)))
    assert again.get_params()["C"] == 3.0
    again.set_params(prune=0).fit(*xy)


class TestParameters:
    def test_clone_copies_parameters_but_nothing_fitted(self, fitted):
        other = clone(fitted)
        assert repr(other.get_params()) == repr(fitted.get_params())
        assert not hasattr(other, "classes_")
        assert not hasattr(other, "coef_")

    def test_set_and_get(self):
        model = OvALinearXC(2.0, loss="logistic")
        model.set_params(C=0.5, top_k=7)
        assert model.get_params() == {**OvALinearXC().get_params(), "C": 0.5, "loss": "logistic",
                                      "top_k": 7}  # fmt: skip
        with pytest.raises(ValueError, match="Invalid parameter 'alpha'"):
            model.set_params(alpha=1)

    def test_the_constructor_stores_and_does_not_check(self):
        start = [[1.0]]
        model = OvALinearXC(C="nonsense", init=start)
        assert model.C == "nonsense"
        assert model.init is start

    def test_everything_but_c_is_by_keyword(self):
        with pytest.raises(TypeError, match="positional"):
            OvALinearXC(1.0, "logistic")

    def test_repr(self):
        model = OvALinearXC(C=3.0, init=Bias(-1.0))
        assert repr(model) == "OvALinearXC(C=3.0, init=Bias(weight=-1.0))"

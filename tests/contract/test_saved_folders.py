"""Every estimator comes back from a folder as it was, and goes on from there."""

import pickle

import numpy as np
import pytest
from fitted import assert_same_answers, assert_same_model
from registry import ENTRIES
from saved_models import DISTINCT, MODELS, X, fitted

import sklearn_xc
from sklearn_xc import TextClassifierXC

#: Whose learner is scikit-learn's boosting, whose parts are private.
REFUSED = {name for name in MODELS if name.startswith("StackingXC")}
REFUSED -= {"StackingXC own learner", "StackingXC foreign learner"}
TEXTS = ["soup broth ladle", "bread dough", "soup stock", "bread yeast oven"] * 15
NAMES = [["soup"], ["bread", "oven"], ["soup", "stock"], ["bread"]] * 15

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]


@pytest.mark.parametrize("name", sorted(set(DISTINCT) - REFUSED))
def test_it_comes_back(name, tmp_path):
    model, folder = fitted(name), tmp_path / "model"
    model.save(folder)
    again = sklearn_xc.load(folder, verify=True)
    assert_same_answers(again, model, X)
    assert_same_model(again, model)
    # What was loaded can be saved over itself, and pickled.
    again = sklearn_xc.load(folder)
    again.save(folder)
    assert_same_model(sklearn_xc.load(folder), model)
    assert_same_model(pickle.loads(pickle.dumps(again)), model)


def test_what_runs_code_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match="final_estimator is a HistGradientBoostingClassifier of s"):
        fitted("StackingXC").save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_texts_and_names(tmp_path):
    model = TextClassifierXC().fit(TEXTS, NAMES)
    model.save(tmp_path / "model")
    again = sklearn_xc.load(tmp_path / "model")
    assert again.predict(TEXTS) == model.predict(TEXTS)
    assert again.vectorizer_.vocabulary_ == model.vectorizer_.vocabulary_
    for one, other in zip(again.predict_topk(TEXTS), model.predict_topk(TEXTS), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_estimator_that_is_not_fitted_comes_back_too(name, tmp_path):
    model = ENTRIES[name].make()
    if name == "StackingXC":
        model.set_params(final_estimator=None)
    model.save(tmp_path / "model")
    again = sklearn_xc.load(tmp_path / "model")
    assert repr(again) == repr(model)
    assert not hasattr(again, "classes_")

"""What a saved model names: estimators by public names, and nothing else of this package."""

import copy
import importlib
import io
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from fitted import assert_same_answers, assert_same_model
from registry import ENTRIES, having
from saved_models import MODELS, X, Y, fitted
from sklearn.utils import Bunch
from small_data import made

from sklearn_xc import TextClassifierXC
from sklearn_xc._plain_state import RECORDS, as_plain, from_plain
from sklearn_xc.preprocessing import LabelBinarizerXC
from sklearn_xc.weights.label_weights import LabelWeights

TEXTS = ["soup broth ladle", "bread dough", "soup stock", "bread yeast oven"] * 15
NAMES = [["soup"], ["bread", "oven"], ["soup", "stock"], ["bread"]] * 15

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.RecallWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return fitted(request.param)


class Reader(pickle.Unpickler):
    """Reads a pickle, and writes down the names in it."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.names = set()

    def find_class(self, module, name):
        self.names.add(f"{module}.{name}")
        return super().find_class(module, name)


def names_in(model):
    reader = Reader(pickle.dumps(model))
    reader.load()
    return reader.names


def is_public(name):
    """Whether a name has no private part, and can be imported from its subpackage."""
    parts = name.split(".")
    home = importlib.import_module(".".join(parts[:2]))
    return not any(part.startswith("_") for part in parts) and hasattr(home, parts[-1])


def test_a_pickle_names_estimators_and_parts_alone(model):
    ours = {name for name in names_in(model) if name.startswith("sklearn_xc.")}
    assert ours
    assert {name for name in ours if not is_public(name)} == set()
    assert not {name.rpartition(".")[2] for name in ours} & set(RECORDS)


def test_attributes_that_were_assigned_must_fit_the_others(model):
    classifier = copy.deepcopy(model[-1] if hasattr(model, "steps") else model)
    width = classifier.n_features_in_
    classifier.classes_ = classifier.classes_.copy()
    assert len(classifier.predict_topk(sp.csr_array((1, width)), 1)[0]) == 1
    held = {
        name: value[:-1]
        for name, value in vars(classifier).items()
        if name in ("classes_", "coef_", "intercept_", "feature_embedding_", "label_embeddings_")
        and value is not None
    }
    has_parts = any(hasattr(classifier, name) for name in ("estimator", "estimators"))
    if not has_parts and not hasattr(getattr(classifier, "encoder", None), "model"):
        held["n_features_in_"] = width + 1
    for name, value in held.items():
        edited = copy.deepcopy(classifier)
        setattr(edited, name, value)
        for ask in (edited.predict, edited.predict_topk, copy.copy(edited).predict):
            with pytest.raises(ValueError, match=r"attributes were changed and do not fit"):
                ask(sp.csr_array((1, edited.n_features_in_)))


def test_skops_asks_for_estimators_and_parts_alone(model):
    io_of = pytest.importorskip("skops.io", reason="skops is not installed")
    data = io_of.dumps(model)
    asked = io_of.get_untrusted_types(data=data)
    # Of scikit-learn's own boosted trees in a stack, and of its imputer.
    theirs = {"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor", "numpy.dtype"}
    ours = set(asked) - (theirs if hasattr(model, "final_estimator") else set())
    assert all(name.startswith("sklearn_xc.") and is_public(name) for name in ours), ours
    again = io_of.loads(data, trusted=asked)
    if hasattr(model, "steps"):
        model, again = model[-1], again[-1]
    assert_same_model(again, model)
    assert_same_answers(again, model, X)


@pytest.mark.parametrize("made_of", [TextClassifierXC, LabelBinarizerXC])
def test_skops_and_names(made_of):
    io_of = pytest.importorskip("skops.io", reason="skops is not installed")
    fitted = made_of().fit(*([NAMES] if made_of is LabelBinarizerXC else [TEXTS, NAMES]))
    data = io_of.dumps(fitted)
    asked = io_of.get_untrusted_types(data=data)
    assert all(is_public(name) for name in asked), asked
    again = io_of.loads(data, trusted=asked)
    if made_of is LabelBinarizerXC:
        np.testing.assert_array_equal(again.classes_, fitted.classes_)
        assert (again.transform(NAMES) != fitted.transform(NAMES)).nnz == 0
    else:
        assert again.predict(TEXTS) == fitted.predict(TEXTS)
        for one, other in zip(again.predict_topk(TEXTS), fitted.predict_topk(TEXTS), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", having("partial_fit"))
def test_training_goes_on_after_skops(name):
    io_of = pytest.importorskip("skops.io", reason="skops is not installed")
    model = ENTRIES[name].make().fit(X, Y)
    data = io_of.dumps(model)
    again = io_of.loads(data, trusted=io_of.get_untrusted_types(data=data))
    further = made(5, 4)
    assert_same_model(again.partial_fit(*further), model.partial_fit(*further))


def test_every_record_is_where_the_table_says():
    for name, module in RECORDS.items():
        assert getattr(importlib.import_module(module), name).__module__ == module


def test_plain_state_holds_no_record_and_comes_back():
    coef = sp.csr_array(np.eye(3))
    coef.indices, coef.indptr = coef.indices.astype(np.int64), coef.indptr.astype(np.int64)
    weights = LabelWeights(coef, np.arange(3.0))
    texts = ["a", "b"]
    state = {
        "weights": weights, "again": [weights, (texts, texts)], "container": sp.csr_matrix,
        "dtype": np.dtype(np.float32), "array": np.arange(3), "bunch": Bunch(a=weights),
        "none": None, "other type": dict,
    }  # fmt: skip
    flat = as_plain(state)
    assert type(flat["weights"]) is dict
    assert flat["weights"] is flat["again"][0]
    assert flat["array"] is state["array"]
    assert flat["other type"] is dict
    back = from_plain(flat)
    assert back["weights"] is back["again"][0] is back["bunch"].a
    assert back["again"][1][0] is back["again"][1][1]
    assert (back["container"], back["dtype"]) == (sp.csr_matrix, np.float32)
    assert type(back["bunch"]) is Bunch
    found = back["weights"]
    assert type(found) is LabelWeights
    assert type(found.coef) is sp.csr_array
    assert found.coef.data is coef.data
    assert found.coef.indptr.dtype == found.coef.indices.dtype == np.int64
    np.testing.assert_array_equal(found.coef.toarray(), np.eye(3))


def test_an_unknown_record_is_refused():
    flat = as_plain({"weights": LabelWeights(sp.csr_array(np.eye(2)), np.zeros(2))})
    (kind,) = (key for key, value in flat["weights"].items() if value == "LabelWeights")
    flat["weights"][kind] = "os.system"
    with pytest.raises(ValueError, match=r"record of kind 'os\.system', which .* damaged"):
        from_plain(flat)

"""Labels that are added to a model, dropped, renamed and put into another order."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from sklearn_xc import OvALinearXC, OvALinearXCCV, load
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.exceptions import UnseenLabelWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]
N_LABELS = 20
X, Y = make_xc_classification(
    n_samples=150, n_features=60, n_labels=N_LABELS, random_state=0, return_X_y=True
)
NAMES = [f"label {i:02d}" for i in range(N_LABELS)]
WEIGHT = np.random.default_rng(0).choice([0.5, 1.0, 3.0], X.shape[0])


def rows_of(model):
    """Return the bytes of what is known of each label, by what it is called."""
    coef = model.coef_
    found = {}
    for i, label in enumerate(model.classes_.tolist()):
        own = slice(coef.indptr[i], coef.indptr[i + 1])
        report = [column[i] for name, column in model.fit_report_.items() if name != "seconds"]
        found[label] = (
            coef.indices[own].tobytes(), coef.data[own].tobytes(), model.intercept_[i].tobytes(),
            model._weights.prior[i].tobytes(), int(model.label_counts_[i]), repr(report),
        )  # fmt: skip
    return found


def answers(model):
    labels, scores = model.predict_topk(X, 3)
    return model.classes_[labels].tolist(), scores.tolist()


@settings(max_examples=15)
@given(n_first=st.integers(1, N_LABELS - 1), weighted=st.booleans())
def test_some_and_then_the_others_are_all_at_once(n_first, weighted):
    weight = WEIGHT if weighted else None
    model = OvALinearXC().fit(X, Y[:, :n_first], weight)
    model.add_labels(X, Y[:, n_first:], sample_weight=weight)
    whole = OvALinearXC().fit(X, Y, weight)
    assert rows_of(model) == rows_of(whole)
    assert answers(model) == answers(whole)
    assert model.n_samples_fit_ == whole.n_samples_fit_
    assert model._unseen_labels.tolist() == whole._unseen_labels.tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "logistic"},
        {"class_weight": "propensity", "negative_weight": 0.3},
        {"init": "ovap"},
        {"fit_intercept": False},
        {"prune": 0.0},
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dense", [False, True])
def test_with_other_parameters_and_containers(parameters, dtype, dense):
    x, y = X.astype(dtype), Y
    if dense:
        x, y = x.toarray() + 0.1, y.toarray()
    model = OvALinearXC(**parameters).fit(x, y[:, :9])
    model.add_labels(x, y[:, 9:12]).add_labels(x, y[:, 12:])
    assert rows_of(model) == rows_of(OvALinearXC(**parameters).fit(x, y))


def test_instances_in_another_dtype_are_read_in_that_of_the_model():
    model = OvALinearXC().fit(X.astype(np.float32), Y[:, :7])
    model.add_labels(X.astype(np.float32).astype(np.float64), Y[:, 7:])
    assert rows_of(model) == rows_of(OvALinearXC().fit(X.astype(np.float32), Y))


@pytest.mark.parametrize("container", [np.asarray, lambda y: y[:, 0][:, None].tolist()])
def test_one_label_from_a_dense_column(container):
    y = Y.toarray()
    model = OvALinearXC().fit(X, y[:, :9])
    model.add_labels(X, np.asarray(container(y[:, 9:10])))
    assert rows_of(model) == rows_of(OvALinearXC().fit(X, y[:, :10]))


def test_one_label_from_a_data_frame():
    import pandas as pd

    frame = pd.DataFrame(Y.toarray(), columns=NAMES)
    model = OvALinearXC().fit(X, frame[NAMES[:9]]).add_labels(X, frame[[NAMES[9]]])
    assert rows_of(model) == rows_of(OvALinearXC().fit(X, frame[NAMES[:10]]))


def test_the_best_cost_is_kept():
    model = OvALinearXCCV(Cs=[0.1, 3.0], cv=2).fit(X, Y[:, :7])
    model.add_labels(X, Y[:, 7:])
    assert rows_of(model) == rows_of(OvALinearXC(model.C_).fit(X, Y))


def test_names():
    import pandas as pd

    model = OvALinearXC(label_names=NAMES[:7]).fit(X, Y[:, :7])
    model.add_labels(X, Y[:, 7:12], classes=NAMES[7:12])
    model.add_labels(X, pd.DataFrame(Y[:, 12:].toarray(), columns=NAMES[12:]))
    assert model.classes_.tolist() == NAMES
    assert rows_of(model) == rows_of(OvALinearXC(label_names=NAMES).fit(X, Y))


def test_weights_of_labels_by_name():
    weights = {NAMES[2]: 3.0, NAMES[9]: 0.2}
    parameters = {"class_weight": weights}
    model = OvALinearXC(label_names=NAMES[:7], class_weight={NAMES[2]: 3.0}).fit(X, Y[:, :7])
    model.set_params(**parameters).add_labels(X, Y[:, 7:], classes=NAMES[7:])
    assert rows_of(model) == rows_of(OvALinearXC(label_names=NAMES, **parameters).fit(X, Y))


def test_labels_without_instances_are_told_by_name():
    model = OvALinearXC(label_names=NAMES[:7]).fit(X, Y[:, :7])
    y = sp.csr_array((X.shape[0], 1), dtype=np.int8)
    with pytest.warns(UnseenLabelWarning, match="1 of 1 labels have no .*'new'"):
        model.add_labels(X, y, classes=["new"])
    assert model._unseen_labels.tolist()[-1] == 7
    assert "new" not in np.array(answers(model)[0])[:, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.add_labels(), "X and y must be given"),
        (lambda m: m.add_labels(X, Y[:, :2], label_features=X), "label_features must be None"),
        (lambda m: m.add_labels(X, Y[:, :2], classes=["a", "b"]), "classes must be None after"),
        (lambda m: m.add_labels(X, np.zeros(X.shape[0])), "an indicator of the new labels"),
        (lambda m: m.add_labels(X[:, :3], Y[:, :2]), "features"),
        (lambda m: m.add_labels(X[:9], Y[:, :2]), "9"),
        (lambda m: m.drop_labels([0, 99]), "label must be one of the 7"),
        (lambda m: m.drop_labels([0, 0]), "distinct. Got .*0.* more than once"),
        (lambda m: m.drop_labels([True]), "label must be one of"),
        (lambda m: m.drop_labels(range(7)), "must leave 1 of the 7 labels"),
        (lambda m: m.rename_labels({"a": "b"}), "label must be one of"),
        (lambda m: m.rename_labels({0: 1}), "distinct"),
        (lambda m: m.rename_labels({0: "a"}), "for label"),
        (lambda m: m.rename_labels(["a"]), "7 names"),
        (lambda m: m.reorder_labels([1, 0]), "all 7 labels. Got 2"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(call, message):
    model = OvALinearXC().fit(X, Y[:, :7])
    before, state = rows_of(model), dict(vars(model))
    with pytest.raises(ValueError, match=message):
        call(model)
    assert rows_of(model) == before
    assert vars(model).keys() == state.keys()
    assert model.classes_ is state["classes_"]


def test_known_names_and_names_where_there_are_some():
    model = OvALinearXC(label_names=NAMES[:7]).fit(X, Y[:, :7])
    with pytest.raises(ValueError, match=r"classes must name the 2 new labels\. Got None"):
        model.add_labels(X, Y[:, :2])
    with pytest.raises(ValueError, match=r"classes must be distinct\. Got 'label 03'"):
        model.add_labels(X, Y[:, :2], classes=["new", NAMES[3]])
    with pytest.raises(ValueError, match=r"label must be one of .* Did you mean 'label 03'"):
        model.drop_labels(["labl 03"])


def test_not_before_fit():
    for call in (
        lambda m: m.add_labels(X, Y), lambda m: m.drop_labels([0]),
        lambda m: m.rename_labels({}), lambda m: m.reorder_labels([]),
    ):  # fmt: skip
        with pytest.raises(NotFittedError):
            call(OvALinearXC())


@given(dropped=st.sets(st.integers(0, N_LABELS - 1), max_size=N_LABELS - 1), seed=st.integers(0, 5))
def test_those_that_stay_stay_as_they_are(model_of_all, dropped, seed):
    model = load(model_of_all)
    known = rows_of(model)
    model.drop_labels(sorted(dropped))
    assert rows_of(model) == {label: row for label, row in known.items() if label not in dropped}
    order = np.random.default_rng(seed).permutation(model.classes_)
    model.reorder_labels(order)
    assert model.classes_.tolist() == order.tolist()
    assert rows_of(model) == {label: known[label] for label in order.tolist()}
    renamed = {int(label): 100 + int(label) for label in order[:2]}
    model.rename_labels(renamed)
    assert model.classes_.tolist() == [renamed.get(label, label) for label in order.tolist()]


@pytest.fixture(scope="module")
def model_of_all(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    OvALinearXC().fit(X, Y).save(folder)
    return folder


def test_scores_are_those_of_before():
    y = Y.toarray()
    model, whole = OvALinearXC().fit(X, y), OvALinearXC().fit(X, y)
    kept = np.array([3, 4, 9, 17])
    model.drop_labels(np.setdiff1d(np.arange(N_LABELS), kept))
    there = whole.decision_function(X)[:, kept]
    seen = ~np.isin(kept, whole._unseen_labels)
    here = model.decision_function(X)
    # Features are added up in an order that follows from the weights of all labels.
    np.testing.assert_allclose(here[:, seen], there[:, seen], rtol=1e-5, atol=1e-6)


def test_classes_stay_sorted():
    y = np.array(["b", "d", "a", "c"])[np.arange(X.shape[0]) % 4]
    model = OvALinearXC().fit(X, y)
    before = answers(model)[0]
    model.rename_labels({"a": "z"})
    assert model.classes_.tolist() == ["b", "c", "d", "z"]
    assert answers(model)[0] == [[{"a": "z"}.get(x, x) for x in row] for row in before]
    model.drop_labels(["c"])
    assert model.classes_.tolist() == ["b", "d", "z"]
    assert "c" not in model.predict(X)
    with pytest.raises(ValueError, match="must leave 3"):
        model.drop_labels(["b"])
    with pytest.raises(ValueError, match="sorted"):
        model.reorder_labels(["z", "d", "b"])
    with pytest.raises(ValueError, match="negatives of those before"):
        model.add_labels(X, Y[:, :1])
    with pytest.raises(ValueError, match=r"3 distinct classes\. Got 3, of which 2"):
        model.rename_labels(["a", "a", "b"])


def test_two_classes_stay_in_their_order():
    model = OvALinearXC().fit(X, np.array(["a", "b"])[np.arange(X.shape[0]) % 2])
    assert model.rename_labels({"a": "b", "b": "c"}).classes_.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="must leave two classes in their order"):
        model.rename_labels({"b": "z"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"a": 1}, "of one kind. Got number and str"),
        ({"a": None}, "of one kind. Got NoneType and str"),
        ([1.0, 2.0, float("nan")], "must not be missing, entry 2"),
        ([True, 2, 3], "of one kind. Got bool and number"),
        (["a", "b"], "3 distinct classes. Got 2, of which 2"),
    ],
)
def test_names_of_classes_are_checked_as_in_fit(names, message):
    model = OvALinearXC().fit(X, np.array(["a", "b", "c"])[np.arange(X.shape[0]) % 3])
    with pytest.raises(ValueError, match=message):
        model.rename_labels(names)


def test_a_changed_model_is_saved_and_opens(tmp_path):
    model = (
        OvALinearXC()
        .fit(X, Y[:, :9])
        .drop_labels([0])
        .add_labels(X, Y[:, 9:], classes=range(9, 20))
    )
    model.save(tmp_path / "model")
    assert rows_of(load(tmp_path / "model", verify=True)) == rows_of(model)


def test_a_compact_model_keeps_what_its_weights_stand_for():
    model = OvALinearXC().fit(X, Y).compact()
    known = rows_of(model)
    model.drop_labels([1, 2])
    assert rows_of(model) == {label: row for label, row in known.items() if label not in (1, 2)}

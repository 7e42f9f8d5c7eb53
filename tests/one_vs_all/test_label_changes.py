"""Labels that are added to a model, dropped, renamed and put into another order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import make_xc_classification

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
            coef.indices[own].tobytes(),
            coef.data[own].tobytes(),
            model.intercept_[i].tobytes(),
            model._weights.prior[i].tobytes(),
            int(model.label_counts_[i]),
            repr(report),
        )
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


def test_names():
    import pandas as pd

    model = OvALinearXC(label_names=NAMES[:7]).fit(X, Y[:, :7])
    model.add_labels(X, Y[:, 7:12], classes=NAMES[7:12])
    model.add_labels(X, pd.DataFrame(Y[:, 12:].toarray(), columns=NAMES[12:]))
    assert model.classes_.tolist() == NAMES
    assert rows_of(model) == rows_of(OvALinearXC(label_names=NAMES).fit(X, Y))


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


def test_two_classes_stay_in_their_order():
    model = OvALinearXC().fit(X, np.array(["a", "b"])[np.arange(X.shape[0]) % 2])
    assert model.rename_labels({"a": "b", "b": "c"}).classes_.tolist() == ["b", "c"]
    with pytest.raises(ValueError, match="cannot reorder the classes of a binary model"):
        model.rename_labels({"b": "z"})

"""Labels that no training row has, in classifiers of other packages: they come last."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import StackingXC, ThresholdTuner, TopKCalibrator, topk
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.metrics import get_scorer, precision_at_k

#: Columns without an instance, between others.
UNSEEN = [0, 3, 11]

pytestmark = [
    pytest.mark.filterwarnings("ignore:Label not"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]


@pytest.fixture(scope="module")
def data():
    X, Y = make_xc_classification(
        n_samples=300, n_features=150, n_labels=20, random_state=0, return_X_y=True
    )
    return X.toarray(), np.insert(Y.toarray(), [0, 2, 9], 0, axis=1)


@pytest.fixture(scope="module")
def one_vs_rest():
    return OneVsRestClassifier(LogisticRegression())


def test_they_take_no_hit_from_the_others(data, one_vs_rest):
    X, Y = data
    model = make_pipeline(MaxAbsScaler(), one_vs_rest).fit(X[:200], Y[:200])
    best = np.delete(model.decision_function(X[200:]), UNSEEN, axis=1).argmax(axis=1)
    expected = np.delete(Y[200:], UNSEEN, axis=1)[np.arange(100), best].mean()
    assert precision_at_k(Y[200:], topk(model, X[200:], 1), k=1) == expected > 0.3
    assert get_scorer("P@1")(model, X[200:], Y[200:]) == expected
    best = [
        GridSearchCV(one_vs_rest, {"estimator__C": [1.0]}, scoring=get_scorer("P@1"), cv=2)
        .fit(X, labels)
        .best_score_
        for labels in (Y, np.delete(Y, UNSEEN, axis=1))
    ]
    assert best[0] == best[1]


@pytest.mark.parametrize("cv", [2, "prefit"])
@pytest.mark.parametrize(
    "wrap",
    [ThresholdTuner, TopKCalibrator, lambda one, cv: StackingXC([("one", one)], cv=cv)],
    ids=["tuner", "calibrator", "stack"],
)
def test_wrappers(wrap, cv, data, one_vs_rest):
    """A ridge does not show which labels it has not seen: the wrappers count."""
    X, Y = data
    inner = one_vs_rest.fit(X, Y) if cv == "prefit" else RidgeClassifier()
    model = wrap(inner, cv=cv).fit(X, Y)
    assert (model.predict_topk(X, 23)[0][:, 20:] == UNSEEN).all()
    assert not model.predict(X)[:, UNSEEN].any()
    if hasattr(model, "predict_proba"):
        assert not model.predict_proba(X)[:, UNSEEN].any()


def test_prefit_estimators_know_more_labels_than_the_rows_of_fit(data, one_vs_rest):
    X, Y = data
    fitted, rows = one_vs_rest.fit(X, Y), np.flatnonzero(Y[:, 5] == 0)
    for model in (
        TopKCalibrator(fitted, cv="prefit"),
        StackingXC([("one", fitted)], cv="prefit"),
    ):
        model.fit(X[rows], Y[rows])
        assert model._unseen_labels.tolist() == UNSEEN

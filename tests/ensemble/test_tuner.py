"""ThresholdTuner: what it learns from, what it predicts, how it lives with scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold

from sklearn_xc import OvALinearXC, ThresholdTuner, topk
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.metrics import TopKScorer
from sklearn_xc.metrics.frequency_groups import group_of
from sklearn_xc.model_selection import cross_val_topk

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
]


@pytest.fixture(scope="module")
def data():
    return make_xc_classification(
        n_samples=600, n_features=200, n_labels=60, random_state=0, return_X_y=True
    )


def tuner(**parameters):
    return ThresholdTuner(OvALinearXC(), **{"cv": 3, "random_state": 0, **parameters})


class Counted(OvALinearXC):
    """Counts how often one of its kind is trained."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.n_fits += 1
        return super().fit(X, y, sample_weight=sample_weight)


def test_the_single_threshold_is_the_best_on_out_of_fold_scores(data):
    X, Y = data
    folds = list(KFold(3).split(X))
    model = tuner(per="all", cv=folds).fit(X, Y)
    scores = cross_val_topk(OvALinearXC(), X, Y, cv=folds)
    truth = Y.toarray()

    def value(threshold):
        named = scores.copy()
        named.data = (named.data > threshold).astype(float)
        return f1_score(truth, named.toarray() > 0, average="micro")

    tried = np.quantile(scores.data, np.linspace(0.5, 0.999, 60))
    assert value(model.threshold_) >= max(value(one) for one in tried)
    np.testing.assert_array_equal(model.thresholds_, np.full(60, model.threshold_))


@pytest.mark.parametrize(
    ("per", "container"),
    [("all", sp.csr_matrix), ("frequency_group", sp.csr_array), ("label", sp.csr_array.toarray)],
)
def test_predict_names_what_exceeds_the_thresholds(per, container, data):
    X, Y = data
    model = tuner(per=per).fit(X, container(Y))
    predicted = model.predict(X)
    assert isinstance(predicted, type(container(Y)))
    labels, scores = model.estimator_.predict_topk(X, 60)
    dense = np.empty(Y.shape)
    np.put_along_axis(dense, labels, scores, axis=1)
    expected = dense > model.thresholds_
    found = predicted.toarray() if sp.issparse(predicted) else predicted
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == Y.dtype
    of_groups = model.fit_report_["threshold"]
    assert per != "label" or len(np.unique(model.thresholds_)) > len(of_groups)
    if per == "frequency_group":
        groups = group_of(model.label_counts_, model.group_edges_)
        np.testing.assert_array_equal(model.thresholds_, of_groups[groups])


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
def test_the_best_labels_of_a_row_are_predicted_in_any_case(container, data):
    X, Y = data
    few = {"objective": "recall", "min_precision": 0.9}
    plain = tuner(**few).fit(X, container(Y))
    model = tuner(**few, min_labels=2).fit(X, container(Y))
    np.testing.assert_array_equal(model.thresholds_, plain.thresholds_)
    expected = sp.lil_array(plain.predict(X))
    assert (expected.sum(axis=1) == 0).any()
    for row, best in enumerate(model.predict_topk(X, 2)[0]):
        expected[row, best] = 1
    assert (sp.csr_array(model.predict(X)) != expected).nnz == 0
    assert (model.fit_report_["recall"] > plain.fit_report_["recall"]).any()


def test_scores_are_those_of_the_estimator(data):
    X, Y = data
    model, plain = tuner().fit(X, Y), OvALinearXC().fit(X, Y)
    for ask in (lambda m: m.predict_topk(X, 5), lambda m: topk(m, X, 5)):
        for a, b in zip(ask(model), ask(plain), strict=True):
            np.testing.assert_array_equal(a, b)
    assert (model.decision_function(X) != plain.decision_function(X)).nnz == 0
    np.testing.assert_array_equal(model.label_counts_, plain.label_counts_)
    assert model.n_samples_fit_ == 600
    assert model.score(X, Y) == plain.score(X, Y)
    scorer = TopKScorer(ks=(1, 3))
    assert scorer(model, X, Y) == scorer(plain, X, Y)
    dense = tuner().fit(X, Y.toarray())
    expected = OvALinearXC().fit(X, Y.toarray()).decision_function(X)
    np.testing.assert_array_equal(dense.decision_function(X), expected)


def test_a_precision_is_kept(data):
    X, Y = data
    model = tuner(objective="recall", min_precision=0.8, per="all").fit(X[:400], Y[:400])
    predicted = model.predict(X[400:])
    assert predicted.multiply(Y[400:]).nnz > 0.65 * predicted.nnz
    lower = tuner(objective="recall", min_precision=0.4, per="all").fit(X[:400], Y[:400])
    assert lower.threshold_ < model.threshold_
    blind = ThresholdTuner(
        _Constant().fit(X, Y), objective="recall", min_precision=1.0, cv="prefit"
    )
    with pytest.warns(UndefinedMetricWarning, match="no threshold has a precision of min_precis"):
        blind.fit(X, Y)
    assert not blind.predict(X).nnz


class _Constant(OvALinearXC):
    """Scores all labels alike."""

    def predict_topk(self, X, k=5):
        labels, scores = super().predict_topk(X, k)
        return labels, np.zeros_like(scores)


def test_prefit(data):
    X, Y = data
    inner = OvALinearXC().fit(X[:300], Y[:300])
    model = ThresholdTuner(inner, cv="prefit").fit(X[300:], Y[300:])
    assert model.estimator_.intercept_ is inner.intercept_
    assert model.n_samples_fit_ == 300
    np.testing.assert_array_equal(model.label_counts_, inner.label_counts_)
    listed = ThresholdTuner(OvALinearXC(), cv=[(np.arange(300), np.arange(300, 600))]).fit(X, Y)
    assert model.threshold_ == listed.threshold_
    with pytest.raises(NotFittedError, match="cv is 'prefit', and 'estimator' is not fitted"):
        ThresholdTuner(OvALinearXC(), cv="prefit").fit(X, Y)
    with pytest.raises(ValueError, match="a column for each of the 60 labels"):
        ThresholdTuner(inner, cv="prefit").fit(X, Y[:, :50])


@pytest.mark.parametrize(("n_classes", "objective"), [(2, "micro_f1"), (3, "recall")])
def test_classes_have_no_threshold(data, n_classes, objective, capfd):
    """The best is predicted: all answers are those of the estimator, trained once on all rows."""
    X, _ = data
    y, weight = np.array(["b", "c", "a"])[np.arange(600) % n_classes], np.arange(600) % 4
    Counted.n_fits = 0
    # Folds of so few rows could not be made.
    model = ThresholdTuner(Counted(), objective=objective, cv=10_000, verbose=1)
    model.fit(X, y, sample_weight=weight)
    assert Counted.n_fits == 1
    assert capfd.readouterr().out.count("with all rows") == 1
    plain = OvALinearXC().fit(X, y, sample_weight=weight)
    for method in ("predict", "decision_function", "predict_topk"):
        for ours, its in zip(getattr(model, method)(X), getattr(plain, method)(X), strict=True):
            np.testing.assert_array_equal(ours, its)
    assert model.score(X, y) == plain.score(X, y)
    np.testing.assert_array_equal(model.classes_, plain.classes_)
    np.testing.assert_array_equal(model.label_counts_, plain.label_counts_)
    assert np.isnan(model.threshold_)
    assert np.isnan(model.thresholds_).all()
    assert model.thresholds_.shape == (n_classes,)
    report = model.fit_report_
    assert np.isnan([report[name] for name in ("threshold", "precision", "recall")]).all()
    assert report["n_labels"].sum() == n_classes
    assert set(report) == set(tuner().fit(*data).fit_report_)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"objective": "f1"}, "'objective' parameter of ThresholdTuner must be a str among"),
        ({"per": "row"}, "'per' parameter"),
        ({"beta": 0}, "'beta' parameter"),
        ({"min_precision": 1.5}, "'min_precision' parameter"),
        ({"n_groups": 0}, "'n_groups' parameter"),
        ({"n_groups": True}, "n_groups must be a number"),
        ({"cv": 1}, "'cv' parameter"),
        ({"cv": 601}, "cv must be from 2 to 600"),
        ({"cv": "folds"}, "'cv' parameter"),
        ({"top_k": 0}, "'top_k' parameter"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_bad_parameters(parameters, says, data):
    with pytest.raises(ValueError, match=says):
        tuner(**parameters).fit(*data)

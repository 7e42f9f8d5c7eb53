"""The function ``topk`` on classifiers of other packages, Pipelines and searches."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from sklearn_xc import OvALinearXC, TopKCalibrator, _topk, topk
from sklearn_xc.exceptions import MemoryBudgetError


def slow_topk(scores, k):
    """Return the k best of each row of dense scores, ties to the smaller label, padded."""
    n, n_labels = scores.shape
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    labels, best = np.full((n, k), -1), np.full((n, k), -np.inf)
    labels[:, :n_labels] = order
    best[:, :n_labels] = np.take_along_axis(scores, order, axis=1)
    return labels, best


def assert_topk(estimator, X, scores, ks=(1, 2, 9), atol=0.0):
    for k in ks:
        labels, best = topk(estimator, X, k)
        expected = slow_topk(np.asarray(scores), k)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(labels, expected[0])
        np.testing.assert_allclose(best, expected[1], rtol=1e-12, atol=atol)


@pytest.fixture
def classes(xy):
    return np.array(["b", "a", "c"])[xy[0].toarray()[:, :3].argmax(axis=1)]


@pytest.fixture
def indicator(xy):
    return xy[1].toarray()[:, :4].astype(int)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Cut the rows of foreign estimators into pieces of about 30."""
    monkeypatch.setattr(_topk, "_CHUNK_SCORES", 100)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [(GaussianNB(), "predict_proba"), (LogisticRegression(), "decision_function")],
)
def test_classes(estimator, method, xy, classes):
    X = xy[0].toarray()
    estimator.fit(X, classes)
    assert_topk(estimator, X, getattr(estimator, method)(X))


def test_one_vs_rest_on_an_indicator(xy, indicator):
    model = OneVsRestClassifier(LogisticRegression()).fit(xy[0], indicator)
    assert_topk(model, xy[0], model.decision_function(xy[0]))


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(5, random_state=0), KNeighborsClassifier(3)],
    ids=lambda e: type(e).__name__,
)
def test_probabilities_in_a_list_of_one_array_per_label(estimator, xy, indicator):
    X = xy[0].toarray()
    indicator[:, 1], indicator[:, 2] = 0, 1
    estimator.fit(X, indicator)
    first, *_, last = (chances[:, -1] for chances in estimator.predict_proba(X))
    probabilities = np.column_stack([first, np.zeros(120), np.ones(120), last])
    probabilities[:, 1] -= 1e-9  # of no training row: last of all, at 0
    assert_topk(estimator, X, probabilities, atol=1e-8)


def test_pipelines_and_searches_are_unwrapped(xy):
    X, Y = xy
    inner = make_pipeline(MaxAbsScaler(), OvALinearXC(prune=0))
    search = GridSearchCV(inner, {"ovalinearxc__C": [0.5]}, cv=2)
    outer = make_pipeline(MaxAbsScaler(), search).fit(X, Y)
    found, transformed = _topk.unwrap(outer, X)
    assert found is outer[-1].best_estimator_[-1]
    np.testing.assert_allclose(transformed.toarray(), MaxAbsScaler().fit_transform(X).toarray())
    expected = found.predict_topk(transformed, 3)
    for a, b in zip(topk(outer, X, 3), expected, strict=True):
        np.testing.assert_array_equal(a, b)


class _EveryOtherRow(BaseEstimator):
    """A sampler as imbalanced-learn has them."""

    def fit_resample(self, X, y):
        return X[::2], y[::2]


class _ResamplingPipeline(Pipeline):
    def fit(self, X, y):
        for _, step in self.steps[:-1]:
            resamples = hasattr(step, "fit_resample")
            X, y = step.fit_resample(X, y) if resamples else (step.fit_transform(X, y), y)
        self.steps[-1][1].fit(X, y)
        return self


def test_steps_that_resample_training_rows_are_passed_over(xy, classes):
    X, model = xy[0], OvALinearXC(prune=0)
    pipeline = _ResamplingPipeline([("x", MaxAbsScaler()), ("y", _EveryOtherRow()), ("z", model)])
    pipeline.fit(X, classes)
    expected = pipeline[-1].predict_topk(pipeline[0].transform(X), 2)[0]
    np.testing.assert_array_equal(topk(pipeline, X, 2)[0], expected)
    calibrated = TopKCalibrator(pipeline, cv="prefit").fit(X, classes)
    np.testing.assert_array_equal(calibrated.predict_topk(X, 2)[0], expected)


def test_a_wrapper_around_a_fitted_estimator(xy):
    y = xy[1].toarray()[:, 0]
    model = FixedThresholdClassifier(OvALinearXC(prune=0)).fit(xy[0], y)
    np.testing.assert_array_equal(
        topk(model, xy[0], 2)[0], model.estimator_.predict_topk(xy[0], 2)[0]
    )


def test_lists_and_frames(xy, classes):
    X = xy[0].toarray()
    model = make_pipeline(StandardScaler(), GaussianNB()).fit(X, classes)
    expected = topk(model, X, 2)[0]
    np.testing.assert_array_equal(topk(model, X.tolist(), 2)[0], expected)
    np.testing.assert_array_equal(topk(model, pd.DataFrame(X), 2)[0], expected)
    bare = GaussianNB().fit(X, classes)
    np.testing.assert_array_equal(topk(bare, X.tolist(), 2)[0], topk(bare, X, 2)[0])


def test_errors(xy, classes):
    model = GaussianNB().fit(xy[0].toarray(), classes)
    with pytest.raises(ValueError, match=r"topk: k must be an integer of at least 1. Got 0"):
        topk(model, xy[0], 0)
    with pytest.raises(TypeError, match=r"needs predict_topk, .*LinearRegression has none of them"):
        topk(LinearRegression().fit(xy[0], xy[1][:, [0]].toarray()), xy[0])
    with pytest.raises(TypeError, match="topk: X is a masked array"):
        topk(model, np.ma.array(xy[0].toarray()))
    with pytest.raises(NotFittedError):
        topk(LogisticRegression(), xy[0])
    with pytest.raises(TypeError, match="topk needs a classifier, IsolationForest has no classes_"):
        topk(IsolationForest(n_estimators=2).fit(xy[0].toarray()), xy[0].toarray())


def test_two_classes_and_one(xy, classes):
    X, y = xy[0].toarray(), classes == "a"
    svm = Perceptron().fit(X, y)
    scores = svm.decision_function(X)
    assert_topk(svm, X, np.column_stack([-scores, scores]))
    with pytest.warns(UserWarning, match="Label not"):
        model = OneVsRestClassifier(LogisticRegression()).fit(xy[0], np.full(120, "a"))
    assert (topk(model, xy[0], 2)[0] == [0, -1]).all()


def test_an_answer_that_fits_no_memory(xy, classes, monkeypatch):
    k = 10**30
    models = [GaussianNB().fit(xy[0].toarray(), classes), OvALinearXC(prune=0).fit(*xy)]
    monkeypatch.setattr(np, "full", lambda *args: pytest.fail("allocated"))
    for model in models:
        with pytest.raises(MemoryBudgetError, match=f"120 instances x k={k}.*Lower k"):
            topk(model, xy[0].toarray(), k)
        with pytest.raises(MemoryBudgetError, match=f"120 instances x k={k}.*Lower k"):
            topk(make_pipeline(model), xy[0].toarray().tolist(), k)


def test_malformed_matrices_reach_no_transformer(malformed, xy, classes):
    scaled = make_pipeline(MaxAbsScaler(), LogisticRegression()).fit(xy[0], classes)
    for model in (scaled, scaled[-1], OvALinearXC(prune=0).fit(*xy)):
        with pytest.raises(ValueError, match=r"topk: X: this .* is malformed"):
            topk(model, malformed(xy[0]), 2)


def test_every_format_reaches_a_foreign_classifier(xy, classes):
    model = LogisticRegression().fit(xy[0], classes)
    for convert in (sp.coo_array, sp.csc_matrix, sp.lil_matrix):
        np.testing.assert_array_equal(topk(model, convert(xy[0]), 2)[0], topk(model, xy[0], 2)[0])


# Sparse rows of a fitted classifier skip scikit-learn's check if they are plain


@pytest.fixture
def fitted(xy):
    return OvALinearXC(prune=0).fit(*xy)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_row_that_is_not_finite_is_refused(value, xy, fitted):
    X = xy[0][[0]].copy()
    X.data[0] = value
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        fitted.predict_topk(X)


def test_a_row_of_another_width_is_refused(xy, fitted):
    with pytest.raises(ValueError, match="39 features, but OvALinearXC is expecting 40"):
        fitted.predict_topk(xy[0][:, :39])
    with pytest.raises(ValueError, match="0 sample"):
        fitted.predict_topk(xy[0][:0])


def test_names_seen_in_fit_are_missed_in_a_sparse_matrix(xy):
    frame = pd.DataFrame(xy[0].toarray()).add_prefix("word")
    model = OvALinearXC(prune=0).fit(frame, xy[1])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict_topk(xy[0])


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [(sp.csr_array, np.float32), (sp.csr_matrix, np.int64), (sp.coo_matrix, bool)],
)
def test_every_kind_of_row_is_scored_alike(convert, dtype, xy, fitted):
    whole = np.clip(np.round(3 * xy[0].toarray()), 0, 9).astype(dtype)
    expected = fitted.predict_topk(whole.astype(np.float64))
    for got, wanted in zip(fitted.predict_topk(convert(whole)), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_duplicate_and_unsorted_entries_are_summed_in_a_copy(xy, fitted):
    X = sp.csr_array(([1.0, 2.0, 3.0], [5, 2, 5], [0, 3]), shape=(1, 40))
    dense = np.zeros((1, 40))
    dense[0, 5], dense[0, 2] = 4.0, 2.0
    for got, wanted in zip(fitted.predict_topk(X), fitted.predict_topk(dense), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert X.indices.tolist() == [5, 2, 5]

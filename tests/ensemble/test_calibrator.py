"""TopKCalibrator: what it learns from, what it answers, how it lives with scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, TopKCalibrator, topk
from sklearn_xc.datasets import make_xc_classification

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning"),
]
SOFTMAX = ImplicitSoftmaxSGD(max_iter=5, learning_rate=1.0, random_state=0)


@pytest.fixture(scope="module")
def data():
    return make_xc_classification(
        n_samples=900, n_features=200, n_labels=60, random_state=0, return_X_y=True
    )


@pytest.fixture(scope="module")
def classes(data):
    X, Y = data
    names = np.array([f"label {i:02d}" for i in range(60)])
    return X, names[Y.indices[Y.indptr[:-1]]]


def calibrator(estimator=None, **parameters):
    estimator = OvALinearXC() if estimator is None else estimator
    return TopKCalibrator(estimator, **{"cv": 3, "n_groups": 3, "random_state": 0, **parameters})


def error_of(probabilities, hits, n_bins=8):
    """Return the expected calibration error, with bins of equal numbers of pairs."""
    order = np.argsort(probabilities, kind="stable")
    parts = np.array_split(order, n_bins)
    return sum(len(p) * abs(probabilities[p].mean() - hits[p].mean()) for p in parts) / len(order)


@pytest.mark.parametrize("method", ["spline", "sigmoid"])
def test_probabilities_are_shares_of_hits(method, data):
    X, Y = data
    model = calibrator(method=method).fit(X[:600], Y[:600])
    labels, probabilities = model.predict_proba_topk(X[600:], 5)
    hits = np.take_along_axis(Y[600:].toarray(), labels, axis=1).astype(bool)
    assert error_of(probabilities.ravel(), hits.ravel()) < 0.06
    assert error_of(probabilities[:, 0], hits[:, 0]) < 0.12


@pytest.mark.parametrize("top_k", [100, 7, 1])
def test_classes_sum_to_one(top_k, classes):
    X, y = classes
    model = calibrator(SOFTMAX, top_k=top_k).fit(X[:600], y[:600])
    probabilities = model.predict_proba(X[600:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert probabilities.dtype == X.dtype
    assert (probabilities > 0).all()
    predicted = model.predict(X[600:])
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], predicted)
    np.testing.assert_array_equal(predicted, model.estimator_.predict(X[600:]))
    first = probabilities.max(axis=1)
    assert error_of(first, predicted == y[600:], 4) < 0.2  # folds are a third smaller
    np.testing.assert_allclose(model.predict_log_proba(X[600:]), np.log(probabilities))
    labels, best = model.predict_proba_topk(X[600:], 9)
    np.testing.assert_allclose(np.take_along_axis(probabilities, labels, axis=1), best, rtol=1e-5)
    assert (np.diff(best, axis=1) <= 1e-7).all()


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_sparse_answers(container, data):
    X, Y = data
    model = calibrator(top_k=10).fit(X, container(Y))
    probabilities = model.predict_proba(X)
    assert type(probabilities) is type(container(Y))
    assert (np.diff(probabilities.indptr) == 10).all()
    labels, best = model.predict_proba_topk(X, 10)
    np.testing.assert_array_equal(labels, model.predict_topk(X, 10)[0])
    np.testing.assert_allclose(np.take_along_axis(probabilities.toarray(), labels, axis=1), best)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted.toarray() > 0, probabilities.toarray() > 0.5)
    logs = model.predict_log_proba(X)
    np.testing.assert_allclose(logs.data, np.log(probabilities.data))


def test_labels_beyond_share_what_is_missed(data):
    X, Y = data
    model = calibrator(top_k=3).fit(X[:600], Y[:600].toarray())
    probabilities = model.predict_proba(X[600:])
    labels = model.predict_topk(X[600:], 3)[0]
    beyond = np.ones(probabilities.shape, bool)
    np.put_along_axis(beyond, labels, False, axis=1)
    assert probabilities[beyond].mean() == pytest.approx(Y[600:].toarray()[beyond].mean(), abs=0.02)


def test_prefit(classes):
    X, y = classes
    inner = clone(SOFTMAX).fit(X[:600], y[:600])
    kept = np.flatnonzero(np.isin(y, inner.classes_) & (np.arange(900) >= 600))
    model = TopKCalibrator(inner, cv="prefit", n_groups=2).fit(X[kept], y[kept])
    assert model.estimator_.intercept_ is inner.intercept_
    np.testing.assert_array_equal(model.classes_, inner.classes_)
    np.testing.assert_array_equal(model.label_counts_, inner.label_counts_)
    assert model.predict_proba(X[:5]).shape == (5, len(inner.classes_))
    with pytest.raises(ValueError, match="'who', which is not in classes"):
        TopKCalibrator(inner, cv="prefit").fit(X[:2], [y[0], "who"])
    with pytest.raises(NotFittedError, match="cv is 'prefit', and 'estimator' is not fitted"):
        TopKCalibrator(SOFTMAX, cv="prefit").fit(X, y)


def test_texts_and_searches():
    words = ["apple pear", "pear", "dog cat", "cat", "apple", "dog"] * 6
    y = np.array(["fruit", "fruit", "pet", "pet", "fruit", "pet"] * 6)
    inner = make_pipeline(TfidfVectorizer(dtype=np.float32), OvALinearXC())
    model = calibrator(inner, cv=2)
    search = GridSearchCV(
        model, {"estimator__ovalinearxc__C": [0.1, 1.0]}, cv=2, scoring="neg_log_loss"
    ).fit(words, y)
    assert search.best_score_ > -0.3
    assert topk(search, words, 1)[0].shape == (36, 1)


@pytest.fixture(scope="module")
def wide(data):
    """Return X with a column that no instance has, and Y."""
    X, Y = data
    return sp.hstack([X, sp.csr_array((900, 1))], format="csr"), Y


class TestRowsWithoutFeatures:
    """They say nothing of their labels: their probabilities are how frequent labels are."""

    def blanks(self, d):
        unknown = sp.csr_array(([2.0], [d - 1], [0, 1]), shape=(1, d))
        return [sp.csr_array((1, d)), np.zeros((1, d)), unknown]

    @pytest.mark.parametrize(("estimator", "top_k"), [(OvALinearXC(), 5), (SOFTMAX, 100)])
    def test_classes(self, top_k, estimator, wide):
        X, Y = wide
        y = Y.indices[Y.indptr[:-1]]
        model = calibrator(estimator, top_k=top_k).fit(X, y)
        shares = model.label_counts_ / 900
        for blank in self.blanks(X.shape[1]):
            probabilities = model.predict_proba(blank)
            np.testing.assert_allclose(probabilities[0], shares, rtol=1e-6)
            assert model.classes_[probabilities[0].argmax()] == model.predict(blank)[0]
            labels, best = model.predict_proba_topk(blank, 9)
            np.testing.assert_allclose(best[0], shares[labels[0]], rtol=1e-6)

    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_labels(self, container, wide):
        X, Y = wide
        model = calibrator(top_k=10).fit(X, container(Y))
        shares = model.label_counts_ / 900
        mixed = sp.vstack([X[:2], *map(sp.csr_array, self.blanks(X.shape[1])), X[2:4]]).tocsr()
        labels, best = model.predict_proba_topk(mixed, 12)
        np.testing.assert_allclose(best[2:5, :10], shares[labels[2:5, :10]])
        _, part = model.predict_proba_topk(X[:4], 12)
        np.testing.assert_allclose(best[[0, 1, 5, 6]], part)
        probabilities = model.predict_proba(mixed)
        dense = container is not sp.csr_array
        rows = probabilities[2:5] if dense else probabilities[2:5].toarray()
        expected = shares if dense else np.where(shares >= np.sort(shares)[-10], shares, 0)
        assert np.isin(rows, [*shares, 0.0]).all()
        assert (rows > 0).sum() == 3 * (60 if dense else 10)
        np.testing.assert_allclose(np.sort(rows[0])[-10:], np.sort(expected)[-10:])
        some, known = model.predict_proba_topk(mixed[[2]], 3, candidates=[50, 3, 59])
        np.testing.assert_allclose(known[0], shares[some[0]])

"""What goes in and what comes out: containers, dtypes, shapes, ties, padding, unpleasant rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fitted import (
    METHODS,
    assert_same_answers,
    assert_same_model,
    dense,
)
from registry import ENTRIES, having
from sklearn.exceptions import DataConversionWarning
from small_data import awkward, easy, made

from sklearn_xc.metrics import precision_at_k

X, Y = awkward()
EASY, PLACES = easy()
NAMES = np.array(["zebra", "ape", "cat", "emu"])
#: Of estimators that check X and y, and score, at the one shared place, one stands for all.
ONE = ENTRIES["OvALinearXC"]

pytestmark = [
    # Rates and sizes at which a few epochs end where they began are of no interest here.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]


@pytest.fixture(scope="module")
def fitted(entry):
    """Return a model of the awkward data that no test may change."""
    return entry.make().fit(X, Y)


@pytest.fixture(scope="module")
def of_dense(entry):
    """Return a model of dense awkward data that no test may change."""
    return entry.make().fit(X.toarray(), Y)


@pytest.fixture(scope="module")
def narrow(entry):
    """Return a model of awkward data in float32 that no test may change."""
    return entry.make().fit(X.astype(np.float32), Y)


@pytest.fixture(scope="module")
def able(entry):
    """Return a model of four names of classes that no test may change."""
    return entry.make(able=True).fit(EASY, NAMES[PLACES])


class TestIndicators:
    def test_a_row_without_features_is_scored_without_intercepts_too(self, entry):
        if not entry.has("fit_intercept"):
            pytest.skip("has no intercept that could be left out")
        model = entry.make(fit_intercept=False, top_k=3).fit(X, Y)
        answer = model.decision_function(X[[3]])
        assert answer.nnz == 3
        np.testing.assert_array_equal(np.sort(model.predict_topk(X[[3]], 3)[0][0]), answer.indices)

    def test_counts(self, entry, fitted):
        np.testing.assert_array_equal(fitted.label_counts_, Y.toarray().sum(axis=0))
        assert fitted.label_counts_.dtype == np.int64
        assert fitted.n_samples_fit_ == 60
        assert type(fitted.n_samples_fit_) is int
        assert fitted.classes_.tolist() == list(range(5))
        assert entry.make().fit(X, Y[:, [0, 1]]).classes_.tolist() == [0, 1]


class TestProbabilities:
    @pytest.mark.parametrize("of", having("predict_proba"))
    @pytest.mark.parametrize("kind", ["classes", "two classes", "sparse"])
    def test_they_go_with_scores(self, of, kind):
        """And sum to 1 over all classes, over all labels of an indicator if they are shares."""
        y = {"classes": PLACES, "two classes": PLACES > 1, "sparse": Y}[kind]
        model = ENTRIES[of].make().fit(X, y)
        proba, logs = (dense(ask(X)) for ask in (model.predict_proba, model.predict_log_proba))
        assert proba.shape == (60, len(model.classes_))
        is_share = "classes" in kind or ENTRIES[of].chances_of == "all labels"
        if is_share:
            np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
        assert (proba >= 0).all()
        assert (proba <= 1).all()
        np.testing.assert_allclose(np.log(proba), logs, atol=1e-12)
        labels, scores = model.predict_topk(X, len(model.classes_))
        rises = np.diff(np.take_along_axis(proba, labels, axis=1), axis=1)
        if ENTRIES[of].chances_of == "pairs":
            assert not is_share or (rises <= 1e-15).all()
            return
        assert (rises <= 1e-15).all()
        if ENTRIES[of].chances_of == "each label":
            expected = scores / scores.sum(axis=1, keepdims=True) if is_share else scores
            found = np.take_along_axis(proba, labels, axis=1)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
            return
        some = X.toarray().any(axis=1)  # a row without features has shares
        gaps = np.diff(np.take_along_axis(logs, labels, axis=1)[some], axis=1)
        np.testing.assert_allclose(gaps, np.diff(scores[some], axis=1), atol=1e-12)

    @pytest.mark.parametrize("of", having("predict_proba"))
    def test_huge_scores_neither_overflow_nor_lose_the_smallest_logarithm(self, of):
        model = ENTRIES[of].make().fit(X, PLACES)
        logs = model.predict_log_proba(X * 1e6)
        assert np.isfinite(logs).all()
        if ENTRIES[of].chances_of == "all labels":  # others are of any shape
            assert logs.min() < -1e4
        proba = model.predict_proba(X * 1e6)
        assert np.isfinite(proba).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)


class TestClasses:
    def test_labels_are_kept(self, able):
        self.check_labels(able, NAMES[PLACES])

    @pytest.mark.parametrize("container", [list, pd.Series])
    def test_integers_are_kept(self, container):
        y = np.array([7, -3, 2, 10**12])[PLACES]
        self.check_labels(ONE.make(able=True).fit(EASY, container(y)), y)

    @staticmethod
    def check_labels(model, y):
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        predicted = model.predict(EASY)
        assert predicted.dtype == model.classes_.dtype
        assert model.score(EASY, y) == np.mean(predicted == y) > 0.9
        scores = model.decision_function(EASY)
        assert scores.shape == (60, 4)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], predicted)
        np.testing.assert_array_equal(model.label_counts_, np.unique(y, return_counts=True)[1])

    def test_each_is_a_label(self, entry):
        """Also where folds, which are stratified for classes alone, are given."""
        folds = {"cv": [(np.arange(0, 60, 3), np.arange(1, 60, 3))]} if entry.has("cv") else {}
        by_class = entry.make(**folds).fit(X, PLACES)
        indicator = entry.make(**folds).fit(X, sp.csr_array(np.eye(4)[PLACES]))
        np.testing.assert_array_equal(entry.learnt(by_class), entry.learnt(indicator))
        np.testing.assert_array_equal(
            by_class.predict_topk(X, 4)[0], indicator.predict_topk(X, 4)[0]
        )

    def test_two(self, entry):
        names, second = (False, True) if entry is ONE else ("no", "yes"), PLACES > 1
        y = np.array(names)[second.astype(int)]
        model = entry.make(able=True).fit(EASY, y)
        assert model.label_counts_.tolist() == [(~second).sum(), second.sum()]
        score = model.decision_function(EASY)
        assert score.shape == (60,)
        np.testing.assert_array_equal(model.predict(EASY) == names[1], score > 0)
        assert model.predict(EASY).dtype == model.classes_.dtype
        assert model.score(EASY, y) > 0.9
        labels, best = model.predict_topk(EASY, 3)
        assert (labels[:, 2] == -1).all()
        assert (best[:, 2] == -np.inf).all()
        np.testing.assert_array_equal(labels[:, 0], score > 0)
        np.testing.assert_array_equal(labels[:, 1], score <= 0)
        # Two scores, or one and its negative.
        gap = best[:, 0] - best[:, 1]
        one = np.allclose(best[:, 0], -best[:, 1]) and np.allclose(gap, 2 * np.abs(score))
        assert one or np.allclose(gap, np.abs(score))
        if not hasattr(model, "predict_proba"):
            return
        if entry.chances_of == "pairs":
            np.testing.assert_array_equal(model.predict_proba(EASY)[:, 1] > 0.5, score > 0)
            return
        expected = 1 / (1 + np.exp(-score))
        if entry.chances_of == "each label":
            second = np.where(labels[:, 0] == 1, best[:, 0], best[:, 1])
            expected = second / best[:, :2].sum(axis=1)
        np.testing.assert_allclose(model.predict_proba(EASY)[:, 1], expected, atol=1e-12)

    def test_a_column_warns_and_is_taken_as_one_dimensional(self):
        column = NAMES[PLACES][:, None]
        with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
            model = ONE.make().fit(EASY, column)
        assert_same_model(model, ONE.make().fit(EASY, NAMES[PLACES]))
        with pytest.warns(UserWarning, match="column-vector"):
            assert model.score(EASY, column) == model.score(EASY, NAMES[PLACES])

    def test_many_do_not_warn(self):
        """scikit-learn takes many classes for a regression; here they are the normal case."""
        x, y = np.random.default_rng(0).normal(size=(120, 3)), np.arange(120) % 70
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "The number of unique classes")
            assert ONE.make().fit(x, y).classes_.shape == (70,)


class TestInstances:
    def test_dense_ones(self, entry, fitted, of_dense):
        if entry.dense_bits:
            assert_same_model(of_dense, fitted)
        else:
            models = (entry.make(precise=True).fit(x, Y) for x in (X.toarray(), X))
            np.testing.assert_allclose(*map(entry.label_weights, models), atol=1e-5)

    def test_asked_for_the_other_container(self, entry, fitted, of_dense):
        for model in (fitted, of_dense):
            assert_same_answers(model, model, X, entry, X.toarray())

    def test_float32_stays(self, entry, narrow):
        self.check_arithmetic(entry, narrow, X.astype(np.float32), np.float32)

    @pytest.mark.parametrize("name", ["OvALinearXC", "SoftmaxUMax"])
    @pytest.mark.parametrize("dtype", [np.float16, np.int64])
    def test_other_numbers_become_float64(self, name, dtype):
        entry, whole = ENTRIES[name], (X.toarray() * 5).astype(dtype)
        for x in [whole] if dtype == np.float16 else [whole, sp.csr_array(whole)]:
            self.check_arithmetic(entry, entry.make().fit(x, Y), x, np.float64)

    @staticmethod
    def check_arithmetic(entry, model, x, expected):
        assert {part.dtype for part in entry.weights(model)} == {np.dtype(expected)}
        for method in METHODS[1:]:
            if hasattr(model, method):
                assert getattr(model, method)(x).dtype == expected
        assert model.predict_topk(x)[1].dtype == expected
        for name, ask in entry.answers.items():
            answer = ask(model, x)
            scores = answer[1] if isinstance(answer, tuple) else answer
            assert scores.dtype == expected, name

    def test_float32_is_close_to_float64(self, entry, narrow):
        if entry.has("encoder"):
            pytest.skip("encoders start at random numbers of the dtype")
        same = entry.make().fit(X.astype(np.float32).astype(np.float64), Y)
        np.testing.assert_allclose(*map(entry.label_weights, (narrow, same)), atol=1e-3)

    def test_a_float32_model_is_asked_in_float64(self, narrow):
        a, b = narrow.predict_topk(X), narrow.predict_topk(X.astype(np.float32))
        np.testing.assert_allclose(a[1], b[1], atol=1e-5)
        assert np.isfinite(a[1]).all()

    def test_more_than_65536_features(self, entry):
        """All that matters stands behind 65,530 others; narrow indices would miss it."""
        offset = 65_530
        wide = sp.csr_array((EASY.data, EASY.indices + offset, EASY.indptr), (60, offset + 15))
        model = entry.make(able=True).fit(wide, PLACES)
        assert model.score(wide, PLACES) > 0.9
        assert model.n_features_in_ == offset + 15

    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning")
    def test_more_than_65536_labels(self, entry):
        if entry.many_labels is None:
            pytest.skip("draws and clusters all labels: minutes")
        offset, labels = 65_530, sp.csr_array(np.eye(4)[PLACES])
        many = sp.csr_array((labels.data, labels.indices + offset, labels.indptr), (60, offset + 4))
        model = entry.make(**entry.many_labels).fit(EASY, many)
        np.testing.assert_array_equal(model.label_counts_[offset:], [15] * 4)
        first = model.predict_topk(EASY, 1)[0][:, 0]
        assert (first == PLACES + offset).mean() > 0.7


class TestUnpleasantRows:
    def test_rows_without_labels(self, entry, fitted):
        """They are negatives of all, or passed over but counted."""
        labelled = np.flatnonzero(Y.toarray().any(axis=1))
        assert len(labelled) == 59
        without = entry.make().fit(X[labelled], Y[labelled])
        assert fitted.n_samples_fit_ == 60
        if entry.learns_from_unlabelled:
            assert (entry.learnt(fitted) != entry.learnt(without)).any()
        else:
            assert_same_model(fitted, without, but=("n_samples_fit_",))

    def test_nothing_but_zeros(self, entry):
        model = entry.make().fit(sp.csr_array((60, 6)), Y)
        assert np.isfinite(entry.learnt(model)).all()
        expected = np.argsort(-model.label_counts_, kind="stable")
        labels, scores = model.predict_topk(np.zeros((2, 6)), 5)
        assert labels.tolist() == [expected.tolist()] * 2
        assert np.isfinite(scores).all()

    @pytest.mark.filterwarnings("ignore::RuntimeWarning")
    def test_instances_with_all_labels(self, entry):
        """They have no negatives, and others do; and nobody has any."""
        y = Y.toarray()
        y[:20] = 1
        for labels in (y, np.ones_like(y)):
            model = entry.make().fit(X, labels)
            assert np.isfinite(entry.learnt(model)).all()
            assert np.isfinite(model.predict_topk(X, 5)[1]).all()
        assert model.predict(X).sum() == 60 * 5 or not entry.labels_apart


class TestScore:
    """Precision at 1, the accuracy after a one-dimensional fit."""

    def test_of_classes(self):
        y, able = NAMES[PLACES], ONE.make().fit(EASY, NAMES[PLACES])
        accuracy = float(np.mean(able.predict(EASY) == y))
        for same in (y, y.tolist(), pd.Series(y), pd.Categorical(y)):
            assert able.score(EASY, same) == accuracy > 0.9
        flipped = np.where(np.arange(60) % 5 == 0, NAMES[0], y)
        weight = np.arange(60) % 4
        hits = able.predict(EASY) == flipped
        assert 0 < hits.mean() < 1
        expected = np.average(hits, weights=weight)
        assert able.score(EASY, flipped, weight) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("name", ["OvALinearXC", "SoftmaxUMax", "StackingXC"])
    def test_of_indicators(self, name):
        x, y = made(5, 0)
        model = ENTRIES[name].make().fit(x, y)
        labels = model.predict_topk(x, 1)[0]
        hits = y.toarray()[np.arange(60), labels[:, 0]]
        assert 0 < hits.mean() < 1
        expected = precision_at_k(y, labels, 1)
        for same in (y.toarray().astype(bool), sp.coo_matrix(y)):
            assert model.score(x, same) == expected == pytest.approx(hits.mean())
        weight = np.random.default_rng(0).random(60)
        expected = np.average(hits, weights=weight)
        assert model.score(x, y, sample_weight=weight) == pytest.approx(expected)

    def test_classes_that_fit_has_not_seen_are_missed(self):
        y, able = NAMES[PLACES], ONE.make().fit(EASY, NAMES[PLACES])
        assert able.score(EASY, np.where(y == "cat", "dog", y)) < able.score(EASY, y)
        assert able.score(EASY, ["dog"] * 60) == 0

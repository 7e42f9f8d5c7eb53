"""Answers are those of the weights: probabilities, the rule of predict, and the observations."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is too high:sklearn.exceptions.ConvergenceWarning"
)

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]
SPARSE = [
    sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_matrix, sp.coo_array,
    sp.lil_array, sp.bsr_matrix,
]  # fmt: skip
DTYPES = [bool, np.int8, np.uint8, np.int64, np.float32, np.float64]
NAMES = ("zebra", "ape", "cat", "emu")


def learned(model, name):
    """Return an attribute of a fitted model, or a column of its report."""
    return model.fit_report_[name] if name in model.fit_report_ else getattr(model, name)


def fit(X, y, estimator=ImplicitSoftmaxSGD, sample_weight=None, **parameters):
    parameters = {"learning_rate": 1.0, "max_iter": 4, "random_state": 0, **parameters}
    return estimator(**parameters).fit(X, y, sample_weight)


def assert_same_model(a, b):
    for name in (
        "coef_",
        "intercept_",
        "u_",
        "u_index_",
        "loss",
        "log_loss",
        "label_counts_",
    ):
        np.testing.assert_array_equal(learned(a, name), learned(b, name), name)


def trained(answer):
    """Return an answer on `xy` without label 4, which has no training instance."""
    return np.delete(answer.toarray() if sp.issparse(answer) else answer, 4, axis=1)


def scores_of(model, X):
    """Return scores; those of classes without an instance, which have no probability, are -inf."""
    scores = X.toarray().astype(np.float64) @ model.coef_.T.astype(np.float64)
    is_blank = ~scores.any(axis=1)
    scores += model.intercept_
    shares = model._frequencies.of_blank() / model._frequencies.total
    with np.errstate(divide="ignore"):
        scores[is_blank] = np.log(shares)
    scores[:, model.label_counts_ == 0] = -np.inf
    return scores


@pytest.fixture
def places(xy):
    return xy[0].toarray()[:, :4].argmax(axis=1)


@pytest.fixture
def partly_labelled(xy):
    """Return X and Y where label 7, which every row has, is left out: many rows have none."""
    X, Y = xy
    Y = Y[:, [j for j in range(15) if j != 7]]
    assert 0 < (np.diff(Y.indptr) == 0).sum() < 60
    return X, Y


class TestSparseTargets:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_sparse_answers_hold_the_top_k(self, dtype, xy):
        X, Y = xy
        X = X.astype(dtype)
        model = fit(X, Y, top_k=4)
        scores = scores_of(model, X)
        found = model.set_params(top_k=15).decision_function(X)
        assert found.nnz == 120 * 14
        found = found.toarray()
        found[:, 4] = -np.inf
        order = np.argsort(-found, kind="stable")
        model.set_params(top_k=4)
        rows = np.arange(120)[:, None]
        everything = {
            "decision_function": scores,
            "predict_log_proba": log_softmax(scores, axis=1),
            "predict_proba": np.exp(log_softmax(scores, axis=1)),
        }
        for method, expected in everything.items():
            answer = getattr(model, method)(X)
            assert answer.dtype == dtype
            assert np.diff(answer.indptr).tolist() == [4] * 120
            stored = answer.toarray()[rows, order[:, :4]]
            tol = 1e-12 if dtype == np.float64 else 1e-5
            np.testing.assert_allclose(stored, expected[rows, order[:, :4]], rtol=tol, atol=tol)
            for i in (0, 3, 119):
                np.testing.assert_array_equal(answer[[i]].indices, np.sort(order[i, :4]))

    def test_a_score_of_zero_is_stored(self, xy):
        X, Y = xy
        model = fit(X, Y, top_k=6, fit_intercept=False)
        answer = model.decision_function(X[[3]])  # the empty instance
        assert answer.indices.tolist() == [0, 1, 2, 3, 5, 6]  # label 4 has no instance
        assert answer.data.tolist() == [0.0] * 6


class TestProbabilities:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.parametrize("kind", ["classes", "two classes", "dense"])
    def test_rows_sum_to_one_over_all_classes(self, kind, estimator, places, xy):
        X, Y = xy
        y = {"classes": places, "two classes": places > 1, "dense": Y.toarray()}[kind]
        model = fit(X, y, estimator, alpha=0.1)
        proba = model.predict_proba(X)
        assert proba.shape == (120, len(model.classes_))
        seen = model.label_counts_ > 0
        assert ((proba > 0) == seen).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)
        expected = log_softmax(scores_of(model, X), axis=1)
        np.testing.assert_allclose(model.predict_log_proba(X), expected, atol=1e-13)
        np.testing.assert_allclose(np.log(proba[:, seen]), expected[:, seen], atol=1e-13)

    def test_classes_in_the_columns(self, places, xy):
        X, _ = xy
        names = np.array(NAMES)[places]
        model = fit(X, names, max_iter=20)
        proba = model.predict_proba(X)
        np.testing.assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))
        truth = np.searchsorted(model.classes_, names)
        assert np.median(proba[np.arange(120), truth]) > 0.5

    def test_float32_is_close_to_float64(self, places, xy):
        X = xy[0].astype(np.float32)  # the order of the pairs follows from the values of X
        narrow, wide = fit(X, places), fit(X.astype(np.float64), places)
        assert narrow.predict_proba(X).dtype == np.float32
        np.testing.assert_allclose(narrow.predict_proba(X), wide.predict_proba(X), atol=1e-4)


class TestPredictionOfIndicators:
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_labels_with_more_than_half_of_an_even_share(self, container, partly_labelled):
        """Of a row with as many labels as a labelled row has in the mean."""
        X, Y = partly_labelled
        model = fit(X, container(Y), max_iter=20)
        counts = np.diff(Y.indptr)
        threshold = 0.5 / counts[counts > 0].mean()
        assert threshold != pytest.approx(0.5 * 120 / Y.nnz, rel=0.05)
        proba = np.exp(log_softmax(scores_of(model, X), axis=1))
        assert np.abs(proba - threshold).min() > 1e-6
        predicted = model.predict(X)
        predicted = predicted.toarray() if sp.issparse(predicted) else predicted
        np.testing.assert_array_equal(predicted, proba > threshold)
        assert 0.3 < predicted.sum() / Y.nnz < 3

    def test_one_label_a_row_needs_half(self, places, xy):
        X, _ = xy
        model = fit(X, np.eye(4, dtype=int)[places])
        np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)

    def test_weights_count_in_the_share_of_a_label(self, xy):
        """A weight of 2 is a repeated row, for predict as well."""
        X, Y = xy
        many = np.diff(Y.indptr) > 2
        assert 0 < many.sum() < 120
        rows = np.repeat(np.arange(120), np.where(many, 9, 1))
        weighted = fit(X, Y, sample_weight=np.where(many, 9.0, 1.0))
        repeated = fit(X[rows], Y[rows])
        np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
        np.testing.assert_array_equal(weighted.predict(X).toarray(), repeated.predict(X).toarray())


class TestClasses:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_each_class_is_a_label(self, estimator, places, xy):
        X, _ = xy
        assert_same_model(fit(X, places, estimator), fit(X, np.eye(4)[places], estimator))

    @pytest.mark.parametrize("names", [("no", "yes"), (-1, 3), (False, True)], ids=str)
    def test_two_classes(self, names, places, xy):
        X, _ = xy
        second = places > 1
        y = np.array(names)[second.astype(int)]
        model = fit(X, y)
        assert model.coef_.shape == (2, 40)
        assert model.label_counts_.tolist() == [(~second).sum(), second.sum()]
        score = model.decision_function(X)
        assert score.shape == (120,)
        both = scores_of(model, X)
        np.testing.assert_allclose(score, both[:, 1] - both[:, 0], atol=1e-13)
        np.testing.assert_allclose(
            model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-score)), atol=1e-13
        )
        np.testing.assert_array_equal(model.predict(X) == names[1], score > 0)
        labels, best = model.predict_topk(X, 3)
        assert (labels[:, 2] == -1).all()
        np.testing.assert_array_equal(labels[:, 0], score > 0)
        np.testing.assert_allclose(np.sort(both, axis=1)[:, ::-1], best[:, :2], atol=1e-13)

    def test_more_than_65536_labels_and_features(self, xy):
        X, Y = xy
        offset = 65_530
        many = sp.csr_array((Y.data, Y.indices + offset, Y.indptr), shape=(120, offset + 15))
        model, few = fit(X, many), fit(X, Y)
        assert model.coef_.shape == (offset + 15, 40)
        np.testing.assert_array_equal(model.label_counts_[offset:], few.label_counts_)
        np.testing.assert_array_equal(model.u_index_[:, 1], few.u_index_[:, 1] + offset)
        first = model.predict_topk(X, 1)[0][:, 0]
        assert (first >= offset).mean() > 0.5  # a fit of narrow numbers would find the first 15
        wide = sp.csr_array((X.data, X.indices + offset, X.indptr), shape=(120, offset + 40))
        wide_model, expected = fit(wide, Y), fit(X, Y)
        assert not wide_model.coef_[:, :offset].any()
        # The order of the pairs follows from their content, hence not the same bytes.
        assert wide_model.fit_report_["log_loss"][-1] == pytest.approx(
            expected.fit_report_["log_loss"][-1], rel=0.1
        )


class TestUnpleasantRows:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_rows_without_labels_are_passed_over(self, container, estimator, partly_labelled):
        X, Y = partly_labelled
        labelled = np.flatnonzero(np.diff(Y.indptr))
        model = fit(X, container(Y), estimator)
        without = fit(X[labelled], container(Y[labelled]), estimator)
        for name in ("coef_", "intercept_", "u_", "loss", "log_loss", "label_counts_"):
            np.testing.assert_array_equal(learned(model, name), learned(without, name))
        np.testing.assert_array_equal(np.unique(model.u_index_[:, 0]), labelled)
        assert model.n_samples_fit_ == 120
        predicted = (sp.csr_array(m.predict(X)).toarray() for m in (model, without))
        np.testing.assert_array_equal(*predicted)

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_multilabel_first_is_a_fit_of_the_first_label(self, estimator, xy):
        X, Y = xy
        first = Y.toarray().argmax(axis=1)
        assert (first != 7).sum() > 50  # every row has label 7
        kept = np.unique(first)
        for y in (Y, Y.toarray()):
            model = fit(X, y, estimator, multilabel="first")
            assert model.u_.shape == (120,)
            np.testing.assert_array_equal(model.u_index_[:, 1], first)
        # The same classes, those that are no one's first left out on both sides.
        model = fit(X, Y[:, kept], estimator, multilabel="first")
        one_d = fit(X, first, estimator)
        assert len(kept) > 3
        for name in ("coef_", "intercept_", "u_", "u_index_", "loss", "log_loss"):
            np.testing.assert_array_equal(learned(model, name), learned(one_d, name), name)

    def test_all_labels_are_observations(self, xy):
        X, Y = xy
        model = fit(X, Y)
        coo = Y.tocoo()
        np.testing.assert_array_equal(model.u_index_, np.column_stack(coo.coords))

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_empty_label_columns(self, estimator, xy):
        X, Y = xy
        model = fit(X, Y, estimator, max_iter=20)
        counts = np.asarray(Y.sum(axis=0)).ravel()
        np.testing.assert_array_equal(model.label_counts_, counts)
        assert counts[4] == 0
        assert model.coef_[4].any()  # it is a negative of every row
        proba = model.predict_proba(X).toarray()
        assert proba[:, 4].mean() < 1 / 15 < proba[:, 7].mean()

    @pytest.mark.parametrize(
        ("estimator", "alpha"),
        [
            (SoftmaxUMax, 0.0),
            (SoftmaxUMax, 0.5),
            (ImplicitSoftmaxSGD, 0.0),
            (ImplicitSoftmaxSGD, 0.5),
        ],
    )
    def test_nothing_but_zeros(self, estimator, alpha, xy):
        _, Y = xy
        X = sp.csr_array((120, 6))
        model = fit(
            X, Y, estimator, alpha=alpha, sampling="uniform", fit_intercept=False,
            n_hard_negatives=0,
        )  # fmt: skip
        assert not model.coef_.any()
        np.testing.assert_allclose(model.u_, np.log(15))
        np.testing.assert_allclose(model.fit_report_["log_loss"], np.log(15))
        Y = Y[:, [j for j in range(15) if j != 4]]  # 4 has no instance
        model = fit(X, Y, estimator, alpha=alpha, n_negatives=13, n_hard_negatives=0)  # all others
        assert not model.coef_.any()
        losses = -np.log(Y.sum(axis=0) / Y.nnz)
        np.testing.assert_allclose(model.intercept_, -losses, rtol=1e-14)
        np.testing.assert_allclose(model.u_, losses[model.u_index_[:, 1]])
        np.testing.assert_allclose(model.fit_report_["log_loss"], losses[Y.indices].mean())

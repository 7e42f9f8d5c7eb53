"""Answers are those of the weights: scores, ties, two classes, many labels, unpleasant rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC


def fit(X, y, **parameters):
    return OvALinearXC(**{"prune": 0, **parameters}).fit(X, y)


def assert_same_model(a, b):
    """Compare coefficients, intercepts and report bit for bit, except for the seconds."""
    np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray())
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    for name in set(a.fit_report_) - {"seconds"}:
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])


@pytest.fixture
def model(xy):
    return fit(*xy)


@pytest.fixture
def scores(model, xy, blank_counts):
    """The dense scores of every label."""
    found = xy[0].toarray() @ model.coef_.toarray().T + model.intercept_
    n_positive = blank_counts(*xy)
    found[3] = (2 * n_positive - 120) / (1 + 120)  # the empty instance
    found[:, 4] = np.delete(found, 4, axis=1).min(axis=1) - 1  # the label without positives
    return found


class TestSparseTargets:
    def test_a_sparse_and_a_dense_indicator_give_the_same_model(self, model, xy, scores):
        X, Y = xy
        for y in (Y.toarray(), Y.toarray().astype(int).tolist()):
            dense = fit(X, y)
            assert_same_model(dense, model)
            assert isinstance(dense.predict(X), np.ndarray)
            np.testing.assert_array_equal(dense.predict(X), scores > 0)
            np.testing.assert_allclose(dense.decision_function(X), scores, atol=1e-13)

    def test_decision_function_holds_the_top_k_scores_and_nothing_else(self, model, xy, scores):
        X, _ = xy
        model.set_params(top_k=4)
        answer = model.decision_function(X)
        order = np.argsort(-scores, axis=1, kind="stable")
        assert np.diff(answer.indptr).tolist() == [4] * 120
        for i in range(120):
            np.testing.assert_array_equal(answer[[i]].indices, np.sort(order[i, :4]))
        stored = answer.toarray()[np.arange(120)[:, None], order[:, :4]]
        np.testing.assert_allclose(stored, np.take_along_axis(scores, order[:, :4], 1), atol=1e-13)

    def test_a_score_of_zero_is_stored(self, xy):
        """A missing entry means "not scored"; no eliminate_zeros."""
        X, Y = (A[np.arange(120) != 3][:118] for A in xy)  # without the empty instance
        half = np.repeat([0, 1], 59)[:, None]
        model = fit(X, sp.hstack([Y[:, [0]], half, Y[:, [1]]]), fit_intercept=False, top_k=2)
        empty = sp.csr_array((1, 40))
        answer = model.decision_function(empty)
        assert answer.indices.tolist() == [0, 1]
        assert answer.data[0] < answer.data[1] == 0
        assert model.predict(empty).nnz == 0

    def test_predict_holds_the_positive_scores_among_the_top_k(self, model, xy, scores):
        X, _ = xy
        np.testing.assert_array_equal(model.predict(X).toarray(), scores > 0)
        model.set_params(top_k=1)
        few = model.predict(X)
        best = scores.argmax(axis=1)
        assert np.diff(few.indptr).max() == 1
        np.testing.assert_array_equal(few.indices, best[scores.max(axis=1) > 0])

    def test_exactly_two_columns(self, model, xy):
        """Not a binary problem, though classes_ is [0, 1]."""
        X, Y = xy
        two = fit(X, Y[:, [2, 0]])
        np.testing.assert_array_equal(two.coef_.toarray(), model.coef_[[2, 0]].toarray())
        for y in (Y[:, [2, 0]], Y[:, [2, 0]].toarray()):
            assert fit(X, y).decision_function(X).shape == (120, 2)
            assert fit(X, y).predict(X).shape == (120, 2)
        labels, best = two.predict_topk(X, 2)
        np.testing.assert_array_equal(best, -np.sort(-two.decision_function(X).toarray(), axis=1))
        assert set(labels[:, 0]) == {0, 1}


class TestTopK:
    @pytest.mark.parametrize("k", [1, 5, 15])
    def test_the_k_best_come_best_first(self, k, model, xy, scores):
        labels, best = model.predict_topk(xy[0], k)
        assert labels.dtype == np.int64
        assert labels.shape == best.shape == (120, k)
        np.testing.assert_allclose(best, -np.sort(-scores, axis=1)[:, :k], atol=1e-13)
        np.testing.assert_allclose(np.take_along_axis(scores, labels, 1), best, atol=1e-13)

    def test_ties_go_to_the_smaller_label(self, model, xy):
        labels, _ = model.predict_topk(xy[0][np.arange(120) != 3], 15)
        place = np.argsort(labels, axis=1)
        np.testing.assert_array_equal(place[:, 9] - place[:, 2], 1)  # identical columns
        filled = [A[np.arange(120) != 3] for A in xy]
        other = fit(*filled, fit_intercept=False)
        nothing = other.predict_topk(xy[0][[3]], 15)[0][0]
        expected = np.argsort(-other.label_counts_, kind="stable")
        assert len(set(other.label_counts_)) < 8
        assert nothing.tolist() == expected.tolist()

    @pytest.mark.parametrize("y", [["no", "yes"], [3, -1], [True, False]], ids=str)
    def test_two_classes(self, y, xy):
        X, Y = xy
        model = fit(X, np.array(y)[(Y[:, [0]].toarray()[:, 0] > 0).astype(int)])
        score = model.decision_function(X)
        labels, best = model.predict_topk(X, 3)
        np.testing.assert_array_equal(labels[:, 0], score > 0)
        np.testing.assert_array_equal(labels[:, 1], score <= 0)
        assert (labels[:, 2] == -1).all()
        np.testing.assert_array_equal(best[:, 0], np.abs(score))
        np.testing.assert_array_equal(best[:, 1], -np.abs(score))
        np.testing.assert_array_equal(model.classes_[labels[:, 0]], model.predict(X))


class TestClasses:
    @pytest.fixture
    def places(self, xy):
        return xy[0].toarray()[:, :4].argmax(axis=1)

    def test_each_class_is_a_label(self, places, xy):
        X, _ = xy
        indicator = fit(X, np.eye(4)[places])
        assert_same_model(fit(X, places), indicator)
        np.testing.assert_array_equal(
            fit(X, places).predict_topk(X, 3)[0], indicator.predict_topk(X, 3)[0]
        )

    def test_two_classes_are_one_problem(self, xy):
        X, Y = xy
        second = Y[:, [0]].toarray()[:, 0] > 0
        y = np.where(second, "yes", "no")
        model = fit(X, y)
        np.testing.assert_array_equal(
            model.coef_.toarray(), fit(X, sp.csr_array(second[:, None])).coef_.toarray()
        )
        assert model.intercept_.shape == model.n_iter_.shape == (1,)
        assert model.label_counts_.tolist() == [(~second).sum(), second.sum()]
        assert model.decision_function(X).shape == (120,)
        np.testing.assert_array_equal(model.predict(X) == "yes", model.decision_function(X) > 0)


class TestInstances:
    def test_duplicate_entries_of_x_are_summed(self, model, xy):
        X, Y = xy
        coo = X.tocoo()
        halves = np.concatenate([coo.data * 0.25, coo.data * 0.75])
        rows, columns = np.tile(coo.coords, 2)
        order = np.argsort(rows, kind="stable")
        indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=120))))
        twice = sp.csr_array((halves[order], columns[order], indptr), shape=X.shape)
        assert not twice.has_canonical_format
        before = twice.data.copy(), twice.indices.copy()
        np.testing.assert_allclose(fit(twice, Y).coef_.toarray(), model.coef_.toarray(), rtol=1e-8)
        np.testing.assert_allclose(
            model.predict_topk(twice)[1], model.predict_topk(X)[1], atol=1e-13
        )
        for a, b in zip(before, (twice.data, twice.indices), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_more_than_65536_features(self, xy):
        """The informative features stand behind 65,536 others; narrow indices would miss them."""
        X, Y = xy
        offset = 65_530
        wide = sp.csr_array((X.data, X.indices + offset, X.indptr), shape=(120, offset + 40))
        model, expected = fit(wide, Y, tol=1e-6), fit(X, Y, tol=1e-6)
        assert model.coef_.shape == (15, offset + 40)
        assert model.coef_.indices.min() >= offset
        np.testing.assert_allclose(
            model.coef_[:, offset:].toarray(), expected.coef_.toarray(), atol=1e-6
        )
        np.testing.assert_allclose(
            model.predict_topk(wide)[1], expected.predict_topk(X)[1], atol=1e-5
        )

    def test_more_than_65536_labels(self, xy):
        X, Y = xy
        offset = 65_530
        many = sp.csr_array((Y.data, Y.indices + offset, Y.indptr), shape=(120, offset + 15))
        model, expected = fit(X, many), fit(X, Y)
        np.testing.assert_array_equal(model.coef_[offset:].toarray(), expected.coef_.toarray())
        assert np.diff(model.coef_.indptr)[:offset].max() == np.diff(model.coef_.indptr)[0]
        assert model.score(X, many) == expected.score(X, Y)


class TestUnpleasantRows:
    def test_the_awkward_labels_are_fitted(self, model, xy):
        X, _ = xy
        assert (model.fit_report_["status"] == "converged").all()
        assert model.label_counts_[[4, 7]].tolist() == [0, 120]
        answer = model.decision_function(X)
        assert 4 not in answer.indices
        scores = answer.toarray()
        assert (scores[:, 7] > 0).all()
        np.testing.assert_array_equal(model.coef_[[2]].toarray(), model.coef_[[9]].toarray())

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("init", ["msi", "zero", "bias", "ovap"])
    def test_frequent_labels_converge(self, init, dtype, make_xy):
        """The loss that remains is tiny beside the sum it is computed from."""
        X, _ = make_xy(n=2000)
        Y = np.ones((2000, 3))
        Y[0, 1] = 0
        Y[::2, 2] = 0
        report = fit(X.astype(dtype), Y, init=init, tol=0.001).fit_report_
        assert (report["status"] == "converged").all()
        assert report["n_iter"].max() <= 30

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_nothing_but_zeros(self, fit_intercept, xy):
        _, Y = xy
        model = fit(sp.csr_array((120, 6)), Y, fit_intercept=fit_intercept)
        assert model.coef_.nnz == 0
        assert (model.fit_report_["status"] == "converged").all()
        if fit_intercept:
            np.testing.assert_array_equal(np.sign(model.intercept_)[[4, 7]], [-1, 1])
        else:
            assert not model.intercept_.any()


def test_coef_is_read_only(xy):
    model = OvALinearXC().fit(*xy)
    for array in (model.coef_.data, model.coef_.indices, model.coef_.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 10**6

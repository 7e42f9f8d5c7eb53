"""What goes in and what comes out: containers, dtypes, ties, padding, unpleasant rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from sklearn_xc import OvALinearXC
from sklearn_xc.metrics import precision_at_k

SPARSE = [
    sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_matrix, sp.coo_array,
    sp.lil_matrix, sp.lil_array, sp.dok_array, sp.bsr_matrix,
]  # fmt: skip
DTYPES = [bool, np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64]


def fit(X, y, **parameters):
    return OvALinearXC(**{"prune": 0, **parameters}).fit(X, y)


def assert_same_model(a, b):
    """Compare coefficients, intercepts and report bit for bit, but for the seconds."""
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
    found[3] = 2 * (2 * n_positive - 120) / (1 + 2 * 120)  # the empty instance
    found[:, 4] = np.delete(found, 4, axis=1).min(axis=1) - 1  # the label without positives
    return found


class TestSparseTargets:
    @pytest.mark.parametrize("container", SPARSE)
    def test_the_kind_of_the_container_comes_back(self, container, model, xy):
        X, Y = xy
        other = fit(X, container(Y))
        assert_same_model(other, model)
        expected = sp.csr_matrix if issubclass(container, sp.spmatrix) else sp.csr_array
        for answer in (other.predict(X), other.decision_function(X)):
            assert type(answer) is expected
            assert answer.shape == Y.shape
            assert answer.has_canonical_format

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_the_dtype_comes_back(self, dtype, model, xy):
        X, Y = xy
        for y in (Y.astype(dtype), Y.toarray().astype(dtype)):
            other = fit(X, y)
            assert_same_model(other, model)
            assert other.predict(X).dtype == dtype
            assert other.decision_function(X).dtype == np.float64

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

    def test_a_single_column(self, model, xy):
        X, Y = xy
        one = fit(X, Y[:, [2]])
        np.testing.assert_array_equal(one.coef_.toarray(), model.coef_[[2]].toarray())
        assert one.predict(X).shape == one.decision_function(X).shape == (120, 1)
        assert one.classes_.tolist() == [0]
        assert one.predict_topk(X, 2)[0][:, 1].tolist() == [-1] * 120

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

    def test_places_beyond_the_labels_are_padded(self, model, xy):
        labels, best = model.predict_topk(xy[0], 18)
        assert (labels[:, 15:] == -1).all()
        assert (best[:, 15:] == -np.inf).all()
        assert (labels[:, :15] >= 0).all()

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

    def test_top_k_does_not_bound_predict_topk(self, model, xy):
        before = model.predict_topk(xy[0], 8)[0]
        np.testing.assert_array_equal(model.set_params(top_k=2).predict_topk(xy[0], 8)[0], before)

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


NAMES = ("zebra", "ape", "cat", "emu")


class TestClasses:
    @pytest.fixture
    def places(self, xy):
        return xy[0].toarray()[:, :4].argmax(axis=1)

    @pytest.mark.parametrize(
        "names",
        [NAMES, np.array(NAMES, object), [7, -3, 2, 10**12], [0.0, 1.0, 5.0, 3.0]],
        ids=["str", "object", "int", "whole floats"],
    )
    @pytest.mark.parametrize("make", [np.asarray, list, pd.Series])
    def test_class_labels_are_kept(self, names, make, places, xy):
        X, _ = xy
        y = np.asarray(names)[places]
        model = fit(X, make(y))
        np.testing.assert_array_equal(model.classes_, np.unique(y))
        predicted = model.predict(X)
        assert predicted.dtype == model.classes_.dtype
        assert model.score(X, y) == np.mean(predicted == y) > 0.9
        scores = model.decision_function(X)
        assert scores.shape == (120, 4)
        np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], predicted)
        assert model.coef_.shape == (4, 40)
        np.testing.assert_array_equal(model.label_counts_, np.unique(y, return_counts=True)[1])

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

    def test_a_column_warns_and_is_taken_as_one_dimensional(self, places, xy):
        X, _ = xy
        with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
            model = fit(X, places[:, None])
        assert_same_model(model, fit(X, places))

    def test_a_thousand_classes_do_not_warn(self):
        """scikit-learn takes many classes for a regression; here they are the normal case."""
        X = np.random.default_rng(0).normal(size=(120, 3))
        assert fit(X, np.arange(120) // 2).classes_.shape == (60,)


class TestInstances:
    @pytest.mark.parametrize("container", [*SPARSE, np.asarray])
    def test_containers_of_x(self, container, xy):
        X, Y = xy
        given = X.toarray() if container is np.asarray else container(X)
        assert_same_model(fit(given, Y, tol=0.01), fit(X, Y, tol=0.01))

    def test_the_default_tolerance_follows_the_container_of_x(self, xy):
        X, Y = xy
        assert_same_model(fit(X, Y), fit(X, Y, tol=0.01))
        assert_same_model(fit(X.toarray(), Y), fit(X, Y, tol=1.0))

    @pytest.mark.parametrize(
        ("dtype", "expected"),
        [
            (np.float32, np.float32),
            (np.float64, np.float64),
            (np.float16, np.float64),
            (np.int8, np.float64),
            (np.int64, np.float64),
            (bool, np.float64),
        ],
    )
    def test_the_arithmetic_follows_x(self, dtype, expected, xy):
        X, Y = xy
        dense = (X.toarray() * 2).astype(dtype)
        for x in [dense] if dtype == np.float16 else [dense, sp.csr_array(dense)]:
            model = fit(x, Y)
            assert model.coef_.dtype == model.intercept_.dtype == expected
            assert model.decision_function(x).dtype == expected
            assert model.predict_topk(x)[1].dtype == expected
            assert model.fit_report_["objective"].dtype == np.float64

    def test_int64_indices(self, model, xy):
        wide = [a.copy() for a in xy]
        for a in wide:
            a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
        other = fit(*wide)
        assert_same_model(other, model)
        assert wide[0].indices.dtype == np.int64
        np.testing.assert_array_equal(other.predict_topk(wide[0])[0], model.predict_topk(xy[0])[0])

    def test_unsorted_indices(self, model, xy):
        X, Y = (a[:, ::-1][:, ::-1] for a in xy)
        shuffled = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        for i in range(120):
            row = slice(*X.indptr[i : i + 2])
            shuffled.indices[row], shuffled.data[row] = X.indices[row][::-1], X.data[row][::-1]
        assert not shuffled.has_sorted_indices
        assert_same_model(fit(shuffled, Y), model)
        np.testing.assert_array_equal(model.predict_topk(shuffled)[1], model.predict_topk(xy[0])[1])

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

    def test_explicit_zeros_of_x_and_y_change_nothing(self, model, xy):
        X, Y = (a.copy() for a in xy)
        zeros = sp.csr_array((np.zeros(3), ([0, 5, 8], [1, 2, 3])), shape=Y.shape)
        Y = sp.csr_array(
            (np.r_[Y.data, zeros.data], np.hstack([Y.tocoo().coords, zeros.tocoo().coords])),
            shape=Y.shape,
        )
        assert (Y.data == 0).sum() >= 1
        assert_same_model(fit(X, Y), model)
        X.data[::10] = 0
        stored = fit(X, Y)
        X.eliminate_zeros()
        np.testing.assert_allclose(stored.coef_.toarray(), fit(X, Y).coef_.toarray(), atol=1e-9)

    def test_nothing_is_changed_in_place(self, xy):
        X, Y = xy
        weight, start = np.ones(120), np.zeros((15, 41))
        arrays = [*(getattr(a, n) for a in (X, Y) for n in ("data", "indices", "indptr"))]
        arrays += [weight, start]
        before = [a.copy() for a in arrays]
        model = OvALinearXC(init=start, prune=0).fit(X, Y, sample_weight=weight)
        model.predict(X), model.decision_function(X), model.score(X, Y)
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b)
        assert X.indices.dtype == np.int32

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

    def test_a_single_instance(self):
        model = fit(sp.csr_array([[1.0, 0.0, 2.0]]), sp.csr_array([[1, 0]]))
        labels, scores = model.predict_topk(np.array([[1.0, 0.0, 2.0]]), 2)
        assert labels.tolist() == [[0, 1]]
        assert scores[0, 0] > 0 > scores[0, 1]

    def test_no_instance_has_a_label(self, xy):
        X, _ = xy
        model = fit(X, sp.csr_array((120, 4)))
        assert model.predict(X).nnz == 0
        assert model.score(X, sp.csr_array((120, 4))) == 0


class TestScore:
    def test_score_is_precision_at_1(self, xy):
        X, Y = xy
        Y = Y[:, :7]  # without the label that every instance has
        model = fit(X, Y)
        weight = np.random.default_rng(0).random(120)
        first = model.predict_topk(X, 1)[0][:, 0]
        hits = Y.toarray()[np.arange(120), first]
        assert model.score(X, Y) == pytest.approx(hits.mean())
        assert model.score(X, Y) == precision_at_k(Y, model.predict_topk(X, 1)[0], k=1)
        assert model.score(X, Y, sample_weight=weight) == pytest.approx(
            np.average(hits, weights=weight)
        )
        assert 0.3 < model.score(X, Y) < 1
        assert model.score(X, Y.toarray()) == model.score(X, Y)
        np.testing.assert_array_equal(fit(X, Y.toarray()).score(X, Y), model.score(X, Y))

    def test_score_is_the_weighted_accuracy_after_a_one_dimensional_fit(self, xy):
        X, Y = xy
        y = Y[:, [0]].toarray()[:, 0]
        model = fit(X, y)
        weight = np.random.default_rng(0).random(120)
        hits = model.predict(X) == y
        assert model.score(X, y, sample_weight=weight) == pytest.approx(
            np.average(hits, weights=weight)
        )

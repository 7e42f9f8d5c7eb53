"""Sparse X and y: answers in the container of y, whatever the arrays look like in memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from fitted import METHODS, asks, assert_same_answers, assert_same_model, dense
from registry import ENTRIES
from small_data import awkward, made
from stored_forms import CONTAINERS, FORMS, NO_INDICATORS, OF_DENSE, beyond

X, Y = awkward()
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]
#: Of those estimators that check X and y at the one shared place, one stands for all.
ONE = ENTRIES["OvALinearXC"]


@pytest.fixture(scope="module")
def fitted(entry):
    """Return a model that no test may change."""
    return entry.make().fit(X, Y)


def own_methods(model):
    return [name for name in METHODS if hasattr(model, name)]


class TestContainers:
    @pytest.mark.parametrize("container", CONTAINERS)
    def test_of_x_and_y(self, container):
        expected, model = ONE.make().fit(X, Y), ONE.make().fit(container(X), container(Y))
        assert_same_model(model, expected)
        kind = sp.csr_matrix if issubclass(container, sp.spmatrix) else sp.csr_array
        for method in own_methods(model):
            answer = getattr(model, method)(container(X))
            assert type(answer) is kind
            assert answer.has_canonical_format
            np.testing.assert_array_equal(dense(answer), dense(getattr(expected, method)(X)))

    def test_sparse_answers(self, entry):
        model = entry.make().fit(X, sp.csc_matrix(Y))
        for method in own_methods(model):
            answer = getattr(model, method)(X)
            assert type(answer) is sp.csr_matrix
            assert answer.shape == (60, 5)
            assert answer.has_canonical_format
            assert method == "predict_log_proba" or np.isfinite(answer.data).all()

    def test_dense_answers_are_the_entries_of_sparse_ones(self, entry):
        x, y = made()
        of_sparse, of_dense = entry.make().fit(x, y), entry.make().fit(x, y.toarray())
        for method in own_methods(of_dense):
            answer, other = getattr(of_dense, method)(x), getattr(of_sparse, method)(x)
            assert type(answer) is np.ndarray
            assert answer.shape == (60, 5)
            other = sp.coo_array(other)
            np.testing.assert_allclose(answer[other.coords], other.data, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(of_dense.predict(x), dense(of_sparse.predict(x)))

    def test_predictions_have_the_dtype_of_y(self, entry, fitted):
        kinds = [(np.int8, sp.csr_array), (bool, sp.csr_array.toarray)]
        for dtype, container in [*kinds, (np.float32, sp.csr_array)] if entry is ONE else kinds:
            model = entry.make().fit(X, container(Y).astype(dtype))
            assert model.predict(X).dtype == dtype
            assert_same_model(model, fitted)

    def test_two_columns_are_two_labels(self, entry):
        for y in (Y[:, [0, 1]], Y[:, [0, 1]].toarray()):
            model = entry.make().fit(X, y)
            assert all(getattr(model, method)(X).shape == (60, 2) for method in own_methods(model))


class TestStoredForms:
    @pytest.mark.parametrize("form", FORMS)
    def test_of_x_and_y(self, form):
        self.check(ONE, form, form)

    def test_of_each_estimator(self, entry):
        self.check(entry, "zeros and halves", "zeros, int64")

    @staticmethod
    def check(entry, form, form_of_y):
        rng, expected = np.random.default_rng(0), entry.make().fit(X, Y)
        x, y = FORMS[form](X, rng), Y if form_of_y in NO_INDICATORS else FORMS[form_of_y](Y, rng)
        model = entry.make().fit(x, y)
        assert_same_model(model, expected)
        assert_same_answers(model, expected, x, entry, X_of_b=X)

    def test_of_dense_x(self, entry):
        x = np.asfortranarray(OF_DENSE["negative zeros"](X, None))
        assert_same_model(entry.make().fit(x, Y), entry.make().fit(X.toarray(), Y))

    def test_columns_outside_the_shape_are_refused(self, entry):
        x, y = made()
        for given in ((beyond(x), y), (x, beyond(y))):
            with pytest.raises(ValueError, match="malformed"):
                entry.make().fit(*given)
        for ask in asks(entry.make().fit(x, y)).values():
            with pytest.raises(ValueError, match="malformed"):
                ask(beyond(x))


class TestTopK:
    def test_shape_order_and_padding(self, fitted):
        for k in (1, 5, 7):
            labels, scores = fitted.predict_topk(X, k)
            known = min(k, 5)
            assert labels.dtype == np.int64
            assert labels.shape == scores.shape == (60, k)
            assert (labels[:, known:] == -1).all()
            assert (scores[:, known:] == -np.inf).all()
            assert (np.diff(scores[:, :known], axis=1) <= 0).all()
            assert (np.diff(np.sort(labels[:, :known], axis=1), axis=1) > 0).all()
            np.testing.assert_array_equal(labels[:, :1], fitted.predict_topk(X, 1)[0])

    @pytest.mark.parametrize("y", [Y, Y.toarray()], ids=["sparse", "dense"])
    def test_it_has_the_largest_scores(self, entry, y):
        model = entry.make().fit(X, y)
        scores = dense(model.decision_function(X))
        best = -np.sort(-scores, axis=1)
        for k in (1, 3, scores.shape[1]):
            labels, found = model.predict_topk(X, k)
            own = np.take_along_axis(scores, labels, axis=1)
            np.testing.assert_allclose(found, own, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(found, best[:, :k], rtol=1e-9, atol=1e-9)

    def test_ties_go_to_the_smaller_column(self, entry):
        y = sp.csr_array(np.hstack([Y.toarray()[:, :2]] * 3))
        blank = sp.vstack([X, sp.csr_array((2, 15))], format="csr")
        model = entry.make().fit(X, y)
        labels, scores = model.predict_topk(blank, 6)
        assert not ((np.diff(scores, axis=1) == 0) & (np.diff(labels, axis=1) < 0)).any()
        for k in (1, 4):
            np.testing.assert_array_equal(model.predict_topk(blank, k)[0], labels[:, :k])

    def test_a_row_has_the_same_answer_alone(self, entry, fitted):
        for method, ask in asks(fitted).items():
            whole = ask(X)
            for rows in ([3], np.arange(20, 60)):
                some = ask(X[rows])
                if method == "predict_topk":
                    for part, of_all in zip(some, whole, strict=True):
                        np.testing.assert_array_equal(part, of_all[rows])
                else:
                    np.testing.assert_array_equal(dense(some), dense(whole[rows]))

    def test_top_k_limits_sparse_answers(self, entry):
        """And may be set after the fit; scores of 0 are stored."""
        model = entry.make(top_k=1000).fit(X, Y)
        whole = {method: dense(getattr(model, method)(X)) for method in own_methods(model)}
        model.set_params(top_k=3)
        best = np.sort(model.predict_topk(X, 5)[0][:, :3], axis=1)
        for method in own_methods(model)[1:]:
            answer = getattr(model, method)(X)
            np.testing.assert_array_equal(answer.indices.reshape(60, 3), best)
            expected = np.take_along_axis(whole[method], best, axis=1)
            np.testing.assert_allclose(answer.data.reshape(60, 3), expected, rtol=1e-12)
        expected = np.zeros_like(whole["predict"])
        kept = np.take_along_axis(whole["predict"], best, axis=1)
        np.put_along_axis(expected, best, kept, axis=1)
        np.testing.assert_array_equal(dense(model.predict(X)), expected)


def test_no_array_has_a_cell_for_each_instance_and_label(entry, monkeypatch):
    """With 40,000 labels, of which 100 occur, fits and answers hold less than a dense array."""
    if entry.many_labels is None:
        pytest.skip("draws and clusters all labels: minutes")
    # Bounded pieces of scores, here smaller than all scores of so few rows.
    monkeypatch.setattr("sklearn_xc._weights.class_weights._CHUNK_SCORES", 2**18)

    def many(n, n_labels):
        labels, indptr = np.arange(2 * n) % 100 * (n_labels // 100), np.arange(0, 2 * n + 1, 2)
        x = sp.csr_array(np.random.default_rng(0).random((n, 5)))
        return x, sp.csr_array((np.ones(2 * n), labels, indptr), shape=(n, n_labels))

    for ask in asks(entry.make(**entry.many_labels).fit(*many(200, 1_000))).values():
        ask(many(200, 1_000)[0])  # imports and compiles
    x, y = many(1_000, 40_000)
    model = entry.make(**entry.many_labels)
    calls = {"fit": lambda: model.fit(x, y)}
    calls |= {
        name: lambda name=name: asks(model)[name](x[:250]) for name in (*METHODS, "predict_topk")
    }
    for name, call in calls.items():
        if name != "fit" and name not in asks(model):
            continue
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * (1_000 if name == "fit" else 250) * 40_000, name

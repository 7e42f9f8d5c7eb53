"""What must not change the model by a single bit."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.gradients import MessagePassing, sharing

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

METHODS = {
    "exact": {"gradient": "exact"},
    "exact, softmax": {"gradient": "exact", "loss": "softmax", "optimizer": "adagrad"},
    "exact, dropout": {"gradient": "exact", "dropout": 0.3},
    "sampled": {"gradient": "sampled", "n_candidates": 5},
    "decomp_mips": {"gradient": "decomp_mips", "n_candidates": 8},
    "mips": {"gradient": "mips", "n_candidates": 5},
    "rounds": {"gradient": MessagePassing(n_rounds=2, n_blocks=2), "n_candidates": 4},
}
PROMISED = (
    "coef_", "intercept_", "feature_embedding_", "fit_report_", "threshold_", "index_recall_",
)  # fmt: skip


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


def assert_same_bytes(a, b, names=PROMISED):
    for name in names:
        p, q = np.asarray(value_of(a, name)), np.asarray(value_of(b, name))
        assert p.dtype == q.dtype
        assert p.shape == q.shape
        assert p.tobytes() == q.tobytes(), name


@pytest.fixture(params=METHODS)
def fit(request, make):
    """Return a function that fits, half an epoch by sampled labels."""

    def fit(X, y, sample_weight=None, **parameters):
        own = {"sampled_epochs": 0.5, **METHODS[request.param], **parameters}
        return make(**own).fit(X, y, sample_weight)

    return fit


@pytest.fixture(params=["zeros", "intercepts"])
def any_xy(request, xy):
    """Return X and Y, X also with so few zeros, but for its empty rows, that intercepts train."""
    X, Y = xy
    if request.param == "intercepts":
        X = X.toarray()
        X[X.any(axis=1)] += 0.125
        X = sp.csr_array(X)
    return X, Y


def test_intercepts_are_trained_on_some(any_xy, fit):
    X, Y = any_xy
    assert fit(X, Y).intercept_.any() == (X.nnz > 120 * 20)


class TestThreads:
    @pytest.mark.parametrize("embedding_dim", [None, 6])
    def test_n_jobs(self, embedding_dim, fit, any_xy, monkeypatch):
        X, Y = any_xy if embedding_dim else (any_xy[0].toarray().astype(np.float32), any_xy[1])
        expected = fit(X, Y, embedding_dim=embedding_dim, n_jobs=1)
        monkeypatch.setattr(sharing, "LEAST_WORK", 1)
        for n_jobs in (1, 2, 3):
            model = fit(X, Y, embedding_dim=embedding_dim, n_jobs=n_jobs)
            assert_same_bytes(model, expected)
            for exact in (True, False):
                for a, b in zip(
                    model.predict_topk(X, 4, exact), expected.predict_topk(X, 4, exact),
                    strict=True,
                ):  # fmt: skip
                    assert a.tobytes() == b.tobytes()

    def test_threads_of_joblib(self, fit, xy, monkeypatch):
        monkeypatch.setattr(sharing, "LEAST_WORK", 1)
        expected = fit(*xy)
        with joblib.parallel_config("threading", n_jobs=2):
            assert_same_bytes(fit(*xy), expected)

    @pytest.mark.parametrize("gradient", ["exact", "mips"])
    def test_batches_that_blas_multiplies(self, gradient, make, make_xy, monkeypatch):
        """With more than ten instances for a thread, and fewer for each of three."""
        X, Y = make_xy(n=150, n_labels=70)
        own = {"gradient": gradient, "batch_size": 25, "n_candidates": 20, "sampled_epochs": 0}
        if gradient == "mips":
            own["index"] = "exact"
        monkeypatch.setattr(sharing, "LEAST_WORK", 1)
        expected = make(n_jobs=1, **own).fit(X, Y)
        for n_jobs in (2, 3):
            assert_same_bytes(make(n_jobs=n_jobs, **own).fit(X, Y), expected)


class TestRandomState:
    def test_the_same_twice(self, fit, xy):
        first = fit(*xy)
        coef = first.coef_.copy()
        assert_same_bytes(first, fit(*xy))
        assert_same_bytes(first.fit(*xy), fit(*xy))
        np.testing.assert_array_equal(first.coef_, coef)

    @pytest.mark.parametrize("embedding_dim", [None, 6])
    def test_another_seed_gives_another_model(self, embedding_dim, fit, xy):
        X = xy[0].toarray()
        a, b = (fit(X, xy[1], embedding_dim=embedding_dim, random_state=r) for r in (0, 1))
        assert (a.coef_ != b.coef_).any()

    def test_a_generator_moves_on(self, make, xy):
        generator = np.random.RandomState(0)
        a, b = (make(random_state=generator).fit(*xy) for _ in range(2))
        assert (a.coef_ != b.coef_).any()
        assert_same_bytes(a, make(random_state=np.random.RandomState(0)).fit(*xy))


class TestContainers:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_sparse_equals_dense(self, dtype, fit, any_xy):
        X, Y = any_xy[0].astype(dtype), any_xy[1]
        expected = fit(X, Y)
        assert_same_bytes(fit(X.toarray(), Y), expected)
        assert_same_bytes(fit(np.asfortranarray(X.toarray()), Y.toarray()), expected)

    def test_negative_zeros_of_a_dense_x(self, fit, xy):
        X, Y = xy
        dense = X.toarray()
        for embedding_dim in (None, 6):
            a, b = (
                fit(x, Y, embedding_dim=embedding_dim)
                for x in (dense, np.where(dense == 0, -0.0, dense))
            )
            np.testing.assert_array_equal(a.coef_, b.coef_)

    def test_stored_zeros(self, fit, xy):
        X, Y = xy
        stored = X.copy()
        stored.data[::5] = 0
        filtered = stored.copy()
        filtered.eliminate_zeros()
        a, b = fit(stored, Y), fit(filtered, Y)
        for name in PROMISED:  # the sign of a zero apart
            np.testing.assert_array_equal(value_of(a, name), value_of(b, name))

    def test_int64_indices(self, fit, xy):
        wide = [a.copy() for a in xy]
        for a in wide:
            a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
        assert_same_bytes(fit(*wide), fit(*xy))
        assert wide[0].indices.dtype == wide[1].indices.dtype == np.int64

    def test_unsorted_indices(self, fit, xy):
        unsorted = []
        for a in xy:
            b = a.copy()
            for i in range(120):
                row = slice(*b.indptr[i : i + 2])
                b.indices[row], b.data[row] = b.indices[row][::-1].copy(), b.data[row][::-1].copy()
            b.has_sorted_indices = False
            unsorted.append(b)
        before = unsorted[0].indices.copy()
        model = fit(*unsorted)
        assert_same_bytes(model, fit(*xy))
        np.testing.assert_array_equal(unsorted[0].indices, before)
        assert model.embed(unsorted[0]).tobytes() == model.embed(xy[0]).tobytes()

    def test_duplicate_entries_of_x_are_summed(self, fit, xy):
        X, Y = xy
        twice = sp.csr_array(
            (np.repeat(X.data, 2) / 2, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
        )
        assert not twice.has_canonical_format
        before = twice.data.copy(), twice.indices.copy()
        assert_same_bytes(fit(twice, Y), fit(X, Y))
        np.testing.assert_array_equal(twice.data, before[0])
        np.testing.assert_array_equal(twice.indices, before[1])


class TestInputs:
    @staticmethod
    def freeze(a):
        a = a.copy()
        for array in (a.data, a.indices, a.indptr):
            array.flags.writeable = False
        return a

    def test_read_only_arrays(self, fit, xy):
        weight = np.linspace(0, 2, 120)
        weight.flags.writeable = False
        model = fit(*(self.freeze(a) for a in xy), weight)
        assert_same_bytes(model, fit(*xy, weight))
        dense = [a.toarray() for a in xy]
        for a in dense:
            a.flags.writeable = False
        assert_same_bytes(fit(*dense, weight), model)

    def test_memory_maps(self, fit, xy, tmp_path):
        joblib.dump(xy, tmp_path / "data.joblib")
        X, Y = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
        assert isinstance(X.data, np.memmap)
        model = fit(X, Y)
        assert_same_bytes(model, fit(*xy))
        model.partial_fit(X, Y)
        assert type(model.predict(X)) is sp.csr_array

    def test_nothing_is_changed_in_place(self, fit, xy):
        X, Y = xy
        dense, weight = X.toarray(), np.linspace(0, 2, 120)
        arrays = [getattr(a, n) for a in (X, Y) for n in ("data", "indices", "indptr")]
        arrays += [dense, weight]
        before = [a.copy() for a in arrays]
        model = fit(X, Y, weight)
        fit(dense, Y, weight, embedding_dim=None)
        model.partial_fit(X, Y, sample_weight=weight)
        model.predict(X), model.predict_topk(X, exact=False), model.score(X, Y), model.embed(X)
        model.decision_function(dense)
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


class TestRows:
    def test_the_order_of_the_rows(self, fit, any_xy):
        X, Y = any_xy
        weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], 120)
        order = np.random.default_rng(0).permutation(120)
        assert_same_bytes(fit(X, Y, weight), fit(X[order], Y[order], weight[order]))

    def test_the_order_of_equal_rows_with_other_weights(self, make, any_xy):
        """0.1 + 0.2 + 0.3 depends on the order."""
        X, Y = (sp.vstack([a[:20]] * 6).tocsr() for a in any_xy)
        rng = np.random.default_rng(0)
        weight = rng.random(120)
        expected = make().fit(X, Y, weight)
        for _ in range(5):
            order = rng.permutation(120)
            model = make().fit(X[order], Y[order], weight[order])
            assert_same_bytes(model, expected)
            nothing = np.zeros((1, 40))
            found, wanted = (m.predict_topk(nothing, 15)[1] for m in (model, expected))
            assert found.tobytes() == wanted.tobytes()

    def test_a_weight_of_two_is_a_repeated_row_and_of_zero_a_missing_one(self, fit, any_xy):
        X, Y = any_xy
        counts = np.random.default_rng(0).integers(0, 4, 120)
        rows = np.random.default_rng(1).permutation(np.repeat(np.arange(120), counts))
        weighted, repeated = fit(X, Y, counts), fit(X[rows], Y[rows])
        assert_same_bytes(weighted, repeated)
        assert (weighted.coef_ != fit(X, Y).coef_).any()

    def test_rows_of_weight_zero_are_not_counted(self, fit, xy):
        X, Y = xy
        kept = np.arange(120) % 3 > 0
        weighted, without = fit(X, Y, kept.astype(float)), fit(X[kept], Y[kept])
        assert_same_bytes(weighted, without, (*PROMISED, "label_counts_", "n_samples_fit_"))
        assert weighted.n_samples_fit_ == 80

    def test_a_weight_is_of_an_instance_with_its_labels(self, make):
        """Equal instances with other labels stay apart."""
        X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        a = make(embedding_dim=None).fit(X, [0, 1, 2], [2.0, 1.0, 1.0])
        b = make(embedding_dim=None).fit(X[[0, 1, 0, 2]], [0, 1, 0, 2])
        assert_same_bytes(a, b)
        assert a.coef_[0, 0] > a.coef_[1, 0] > a.coef_[2, 0]

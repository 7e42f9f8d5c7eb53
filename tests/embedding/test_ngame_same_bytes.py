"""What must not change the model by a single bit, and what fits leave behind."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sklearn_xc.embedding import _fitting, _training
from sklearn_xc.encoders import bag
from sklearn_xc.samplers import SAMPLERS

PROMISED = ("coef_", "label_embeddings_", "label_counts_", "threshold_", "classes_")
ANSWERS = ("predict", "decision_function", "predict_topk", "embed")


def plain(answer):
    return answer.toarray() if sp.issparse(answer) else np.asarray(answer)


def assert_same_bytes(a, b):
    for name in PROMISED:
        p, q = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        assert p.dtype == q.dtype
        assert p.shape == q.shape
        assert p.tobytes() == q.tobytes(), name
    for name in ("module", "epoch", "loss", "hits"):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name])


def assert_same_answers(a, b, X):
    for method in ANSWERS:
        p, q = getattr(a, method)(X), getattr(b, method)(X)
        assert type(p) is type(q)
        for first, second in zip(p, q, strict=True) if isinstance(p, tuple) else [(p, q)]:
            assert plain(first).tobytes() == plain(second).tobytes(), method
    known = ("features",) if a._features is not None else ()
    for component in ("embedding", "classifier", *known):
        for p, q in zip(
            a.predict_topk(X, 4, component), b.predict_topk(X, 4, component), strict=True
        ):
            assert p.tobytes() == q.tobytes(), component


class TestThreads:
    @pytest.mark.parametrize("n_shards", [1, 3])
    @pytest.mark.parametrize("sampler", sorted(SAMPLERS))
    def test_n_jobs(self, sampler, n_shards, make, documents, monkeypatch):
        X, Y, Z = documents
        own = {"sampler": sampler, "n_shards": n_shards, "label_features": Z}
        expected = make(n_jobs=1, **own).fit(X, Y)
        monkeypatch.setattr(_training, "_LEAST_WORK", 1)
        monkeypatch.setattr(bag, "_TOGETHER", 16)
        monkeypatch.setattr(bag, "_LEAST_WORK", 1)
        for n_jobs in (1, 2, 3):
            model = make(n_jobs=n_jobs, **own).fit(X, Y)
            assert_same_bytes(model, expected)
            assert_same_answers(model, expected, X)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("n_shards", [1, 3])
    def test_more_data(self, n_shards, dtype, make, make_documents):
        """Batches that are worth several threads, and wider vectors."""
        X, Y, Z = make_documents(n=900, n_topics=20, labels_of_topic=20, dtype=dtype)
        own = {"label_features": Z, "batch_size": 700, "max_iter": 2, "embedding_dim": 32,
               "n_shards": n_shards}  # fmt: skip
        models = [make(n_jobs=n_jobs, **own).fit(X, Y) for n_jobs in (1, 2, 3)]
        for model in models[1:]:
            assert_same_bytes(model, models[0])
            assert_same_answers(model, models[0], X)

    def test_threads_of_joblib(self, make, documents, monkeypatch):
        monkeypatch.setattr(_training, "_LEAST_WORK", 1)
        expected = make().fit(*documents[:2])
        with joblib.parallel_config("threading", n_jobs=2):
            assert_same_bytes(make().fit(*documents[:2]), expected)

    def test_threads_of_blas(self, make, make_documents):
        """An odd number of labels: BLAS rounds the last ones by how its threads share them out."""
        X, Y, Z = make_documents(n=160, n_topics=13, labels_of_topic=37)
        model = make(label_features=Z).fit(X, Y.toarray())
        scores = []
        for n_threads in (1, 2, 3):
            with threadpool_limits(n_threads, user_api="blas"):
                scores.append(model.decision_function(X))
        for other in scores[1:]:
            assert other.tobytes() == scores[0].tobytes()


class TestRandomState:
    def test_the_same_twice(self, make, documents):
        X, Y, Z = documents
        first = make(label_features=Z).fit(X, Y)
        coef = first.coef_.copy()
        again = make(label_features=Z).fit(X, Y)
        assert_same_bytes(first, again)
        earlier = first.coef_
        assert_same_bytes(first.fit(X, Y), again)
        np.testing.assert_array_equal(earlier, coef)

    def test_another_seed_gives_another_model(self, make, documents):
        a, b = (make(random_state=seed).fit(*documents[:2]) for seed in (0, 1))
        assert (a.coef_ != b.coef_).any()

    def test_a_generator_moves_on(self, make, documents):
        generator = np.random.RandomState(0)
        a, b = (make(random_state=generator).fit(*documents[:2]) for _ in range(2))
        assert (a.coef_ != b.coef_).any()
        again = make(random_state=np.random.RandomState(0)).fit(*documents[:2])
        assert_same_bytes(a, again)


class TestContainers:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("known", [True, False])
    def test_sparse_equals_dense(self, known, dtype, make, documents):
        X, Y, Z = documents
        X, own = X.astype(dtype), {"label_features": Z if known else None}
        expected = make(**own).fit(X, Y)
        for other in (X.toarray(), np.asfortranarray(X.toarray()), sp.csc_matrix(X)):
            model = make(**own).fit(other, Y)
            assert_same_bytes(model, expected)
            assert_same_answers(model, expected, X)
            assert plain(model.predict(other)).tobytes() == plain(model.predict(X)).tobytes()

    def test_label_features_of_another_container(self, make, documents):
        X, Y, Z = documents
        expected = make(label_features=Z).fit(X, Y)
        frozen = Z.toarray()
        frozen.flags.writeable = False
        twice = sp.csr_array(
            (np.repeat(Z.data, 2) / 2, np.repeat(Z.indices, 2), 2 * Z.indptr), shape=Z.shape
        )
        for other in (frozen, Z.toarray().tolist(), sp.csc_array(Z), sp.coo_matrix(Z), twice):
            assert_same_bytes(make(label_features=other).fit(X, Y), expected)
        assert len(twice.data) == 2 * Z.nnz

    def test_int64_indices(self, make, documents):
        wide = [a.copy() for a in documents]
        for a in wide:
            a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
        X, Y, Z = wide
        model = make(label_features=Z).fit(X, Y)
        expected = make(label_features=documents.Z).fit(*documents[:2])
        assert_same_bytes(model, expected)
        assert_same_answers(model, expected, X)
        assert X.indices.dtype == Y.indices.dtype == Z.indices.dtype == np.int64

    def test_unsorted_indices(self, make, documents):
        unsorted = []
        for a in documents:
            b = a.copy()
            for i in range(b.shape[0]):
                row = slice(*b.indptr[i : i + 2])
                b.indices[row], b.data[row] = b.indices[row][::-1].copy(), b.data[row][::-1].copy()
            b.has_sorted_indices = False
            unsorted.append(b)
        X, Y, Z = unsorted
        before = [a.indices.copy() for a in unsorted]
        model = make(label_features=Z).fit(X, Y)
        expected = make(label_features=documents.Z).fit(*documents[:2])
        assert_same_bytes(model, expected)
        assert model.embed(X).tobytes() == expected.embed(documents.X).tobytes()
        for a, b in zip(unsorted, before, strict=True):
            np.testing.assert_array_equal(a.indices, b)

    def test_duplicate_entries_are_summed(self, make, documents):
        X, Y, _ = documents
        twice = sp.csr_array(
            (np.repeat(X.data, 2) / 2, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
        )
        model, expected = make().fit(twice, Y), make().fit(X, Y)
        assert_same_bytes(model, expected)
        assert len(twice.data) == 2 * X.nnz
        assert model.embed(twice).tobytes() == expected.embed(X).tobytes()

    def test_read_only_arrays(self, make, documents):
        frozen = [a.copy() for a in documents]
        for a in frozen:
            for array in (a.data, a.indices, a.indptr):
                array.flags.writeable = False
        X, Y, Z = frozen
        model = make(label_features=Z).fit(X, Y)
        expected = make(label_features=documents.Z).fit(*documents[:2])
        assert_same_bytes(model, expected)
        assert_same_answers(model, expected, X)
        dense = [a.toarray() for a in documents]
        for a in dense:
            a.flags.writeable = False
        assert_same_bytes(make(label_features=dense[2]).fit(*dense[:2]), expected)

    def test_memory_maps(self, make, documents, tmp_path):
        joblib.dump(tuple(documents), tmp_path / "data.joblib")
        X, Y, Z = joblib.load(tmp_path / "data.joblib", mmap_mode="r")
        assert isinstance(X.data, np.memmap)
        model = make(label_features=Z).fit(X, Y)
        assert_same_bytes(model, make(label_features=documents.Z).fit(*documents[:2]))

    def test_nothing_is_changed_in_place(self, make, documents):
        X, Y, Z = (a.copy() for a in documents)
        dense = X.toarray()
        arrays = [getattr(a, n) for a in (X, Y, Z) for n in ("data", "indices", "indptr")]
        arrays.append(dense)
        before = [a.copy() for a in arrays]
        model = make(label_features=Z).fit(X, Y)
        make().fit(dense, Y)
        model.predict(X), model.predict_topk(X), model.score(X, Y), model.embed(dense)
        for a, b in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.fixture(params=["sparse", "dense", "classes", "two classes", "no tree", "float32"])
def model(request, make, documents):
    X, Y, Z = documents
    y = {
        "dense": Y.toarray(),
        "classes": np.array(["b", "a", "c"])[np.arange(160) % 3],
        "two classes": np.arange(160) % 2 > 0,
    }.get(request.param, Y)
    own = {"label_features": Z} if np.ndim(y) == 2 or sp.issparse(y) else {}
    if request.param == "no tree":
        own["fusion"] = False
    if request.param == "float32":
        X = X.astype(np.float32)
    return make(validation_fraction=0.25, top_k=3, **own).fit(X, y)


class TestPersistence:
    @pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
    def test_pickle(self, protocol, model, documents):
        again = pickle.loads(pickle.dumps(model, protocol))
        assert_same_bytes(again, model)
        assert_same_answers(again, model, documents.X)

    @pytest.mark.parametrize("mmap_mode", [None, "r"])
    def test_joblib(self, mmap_mode, model, documents, tmp_path):
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
        assert isinstance(again.coef_, np.memmap) == (mmap_mode == "r")
        assert_same_bytes(again, model)
        assert_same_answers(again, model, documents.X)

    def test_deepcopy(self, model, documents):
        again = copy.deepcopy(model)
        assert again.coef_ is not model.coef_
        assert_same_answers(again, model, documents.X)

    def test_a_file_can_be_fitted_again(self, model, documents):
        again = pickle.loads(pickle.dumps(model))
        for each in (again, model):
            each.fit(*documents[:2])
        assert_same_bytes(again, model)


class TestAnEarlierFit:
    @pytest.fixture
    def check(self, make, documents):
        """Return a fitted model, and a function that asserts that it is as it was."""
        X, Y, Z = documents
        model = make(label_features=Z, validation_fraction=0.25).fit(X, Y)
        before, expected = dict(vars(model)), pickle.loads(pickle.dumps(model))

        def check(changed=()):
            for name in set(before) - set(changed):
                assert vars(model)[name] is before[name], name
            assert set(vars(model)) == set(before)
            assert_same_bytes(model, expected)
            assert_same_answers(model, expected, X)

        return model, check

    @pytest.mark.parametrize("what", ["targets", "rows", "labels", "features", "nan"])
    def test_a_failed_fit_leaves_it_intact(self, what, check, documents):
        model, check = check
        X, Y, _ = documents
        X, y = X[:, :50] if what == "features" else X, Y
        if what == "targets":
            y = 2 * Y
        if what == "rows":
            y = Y[:100]
        if what == "labels":
            y = Y[:, :10]
        if what == "nan":
            X = X * np.nan
        with pytest.raises(ValueError, match=r"must|rows|features|NaN"):
            model.fit(X, y)
        check()

    @pytest.mark.parametrize("step", [1, 10, 18])
    def test_an_interrupted_fit_leaves_it_intact(self, step, check, documents, monkeypatch):
        model, check = check
        plain_step, calls = _training.SiameseTraining._step, []

        def interrupt(self, *arguments):
            calls.append(1)
            if len(calls) == step:
                raise KeyboardInterrupt
            return plain_step(self, *arguments)

        monkeypatch.setattr(_training.SiameseTraining, "_step", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*documents[:2])
        check()

    def test_interrupted_at_the_end(self, check, documents, monkeypatch):
        model, check = check

        def interrupt(*arguments):
            raise KeyboardInterrupt

        monkeypatch.setattr(_fitting, "threshold_for", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(*documents[:2])
        check()

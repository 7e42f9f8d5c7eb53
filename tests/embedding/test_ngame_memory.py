"""What needs more memory than is allowed is refused before it is begun; answers come in pieces."""

import pickle
import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.embedding import _memory
from sklearn_xc.embedding._memory import Budget, Held, pieces_by_width
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.samplers import NgameSampler

MB = 2**20


class Sized:
    """Random data of a size, and the estimator of such a size."""

    def __init__(self, n, d, n_labels, dtype=np.float32, n_words=8, n_own=2):
        rng = np.random.default_rng(0)
        self.X, self.Z = (
            sp.random_array((m, d), density=n_words / d, rng=rng, format="csr", dtype=dtype)
            for m in (n, n_labels)
        )
        labels = np.r_[np.arange(n_labels), rng.integers(0, n_labels, max(0, n * n_own - n_labels))]
        Y = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)) % n, labels)))
        self.Y = sp.csr_array((Y != 0).astype(np.float64))


@pytest.fixture
def told(monkeypatch):
    """Return what is found to be needed, call by call."""
    seen, plain = [], Budget.require

    def require(self, held):
        seen.append(plain(self, held))
        return seen[-1]

    monkeypatch.setattr(Budget, "require", require)
    return seen


def peak_of(call):
    """Return the result of a call, and the bytes that it held at most."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        return result, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


SIZES = {
    "instances": (Sized, (6000, 300, 200), {}),
    "features": (Sized, (900, 12000, 200), {}),
    "labels": (Sized, (900, 300, 12000), {}),
    "batch": (Sized, (1500, 300, 1500), {"batch_size": 10**6, "sampler": "in_batch"}),
    "searched": (Sized, (1500, 300, 3000), {"batch_size": 300, "sampler": "ance"}),
    "shortlist": (Sized, (1500, 300, 900), {"n_candidates": 300, "validation_fraction": 0.4}),
    "shards": (Sized, (6000, 300, 900), {"n_shards": 3, "n_jobs": 3}),
    "clusters once": (Sized, (6000, 300, 200), {"sampler": "tas"}),
}


class TestWhatIsTold:
    """It is about what numpy is asked for, besides pieces: they are as large as they may be."""

    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(_memory, "PIECE", MB)

    @pytest.mark.parametrize(
        ("which", "known"),
        [(which, True) for which in SIZES] + [("features", False), ("shards", False)],
    )
    def test_of_a_fit(self, which, known, make, told):
        make_data, shape, parameters = SIZES[which]
        data = make_data(*shape)
        own = {"label_features": data.Z} if known else {}
        own = {
            "embedding_dim": 64,
            "max_iter": 2,
            "sampler": NgameSampler(refresh_interval=1),
            **own,
            **parameters,
        }
        make(**own).fit(data.X, data.Y)  # kernels are compiled
        told.clear()
        model, peak = peak_of(lambda: make(**own).fit(data.X, data.Y))
        assert 0.9 * peak - 2 * MB < max(told) < 2.2 * peak + 2 * MB
        told.clear()
        _, peak = peak_of(lambda: model.partial_fit(data.X, data.Y))
        assert 0.9 * peak - MB < max(told) < 2 * peak + 2 * MB
        if known:
            told.clear()
            _, peak = peak_of(lambda: model.add_labels(label_features=data.Z))
            assert 0.9 * peak - MB < max(told) < 2 * peak + 2 * MB

    @pytest.mark.parametrize("component", ["fused", "embedding", "features"])
    def test_of_answers(self, component, make, told):
        data = Sized(3000, 300, 2000)
        model = make(label_features=data.Z, embedding_dim=64).fit(data.X, data.Y)
        model.predict_topk(data.X, 50, component=component)
        told.clear()
        _, peak = peak_of(lambda: model.predict_topk(data.X, 50, component=component))
        assert 0.9 * peak - MB < max(told) + MB
        assert max(told) < 2 * peak


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "named"),
        [
            ({"embedding_dim": 10**9}, r"residual block .*, 2 x 1000000000 x 1000000000 x 8 bytes"),
            ({"embedding_dim": 2**61}, r"residual block .*, 2 x 2305843009213693952 x 23058430"),
            ({"max_memory": 1000, "embedding_dim": 1, "batch_size": 2},
             r"features of the instances, 880 x 12 bytes, 6 times"),
            ({"max_memory": "1MB", "embedding_dim": 500}, "residual block"),
            ({"max_memory": 1.5 * MB, "embedding_dim": 99, "batch_size": 10**6},
             r"embeddings of a mini-batch, \d+ x 99 x 8 bytes, 10 times. Lower batch_size"),
            ({"max_memory": "0.3 MB", "n_candidates": 10**9, "validation_fraction": 0.5},
             r"scores of pairs held out, \d+ x 5 x 32 bytes. Lower n_candidates or valid"),
        ],
        ids=str,
    )  # fmt: skip
    def test_of_a_fit(self, parameters, named, make, documents):
        X, Y, Z = documents
        model = make(label_features=Z, sampler="in_batch").fit(X, Y)
        before = pickle.dumps(vars(model)["coef_"])
        model.set_params(**parameters)
        with pytest.raises(MemoryBudgetError, match=f"The largest array is .*{named}"):
            model.fit(X, Y)
        assert pickle.dumps(vars(model)["coef_"]) == before
        fresh = make(label_features=Z, sampler="in_batch", **parameters)
        for method in (fresh.fit, fresh.partial_fit):
            with pytest.raises(MemoryBudgetError, match=named):
                method(X, Y)
        assert not [name for name in vars(fresh) if name.endswith("_")]

    def test_of_instances_and_labels(self, make):
        for shape, named in (
            ((9000, 30, 20), r"embeddings of the instances, \d+ x 99 x 4 bytes.*partial_fit"),
            ((90, 300, 9000), r"vectors of the labels, 9000 x 99 x 4 bytes, 8 times.*rare"),
            ((90, 9000, 20), r"vectors of the features .*, 9000 x 99 x 4 bytes, 3 times.*Hashing"),
        ):
            data = Sized(*shape, n_words=1, n_own=1)
            own = {"embedding_dim": 99, "validation_fraction": 0.0}
            with pytest.raises(MemoryBudgetError, match=named):
                make(**own, max_memory="1 MB").fit(data.X, data.Y)

    def test_nothing_is_allocated(self, make, monkeypatch):
        data = Sized(300, 3000, 200)
        model = make(embedding_dim=2000, max_memory="20 MB")

        def call():
            with pytest.raises(MemoryBudgetError):
                model.fit(data.X, data.Y)

        call()
        _, peak = peak_of(call)
        assert peak < MB

    @pytest.fixture
    def model(self, make, documents):
        """Return a fitted model, for the test alone."""
        X, Y, Z = documents
        return make(label_features=Z, validation_fraction=0.3).fit(X, Y)

    def test_of_answers(self, model, make, documents):
        X, _, Z = documents
        dense = make(label_features=Z).fit(X, documents.Y.toarray())
        for one in (model, dense):
            one.set_params(max_memory=500_000)
        many = sp.vstack([X] * 100).tocsr()
        for call, named in (
            (lambda: model.predict_topk(many, 5), "answer, 16000 instances x k=5"),
            (lambda: model.predict(many), "answer, 16000 instances x k=20"),
            (lambda: model.decision_function(many), "answer, 16000 instances x k=20"),
            (lambda: model.embed(many), "embeddings of the instances, 16000 x 12 x 8 bytes"),
            (lambda: dense.decision_function(many), "scores of all labels, 16000 x 20 x 8 bytes"),
            (lambda: dense.predict(many), "scores of all labels, 16000 x 20 x 8 bytes, 3 times"),
        ):
            with pytest.raises(MemoryBudgetError, match=f"max_memory allows.*{named}. [ALU]"):
                call()

    def test_of_further_training(self, model, documents):
        X, Y, Z = documents
        model.set_params(max_memory=10_000, batch_size=160)
        before, named = (
            pickle.dumps(model),
            r"embeddings of a mini-batch, 178 x 12 x 8 bytes, 6 tim",
        )
        with pytest.raises(MemoryBudgetError, match=named):
            model.partial_fit(X, Y)
        with pytest.raises(MemoryBudgetError, match=r"vectors of the labels, 40 x 12 x 8 bytes"):
            model.add_labels(label_features=Z)
        assert pickle.dumps(model) == before

    @pytest.mark.parametrize("wrong", [0, -1, True, np.nan, np.inf, "lots", "8 elephants", ""])
    def test_no_size(self, wrong, make, model, documents):
        X, Y, Z = documents
        with pytest.raises(ValueError, match="max_memory"):
            make(max_memory=wrong).fit(X, Y)
        model.max_memory = wrong
        calls = [lambda: model.predict(X), lambda: model.predict_topk(X), lambda: model.embed(X),
                 lambda: model.decision_function(X),
                 lambda: model.add_labels(label_features=Z)]  # fmt: skip
        for call in calls:
            with pytest.raises(ValueError, match="NGAMEEmbeddingXC: max_memory must be a positive"):
                call()


class TestPieces:
    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_answers_are_the_same(self, dtype, container, make, documents, monkeypatch):
        X, Y, Z = documents
        X = sp.vstack([X, sp.csr_array((3, 80)), X * 0.5]).tocsr().astype(dtype)
        model = make(label_features=Z, validation_fraction=0.3)
        model.fit(X[:160], container(Y))

        def answers():
            yield from (model.predict(X), model.decision_function(X), model.embed(X))
            for component in ("fused", "embedding", "classifier", "features"):
                yield from model.predict_topk(X, 7, component=component)

        def as_bytes():
            found = (part.toarray() if sp.issparse(part) else part for part in answers())
            return [part.tobytes() for part in found]

        expected = as_bytes()
        for piece in (10, 1000, 20_000):
            monkeypatch.setattr(_memory, "PIECE", piece)
            assert as_bytes() == expected

    def test_the_tree_is_the_same(self, make, documents, monkeypatch):
        X, Y, Z = documents
        own = {"label_features": Z, "validation_fraction": 0.4}
        expected = make(**own).fit(X, Y)
        for piece in (10, 20_000):
            monkeypatch.setattr(_memory, "PIECE", piece)
            model = make(**own).fit(X, Y)
            assert model.threshold_ == expected.threshold_
            for p, q in zip(model.fusion_.trees_, expected.fusion_.trees_, strict=True):
                assert p.tobytes() == q.tobytes()

    def test_max_memory_changes_no_bit(self, make, documents):
        X, Y, Z = documents
        own = {"label_features": Z, "validation_fraction": 0.3}
        expected = make(**own).fit(X, Y)
        model = make(**own, max_memory="600 KB").fit(X, Y)
        for name in ("coef_", "label_embeddings_", "threshold_"):
            assert (
                np.asarray(getattr(model, name)).tobytes()
                == np.asarray(getattr(expected, name)).tobytes()
            )
        for p, q in zip(model.predict_topk(X, 9), expected.predict_topk(X, 9), strict=True):
            assert p.tobytes() == q.tobytes()

    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    def test_they_keep_to_what_is_allowed(self, container, make):
        """In one piece these answers take four times as much."""
        data = Sized(4000, 100, 100)
        model = make(label_features=data.Z, n_candidates=100).fit(data.X, container(data.Y))
        model.predict(data.X)
        whole = peak_of(lambda: model.predict_topk(data.X, 3))[1]
        allowed = whole // 4
        assert allowed > 2 * MB
        model.set_params(max_memory=allowed)
        for call in (
            lambda: model.predict_topk(data.X, 3),
            lambda: model.predict_topk(data.X, 3, component="embedding"),
            lambda: model.decision_function(data.X[:300]),
            lambda: model.predict(data.X[:300]),
        ):
            assert peak_of(call)[1] < allowed

    def test_ranges_by_width(self):
        rng = np.random.default_rng(0)
        for widths in (
            rng.integers(1, 9, 50),
            np.ones(7, int),
            np.array([99, 1, 1, 99]),
            np.ones(0),
        ):
            found = list(pieces_by_width(widths, 20))
            together = np.concatenate([np.empty(0, int), *found])
            assert together.tolist() == list(range(len(widths)))
            for rows in found:
                assert len(rows) == 1 or len(rows) * widths[rows].max() <= 20
            for rows, after in pairwise(found):  # no piece could be longer
                more = np.append(rows, after[0])
                assert len(more) * widths[more].max() > 20

    def test_instances_with_very_many_labels(self, make, documents, monkeypatch):
        """The places of their own labels beside all others' would be a table of mostly nothing."""
        X, Y, Z = documents
        Y = Y.tolil()
        Y[:2] = 1
        own = {"label_features": Z, "validation_fraction": 0.5, "n_candidates": 2}
        expected = make(**own).fit(X, Y.tocsr())
        monkeypatch.setattr(_memory, "PIECE", 3000)
        model = make(**own).fit(X, Y.tocsr())
        for p, q in zip(model.fusion_.trees_, expected.fusion_.trees_, strict=True):
            assert p.tobytes() == q.tobytes()


def test_the_largest_array_is_named():
    held = [Held("one", (3, 4), 8, 1, "Do this."), Held("other", (2**20, 3), 8, 2, "Do that.")]
    assert sum(each.n_bytes for each in held) == 96 + 48 * MB
    message = re.escape(
        "Name: 48.0 MiB are needed and max_memory allows 1.0 MiB. The largest array is other, "
        "1048576 x 3 x 8 bytes, 2 times. Do that."
    )
    with pytest.raises(MemoryBudgetError, match=message):
        Budget("1MB", "Name").require(held)
    assert Budget("49MB", "Name").require(held) == 96 + 48 * MB


@pytest.mark.parametrize(
    ("max_memory", "piece", "expected"),
    [(5000, 10**6, 40), (5000, 2000, 20), (None, 2000, 20), (1100, 10**6, 1), (None, 50, 1),
     (None, 10**5, 768), (None, 25_600, 256), (None, 25_700, 256), (30_000, 10**6, 256)],
)  # fmt: skip
def test_rows_together(max_memory, piece, expected, monkeypatch):
    """What is held besides has its place; many rows are whole cuts of a search."""
    monkeypatch.setattr(_memory, "PIECE", piece)
    row, held = Held("a row", (1, 100), 1, 1, ""), Held("held", (1000,), 1, 1, "")
    assert Budget(max_memory, "Name").rows_together([row], [held]) == expected

"""A fit that needs more memory than is allowed is refused before it begins."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.embedding import _answers
from sklearn_xc.embedding.samplers import AnceSampler, InBatchSampler
from sklearn_xc.exceptions import MemoryBudgetError

MB = 2**20


def make_rows(n, d, n_labels, n_words=8):
    """Return random X, Y and Z; each label has an instance."""
    rng = np.random.default_rng(0)
    X, Z = (
        sp.random_array((m, d), density=n_words / d, rng=rng, format="csr", dtype=np.float32)
        for m in (n, n_labels)
    )
    labels = np.arange(max(n, n_labels)) % n_labels
    Y = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)) % n, labels)))
    return X, sp.csr_array((Y != 0).astype(np.float64)), Z


def test_peaks_are_about_what_is_required(make, monkeypatch):
    needed = []
    monkeypatch.setattr(
        "sklearn_xc.embedding.ngame.require_memory",
        lambda arrays, *others: needed.append(sum(array.n_bytes for array in arrays)),
    )
    for shape, parameters in (
        ((3000, 300, 200), {"sampler": "tas"}),
        ((900, 6000, 200), {}),
        ((900, 300, 4500), {}),
        ((1500, 300, 1500), {"sampler": AnceSampler(batch_size=300)}),
    ):
        own = {"embedding_dim": 64, "max_iter": 1, "classifier_max_iter": 1, **parameters}
        X, Y, Z = make_rows(400, 50, 20)
        make(label_features=Z, **own).fit(X, Y)  # compiles
        X, Y, Z = make_rows(*shape)
        model = make(label_features=Z, **own)
        tracemalloc.start()
        model.fit(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 0.3 * peak < needed[-1] < 3 * peak, shape


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"embedding_dim": 10**9}, r"residual block .*, 2 x 1000000000 x 1000000000 x 8 bytes"),
        ({"max_memory": 1000, "embedding_dim": 1}, "scores of pairs held out"),
        ({"max_memory": "1MB", "embedding_dim": 500}, "residual block"),
        (
            {"max_memory": 1.5 * MB, "embedding_dim": 99, "sampler": InBatchSampler(10**6)},
            r"embeddings of a mini-batch, \d+ x 99 x 8 bytes, 10 times. Lower embedding_dim",
        ),
        (
            {"max_memory": "0.3 MB", "n_candidates": 10**9, "validation_fraction": 0.5},
            r"scores of pairs held out, \d+ x 5 x 44 bytes. Lower embedding_dim, n_candi",
        ),
    ],
    ids=str,
)
def test_fits_are_refused(parameters, named, make, documents):
    X, Y, Z = documents
    model = make(label_features=Z, sampler="in_batch").fit(X, Y)
    before = pickle.dumps(vars(model)["coef_"])
    with pytest.raises(MemoryBudgetError, match=f"The largest array is .*{named}"):
        model.set_params(**parameters).fit(X, Y)
    assert pickle.dumps(vars(model)["coef_"]) == before
    fresh = make(label_features=Z, **{"sampler": "in_batch", **parameters})
    with pytest.raises(MemoryBudgetError, match=named):
        fresh.fit(X, Y)
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_large_answers_are_refused(make, documents):
    X, Y, Z = documents
    sparse, dense = (make(label_features=Z).fit(X, y) for y in (Y, Y.toarray()))
    many = sp.vstack([X] * 100).tocsr()
    for call, named in (
        (lambda: sparse.predict_topk(many, 5), "answer, 16000 instances x k=5"),
        (lambda: dense.decision_function(many), "scores of all labels, 16000 x 20 x 8 bytes"),
    ):
        for model in (sparse, dense):
            model.set_params(max_memory=500_000)
        with pytest.raises(MemoryBudgetError, match=f"max_memory allows.*{named}"):
            call()


def test_answers_in_pieces_are_the_same(make, documents, monkeypatch):
    X, Y, Z = documents
    X = sp.vstack([X, sp.csr_array((3, 80)), X * 0.5]).tocsr()
    model = make(label_features=Z, validation_fraction=0.3).fit(X[:160], Y.toarray())

    def answers():
        found = [model.predict(X), model.decision_function(X), *model.predict_topk(X, 7)]
        return [part.tobytes() for part in found]

    expected, trees = answers(), model.fusion_.trees_
    for piece in (10, 20_000):
        monkeypatch.setattr(_answers, "_CHUNK_BYTES", piece)
        assert answers() == expected
    again = make(label_features=Z, validation_fraction=0.3).fit(X[:160], Y.toarray())
    for one, other in zip(trees, again.fusion_.trees_, strict=True):
        assert one.tobytes() == other.tobytes()

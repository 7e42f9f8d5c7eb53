"""What answers may allocate: no array of a size that the input decides goes unasked."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.decomposition import _model
from sklearn_xc.exceptions import MemoryBudgetError

pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")
CALLS = {
    "embed": (lambda m, X: m.embed(X), "the embedding, 120 instances x 6", 120 * 6 * 8),
    "predict_topk": (
        lambda m, X: m.predict_topk(X, 7),
        "the answer, 120 instances x k=7",
        120 * 7 * 16,
    ),
    "search": (
        lambda m, X: m.predict_topk(X, 7, exact=False),
        "the answer, 120 instances x k=7",
        120 * 7 * 16,
    ),
    "decision_function": (
        lambda m, X: m.decision_function(X),
        "the scores, 120 instances x 15 labels",
        120 * 15 * 8,
    ),
    "predict": (lambda m, X: m.predict(X), "the scores, 120 instances x 15 labels", 120 * 15 * 8),
}


@pytest.mark.parametrize("call", CALLS)
def test_max_memory_holds_for_answers(call, make, xy):
    ask, what, size = CALLS[call]
    model = make().fit(xy[0], xy[1].toarray())
    ask(model.set_params(max_memory=size), xy[0])
    with pytest.raises(MemoryBudgetError, match=rf"max_memory allows .*largest array is {what}"):
        ask(model.set_params(max_memory=size - 1), xy[0])


@pytest.mark.parametrize(
    ("method", "embedding_dim"), [("predict_topk", None), ("decision_function", 6), ("search", 6)]
)
def test_instances_are_embedded_some_at_a_time(method, embedding_dim, make, xy, monkeypatch):
    """With the same answer, and the same bits where BLAS has no say: it rounds by how many come."""
    X, Y = xy
    model = make(embedding_dim=embedding_dim).fit(X.toarray(), Y.toarray())

    def ask():
        if method == "search":
            return np.concatenate(model.predict_topk(X.toarray(), 4, exact=False), axis=1)
        return np.hstack([getattr(model, method)(X.toarray())])

    expected, rows, plain = ask(), [], _model.HiddenLayerModel._embedded

    def embed(self, X):
        rows.append(X.shape[0])
        return plain(self, X)

    monkeypatch.setattr(_model, "_CHUNK_VALUES", 32 * model.coef_.shape[1])
    monkeypatch.setattr(_model.HiddenLayerModel, "_embedded", embed)
    by_blas = method == "decision_function"
    np.testing.assert_allclose(ask(), expected, rtol=0, atol=1e-13 if by_blas else 0)
    assert rows == [32, 32, 32, 24]


def test_no_dense_copy_of_a_wide_sparse_x():
    """A million features, no hidden layer: the dense rows of the instances have 640 MB."""
    rng = np.random.default_rng(0)
    X = sp.csr_array((np.ones(160), rng.integers(0, 10**6, 160), 2 * np.arange(81)), (80, 10**6))
    y = np.arange(80) % 2
    parameters = {"embedding_dim": None, "max_iter": 1, "gradient": "exact", "batch_size": 1}
    model = DecompMIPSClassifier(random_state=0, **parameters)
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X[:3])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 450e6  # of which 320 MB are the rows of a few mini-batches

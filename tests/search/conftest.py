"""Data of the searches, and what every index promises."""

import numpy as np
import pytest

from sklearn_xc.search import INDEXES


def make_columns(n_labels, dim, dtype=np.float32, seed=0, is_whole=True):
    """Return W and 23 queries; of small whole numbers, so that every sum is exact and many tie."""
    rng = np.random.default_rng(seed)
    W, V = rng.integers(-4, 5, (n_labels, dim)), rng.integers(-4, 5, (23, dim))
    if not is_whole:
        W, V = rng.normal(size=W.shape), rng.normal(size=V.shape)
    W[3 % n_labels] = 0
    W[-1] = W[0]
    V[5] = 0
    return W.astype(dtype), V.astype(dtype)


def best_labels(W, V, k):
    """Return the k best labels of each query and their scores, ties to the smaller: slowly."""
    scores = V.astype(np.float64) @ W.astype(np.float64).T
    labels = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return labels, np.take_along_axis(scores, labels, axis=1)


def clustered_columns(seed=0):
    """Return 2000 rows on a hierarchy of 10 x 10 x 20, and 200 queries near some of them."""
    rng = np.random.default_rng(seed)
    W = np.zeros((1, 24))
    for branches, scale in ((10, 1.0), (10, 0.7), (20, 0.5)):
        W = np.repeat(W, branches, axis=0)
        W = W + scale * rng.normal(size=W.shape)
    V = W[rng.choice(len(W), 200)] + 0.5 * rng.normal(size=(200, 24))
    return rng.permutation(W).astype(np.float32), V.astype(np.float32)


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request):
    return request.param


@pytest.fixture(params=INDEXES)
def index_class(request):
    if request.param == "faiss":
        pytest.importorskip("faiss")
    return INDEXES[request.param]


@pytest.fixture(scope="session")
def columns():
    return make_columns


@pytest.fixture(scope="session")
def slow_search():
    return best_labels


@pytest.fixture(scope="session")
def clustered():
    return clustered_columns()

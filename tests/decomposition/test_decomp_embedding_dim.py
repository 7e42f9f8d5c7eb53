"""Whether there is a hidden layer: by what is in X, never by its container."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

PROMISED = (
    "coef_",
    "intercept_",
    "feature_embedding_",
    "threshold_",
    "index_recall_",
    "label_counts_",
)


def with_share(n, d, n_nonzero, seed=0):
    """Return a dense X in which so many entries are not 0."""
    rng = np.random.default_rng(seed)
    X = np.zeros(n * d)
    X[rng.permutation(n * d)[:n_nonzero]] = rng.choice([0.5, -1.0, 0.25], n_nonzero)
    return X.reshape(n, d)


def stored(X, rng):
    """Return a COO with the non-zeros, zeros of either sign, and entries that are sums."""
    i, j = np.nonzero((X != 0) | (rng.random(X.shape) < 0.6))
    order = rng.permutation(len(i))
    i, j = i[order], j[order]
    signs = np.where(rng.random(len(i)) < 0.5, -0.0, 0.0)
    values = np.where(X[i, j] == 0, signs, X[i, j])
    half = np.concatenate([0.5 * values, 0.5 * values])
    return sp.coo_array((half, (np.tile(i, 2), np.tile(j, 2))), shape=X.shape)


def in_containers(X, rng):
    negative = np.where((X == 0) & (rng.random(X.shape) < 0.5), -0.0, X)
    coo = stored(X, rng)
    return {
        "dense": X,
        "negative zeros": negative,
        "frame": pd.DataFrame(X),
        "csr": sp.csr_array(X),
        "stored zeros": sp.csr_array(coo),
        "sums": coo,
    }


@pytest.mark.parametrize(("gradient", "embedding_dim"), [("exact", "auto"), ("decomp_mips", None)])
@hypothesis.settings(max_examples=5)
@hypothesis.given(share=st.sampled_from([0.05, 0.19, 0.2, 0.5, 1.0]), seed=st.integers(0, 999))
def test_the_same_data_give_the_same_bytes(gradient, embedding_dim, share, seed, make):
    rng = np.random.default_rng(seed)
    X = with_share(20, 10, int(200 * share), seed)
    y = np.arange(20)  # equal rows count once, except those of other labels
    found = {}
    for name, x in in_containers(X, rng).items():
        model = make(embedding_dim=embedding_dim, gradient=gradient, sampled_epochs=0.3).fit(x, y)
        found[name] = [np.asarray(getattr(model, p)).tobytes() for p in PROMISED]
        found[name] += [model.embedding_dim_, model.embed(x).tobytes()]
        found[name] += [a.tobytes() for a in model.predict_topk(x, 3)]
        found[name] += [model.decision_function(x).tobytes()]
    for name, one in found.items():
        assert one == found["dense"], name
    is_hidden = embedding_dim == "auto" and share < 0.2
    assert model.embedding_dim_ == (100 if is_hidden else 0)
    assert (model.feature_embedding_ is None) == (model.embedding_dim_ == 0)


@pytest.mark.parametrize(("n_nonzero", "expected"), [(79, 100), (80, 0)])
def test_a_fifth(n_nonzero, expected, make):
    X, y = with_share(20, 20, n_nonzero), np.arange(20)
    model = make(embedding_dim="auto").fit(X, y)
    assert model.embedding_dim_ == expected

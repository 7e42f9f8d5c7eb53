"""Dimensions that the model does not have by itself."""

import numpy as np
import pytest
from tiny import HIDDEN, make_texts

TEXTS = make_texts(200, seed=3)
FROZEN = pytest.mark.parametrize("frozen", [True, False])


def projection_of(encoder):
    """Return the matrix (own_dim, dim)."""
    if encoder.frozen:
        return encoder.projection_
    assert encoder.projection_ is None
    return encoder.network_.tensors().arrays["projection.weight"].T


@FROZEN
def test_the_models_own_dimension_has_no_projection(start, frozen):
    encoder = start(frozen=frozen)
    assert encoder.projection_ is None
    assert "projection.weight" not in encoder.network_.tensors().arrays


@FROZEN
@pytest.mark.parametrize("dim", [1, 7, 23])
def test_fewer_dimensions_are_the_principal_ones(start, frozen, dim):
    own = start(texts=TEXTS).encode(TEXTS).astype(np.float64)
    directions = np.linalg.svd(own, full_matrices=False)[2][:dim]
    encoder = start(frozen=frozen, dim=dim, texts=TEXTS)
    P = projection_of(encoder)
    assert P.shape == (HIDDEN, dim)
    assert P.dtype == np.float32
    cosines = np.einsum("ij,ij->j", P, directions.T)
    np.testing.assert_allclose(np.abs(cosines), 1, atol=1e-4)
    V = encoder.encode(TEXTS)
    assert V.dtype == np.float32
    assert V.shape == (len(TEXTS), dim)
    expected = own @ P
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(V, expected, atol=1e-5)


@FROZEN
@pytest.mark.parametrize("dim", [25, 60])
def test_more_dimensions_leave_products_as_they_are(start, frozen, dim):
    own = start(texts=TEXTS).encode(TEXTS).astype(np.float64)
    V = start(frozen=frozen, dim=dim, texts=TEXTS).encode(TEXTS)
    assert V.shape == (len(TEXTS), dim)
    np.testing.assert_allclose(V @ V.T, own @ own.T, atol=1e-5)
    assert (np.abs(V).max(axis=0) > 0.01).all()


def test_it_learns_with_the_others(start):
    encoder = start(dim=7, warmup_steps=0, texts=TEXTS)
    before = encoder.network_.tensors().arrays["projection.weight"].copy()
    passed = encoder.forward(TEXTS[:9], np.random.default_rng(0))
    encoder.learn(passed, np.random.default_rng(1).normal(size=passed.V.shape), 0.01)
    after = encoder.network_.tensors().arrays["projection.weight"]
    assert np.abs(after - before).mean() > 0.005

"""A bag of embeddings: against numpy, its gradients against finite differences."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.embedding.encoders import BagOfEmbeddings

D, DIM = 11, 5


def make_inputs(seed, n=8, dtype=np.float64):
    """Return sparse rows and the same dense; row 1 is empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.5)
    X[1] = 0.0
    X = X.astype(dtype)
    return sp.csr_array(X), X


def joined(*parts):
    """Return the rows of all parts."""
    return sp.csr_array(sp.vstack(parts))


def make_encoder(dtype=np.float64):
    """Return an encoder whose parameters are anything."""
    encoder = BagOfEmbeddings()
    encoder.start(make_inputs(0, dtype=dtype)[0], DIM, 0)
    rng = np.random.default_rng(5)
    for array in encoder.block_:
        array[:] = rng.normal(size=array.shape)
    return encoder


def reference(encoder, X):
    """Return the embeddings of dense rows."""
    U = X.astype(np.float64) @ encoder.embeddings_
    A, bias, B = (array.astype(np.float64) for array in encoder.block_)
    Y = U + np.maximum(U @ A + bias, 0.0) @ B
    norms = np.linalg.norm(Y, axis=1, keepdims=True)
    V = np.divide(Y, norms, out=np.zeros_like(Y), where=norms > 0)
    V[~X.any(axis=1)] = 0.0
    return V


def by_embeddings(gradients):
    """Return the gradient by the vectors of all features, written out."""
    out = np.zeros((D, DIM), gradients.by_sums.dtype)
    starts, counts, ids, values = gradients.entries
    for start, count, by_sum in zip(starts, counts, gradients.by_sums, strict=True):
        own = slice(start, start + count)
        np.add.at(out, ids[own], values[own, None] * by_sum)
    return out


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_embeddings(dtype, tol):
    encoder, (inputs, X) = make_encoder(dtype), make_inputs(0, dtype=dtype)
    V = encoder.encode(inputs)
    np.testing.assert_allclose(V, reference(encoder, X), atol=10 * tol)
    assert not V[1].any()
    rows, (others, Z) = np.array([3, 1, 3]), make_inputs(1, dtype=dtype)
    passed = encoder.forward(joined(others[rows], inputs[:4]), np.random.default_rng(0))
    expected = reference(encoder, np.concatenate([Z[rows], X[:4]]))
    np.testing.assert_allclose(passed.V, expected, atol=10 * tol)


def parameters(encoder):
    return [encoder.embeddings_, *(encoder.block_)]


def slopes(function, arrays, step=1e-6):
    """Return central differences of a function by all numbers of some arrays."""
    out = []
    for array in arrays:
        slope = np.zeros_like(array)
        for at in np.ndindex(array.shape):
            kept, values = array[at], []
            for moved in (kept + step, kept - step):
                array[at] = moved
                values.append(function())
            array[at] = kept
            slope[at] = (values[0] - values[1]) / (2 * step)
        out.append(slope)
    return out


def test_gradients():
    """Of a loss that couples inputs of two parts, with weights; some come twice, some are empty."""
    encoder = make_encoder()
    inputs = joined(make_inputs(0)[0][[0, 1, 5, 2, 5]], make_inputs(1)[0][[4, 7, 1, 0]])
    weight = np.array([1.0, 3.0, 0.25, 0.0, 2.0])

    def forward():
        return encoder.forward(inputs, np.random.default_rng(3))

    def loss():
        V = forward().V
        return float((weight[:, None] * (V[:5] @ V[5:].T) ** 2).sum())

    V = forward().V
    G = np.zeros_like(V)
    scores = 2 * weight[:, None] * (V[:5] @ V[5:].T)
    G[:5], G[5:] = scores @ V[5:], scores.T @ V[:5]
    found = encoder.gradients(forward(), G)
    arrays = [by_embeddings(found), *found.by_block]
    expected = slopes(loss, parameters(encoder))
    assert len(arrays) == 4
    for got, numeric in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(got, numeric, atol=1e-7)
        assert np.abs(numeric).max() > 0.05
    # Fortran order makes no difference.
    again = encoder.gradients(forward(), np.asfortranarray(G))
    np.testing.assert_array_equal(again.by_sums, found.by_sums)


def test_the_first_step_of_each_parameter_is_the_rate():
    """Adam's, against the gradient; features that do not occur stay."""
    encoder = make_encoder()
    before = [array.copy() for array in parameters(encoder)]
    inputs, X = make_inputs(0)
    rows = np.array([0, 1, 2])
    passed = encoder.forward(inputs[rows], np.random.default_rng(0))
    G = np.random.default_rng(1).normal(size=passed.V.shape)
    found = encoder.gradients(passed, G)
    encoder.learn(passed, G, 0.01)
    gradients = [by_embeddings(found), *found.by_block]
    for old, new, gradient in zip(before, parameters(encoder), gradients, strict=True):
        moved = np.abs(gradient) > 1e-4
        assert moved.any()
        np.testing.assert_allclose(
            (new - old)[moved], -0.01 * np.sign(gradient[moved]), rtol=0.01, atol=0
        )
        assert not (new - old)[gradient == 0].any()
    unused = ~X[rows].any(axis=0)
    assert unused.any()
    assert not (encoder.embeddings_ - before[0])[unused].any()


def test_the_block_begins_as_the_identity():
    inputs, X = make_inputs(0)
    encoder = BagOfEmbeddings()
    encoder.start(inputs, DIM, 3)
    sums = X @ encoder.embeddings_
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(inputs), sums / np.where(norms, norms, 1), atol=1e-15)


@pytest.mark.parametrize("scale", [1e-3, 50.0])
def test_sums_have_norm_about_one_at_the_start(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.random((50, 300)) * (rng.random((50, 300)) < 0.1)
    encoder = BagOfEmbeddings()
    encoder.start(sp.csr_array(X), 64, 0)
    norms = np.linalg.norm(X @ encoder.embeddings_, axis=1)
    assert 0.9 < np.sqrt((norms**2).mean()) < 1.1
    encoder.start(sp.csr_array(0 * X), 64, 0)  # nothing to go by
    assert np.isfinite(encoder.embeddings_).all()


def test_a_finished_encoder_has_no_optimiser():
    encoder = make_encoder()
    encoder.finish()
    assert not [name for name in vars(encoder) if name.endswith("_steps")]

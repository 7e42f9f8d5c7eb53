"""What every encoder of sparse rows does, whatever it is; of texts see tests/transformer."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.embedding.encoders import ENCODERS

D, DIM, N = 40, 37, 23
EVERY = pytest.mark.parametrize(
    "name", [name for name, made in ENCODERS.items() if getattr(made, "reads", "rows") == "rows"]
)
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def make_inputs(seed=0, n=N, dtype=np.float64):
    """Return sparse rows; 2 is empty, 3 holds a zero that is stored, 5 has all features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 1.0, size=(n, D)) * (rng.random((n, D)) < 0.2)
    X[5] = rng.uniform(0.1, 1.0, D)
    X[[2, 3]] = 0.0
    X[3, 7] = 1.0
    X = sp.csr_array(X.astype(dtype))
    X.data[X.indptr[3]] = 0.0
    return X


def both(X, Z):
    """Return the rows of both."""
    return sp.csr_array(sp.vstack([X, Z]))


def started(name, dtype=np.float64, seed=0, n_steps=0, n_jobs=1, **params):
    """Return an encoder that has learnt for a few steps."""
    encoder = ENCODERS[name](**params)
    encoder.start(make_inputs(dtype=dtype), DIM, seed)
    learn(encoder, n_steps, dtype, n_jobs)
    return encoder


def learn(encoder, n_steps, dtype, n_jobs=1):
    rng = np.random.default_rng(1)
    X, Z = make_inputs(dtype=dtype), make_inputs(1, dtype=dtype)
    for _ in range(n_steps):
        rows = rng.integers(0, N, 9), rng.integers(0, N, 12)
        passed = encoder.forward(both(X[rows[0]], Z[rows[1]]), rng)
        encoder.learn(passed, rng.normal(size=passed.V.shape).astype(dtype), 0.05, n_jobs)


@EVERY
@DTYPES
def test_bits_of_a_row_depend_on_nothing_but_the_row(name, dtype, monkeypatch):
    import sklearn_xc.embedding.encoders.bag

    encoder, X = started(name, dtype, n_steps=3), make_inputs(dtype=dtype)
    expected = encoder.encode(X)
    rows = np.random.default_rng(0).integers(0, N, 300)
    for together in (1024, 70, 1):
        monkeypatch.setattr(sklearn_xc.embedding.encoders.bag, "_CHUNK_ROWS", together)
        for n_jobs in (None, 1, 2, 3):
            for some in (rows, rows[1:7], rows[:0], np.arange(N)):
                V = encoder.encode(X[some], n_jobs=n_jobs)
                assert V.tobytes() == expected[some].tobytes()
    one_by_one = np.concatenate([encoder.encode(X[[i]]) for i in range(N)])
    assert one_by_one.tobytes() == expected.tobytes()


@EVERY
@DTYPES
def test_training_gives_the_same_bits_with_any_number_of_threads(name, dtype, monkeypatch):
    monkeypatch.setattr("sklearn_xc.embedding.encoders.bag._LEAST_WORK", 1)
    X, first = make_inputs(dtype=dtype), started(name, dtype).encode(make_inputs(dtype=dtype))
    expected = started(name, dtype, n_steps=5).encode(X)
    assert np.abs(expected - first).max() > 0.1
    for n_jobs in (2, 3):
        assert started(name, dtype, n_steps=5, n_jobs=n_jobs).encode(X).tobytes() == (
            expected.tobytes()
        )


@EVERY
def test_another_width_is_refused(name):
    encoder = started(name)
    narrow = sp.csr_array(np.ones((3, D - 1)))
    message = f"inputs must have {D} features, as in start. Got {D - 1}"
    with pytest.raises(ValueError, match=message):
        encoder.encode(narrow)
    with pytest.raises(ValueError, match=message):
        encoder.forward(narrow, None)

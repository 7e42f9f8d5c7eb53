"""Products of fewer bits."""

import numpy as np
import pytest
from tiny import KINDS, make_texts

TEXTS = make_texts(40, seed=3)


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_close(start, kind):
    exact = start(kind).encode(TEXTS)
    encoder = start(kind, precision="bfloat16", dropout=0)
    V = encoder.encode(TEXTS)
    assert V.dtype == np.float32
    assert V.tobytes() != exact.tobytes()
    np.testing.assert_allclose(V, exact, atol=0.02)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, atol=1e-6)
    passed = encoder.forward(TEXTS, np.random.default_rng(0))
    np.testing.assert_allclose(passed.V, exact, atol=0.02)


def test_on_a_cpu_precision_is_float32_by_itself(start):
    assert start().encode(TEXTS).tobytes() == start(precision="float32").encode(TEXTS).tobytes()


def learn(encoder, n_steps=4):
    rng = np.random.default_rng(0)
    for _ in range(n_steps):
        passed = encoder.forward(TEXTS, rng)
        encoder.learn(passed, rng.normal(size=passed.V.shape), 0.002)


def test_training_with_bfloat16(start):
    """Weights are float32 throughout, and steps about the same."""
    parameters = {"warmup_steps": 0, "dropout": 0}
    exact, encoder = start(**parameters), start(precision="bfloat16", **parameters)
    before = exact.encode(TEXTS)
    for one in (exact, encoder):
        learn(one)
    arrays = encoder.network_.tensors().arrays
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
    moved = exact.encode(TEXTS) - before
    assert np.abs(moved).max() > 0.03
    away = encoder.encode(TEXTS) - exact.encode(TEXTS)
    assert np.linalg.norm(away) < 0.5 * np.linalg.norm(moved)

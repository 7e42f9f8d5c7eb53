"""Inputs of samplers: embeddings on the sphere, and a few true labels for each instance."""

import numpy as np
import pytest

from sklearn_xc.embedding.samplers import Positives, TrainingState


def _make_state(n=300, n_labels=40, dim=8, seed=0):
    rng = np.random.default_rng(seed)

    def directions(n):
        V = rng.normal(size=(n, dim))
        return (V / np.linalg.norm(V, axis=1, keepdims=True)).astype(np.float32)

    V, W, features = directions(n), directions(n_labels), directions(n)
    degrees = rng.integers(0, 6, n)
    labels = [np.sort(rng.choice(n_labels, degree, replace=False)) for degree in degrees]
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    positives = Positives(indptr, np.concatenate(labels).astype(np.int32))
    return TrainingState(
        n, n_labels, positives, lambda: features, lambda: V, lambda: V, lambda: features, lambda: W
    )


@pytest.fixture
def make_state():
    """Return a function that makes the state of a training with n instances, from a seed."""
    return _make_state

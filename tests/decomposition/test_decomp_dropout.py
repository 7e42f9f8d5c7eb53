"""Features that are left out at a visit."""

import numpy as np
import pytest
import scipy.sparse as sp

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")


@pytest.fixture
def texts():
    """Return training and held-out bags of words: each label has a few words of 400."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 900)
    X = np.zeros((900, 400))
    for row, label in zip(X, y, strict=True):
        row[rng.choice(np.arange(8 * label, 8 * label + 8), 2)] = 1  # its own
        row[rng.integers(160, 400, 10)] = 1  # any
    X = sp.csr_array(X / np.linalg.norm(X, axis=1, keepdims=True))
    return X[:300], y[:300], X[300:], y[300:]


def test_new_instances_gain(make, texts):
    """With as good a fit to the training instances."""
    X, y, X_new, y_new = texts
    plain, thinned = (
        make(dropout=p, embedding_dim=20, max_iter=60, learning_rate=0.5).fit(X, y)
        for p in (0.0, 0.5)
    )
    assert plain.score(X, y) > 0.97
    assert thinned.score(X_new, y_new) > plain.score(X_new, y_new) + 0.01

"""What the tests of displays share: no windows, and three fitted models of small data."""

import matplotlib.pyplot as plt
import pytest

from sklearn_xc import DecompMIPSClassifier, OvALinearXC, SoftmaxUMax


@pytest.fixture(autouse=True)
def no_window():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def fitted_models(make_xy):
    X, Y = make_xy()
    return {
        "ova": OvALinearXC(prune=0).fit(X, Y),
        "softmax": SoftmaxUMax(learning_rate=0.1, max_iter=3, random_state=0).fit(X, Y),
        "decomposition": DecompMIPSClassifier(
            embedding_dim=4, max_iter=3, learning_rate=0.1, random_state=0
        ).fit(X, Y),
    }

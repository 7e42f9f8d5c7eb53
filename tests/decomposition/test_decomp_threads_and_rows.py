"""What must not change the model by a single bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.decomposition.gradients import MessagePassing, protocol

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

METHODS = {
    "exact, dropout": {"gradient": "exact", "dropout": 0.3},
    "sampled": {"gradient": "sampled", "n_candidates": 5},
    "decomp_mips": {"gradient": "decomp_mips", "n_candidates": 8},
    "mips": {"gradient": "mips", "n_candidates": 5},
    "rounds": {"gradient": MessagePassing(n_rounds=2, n_blocks=2), "n_candidates": 4},
}
PROMISED = (
    "coef_",
    "intercept_",
    "feature_embedding_",
    "fit_report_",
    "threshold_",
    "index_recall_",
)


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


def assert_same_bytes(a, b, names=PROMISED):
    for name in names:
        p, q = np.asarray(value_of(a, name)), np.asarray(value_of(b, name))
        assert p.dtype == q.dtype
        assert p.shape == q.shape
        assert p.tobytes() == q.tobytes(), name


@pytest.fixture(params=METHODS)
def fit(request, make):
    """Return a function that fits, half an epoch by sampled labels."""

    def fit(X, y, sample_weight=None, **parameters):
        own = {"sampled_epochs": 0.5, **METHODS[request.param], **parameters}
        return make(**own).fit(X, y, sample_weight)

    return fit


@pytest.fixture(params=["zeros", "intercepts"])
def any_xy(request, xy):
    """Return X and Y, X also with so few zeros, except in its empty rows, that intercepts train."""
    X, Y = xy
    if request.param == "intercepts":
        X = X.toarray()
        X[X.any(axis=1)] += 0.125
        X = sp.csr_array(X)
    return X, Y


class TestThreads:
    @pytest.mark.parametrize("embedding_dim", [None, 6])
    def test_n_jobs(self, embedding_dim, fit, any_xy, monkeypatch):
        X, Y = any_xy if embedding_dim else (any_xy[0].toarray().astype(np.float32), any_xy[1])
        expected = fit(X, Y, embedding_dim=embedding_dim, n_jobs=1)
        monkeypatch.setattr(protocol, "LEAST_WORK", 1)
        for n_jobs in (2, 3):
            model = fit(X, Y, embedding_dim=embedding_dim, n_jobs=n_jobs)
            assert_same_bytes(model, expected)
            for exact in (True, False):
                for a, b in zip(
                    model.predict_topk(X, 4, exact),
                    expected.predict_topk(X, 4, exact),
                    strict=True,
                ):
                    assert a.tobytes() == b.tobytes()


class TestRows:
    def test_the_order_of_the_rows(self, fit, any_xy):
        X, Y = any_xy
        weight = np.random.default_rng(1).choice([0.0, 1.0, 2.5], 120)
        order = np.random.default_rng(0).permutation(120)
        assert_same_bytes(fit(X, Y, weight), fit(X[order], Y[order], weight[order]))

    def test_a_weight_is_of_an_instance_with_its_labels(self, make):
        """Equal instances with other labels stay apart."""
        X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        a = make(embedding_dim=None).fit(X, [0, 1, 2], [2.0, 1.0, 1.0])
        b = make(embedding_dim=None).fit(X[[0, 1, 0, 2]], [0, 1, 0, 2])
        assert_same_bytes(a, b)
        assert a.coef_[0, 0] > a.coef_[1, 0] > a.coef_[2, 0]

"""What must not change the model, or not by more than it says."""

import joblib
import numpy as np
import pytest

from sklearn_xc import OvALinearXC
from sklearn_xc._weights.kernels.row_scores import topk_rows
from sklearn_xc.one_vs_all import blocks
from sklearn_xc.one_vs_all.kernels import sparse_rows
from sklearn_xc.one_vs_all.kernels.block_newton import block_newton_kernel
from sklearn_xc.one_vs_all.losses import LOSSES
from sklearn_xc.one_vs_all.losses.margin import compiled


def fit(X, y, sample_weight=None, **parameters):
    return OvALinearXC(**{"prune": 0.001, **parameters}).fit(X, y, sample_weight)


def assert_same_bytes(a, b, order=slice(None)):
    """Compare all that fit finds, except for times, with rows of `b` in another order."""
    np.testing.assert_array_equal(a.coef_.toarray(), b.coef_.toarray()[order])
    np.testing.assert_array_equal(a.intercept_, b.intercept_[order])
    np.testing.assert_array_equal(a.n_iter_, b.n_iter_[order])
    for name in set(a.fit_report_) - {"seconds"}:
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name][order], name)


@pytest.fixture
def wide(make_xy, monkeypatch):
    """Return data with enough labels for several blocks of a few lanes."""
    monkeypatch.setattr(blocks, "MAX_LANES", 4)
    return make_xy(n_labels=60)


class TestParallel:
    @pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
    def test_backends(self, backend, make_xy):
        """Small enough to be sent as it is, and so large that loky maps arrays, read-only."""
        X, Y = make_xy(n_labels=60)
        expected = fit(X, Y)
        for limit in (None, 100) if backend == "loky" else (None,):
            options = {"max_nbytes": limit} if backend == "loky" else {}
            with joblib.parallel_config(backend, n_jobs=2, **options):
                model = fit(X, Y)
                top = model.predict_topk(X, 3)
            assert_same_bytes(model, expected)
            np.testing.assert_array_equal(top[1], expected.predict_topk(X, 3)[1])


class TestOrder:
    @pytest.mark.parametrize(
        ("loss", "dtype", "weighted"),
        [("squared_hinge", "f4", True), ("huber_hinge", "f8", False), ("logistic", "f8", True)],
    )
    def test_permuting_label_columns_permutes_rows(self, loss, dtype, weighted, wide):
        X, Y = wide
        X = X.astype(dtype)
        weight = np.random.default_rng(1).random(120) if weighted else None
        order = np.random.default_rng(0).permutation(60)
        model = fit(X, Y[:, order], weight, loss=loss)
        assert_same_bytes(model, fit(X, Y, weight, loss=loss), order)


class TestReadOnly:
    @staticmethod
    def freeze(X):
        X = X.copy()
        for array in (X.data, X.indices, X.indptr):
            array.flags.writeable = False
        return X

    def test_read_only_arrays(self, xy):
        """The kernels are not even compiled anew."""
        expected = fit(*xy)
        top = expected.predict_topk(xy[0])
        kernels = [
            block_newton_kernel(compiled(LOSSES["squared_hinge"]()), sparse_rows),
            topk_rows,
        ]
        before = [list(kernel.signatures) for kernel in kernels]
        frozen = [self.freeze(a) for a in xy]
        weight = np.ones(120)
        weight.flags.writeable = False
        model = fit(*frozen, weight)
        assert_same_bytes(model, expected)
        np.testing.assert_array_equal(model.predict_topk(frozen[0]), top)
        assert [list(kernel.signatures) for kernel in kernels] == before

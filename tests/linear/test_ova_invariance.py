"""What must not change the model, or not by more than it says."""

import os
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

import sklearn_xc
from sklearn_xc import OvALinearXC
from sklearn_xc.kernels.one_vs_all.block_newton import block_newton_kernels
from sklearn_xc.kernels.prediction.topk import topk_rows
from sklearn_xc.kernels.rows import csr_rows
from sklearn_xc.linear import training
from sklearn_xc.losses import LOSSES
from sklearn_xc.losses.margin import compiled
from sklearn_xc.parallel import blocks


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

    @pytest.mark.parametrize("max_memory", ["110KB", "140KB", "1GB"])
    def test_other_cuts_agree(self, max_memory, make_xy, monkeypatch):
        X, Y = make_xy(n_labels=60)
        plans, plan_blocks = [], training.plan_blocks

        def recording_plan_blocks(*args, **options):
            plans.append(plan_blocks(*args, **options))
            return plans[-1]

        monkeypatch.setattr(training, "plan_blocks", recording_plan_blocks)
        cut, whole = fit(X, Y, max_memory=max_memory, prune=0), fit(X, Y, prune=0)
        assert (plans[0].n_lanes < plans[1].n_lanes) == (max_memory != "1GB")
        np.testing.assert_allclose(cut.coef_.toarray(), whole.coef_.toarray(), atol=1e-6)
        np.testing.assert_allclose(cut.intercept_, whole.intercept_, atol=1e-6)


class TestKernels:
    @pytest.mark.slow
    def test_compiled_now_or_loaded_from_the_cache(self, xy, tmp_path):
        """Two processes, one with an empty cache."""
        joblib.dump(xy, tmp_path / "data.joblib")
        code = (
            "import joblib, sys; from sklearn_xc import OvALinearXC\n"
            "X, Y = joblib.load(sys.argv[1]); model = OvALinearXC(prune=0).fit(X, Y)\n"
            "report = [model.fit_report_[name] for name in ('objective', 'gradient_norm')]\n"
            "print(joblib.hash([model.coef_.data, model.intercept_, report]))"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "data.joblib")]
        env = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(Path(sklearn_xc.__file__).parent.parent),
        }
        compiled, loaded = (
            subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
            for _ in range(2)
        )
        assert list((tmp_path / "cache").rglob("*.nbc"))
        assert compiled == loaded


class TestOrder:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_permuting_label_columns_permutes_rows(self, weighted, loss, dtype, wide):
        X, Y = wide
        X = X.astype(dtype)
        weight = np.random.default_rng(1).random(120) if weighted else None
        order = np.random.default_rng(0).permutation(60)
        model = fit(X, Y[:, order], weight, loss=loss)
        assert_same_bytes(model, fit(X, Y, weight, loss=loss), order)

    def test_renaming_classes_permutes_rows(self, xy):
        X, _ = xy
        y = X.toarray()[:, :4].argmax(axis=1)
        model = fit(X, np.array(["d", "b", "a", "c"])[y])
        assert_same_bytes(model, fit(X, y), [2, 1, 3, 0])

    def test_more_labels_change_nothing_for_the_others(self, make_xy):
        X, Y = make_xy(n_labels=40)
        few, many = fit(X, Y[:, :25], prune=0), fit(X, Y, prune=0)
        np.testing.assert_allclose(few.coef_.toarray(), many.coef_[:25].toarray(), atol=1e-9)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_permuting_rows_changes_rounding_only(self, loss, xy):
        X, Y = xy
        order = np.random.default_rng(0).permutation(120)
        a, b = (fit(x, y, loss=loss, tol=1e-8, prune=0) for x, y in [(X, Y), (X[order], Y[order])])
        np.testing.assert_allclose(a.coef_.toarray(), b.coef_.toarray(), atol=1e-6)

    def test_permuting_features_permutes_columns(self, xy):
        X, Y = xy
        order = np.random.default_rng(0).permutation(40)
        a, b = fit(X, Y, tol=1e-8, prune=0), fit(X[:, order], Y, tol=1e-8, prune=0)
        np.testing.assert_allclose(a.coef_.toarray()[:, order], b.coef_.toarray(), atol=1e-6)


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
            block_newton_kernels(compiled(LOSSES["squared_hinge"]()), csr_rows).advance,
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

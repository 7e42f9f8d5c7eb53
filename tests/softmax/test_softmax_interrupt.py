"""An interrupted or failed fit leaves the model as it was."""

import threading
import time

import joblib
import numpy as np
import pytest

from sklearn_xc import ImplicitSoftmaxSGD
from sklearn_xc.softmax import _epochs, training

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling):sklearn.exceptions.ConvergenceWarning"
)


class TestInterrupt:
    @pytest.fixture
    def fitted(self, xy):
        return ImplicitSoftmaxSGD(learning_rate=1.0, max_iter=3, random_state=0).fit(*xy)

    @pytest.fixture
    def assert_intact(self, fitted, xy):
        before = dict(vars(fitted))
        arrays = fitted.coef_.copy(), fitted.u_.copy(), fitted.predict_topk(xy[0], 3)

        def check():
            for name in set(before) - set(fitted.get_params()):
                assert vars(fitted)[name] is before[name], name
            np.testing.assert_array_equal(fitted.coef_, arrays[0])
            np.testing.assert_array_equal(fitted.u_, arrays[1])
            np.testing.assert_array_equal(fitted.predict_topk(xy[0], 3), arrays[2])

        return check

    @pytest.mark.parametrize("rate", [1.0, "auto"])
    @pytest.mark.parametrize("warm_start", [False, True])
    @pytest.mark.parametrize("average", [False, True])
    def test_control_c(
        self, average, warm_start, rate, fitted, assert_intact, make_xy, monkeypatch, interrupt_main
    ):
        X, Y = make_xy(seed=1)
        run_epoch, calls = training.run_epoch, []

        def interrupted_run_epoch(*args):
            calls.append(args)
            if len(calls) == 3:
                interrupt_main()
            return run_epoch(*args)

        monkeypatch.setattr(training, "run_epoch", interrupted_run_epoch)
        fitted.set_params(
            warm_start=warm_start, average=average, learning_rate=rate, max_iter=100_000
        )
        with pytest.raises(KeyboardInterrupt):
            fitted.fit(X, Y)
        assert 3 <= len(calls) < 1000
        assert_intact()
        monkeypatch.undo()
        assert fitted.set_params(max_iter=2, learning_rate=1.0).fit(X, Y).n_iter_ == 2

    def test_no_trial_runs_on(self, fitted, make_xy, monkeypatch, interrupt_main):
        run_epoch, calls, end = training.run_epoch, [], threading.Event()

        def slow_run_epoch(*args):
            if end.is_set():
                raise FloatingPointError
            calls.append(args)
            if len(calls) == 10:
                interrupt_main()
            time.sleep(0.002)
            return run_epoch(*args)

        monkeypatch.setattr(training, "run_epoch", slow_run_epoch)
        fitted.set_params(learning_rate="auto", n_jobs=2, max_iter=2000)
        try:
            with pytest.raises(KeyboardInterrupt):
                fitted.fit(*make_xy(seed=1))
            time.sleep(0.2)
            done = len(calls)
            time.sleep(0.2)
            assert len(calls) == done
        finally:
            end.set()

    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_an_error_in_a_trial(self, error, n_jobs, fitted, assert_intact, make_xy, monkeypatch):
        def failing_train(*args, **kwargs):
            raise error("from a trial")

        monkeypatch.setattr(_epochs, "train", failing_train)
        fitted.set_params(learning_rate="auto", n_jobs=n_jobs)
        with pytest.raises(error, match="from a trial"):
            fitted.fit(*make_xy(d=50))
        assert_intact()

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("is_mapped", [False, True])
    def test_an_interrupted_partial_fit_changes_nothing(
        self, average, is_mapped, xy, monkeypatch, tmp_path
    ):
        model = ImplicitSoftmaxSGD(
            learning_rate=1.0, max_iter=3, random_state=0, average=average
        ).fit(*xy)  # fmt: skip
        if is_mapped:
            joblib.dump(model, tmp_path / "model.joblib")
            model = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
        before = dict(vars(model))
        coef, u = model.coef_.copy(), model.u_.copy()

        def interrupted_run_epoch(problem, state, *args):
            state.V += 1.0
            state.u += 1.0
            state.scale[:] = 0.5
            raise KeyboardInterrupt

        monkeypatch.setattr("sklearn_xc.softmax._epochs.run_epoch", interrupted_run_epoch)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(*xy, sample_ids=np.arange(120))
        assert all(value is before[name] for name, value in vars(model).items())
        np.testing.assert_array_equal(model.coef_, coef)
        np.testing.assert_array_equal(model.u_, u)
        monkeypatch.undo()
        assert model.partial_fit(*xy, sample_ids=np.arange(120)).n_iter_ == 4

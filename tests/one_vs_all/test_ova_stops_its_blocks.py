"""Ctrl-C: back soon, no work left running, an earlier fit intact."""

import threading
import time

import numpy as np
import pytest

from sklearn_xc import OvALinearXC
from sklearn_xc.one_vs_all import training


@pytest.fixture
def fitted(xy):
    return OvALinearXC(prune=0).fit(*xy)


@pytest.fixture
def assert_intact(fitted, xy):
    before = dict(vars(fitted)), fitted.predict_topk(xy[0], 3)

    def check():
        names = set(before[0]) - {"_weights", "n_jobs"}
        for name in names:
            assert vars(fitted)[name] is before[0][name]
        for a, b in zip(before[1], fitted.predict_topk(xy[0], 3), strict=True):
            np.testing.assert_array_equal(a, b)

    return check


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_control_c(n_jobs, fitted, assert_intact, make_xy, monkeypatch, interrupt_main):
    """The main thread is interrupted while the workers are in the middle of their blocks."""
    monkeypatch.setattr("sklearn_xc.one_vs_all.blocks.MAX_BLOCK_LABELS", 20)
    running, started, ended, solve_block = threading.Event(), [], [], training.solve_block

    def interrupted_solve_block(*args):
        stop = args[-1]

        def observe(step):
            if step.n_iter > 0 and not running.is_set():
                running.set()
                interrupt_main()
            if not stop.is_set():
                time.sleep(0.002)  # so that the blocks do not end before the main thread wakes up

        started.append(stop)
        try:
            return solve_block(*args, observe=observe)
        finally:
            ended.append(stop)

    monkeypatch.setattr(training, "solve_block", interrupted_solve_block)
    fitted.set_params(n_jobs=n_jobs)
    X, Y = make_xy(n=150, d=50, n_labels=400, seed=1)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, Y)
    assert running.is_set()
    assert_intact()
    deadline = time.monotonic() + 5
    while len(ended) < len(started) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ended) == len(started) < 20  # of 20 blocks
    assert started[0].is_set()
    monkeypatch.undo()
    fitted.fit(X, Y)
    assert fitted.n_features_in_ == 50

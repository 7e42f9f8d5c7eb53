"""How often a fit keeps what its loops have done."""

import pickle

import numpy as np
import pytest

from sklearn_xc.storage import checkpoints, loops
from sklearn_xc.storage.loops import SHARE, Loops

IDENTITY = {"data": {"X": "some"}, "parameters": {}, "versions": {}}


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loops, "time", clock)
    monkeypatch.setattr(checkpoints, "time", clock)
    return clock


def fit(clock, folder, *, n_loops, n_epochs, epoch, writing):
    """Run loops whose epochs and writing take such times; return how many epochs were kept."""
    kept = checkpoints.Checkpoints(folder, "SomeXC", {})
    n_kept = 0

    def state():
        nonlocal n_kept
        n_kept += 1
        clock.now += writing
        return {"weights": np.zeros(3)}

    for number in range(n_loops):
        loop = Loops(kept).loop(f"loop-{number}")
        for _ in range(n_epochs):
            clock.now += epoch
            loop.put(state)
    return n_kept


@pytest.mark.parametrize(("n_loops", "n_epochs"), [(1, 1000), (10, 100), (500, 2)])
@pytest.mark.parametrize("writing", [0.001, 0.1, 3.0])
def test_all_loops_together_keep_to_their_share(clock, tmp_path, n_loops, n_epochs, writing):
    n_kept = fit(clock, tmp_path, n_loops=n_loops, n_epochs=n_epochs, epoch=1.0, writing=writing)
    # of a new loop nobody knows how long it will write: so much may be too much, once
    assert n_kept * writing <= SHARE * clock.now + writing
    expected = min(n_loops * n_epochs, int(SHARE * n_loops * n_epochs / writing))
    assert expected <= n_kept <= 2 * expected + 1


def test_each_epoch_is_kept_if_that_costs_little(clock, tmp_path):
    assert fit(clock, tmp_path, n_loops=3, n_epochs=20, epoch=1.0, writing=SHARE / 2) == 60


def test_time_begins_anew_on_another_machine(clock, tmp_path):
    clock.now = 1e6
    kept = checkpoints.Checkpoints(tmp_path, "SomeXC", {})
    kept.seconds_in_loops = 5.0
    clock.now = 3.0
    there = pickle.loads(pickle.dumps(kept))
    assert (there.began, there.seconds_in_loops) == (3.0, 0.0)


def test_a_folder_of_another_fit_is_not_the_folder(tmp_path):
    with checkpoints.opened(tmp_path / "a", "SomeXC", IDENTITY, {"seed": 1}) as kept:
        there = pickle.loads(pickle.dumps(kept))
        assert there.is_there
        there.folder = tmp_path / "none"
        assert not there.is_there
        other = IDENTITY | {"data": {"X": "other"}}
        with checkpoints.opened(tmp_path / "b", "SomeXC", other, {"seed": 1}):
            there.folder = tmp_path / "b"
            assert not there.is_there
            assert Loops(there).where_shared().loop("epochs").get() is None


def test_what_is_final_is_kept_always_and_once(clock, tmp_path):
    kept = checkpoints.Checkpoints(tmp_path, "SomeXC", {})
    loop = Loops(kept).loop("epochs")

    def slow():
        clock.now += 100.0
        return {"epoch": 1}

    loop.put(slow)
    assert clock.now == 100.0
    clock.now += 1.0
    loop.put(slow)  # not yet
    assert clock.now == 101.0
    loop.put(slow, is_final=True)
    loop.put(slow, is_final=True)
    assert clock.now == 201.0
    assert Loops(kept).loop("epochs").get() == {"epoch": 1}

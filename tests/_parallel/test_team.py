"""Threads that start and end together, whatever happens to one of them."""

import threading

import numpy as np
import pytest

from sklearn_xc._compile.emitters.spin_barrier import wait_for_all
from sklearn_xc._compile.jit import kernel
from sklearn_xc._parallel.team import Team


@kernel
def meet(barrier, n_threads, n_rounds):
    """Return how often all were there."""
    for met in range(n_rounds):
        if not wait_for_all(barrier, n_threads):
            return met
    return n_rounds


@pytest.fixture(autouse=True)
def _is_compiled():
    meet(np.zeros(48, np.int64), 1, 1)


@pytest.mark.parametrize("n_workers", [2, 5])
def test_all_are_at_work_at_the_same_time(n_workers):
    before = threading.active_count()
    with Team(n_workers) as team:
        for _ in range(3):
            assert team.run(lambda w: (w, meet(team.barrier, n_workers, 20))) == [
                (w, 20) for w in range(n_workers)
            ]
    assert threading.active_count() == before


@pytest.mark.parametrize("failing", [0, 2])
def test_one_fails_while_others_wait(failing):
    met = []

    def work(worker):
        if worker == failing:
            raise MemoryError("none left")
        met.append(meet(team.barrier, 3, 20))

    with pytest.raises(MemoryError, match="none left"), Team(3) as team:
        team.run(work)
    assert met == [0, 0]


def test_an_interrupt_of_the_thread_that_waits(monkeypatch):
    """It comes where all would wait for a thread that was not started."""
    team, met = Team(3), []
    submit = team._pool.submit

    def work(worker):
        met.append(meet(team.barrier, 3, 20))

    def interrupted(function, worker):
        if worker == 2:
            raise KeyboardInterrupt
        return submit(function, worker)

    monkeypatch.setattr(team._pool, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt), team:
        team.run(work)
    assert met == [0, 0]

"""Threads that start and end together, whatever happens to one of them."""

import threading

import pytest

from sklearn_xc._parallel.threads import Team


@pytest.mark.parametrize("n_workers", [1, 3])
def test_all_work_at_the_same_time(n_workers):
    before, barrier = threading.active_count(), threading.Barrier(n_workers, timeout=30)
    with Team(n_workers) as team:
        for _ in range(3):
            assert team.run(lambda w: barrier.wait() >= 0 and w) == list(range(n_workers))
    assert threading.active_count() == before


def test_the_error_of_one_is_raised_once_all_have_stopped():
    def work(worker):
        if worker == 1:
            raise MemoryError("none left")

    before = threading.active_count()
    with pytest.raises(MemoryError, match="none left"), Team(3) as team:
        team.run(work)
    assert threading.active_count() == before

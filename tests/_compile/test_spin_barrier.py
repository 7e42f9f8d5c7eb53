"""Threads that meet many times, on however few cores."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sklearn_xc._compile.emitters.spin_barrier import abandon, new_barrier, wait_for_all
from sklearn_xc._compile.jit import kernel


@kernel
def add_up(barrier, worker, n_threads, n_rounds, values):
    """Return the rounds in which not all saw what all wrote; writes are plain ones."""
    n_wrong = 0
    for r in range(n_rounds):
        values[worker] += worker + 1
        if not wait_for_all(barrier, n_threads):
            return -1 - r
        total = np.int64(0)
        for k in range(n_threads):
            total += values[k]
        n_wrong += total != (r + 1) * n_threads * (n_threads + 1) // 2
        if not wait_for_all(barrier, n_threads):
            return -1 - r
    return n_wrong


def run(n_threads, work):
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, range(n_threads)))


@pytest.mark.parametrize(("n_threads", "n_rounds"), [(1, 10), (2, 20000), (4, 2000), (8, 500)])
def test_all_see_what_all_wrote(n_threads, n_rounds):
    barrier, values = new_barrier(), np.zeros(n_threads, np.int64)
    wrong = run(n_threads, lambda k: add_up(barrier, k, n_threads, n_rounds, values))
    assert wrong == [0] * n_threads
    assert values.tolist() == [n_rounds * (k + 1) for k in range(n_threads)]


def test_one_barrier_serves_several_calls():
    barrier = new_barrier()
    for n_threads in (3, 2, 4, 1, 2):
        values = np.zeros(n_threads, np.int64)
        work = lambda k, n=n_threads, values=values: add_up(barrier, k, n, 100, values)  # noqa: E731
        assert run(n_threads, work) == [0] * n_threads


def test_abandoned_before():
    barrier, values = new_barrier(), np.zeros(2, np.int64)
    abandon(barrier)
    assert add_up(barrier, 0, 2, 5, values) == -1
    assert add_up(barrier, 1, 2, 5, values) == -1


@pytest.mark.parametrize("n_waiting", [1, 3])
def test_abandoned_while_others_wait(n_waiting):
    """One thread never comes."""
    barrier, values = new_barrier(), np.zeros(n_waiting + 1, np.int64)
    add_up(new_barrier(), 0, 1, 1, values.copy())  # compiled
    timer = threading.Timer(0.1, abandon, [barrier])
    timer.start()
    found = run(n_waiting, lambda k: add_up(barrier, k, n_waiting + 1, 5, values))
    timer.join()
    assert found == [-1] * n_waiting

"""What the engines of clusters do alike; test_real_clusters.py has clusters."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from sklearn_xc._parallel.engines.remote import Outcome, _record_warnings, in_window, work_on


def warn_and_answer(shared, number, barrier=None):
    if barrier is not None:
        barrier.wait()
    warnings.warn(f"{shared} {number}", UserWarning, stacklevel=1)
    return number


def test_each_thread_records_its_own_warnings_each_time():
    with warnings.catch_warnings():  # workers keep their warnings from then on
        _record_warnings.cache_clear()
        for _ in range(3):
            barrier = threading.Barrier(4)
            with ThreadPoolExecutor(4) as pool:
                tasks = [
                    pool.submit(work_on, warn_and_answer, "task", (i, barrier)) for i in range(4)
                ]
                done = [task.result() for task in tasks]
            assert done == [Outcome(i, [(f"task {i}", UserWarning)]) for i in range(4)]
        with pytest.raises(ZeroDivisionError):
            work_on(lambda shared: 1 / 0, None, ())
    _record_warnings.cache_clear()


@pytest.mark.parametrize("n_workers", [1, 3, 50])
def test_tasks_are_made_as_they_are_needed(n_workers):
    made, open_ = [], []

    def tasks():
        for number in range(20):
            made.append(number)
            yield number, ()

    def next_done():
        number, _ = open_.pop()
        return Outcome(-number, []), number

    found = {}
    for number, result in in_window(tasks(), n_workers, open_.append, next_done):
        found[number] = result
        assert len(made) <= len(found) + 2 * n_workers
    assert found == {number: -number for number in range(20)}


def test_warnings_are_given_once_for_each_text():
    waiting = [(n, ()) for n in range(4)]
    given = [("even", UserWarning)], [("odd", RuntimeWarning)]

    def next_done():
        number, _ = waiting.pop()
        return Outcome(number, given[number % 2]), number

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(in_window(waiting[:], 4, lambda task: None, next_done))
    seen = sorted((str(one.message), one.category) for one in caught)
    assert seen == [given[0][0], given[1][0]]

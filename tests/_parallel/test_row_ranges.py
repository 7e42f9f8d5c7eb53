"""Ranges of rows, and BLAS in one thread, whoever else asks for that at the same time."""

import threading

import numpy as np
import pytest

from sklearn_xc._parallel import threads
from sklearn_xc._parallel.threads import cut_rows, for_row_ranges, one_blas_thread


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([0, 0, 0], [(0, 3)]),
        ([2, 2, 0, 1, 4], [(0, 3), (3, 4), (4, 5)]),
        ([1, 9, 0, 1], [(0, 1), (1, 2), (2, 4)]),
    ],
)
def test_ranges_have_so_many_entries_or_one_row(sizes, expected):
    assert list(cut_rows(np.cumsum([0, *sizes]), 4)) == expected


@pytest.mark.parametrize("n_jobs", [None, 3])
def test_threads_do_not_move_ranges(n_jobs):
    """BLAS may round a row otherwise in a product of another shape."""
    found = []
    for_row_ranges(lambda *each: found.append(each), 10, 4, n_jobs)
    assert sorted(found) == [(0, 4), (4, 8), (8, 10)]


class Library:
    def __init__(self, n):
        self.n = n

    def get_num_threads(self):
        return self.n


class Blas:
    """Stands for the libraries that are loaded."""

    def __init__(self, *counts):
        self.lib_controllers = [Library(n) for n in counts]

    @property
    def counts(self):
        return [library.n for library in self.lib_controllers]

    def limit(self, limits):
        before = self.counts
        for library in self.lib_controllers:
            library.n = limits

        def restore():
            for library, n in zip(self.lib_controllers, before, strict=True):
                library.n = n

        return type("Limit", (), {"restore_original_limits": staticmethod(restore)})


@pytest.fixture
def blas(monkeypatch):
    blas = Blas(8, 2)
    monkeypatch.setattr(threads, "_pools", {"blas": blas}.get)
    return blas


def test_the_last_thread_lifts_the_limit(blas):
    """Contexts of two threads overlap."""
    inside, leave = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]

    def work(number):
        with one_blas_thread():
            inside[number].set()
            assert leave[number].wait(20)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for number, thread in enumerate(workers):
        thread.start()
        assert inside[number].wait(20)
    for number, expected in enumerate(([1, 1], [8, 2])):
        leave[number].set()
        workers[number].join()
        assert blas.counts == expected

"""What the engines of clusters do alike: hand out tasks, work on them, bring warnings back."""

import itertools
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from sklearn_xc.parallel.engines.protocol import Numbered, Work
from sklearn_xc.parallel.row_ranges import one_blas_thread

#: Names this process among all of a cluster.
PROCESS = uuid.uuid4().hex
#: Tasks under way for each worker: the next is there when one has ended.
_DEPTH = 2


class Outcome(NamedTuple):
    """What came of a task.

    Attributes
    ----------
    result : object
    warnings : list of (str, type)
        Texts and categories.
    """

    result: Any
    warnings: list[tuple[str, type[Warning]]]


def in_window(
    tasks: Iterable[Numbered],
    n_workers: int,
    submit: Callable[[Numbered], Any],
    next_done: Callable[[], tuple[Outcome, int]],
) -> Iterator[tuple[int, Any]]:
    """Submit tasks, no more than are soon worked on, and yield number and result of each.

    Warnings are given here, once for each text.

    Parameters
    ----------
    tasks : iterable
    n_workers : int
    submit : callable
        Takes a task.
    next_done : callable
        Waits for one that has ended; returns its outcome and number.
    """
    rest, n_open = iter(tasks), 0
    told = set[tuple[str, type[Warning]]]()
    for task in itertools.islice(rest, _DEPTH * n_workers):
        submit(task)
        n_open += 1
    while n_open:
        outcome, number = next_done()
        n_open -= 1
        for task in itertools.islice(rest, 1):
            submit(task)
            n_open += 1
        for warning in outcome.warnings:
            if warning not in told:
                told.add(warning)
                warnings.warn(*warning, stacklevel=3)
        yield number, outcome.result


def work_on(work: Work, shared: Any, arguments: tuple[Any, ...]) -> Outcome:
    """Work on a task, in a worker."""
    with one_blas_thread(), _hearing() as heard:
        return Outcome(work(shared, *arguments), heard)


class _Ears:
    """Hears the warnings of all threads that are at work; the filters belong to the process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.outside: Any = None
        self.own = threading.local()

    def hear(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int,
        file: Any = None, line: str | None = None,
    ) -> None:  # fmt: skip
        heard = getattr(self.own, "heard", None)
        if heard is not None:
            heard.append((str(message), category))


_ears = _Ears()


@contextmanager
def _hearing() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Return what this thread is warned of inside the ``with``, each time anew."""
    with _ears.lock:
        if _ears.n_inside == 0:
            _ears.outside = warnings.catch_warnings()
            _ears.outside.__enter__()
            warnings.simplefilter("always")
            warnings.showwarning = _ears.hear
        _ears.n_inside += 1
    heard: list[tuple[str, type[Warning]]] = []
    _ears.own.heard = heard
    try:
        yield heard
    finally:
        del _ears.own.heard
        with _ears.lock:
            _ears.n_inside -= 1
            if _ears.n_inside == 0:
                _ears.outside.__exit__(None, None, None)

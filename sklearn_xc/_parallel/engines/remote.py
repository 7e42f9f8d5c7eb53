"""Shared by the engines of clusters: hand out tasks, work on them, bring warnings back."""

import functools
import itertools
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from sklearn_xc._parallel.engines.protocol import Numbered, Work
from sklearn_xc._parallel.row_ranges import one_blas_thread

#: Names this process among all of a cluster.
PROCESS = uuid.uuid4().hex
#: Tasks under way for each worker: the next is there when one has ended.
_DEPTH = 2
_of_thread = threading.local()


class Outcome(NamedTuple):
    """Result of a task.

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
    shown = set[tuple[str, type[Warning]]]()
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
            if warning not in shown:
                shown.add(warning)
                warnings.warn(*warning, stacklevel=3)
        yield number, outcome.result


def work_on(work: Work, shared: Any, arguments: tuple[Any, ...]) -> Outcome:
    """Work on a task, in a worker."""
    _keep_warnings()
    heard: list[tuple[str, type[Warning]]] = []
    _of_thread.warnings = heard
    try:
        with one_blas_thread():
            return Outcome(work(shared, *arguments), heard)
    finally:
        del _of_thread.warnings


@functools.cache
def _keep_warnings() -> None:
    """Have threads that work on a task keep their warnings; other threads show theirs."""
    show = warnings.showwarning

    def keep(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        heard = getattr(_of_thread, "warnings", None)
        if heard is None:
            show(message, category, *args, **kwargs)
        else:
            heard.append((str(message), category))

    warnings.showwarning = keep  # type: ignore[assignment]
    warnings.simplefilter("always", UserWarning)  # not only in the first task

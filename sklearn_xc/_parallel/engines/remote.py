"""Shared by the engines of clusters: hand out tasks, run them, bring warnings back."""

import functools
import itertools
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from sklearn_xc._parallel.engines import Numbered, Work
from sklearn_xc._parallel.threads import one_blas_thread
from sklearn_xc._warnings import warn

#: Identifies this process among all of a cluster.
PROCESS = uuid.uuid4().hex
#: Submitted tasks for each worker: the next is there when one has ended.
_DEPTH = 2
_of_thread = threading.local()


class Outcome(NamedTuple):
    """Result of a task, and the texts and categories of its warnings."""

    result: Any
    warnings: list[tuple[str, type[Warning]]]


def in_window(
    tasks: Iterable[Numbered],
    n_workers: int,
    submit: Callable[[Numbered], Any],
    next_done: Callable[[], tuple[Outcome, int]],
) -> Iterator[tuple[int, Any]]:
    """Yield the number and the result of each task, with two tasks for each worker under way.

    ``submit(task)`` begins a task; ``next_done()`` waits for one and returns its outcome and
    number. Warnings are given here, once for each text.
    """
    rest = iter(tasks)
    n_open = 0
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
                warn(*warning)
        yield number, outcome.result


def work_on(work: Work, shared: Any, arguments: tuple[Any, ...]) -> Outcome:
    """Run a task in a worker, and record its warnings."""
    _record_warnings()
    _of_thread.warnings = recorded = list[tuple[str, type[Warning]]]()
    try:
        with one_blas_thread():
            return Outcome(work(shared, *arguments), recorded)
    finally:
        del _of_thread.warnings


@functools.cache
def _record_warnings() -> None:
    """Have threads that run a task record their warnings; other threads show theirs."""
    show = warnings.showwarning

    def record(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        recorded = getattr(_of_thread, "warnings", None)
        if recorded is None:
            show(message, category, *args, **kwargs)
        else:
            recorded.append((str(message), category))

    warnings.showwarning = record  # type: ignore[assignment]
    warnings.simplefilter("always", UserWarning)  # not only in the first task

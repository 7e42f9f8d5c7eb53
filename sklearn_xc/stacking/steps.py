"""The folds of a stack, and the last fit, as callbacks are told of them."""

import threading
from collections.abc import Sequence

from sklearn_xc._clone_fits import Watch
from sklearn_xc.parallel.progress import Progress
from sklearn_xc.parallel.tasks import Task


class Steps(Watch):
    """Steps in each of which all members are fitted; they begin with the first and end with all.

    Parameters
    ----------
    progress : Progress
        Whose parts they are.
    n_members : int
        Jobs of each step, one after the other.
    texts : sequence of str
        What there is to say of each step that has ended.
    """

    def __init__(self, progress: Progress, n_members: int, texts: Sequence[str]) -> None:
        self._progress, self._n_members, self._texts = progress, n_members, texts
        last = len(texts) - 1
        self._tasks = [
            progress.part(number, n_members, name="fold" if number < last else "last fit",
                          in_order=False)
            for number in range(len(texts))
        ]  # fmt: skip
        self._has_begun = [False] * len(texts)
        self._n_left = [n_members] * len(texts)
        self._lock = threading.Lock()

    def task(self, step: int) -> Task:
        """Return the task of a step."""
        return self._tasks[step]

    def begins(self, number: int) -> None:
        """Begin the step of a member, if it is the first."""
        step = number // self._n_members
        with self._lock:
            if not self._has_begun[step]:
                self._has_begun[step] = True
                self._tasks[step].begin()

    def ends(self, number: int) -> None:
        """End the step of a member, if it is the last."""
        step = number // self._n_members
        with self._lock:
            self._n_left[step] -= 1
            if not self._n_left[step]:
                self._tasks[step].end()
                self._progress.ended(self._texts[step], step)

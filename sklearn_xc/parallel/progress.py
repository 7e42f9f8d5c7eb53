"""How far a training is: one account of it, printed for `verbose` and told to callbacks.

::

    Fit        a call of fit; with one kind of parts, or in stages that have a kind each
    Progress   its parts, or those of a stage: begin, end, and what there is to say of each
               -> Lines, in one form for all estimators, and the time left
               -> Task, for callbacks
"""

import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from sklearn_xc.parallel.interrupt import is_unwanted
from sklearn_xc.parallel.tasks import Model, Task


def say(name: str, text: str) -> None:
    """Print a line of an estimator."""
    print(f"[{name}] {text}", flush=True)


class Progress:
    """Parts of a training that begin and end: training loops report to it, and to nothing else.

    Parameters
    ----------
    task : Task
        Whose parts they are; it has begun.
    lines : Lines or None
        None prints nothing.
    part : str
        What one part is, such as "epoch".
    n_parts : int or None
        How many there are, at most; None if that is not known.
    sizes : sequence of int, default=None
        For how many units of the lines each part counts; None for one each.
    costs : sequence of float, default=None
        What each takes, in any unit; None for as much as their sizes.
    is_whole : bool, default=False
        Whether the task is the whole fit, which goes on when all parts have ended.

    Attributes
    ----------
    was_stopped : bool
        Whether a callback has asked that no further part be begun.
    """

    def __init__(
        self,
        task: Task,
        lines: "Lines | None",
        part: str,
        n_parts: int | None,
        sizes: Sequence[int] | None = None,
        costs: Sequence[float] | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        self._is_whole = is_whole
        self.task, self._lines, self._part, self._n_parts = task, lines, part, n_parts
        self._sizes = sizes
        self._costs = sizes if costs is None else costs
        self._all = float(n_parts or 0) if self._costs is None else float(sum(self._costs))
        self._n_ended, self._n_done, self._spent = 0, 0, 0.0
        self.was_stopped = False
        self._open: list[Task] = []
        self._lock = threading.Lock()

    def part(
        self,
        number: int | None = None,
        n_parts: int = 0,
        *,
        name: str = "",
        in_order: bool = True,
    ) -> Task:
        """Return the task of the next part, which has not begun, see ``Task.part``.

        Raises
        ------
        KeyboardInterrupt
            In a worker of a cluster, once nobody waits for the work any more.
        """
        if is_unwanted():
            raise KeyboardInterrupt
        return self.task.part(name or self._part, number, n_parts, in_order=in_order)

    def begin(self) -> Task:
        """Return the task of the next part, which begins."""
        task = self.part().begin()
        self._open.append(task)
        return task

    @property
    def n_ended(self) -> int:
        """How many parts have ended."""
        return self._n_ended

    def end(self, task: Task, text: str, model: Model | None = None) -> bool:
        """Tell that a part has ended, see ``Task.end``, and what is known of it."""
        self._open.remove(task)
        is_last_word = task.end(model)
        self.was_stopped |= is_last_word
        self.ended(text)
        return is_last_word

    def ended(self, text: str, number: int | None = None, under_way: Iterable[int] = ()) -> None:
        """Print that a part has ended, of which callbacks know: the next, or that of a number.

        Parts that are `under_way` since before count as half done for the time left.
        """
        with self._lock:  # parts may end in threads
            number = self._n_ended if number is None else number
            self._n_ended += 1
            self._n_done += 1 if self._sizes is None else int(self._sizes[number])
            costs = self._costs
            self._spent += 1.0 if costs is None else float(costs[number])
            if self._lines is not None:
                half_done = sum(1.0 if costs is None else float(costs[i]) for i in under_way)
                share = (self._spent + 0.5 * half_done) / self._all if self._all else 0.0
                self._lines.show(self._n_done, text, share)

    def known(self, number: int | None = None) -> None:
        """Tell of a part that ended in an earlier call: no line, and no part of the time left.

        Parts that are made in order have no `number`.
        """
        self.part(number).begin().end()
        self.passed(number)

    def passed(self, number: int | None = None) -> None:
        """Do the same for a part that callbacks have been told of."""
        with self._lock:
            number = self._n_ended if number is None else number
            self._n_ended += 1
            self._n_done += 1 if self._sizes is None else int(self._sizes[number])
            self._all -= 1.0 if self._costs is None else float(self._costs[number])

    def close(self) -> None:
        """Tell that no further part follows."""
        for task in reversed(self._open):  # of parts that came to no good end
            task.end()
        self._open.clear()
        if self._lines is not None:
            is_short = self._n_parts is not None and self._n_ended < self._n_parts
            self._lines.close(was_stopped=self.was_stopped and is_short)
        if not self._is_whole:
            self.task.end()


class Fit:
    """A call of ``fit``, or of another method that trains.

    Parameters
    ----------
    estimator : estimator
        On which it works.
    X, y, sample_weight : object
        As they came.
    n_stages : int, default=1
        How many kinds of parts follow each other. Stages are tasks of the fit, and parts those of
        stages; those of a single stage are tasks of the fit itself.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, n_stages: int = 1
    ) -> None:
        self._estimator, self._given = estimator, (X, y, sample_weight)
        self._task: Task | None = None
        if n_stages > 1:
            self._task = Task.of_fit(estimator, *self._given, n_stages, True)

    @classmethod
    def untold(cls, estimator: Any) -> "Fit":
        """Return one that prints, and tells no callback: of a method that is not ``fit``."""
        fit = cls(estimator, None, None)
        fit._task = Task()
        return fit

    def parts(
        self,
        part: str,
        n_parts: int | None,
        *,
        stage: str = "",
        unit: str = "",
        sizes: Sequence[int] | None = None,
        costs: Sequence[float] | None = None,
        in_order: bool = True,
    ) -> Progress:
        """Return the progress of the next stage, which begins.

        Parameters
        ----------
        part, n_parts, sizes, costs
            As of ``Progress``.
        stage : str, default=""
            Its name, where there are several.
        unit : str, default=""
            What lines count, where it is not `part`.
        in_order : bool, default=True
            Whether parts are made one after the other; otherwise each has a number.
        """
        if self._task is None:
            self._task = task = Task.of_fit(self._estimator, *self._given, n_parts, in_order)
        else:
            task = self._task.part(stage, None, n_parts, in_order=in_order).begin()
        return self.within(
            task, part, n_parts, unit=unit, sizes=sizes, costs=costs, is_whole=task is self._task
        )

    def within(
        self,
        task: Task,
        part: str,
        n_parts: int | None,
        *,
        unit: str = "",
        sizes: Sequence[int] | None = None,
        costs: Sequence[float] | None = None,
        is_whole: bool = False,
    ) -> Progress:
        """Return the progress of a task that has begun, see ``parts`` and ``Progress``."""
        lines = None
        if getattr(self._estimator, "verbose", 0):
            n_units = n_parts if sizes is None else int(sum(sizes))
            lines = Lines(type(self._estimator).__name__, unit or part, n_units)
        return Progress(task, lines, part, n_parts, sizes, costs, is_whole=is_whole)

    def expect(self, n_stages: int) -> None:
        """Expect so many more stages than were announced."""
        if self._task is not None:
            self._task.expect(n_stages)

    def end(self) -> None:
        """Tell that the estimator is fitted: all its attributes are set."""
        if self._task is None:
            self._task = Task.of_fit(self._estimator, *self._given, 0, True)
        self._task.end(dict)


class Lines:
    """Lines on parts of a training: at most one a second, and always the last.

    They end with the seconds so far, and those that are left: what remains of the work, at the
    speed of the later half of the parts that are done, of which parts of equal cost need not take
    equal time. The first part never counts, as it may compile loops: after it alone, nothing is
    said of the time left.

    Parameters
    ----------
    name : str
        Of the estimator.
    unit : str
        What is counted, such as "epoch".
    n_units : int or None
        How many there are, at most. None if that is not known: then each part has a line.
    """

    def __init__(self, name: str, unit: str, n_units: int | None) -> None:
        self._name, self._unit, self._n_units = name, unit, n_units
        self._began, self._shown, self._waiting = time.perf_counter(), -1.0, ""
        #: Share of the work that was done, and seconds, at the end of each part.
        self._marks = [(0.0, 0.0)]

    def show(self, n_done: int, text: str, share: float) -> None:
        """Tell that `n_done` units are done, a `share` of the work, and what the last came to."""
        seconds = time.perf_counter() - self._began
        self._marks.append((share, seconds))
        if self._n_units is None:
            say(self._name, f"{text}, {duration(seconds)}")
            return
        line = f"{self._unit} {n_done} of {self._n_units}: {text}, {duration(seconds)}"
        self._waiting = ""
        if n_done >= self._n_units:
            say(self._name, line)
        elif seconds >= self._shown + 1.0:
            self._shown = seconds
            say(self._name, line + self._left())
        else:
            self._waiting = line

    def close(self, *, was_stopped: bool = False) -> None:
        """Tell that no more follow: the last line, where it has waited; and who has stopped it."""
        if self._waiting:
            say(self._name, self._waiting)
        if was_stopped:
            say(self._name, "stopped here: a callback asked for it")
        self._waiting = ""

    def _left(self) -> str:
        n_ended = len(self._marks) - 1
        share, seconds = self._marks[-1]
        earlier, then = self._marks[max(1, n_ended // 2)]
        if share <= earlier:
            return ""
        left = (seconds - then) * (1.0 - share) / (share - earlier)
        return f", about {duration(left)} left"


def duration(seconds: float) -> str:
    """Return a time as people say it: "12.3 s", "4 min 05 s", "3 h 20 min"."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"

"""Progress of a fit, for `verbose` and callbacks, and its interruption.

::

    Fit        a call of fit; with one kind of parts, or in stages that have a kind each
    Progress   its parts, or those of a stage: begin, end, and a text on each
               -> Lines, printed, with the time left
               -> Task, for callbacks
    StopFlag   set when a fit is interrupted, read between the parts of its threads
    at_most    ends the fits inside by an OutOfTime, at the end of a part
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: Returns the fitted attributes of a model whose training ends now.
Model = Callable[[], dict[str, Any]]
#: The ``time.perf_counter()`` at which fits of this context end.
_DEADLINE: ContextVar[float] = ContextVar("deadline", default=float("inf"))


class OutOfTime(BaseException):
    """A fit has reached its time limit.

    A BaseException, as KeyboardInterrupt is, so that searches do not take it for a failed fit.

    Attributes
    ----------
    share : float
        Of its parts that have ended.
    """

    def __init__(self, share: float) -> None:
        super().__init__("out of time")
        self.share = share


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Context whose fits, of one process, raise OutOfTime at the first end of a part after that."""
    token = _DEADLINE.set(min(time.perf_counter() + seconds, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_time() -> None:
    """Raise OutOfTime after the time of ``at_most``, where a step takes longer than its parts."""
    if time.perf_counter() > _DEADLINE.get():
        raise OutOfTime(0.0)


class Task:
    """A task of a fit, for callbacks.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext or None
        None does nothing.
    arguments : dict of str to object
        Arguments of callbacks: the estimator, X, y and metadata.
    """

    def __init__(self, context: Any = None, arguments: dict[str, Any] | None = None) -> None:
        self._context = context
        self._arguments = {} if arguments is None else arguments

    @classmethod
    def of_fit(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, n_parts: int | None, in_order: bool
    ) -> "Task":
        """Return the task of a whole fit, as the fit begins. Call it once in each fit.

        Parameters
        ----------
        estimator : estimator
            The estimator that is trained.
        X, y, sample_weight : object
            Arguments of the caller.
        n_parts, in_order
            As of ``part``.
        """
        if not hasattr(estimator, "_init_callback_context"):
            return cls()
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        arguments = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        context = estimator._init_callback_context(
            max_subtasks=n_parts, sequential_subtasks=in_order
        )
        return cls(context, arguments).begin()

    def part(
        self,
        name: str,
        number: int | None = None,
        n_parts: int | None = 0,
        *,
        in_order: bool = True,
    ) -> "Task":
        """Return a part of this task, which has not begun.

        Parameters
        ----------
        name : str
            What it is, such as "epoch".
        number : int, default=None
            Which it is, from 0, where parts are not made `in_order`.
        n_parts : int or None, default=0
            Parts of its own, at most; None if that is not known.
        in_order : bool, default=True
            Whether its own parts are made one after the other.
        """
        if self._context is None:
            return Task()
        context = self._context.subcontext(
            task_name=name, task_id=number, max_subtasks=n_parts, sequential_subtasks=in_order
        )
        return Task(context, self._arguments)

    def begin(self) -> "Task":
        """Begin; return the task."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(**self._arguments)
        return self

    def end(self, model: Model | None = None) -> bool:
        """End; return whether a callback asks for a stop.

        Parameters
        ----------
        model : callable, default=None
            Called only if a callback wants an estimator. None if no model can answer yet.
        """
        if self._context is None:
            return False
        return self._context.call_on_fit_task_end(
            **self._arguments, reconstruction_attributes=model
        )

    @contextmanager
    def around(self, estimator: Any, *, may_lack_callbacks: bool = False) -> Iterator[None]:
        """Begin and end around the fit of another estimator, which gets the callbacks too.

        One without callbacks gives a warning of scikit-learn, unless it `may_lack_callbacks`.
        """
        if self._context is None or (
            may_lack_callbacks and not hasattr(estimator, "set_callbacks")
        ):
            self.begin()
            yield
            self.end()
            return
        with self._context.propagate_callback_context(estimator):
            self.begin()
            yield
        self.end()

    def expect(self, n_more: int) -> None:
        """Announce more parts."""
        if self._context is not None and self._context.max_subtasks is not None:
            self._context.max_subtasks += n_more


class StopFlag:
    """Shared by the threads of one call; a copy that was sent to another process is never set."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for the stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Return whether the stop was asked for."""
        return self._event.is_set()

    def __reduce__(self) -> tuple[type, tuple]:
        return StopFlag, ()

    def __deepcopy__(self, memo: object) -> "StopFlag":
        return self


def say(name: str, text: str) -> None:
    """Print a line of an estimator."""
    print(f"[{name}] {text}", flush=True)


class Progress:
    """Parts of a training that begin and end: training loops report to it, and to nothing else.

    Parameters
    ----------
    task : Task
        The task that the parts belong to; it has begun.
    lines : Lines or None
        None prints nothing.
    part : str
        What one part is, such as "epoch".
    n_parts : int or None
        Maximum number of parts; None if unknown.
    sizes : sequence of int, default=None
        Units of the lines in each part; None for one each.
    costs : sequence of float, default=None
        Relative time of each part; None for its size.
    is_whole : bool, default=False
        Whether the task is the whole fit, which goes on when all parts have ended.

    Attributes
    ----------
    was_stopped : bool
        Whether a callback has asked for a stop.
    n_ended : int
        Number of parts that have ended.
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
        self.task, self._lines, self._part, self.n_parts = task, lines, part, n_parts
        self._sizes, self._is_whole = sizes, is_whole
        self._costs = sizes if costs is None else costs
        self._total = float((n_parts or 0) if self._costs is None else sum(self._costs))
        self.n_ended, self._n_done, self._spent, self.was_stopped = 0, 0, 0.0, False
        self._open: list[Task] = []
        self._lock = threading.Lock()
        self._deadline = _DEADLINE.get()  # parts may end in threads

    def part(
        self, number: int | None = None, n_parts: int = 0, *, name: str = "", in_order: bool = True
    ) -> Task:
        """Return the task of the next part, which has not begun; see ``Task.part``."""
        return self.task.part(name or self._part, number, n_parts, in_order=in_order)

    def begin(self) -> Task:
        """Begin the next part; return its task."""
        task = self.part().begin()
        self._open.append(task)
        return task

    def end(self, task: Task, text: str, model: Model | None = None) -> bool:
        """End a part; return whether a callback asks for a stop, see ``Task.end``."""
        self._open.remove(task)
        is_stop = task.end(model)
        self.was_stopped |= is_stop
        self.ended(text)
        return is_stop

    def ended(self, text: str, number: int | None = None) -> None:
        """Print that a part has ended: the next, or the one of a number."""
        with self._lock:
            self._spent += self._count(number)
            share = self._spent / self._total if self._total else 0.0
            if self._lines is not None:
                self._lines.show(self._n_done, text, share)
        if share < 1.0 and time.perf_counter() > self._deadline:
            raise OutOfTime(share)

    def known(self, number: int | None = None) -> None:
        """Mark a part that is restored from a checkpoint; it counts in no output and no ETA."""
        self.part(number).begin().end()
        with self._lock:
            self._total -= self._count(number)

    def _count(self, number: int | None) -> float:
        """Count a part as ended; return its cost."""
        number = self.n_ended if number is None else number
        self.n_ended += 1
        self._n_done += 1 if self._sizes is None else int(self._sizes[number])
        return 1.0 if self._costs is None else float(self._costs[number])

    def close(self) -> None:
        """End the task: no further part follows."""
        for task in reversed(self._open):  # parts that failed
            task.end()
        self._open.clear()
        if self._lines is not None:
            is_short = self.n_parts is not None and self.n_ended < self.n_parts
            self._lines.close(was_stopped=self.was_stopped and is_short)
        if not self._is_whole:
            self.task.end()


class Fit:
    """A call of ``fit``, or of another method that trains.

    Parameters
    ----------
    estimator : estimator
        The estimator that is trained.
    X, y, sample_weight : object
        Arguments of the caller.
    n_stages : int, default=1
        Number of stages. Stages are tasks of the fit, and parts tasks of stages; the parts of a
        single stage are tasks of the fit itself.
    """

    def __init__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, n_stages: int = 1
    ) -> None:
        self._estimator = estimator
        self._given = (X, y, sample_weight)
        self._task: Task | None = None
        if n_stages > 1:
            self._task = Task.of_fit(estimator, *self._given, n_stages, True)

    def parts(
        self,
        part: str,
        n_parts: int | None,
        *,
        stage: str = "",
        in_order: bool = True,
        **counted: Any,
    ) -> Progress:
        """Return the progress of the next stage, which begins.

        Parameters
        ----------
        part, n_parts : str, int or None
            As of ``Progress``.
        stage : str, default=""
            Its name, where there are several.
        in_order : bool, default=True
            Whether parts follow each other; otherwise each has a number.
        **counted
            ``unit``, ``sizes`` and ``costs`` of ``within``.
        """
        if self._task is None:
            self._task = task = Task.of_fit(self._estimator, *self._given, n_parts, in_order)
        else:
            task = self._task.part(stage, None, n_parts, in_order=in_order).begin()
        return self.within(task, part, n_parts, is_whole=task is self._task, **counted)

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
        """Return the progress of a task that has begun; lines count the `unit`, or the part."""
        lines = None
        if getattr(self._estimator, "verbose", 0):
            n_units = n_parts if sizes is None else int(sum(sizes))
            lines = Lines(type(self._estimator).__name__, unit or part, n_units)
        return Progress(task, lines, part, n_parts, sizes, costs, is_whole=is_whole)

    def expect(self, n_stages: int) -> None:
        """Announce more stages."""
        if self._task is not None:
            self._task.expect(n_stages)

    def end(self) -> None:
        """End the fit: all attributes are set."""
        if self._task is None:
            self._task = Task.of_fit(self._estimator, *self._given, 0, True)
        self._task.end(dict)


class Lines:
    """Lines on parts of a training: at most one a second, and always the last.

    They end with the seconds so far, and an estimate of those left.

    Parameters
    ----------
    name : str
        Of the estimator.
    unit : str
        What is counted, such as "epoch".
    n_units : int or None
        Maximum number of units. None if unknown: then each part has a line.
    """

    def __init__(self, name: str, unit: str, n_units: int | None) -> None:
        self._name, self._unit, self._n_units = name, unit, n_units
        self._began = time.perf_counter()
        self._shown = -1.0
        self._waiting = ""
        self._first = 0.0, 0.0  # share and seconds of the first part, which may compile loops

    def show(self, n_done: int, text: str, share: float) -> None:
        """Print that `n_done` units are done, a `share` of the work, and a text on the last."""
        seconds = time.perf_counter() - self._began
        if self._n_units is None:
            say(self._name, f"{text}, {duration(seconds)}")
            return
        line = f"{self._unit} {n_done} of {self._n_units}: {text}, {duration(seconds)}"
        self._waiting = ""
        first_share, first_seconds = self._first
        if n_done >= self._n_units:
            say(self._name, line)
        elif seconds >= self._shown + 1.0:
            self._shown = seconds
            if share > first_share > 0:
                left = (seconds - first_seconds) * (1.0 - share) / (share - first_share)
                line += f", about {duration(left)} left"
            say(self._name, line)
        else:
            self._waiting = line
        if not first_share:
            self._first = share, seconds

    def close(self, *, was_stopped: bool = False) -> None:
        """Print the last line, if it has waited, and whether a callback has stopped the fit."""
        if self._waiting:
            say(self._name, self._waiting)
        if was_stopped:
            say(self._name, "stopped here: a callback asked for it")
        self._waiting = ""


def duration(seconds: float) -> str:
    """Format a time: "12.3 s", "4 min 05 s", "3 h 20 min"."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02d} min"

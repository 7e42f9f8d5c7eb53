"""A fit as scikit-learn's callbacks see it: a tree of tasks that begin and end.

::

    the fit -> its parts, such as epochs, or stages that have parts of their own
               a part that fits another estimator -> the fit of that one, in its place

Where scikit-learn has no callbacks (before 1.9), and in what is no fit, nothing is told.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Gives the attributes by which a copy of the estimator answers as if training had ended now.
Model = Callable[[], dict[str, Any]]


class Task:
    """A task of a fit, of which callbacks are told.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext or None
        None tells nobody.
    told : dict of str to object
        What callbacks are told of each task: the estimator, X, y and metadata.
    """

    def __init__(self, context: Any = None, told: dict[str, Any] | None = None) -> None:
        self._context, self._told = context, {} if told is None else told

    @classmethod
    def of_fit(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, n_parts: int | None, in_order: bool
    ) -> "Task":
        """Return the task of a whole fit, which begins: once in each.

        Parameters
        ----------
        estimator : estimator
            On which ``fit`` works; with callbacks, perhaps.
        X, y, sample_weight : object
            As they came.
        n_parts, in_order
            As of ``part``.
        """
        if not hasattr(estimator, "_init_callback_context"):
            return cls()
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        told = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        context = estimator._init_callback_context(
            max_subtasks=n_parts, sequential_subtasks=in_order
        )
        return cls(context, told).begin()

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
        return Task(context, self._told)

    def begin(self) -> "Task":
        """Tell that it begins; return itself."""
        if self._context is not None:
            self._context.call_on_fit_task_begin(**self._told)
        return self

    def end(self, model: Model | None = None) -> bool:
        """Tell that it has ended.

        Parameters
        ----------
        model : callable, default=None
            Asked only where a callback wants an estimator. None if there is none that answers.

        Returns
        -------
        bool
            Whether a callback asks that no further such task be begun.
        """
        if self._context is None:
            return False
        return self._context.call_on_fit_task_end(**self._told, reconstruction_attributes=model)

    @contextmanager
    def around(self, estimator: Any, *, may_be_deaf: bool = False) -> Iterator[None]:
        """Begin and end around the fit of another estimator, which is told to the callbacks too.

        One that takes no callbacks gives a warning of scikit-learn, unless it `may_be_deaf`.
        """
        if self._context is None or (may_be_deaf and not hasattr(estimator, "set_callbacks")):
            self.begin()
            yield
            self.end()
            return
        with self._context.propagate_callback_context(estimator):
            self.begin()
            yield
        self.end()

    def expect(self, n_more: int) -> None:
        """Expect so many more parts than were announced."""
        if self._context is not None and self._context.max_subtasks is not None:
            self._context.max_subtasks += n_more

"""A fit as scikit-learn's callbacks see it: a tree of tasks that begin and end.

::

    the fit -> its parts, such as epochs, or stages that have parts of their own
               a part that fits another estimator -> the fit of that one, in its place

Before scikit-learn 1.9, and outside of fits, tasks have no context and do nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Returns the fitted attributes of a model whose training ends now.
Model = Callable[[], dict[str, Any]]


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
        self._context, self._arguments = context, {} if arguments is None else arguments

    @classmethod
    def of_fit(
        cls, estimator: Any, X: Any, y: Any, sample_weight: Any, n_parts: int | None, in_order: bool
    ) -> "Task":
        """Return the task of a whole fit, which begins: once in each.

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

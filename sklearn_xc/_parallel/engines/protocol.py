"""What an engine does: it works on tasks that need the same large object."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

#: Called as ``work(shared, *arguments)``. A function of a module, as it may be sent to others.
Work = Callable[..., Any]
#: A number, by which the result is known, and further arguments.
Numbered = tuple[int, tuple[Any, ...]]


class Workers(NamedTuple):
    """How many tasks are worked on at a time.

    Attributes
    ----------
    n : int
    n_processes : int
        In which they are, as many in each.
    """

    n: int
    n_processes: int = 1


class Place(Protocol):
    """Where the large object is at hand."""

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Yield the number of each task with its result, in the order in which they end.

        What has not begun when the generator is closed does not begin; what works stops soon.

        Parameters
        ----------
        work : callable
        tasks : iterable
            Asked for the next task only when it is to begin soon.
        n_workers : int
            How many are worked on at a time.

        Yields
        ------
        number : int
        result : object
        """


class Engine(Protocol):
    """Has workers.

    Attributes
    ----------
    is_cluster : bool
        Whether workers are other processes that are not told of what changes here: then also parts
        of a fit that would be threads are sent.
    """

    is_cluster: bool

    def count(self, n_jobs: Any) -> Workers:
        """Return how many workers a parameter `n_jobs` means."""

    def sharing(self, shared: Any, who: str) -> AbstractContextManager[Place]:
        """Send an object once to each process that works, for as long as the ``with`` lasts.

        It is read, never written: it may be the same for several workers. `who` is the estimator,
        for messages.
        """

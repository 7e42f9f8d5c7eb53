"""Threads pinned to NUMA nodes, each node with a copy of the shared object in its own memory.

As of [1]_, section 5: one-vs-all reads X at random, and memory of another node is slower. Tasks are
taken from one list, so a node that ends first helps the others. A copy is made by a thread of the
node, in whose memory it then lies; where copies would take too much, the pages of the one object
are spread over all nodes.

References
----------
.. [1] E. Schultheis and R. Babbar, "Speeding-up one-versus-all training for extreme classification
   via mean-separating initialization", Machine Learning 111, 2022.
"""

import copy
import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from sklearn_xc._parallel.engines.protocol import Numbered, Work, Workers
from sklearn_xc._parallel.memory import available_bytes, format_bytes
from sklearn_xc._parallel.numa import Node, pin, spread
from sklearn_xc._parallel.progress import say
from sklearn_xc._parallel.shared_memory import arrays_in, holds_files
from sklearn_xc._parallel.threads import count_threads

#: A node has a copy if it takes at most so much of what is free there, and all do of what is left.
_SHARE_OF_FREE = 0.25


class NumaEngine:
    """Threads of several nodes.

    Parameters
    ----------
    nodes : sequence of Node
        Two at least.
    may_copy : bool, default=True
        Whether each may have a copy of what is shared, if there is room for it.
    is_verbose : bool, default=False
        Whether to print where what is shared lies.
    """

    is_cluster = False

    def __init__(
        self, nodes: Sequence[Node], *, may_copy: bool = True, is_verbose: bool = False
    ) -> None:
        self._nodes, self._may_copy, self._is_verbose = nodes, may_copy, is_verbose

    def count(self, n_jobs: Any) -> Workers:
        """Return the number of threads."""
        return Workers(count_threads(n_jobs))

    @contextmanager
    def sharing(self, shared: Any, who: str) -> Iterator["_NumaPlace"]:
        """Give each node a copy, or spread the one that there is."""
        with ExitStack() as stack:
            pools = [
                stack.enter_context(
                    ThreadPoolExecutor(len(node.cpus), f"node{node.number}", pin, (node.cpus,))
                )
                for node in self._nodes
            ]
            copies = self._placed(shared, pools, who)
            yield _NumaPlace(pools, copies)

    def _placed(self, shared: Any, pools: list[ThreadPoolExecutor], who: str) -> list[Any]:
        """Return what the threads of each node read."""
        arrays = arrays_in(shared)
        size = sum(array.nbytes for array in arrays)
        if self._may_copy and not holds_files(shared) and self._has_room(size):
            copies = [pool.submit(copy.deepcopy, shared) for pool in pools]  # first touched there
            with suppress(TypeError):  # of an initialiser with a lock, say
                found = [of_node.result() for of_node in copies]
                text = f"each of {len(pools)} NUMA nodes has a copy of {format_bytes(size)}"
                self._say(who, text)
                return found
        done = spread(arrays, [node.number for node in self._nodes])
        how = "is spread over" if done else "stays where it is: it could not be spread over"
        self._say(who, f"{format_bytes(size)} that all read {how} {len(pools)} NUMA nodes")
        return [shared] * len(pools)

    def _has_room(self, size: int) -> bool:
        """Return whether each node has room for so many bytes, and so has the container."""
        left = available_bytes()
        return all(size <= _SHARE_OF_FREE * node.free for node in self._nodes) and (
            left is None or size * len(self._nodes) <= _SHARE_OF_FREE * left
        )

    def _say(self, who: str, text: str) -> None:
        if self._is_verbose:
            say(who, text)


class _NumaPlace:
    def __init__(self, pools: list[ThreadPoolExecutor], copies: list[Any]) -> None:
        self._pools, self._copies = pools, copies

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """Work on tasks in threads of all nodes, as many of each as there are processors."""
        rest, lock, done = iter(tasks), threading.Lock(), queue.SimpleQueue[Any]()
        is_over = threading.Event()
        places = self._places(n_workers)

        def work_at(place: int) -> None:
            try:
                while not is_over.is_set():
                    with lock:
                        task = next(rest, None)
                        if task is None:
                            break
                    number, arguments = task
                    done.put((number, work(self._copies[place], *arguments), None))
            except BaseException as error:
                done.put((None, None, error))
            done.put(None)

        futures = [self._pools[place].submit(work_at, place) for place in places]
        n_open = len(futures)
        try:
            while n_open:
                found = done.get()
                if found is None:
                    n_open -= 1
                    continue
                number, result, error = found
                if error is not None:
                    raise error
                yield number, result
        finally:
            is_over.set()

    def _places(self, n_workers: int) -> list[int]:
        """Return the node of each worker: one of each in turn, as long as it has processors."""
        left = [pool._max_workers for pool in self._pools]
        places: list[int] = []
        while len(places) < n_workers and any(left):
            for at, n in enumerate(left):
                if n and len(places) < n_workers:
                    left[at] -= 1
                    places.append(at)
        return places

"""Threads pinned to the NUMA nodes of a machine, each with a copy of the data in its own memory.

Linux lists nodes in sysfs; elsewhere there is one. Pages lie on the node of the thread that first
writes them, so that a thread of each node makes its copy.

References
----------
.. [1] E. Schultheis and R. Babbar, "Speeding-up one-versus-all training for extreme classification
   via mean-separating initialization", Machine Learning 111, 2022.
"""

import copy
import os
import queue
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn_xc._parallel.engines import Engine, Numbered, Work
from sklearn_xc._parallel.memory import array_bytes, available_bytes, format_bytes
from sklearn_xc._parallel.progress import say

#: Where Linux describes nodes.
SYSFS = Path("/sys/devices/system/node")
#: A copy may take this share of a node's free memory, and all copies of the machine's.
_SHARE_OF_FREE = 0.25


@dataclass(frozen=True)
class Node:
    """A node: its number, the processors that this process may use, and bytes of free memory."""

    number: int
    cpus: tuple[int, ...]
    free: int


def find_nodes(root: Path = SYSFS, allowed: Collection[int] | None = None) -> list[Node]:
    """Return the nodes with processors in `allowed` (None for this process); [] if unknown."""
    if allowed is None:
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    found = []
    try:
        for number in _numbers_in((root / "online").read_text()):
            folder = root / f"node{number}"
            cpus = sorted(set(_numbers_in((folder / "cpulist").read_text())) & set(allowed))
            if cpus:  # else the node has only memory
                found.append(Node(number, tuple(cpus), _free_bytes(folder / "meminfo")))
    except (OSError, ValueError):
        return []
    return found


def _numbers_in(text: str) -> list[int]:
    """Return the numbers in a list such as "0-3,8"."""
    found: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _free_bytes(path: Path) -> int:
    """Return the free memory of a node, page cache included."""
    found = dict(re.findall(r"(MemFree|FilePages|Shmem):\s+(\d+) kB", path.read_text()))
    free, cache, shared = (int(found.get(key, 0)) for key in ("MemFree", "FilePages", "Shmem"))
    return 1024 * (free + max(0, cache - shared))


class NumaEngine(Engine):
    """Threads of at least two nodes; without room for copies, threads that are not pinned."""

    def __init__(self, nodes: Sequence[Node], *, is_verbose: bool = False) -> None:
        self._nodes, self._is_verbose = nodes, is_verbose

    @contextmanager
    def sharing(self, shared: Any, caller: str) -> Iterator[Engine]:
        """Copy an object to each node."""
        self._shared = shared
        self._copies = []
        size = array_bytes(shared, mapped=True)
        with ExitStack() as stack:
            if self._has_room(size):
                self._pools = [
                    stack.enter_context(
                        ThreadPoolExecutor(len(node.cpus), f"node{node.number}", _pin, (node.cpus,))
                    )
                    for node in self._nodes
                ]
                copies = [pool.submit(copy.deepcopy, shared) for pool in self._pools]
                with suppress(TypeError):  # an initialiser with a lock, for example
                    self._copies = [one.result() for one in copies]
            if self._copies and self._is_verbose:
                nodes = f"each of {len(self._nodes)} NUMA nodes"
                say(caller, f"{nodes} has a copy of {format_bytes(size)}")
            yield self

    def _has_room(self, size: int) -> bool:
        free = available_bytes()
        return all(size <= _SHARE_OF_FREE * node.free for node in self._nodes) and (
            free is None or size * len(self._nodes) <= _SHARE_OF_FREE * free
        )

    def run(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        """See `Engine`; each node has at most as many threads as processors."""
        if not self._copies:
            return super().run(work, tasks, n_workers)
        return self._run_pinned(work, tasks, n_workers)

    def _run_pinned(self, work: Work, tasks: Iterable[Numbered], n_workers: int) -> Iterator[Any]:
        rest = iter(tasks)
        lock = threading.Lock()
        done = queue.SimpleQueue[Any]()
        is_over = threading.Event()

        def work_on_node(node: int) -> None:
            try:
                while not is_over.is_set():
                    with lock:
                        task = next(rest, None)
                    if task is None:
                        break
                    number, arguments = task
                    done.put((number, work(self._copies[node], *arguments), None))
            except BaseException as error:
                done.put((None, None, error))
            done.put(None)

        # One thread of each node in turn, as long as it has processors.
        turns = max(len(node.cpus) for node in self._nodes)
        order = [
            i for turn in range(turns) for i, one in enumerate(self._nodes) if turn < len(one.cpus)
        ]
        n_open = len([self._pools[node].submit(work_on_node, node) for node in order[:n_workers]])
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


def _pin(cpus: Iterable[int]) -> None:
    """Keep this thread on some processors, unless a container forbids it."""
    with suppress(OSError, AttributeError):
        os.sched_setaffinity(0, cpus)

"""Cuts the labels of a one-vs-all problem into blocks of work.

The cut follows from the data's shape, the labels' frequencies, ``max_memory`` and the number of
workers, never from free memory. No result depends on it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.subtrees import cut_tree

#: Labels solved side by side: a product with 64 vectors costs little more than with one.
MAX_LANES = 64
#: Limit on a worker's workspace where the user sets none.
DEFAULT_WORKSPACE_BYTES = 2**30
#: Limit on the labels of a block: in a large one, labels that need all rows share passes over them.
#: The labels that are left are enough for four more such blocks for each worker, so that the last
#: blocks are short and all workers end together.
MAX_BLOCK_LABELS = 4096
BLOCKS_PER_WORKER = 4
#: Advice where not even one label has room.
MORE_ROOM = "Raise max_memory, lower n_jobs, or pass X as float32."


@dataclass(frozen=True)
class BlockPlan:
    """The cut.

    Attributes
    ----------
    blocks : list of ndarray of int64
        Labels of each block. Where they do not depend on each other the blocks of the most frequent
        come first, and each has its labels in rising order.
    waves : list of range
        Numbers of the blocks that may run together; each wave needs those before.
    n_lanes : int
        Labels worked on side by side within a block.
    n_workers : int
        Blocks that may run at a time within the memory allowed.
    """

    blocks: list[np.ndarray]
    waves: list[range]
    n_lanes: int
    n_workers: int


def plan_blocks(
    labels: np.ndarray,
    label_counts: np.ndarray,
    workspace_bytes: Callable[[int], int],
    describe: Callable[[int], str],
    max_memory: int | None,
    n_workers: int,
    who: str = "",
    *,
    labels_per_lane: int | None = None,
    held: int = 0,
    label_bytes: int = 0,
    parents: np.ndarray | None = None,
    n_processes: int = 1,
) -> BlockPlan:
    """Cut labels into blocks that fit the memory.

    Parameters
    ----------
    labels : ndarray of int64 of shape (L,)
        The labels to cut.
    label_counts : ndarray of int of shape (L,)
        Positives of each.
    workspace_bytes : callable
        Gives the bytes that a worker needs for a number of lanes.
    describe : callable
        Names the largest array for a number of lanes, for the message of a refusal.
    max_memory : int or None
        Limit on the bytes of the workspaces of all workers of a process, `held` included; None
        for `DEFAULT_WORKSPACE_BYTES` each.
    n_workers : int
        Workers wanted.
    who : str, default=""
        Name of the estimator, for messages.
    labels_per_lane : int, default=None
        Limit on the labels of a block, for each lane; None for none.
    held : int, default=0
        Bytes of other arrays.
    label_bytes : int, default=0
        Bytes of the result of a label. With `max_memory`, the results of a block take at most half
        of what the workspace leaves.
    parents : ndarray of int64 of shape (L,), default=None
        Position in `labels` of the one that each needs to be solved before; -1 for none. A label's
        block is that of its parent, or in a later wave.
    n_processes : int, default=1
        Processes that the workers are in, as many in each.

    Returns
    -------
    BlockPlan

    Raises
    ------
    MemoryBudgetError
        If not even one worker with one lane fits, before anything is allocated.
    """
    allowed = DEFAULT_WORKSPACE_BYTES if max_memory is None else max_memory - held
    n_lanes = min(MAX_LANES, max(1, len(label_counts)))
    while n_lanes > 1 and workspace_bytes(n_lanes) > allowed:
        n_lanes //= 2
    each, most = workspace_bytes(n_lanes), MAX_BLOCK_LABELS
    beside = -(-n_workers // n_processes)  # in one process
    if max_memory is not None:
        beside = max(1, min(beside, allowed // each))
        n_workers = min(n_workers, beside * n_processes)
        most = max(0, allowed // beside - each) // 2 // max(1, label_bytes)
    require_bytes(
        held + beside * each,
        max_memory,
        f"{describe(n_lanes)}, for each of {beside} workers",
        MORE_ROOM,
        who,
    )

    def block_size(n_left: int) -> int:
        """Return the size of the next block, a multiple of the lanes."""
        size = min(most, MAX_BLOCK_LABELS, n_left // (BLOCKS_PER_WORKER * n_workers))
        size = round(size / n_lanes)
        return max(1, size if labels_per_lane is None else min(size, labels_per_lane)) * n_lanes

    if parents is not None:
        waves = cut_tree(parents, label_counts, block_size)
    else:
        order, wave = np.argsort(-label_counts, kind="stable"), []
        while len(order):
            size = block_size(len(order))
            wave.append(np.sort(order[:size]))
            order = order[size:]
        waves = [wave]
    ends = np.cumsum([0] + [len(wave) for wave in waves]).tolist()
    return BlockPlan(
        [labels[block] for wave in waves for block in wave],
        [range(first, last) for first, last in itertools.pairwise(ends)],
        n_lanes,
        n_workers,
    )

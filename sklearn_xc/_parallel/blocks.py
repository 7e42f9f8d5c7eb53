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

#: Labels worked on side by side: a product with so many vectors costs little more than with one.
MAX_LANES = 64
#: A worker's workspace stays below this where the user sets no limit.
DEFAULT_WORKSPACE_BYTES = 2**30
#: A block holds at most so many labels: in a large one, the few that have to look at all rows do so
#: together. And those that are left would make so many blocks for each worker, if of at least a
#: label for each lane: the last blocks are short, so that all workers end together.
MAX_BLOCK_LABELS = 4096
BLOCKS_PER_WORKER = 4
#: What to do where not even one label has room.
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
        How many blocks may run at a time within the memory allowed.
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
        Bytes that the workspaces of all workers of a process, and what is held besides, may take;
        None for a fixed rule.
    n_workers : int
        Workers wanted.
    who : str, default=""
        Name of the estimator, for messages.
    labels_per_lane : int, default=None
        A block holds at most so many labels for each lane; None for no such bound.
    held : int, default=0
        Bytes that are held besides.
    label_bytes : int, default=0
        What a label of a block may take beside the workspace until the block is done. Where
        `max_memory` is set, blocks have no more labels than half of what is left holds.
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

"""Cuts the labels of a one-vs-all problem, and trees of labels, into blocks of work.

The cut follows from the data's shape, the labels' frequencies, ``max_memory`` and the number of
workers, never from free memory. No result depends on it.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc._input.data import entry_places
from sklearn_xc._parallel.memory import require_bytes

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


def cut_tree(
    parents: np.ndarray, counts: np.ndarray, block_size: Callable[[int], int]
) -> list[list[np.ndarray]]:
    """Cut a tree into blocks.

    Parameters
    ----------
    parents : ndarray of int64 of shape (m,)
        Position of each label's parent, -1 for the root, which is no label. No cycles.
    counts : ndarray of int of shape (m,)
        Positives of each label: labels with many take longer, and begin earlier.
    block_size : callable
        Gives the most labels of the next block for the number of those that are left in its wave.

    Returns
    -------
    list of list of ndarray of int64
        For each wave, its blocks: positions of labels. Those with the highest subtrees come first.
    """
    order = topological(parents)
    piece, wave_of, height = _cut_pieces(parents, order, block_size(len(parents)))
    size = np.bincount(piece, minlength=len(wave_of))
    work = np.bincount(piece, counts, len(wave_of))
    above, below = piece[parents[parents >= 0]], piece[parents >= 0]
    is_trunk = np.zeros(len(wave_of), bool)
    is_trunk[above[above != below]] = True
    # Within a block, those with the highest subtrees come first.
    by_height = np.lexsort((-counts, -height))
    labels_of = np.split(by_height[np.argsort(piece[by_height], kind="stable")], np.cumsum(size))
    rank = np.empty(len(parents), np.int64)
    rank[by_height] = np.arange(len(parents))
    waves = []
    for wave in range(int(wave_of.max(initial=-1)) + 1):
        pieces = np.flatnonzero(wave_of == wave)
        pieces = pieces[np.lexsort((-work[pieces], ~is_trunk[pieces]))]
        n_left = int(size[pieces].sum())
        room = 0
        blocks: list[list[np.ndarray]] = []
        for p in pieces.tolist():
            if not blocks or size[p] > room:
                blocks.append([])
                room = block_size(n_left)
            blocks[-1].append(labels_of[p])
            room -= size[p]
            n_left -= size[p]
        joined = [np.concatenate(block) for block in blocks]
        waves.append([block[np.argsort(rank[block])] for block in joined])
    return waves


def topological(parents: np.ndarray) -> np.ndarray:
    """Return the positions of a tree's labels, each after its parent.

    Parameters
    ----------
    parents : ndarray of int64 of shape (m,)
        As ``cut_tree`` takes them, but perhaps with cycles.

    Returns
    -------
    ndarray of int64
        Level by level. Labels on cycles and below them are missing.
    """
    children = np.argsort(parents, kind="stable")
    first = np.searchsorted(parents, np.arange(-1, len(parents) + 1), sorter=children)
    level = children[first[0] : first[1]]
    levels = [level]
    while len(level):
        begin = first[level + 1]
        n = first[level + 2] - first[level + 1]
        level = children[entry_places(begin, n)[0]]
        levels.append(level)
    return np.concatenate(levels)


def _cut_pieces(
    parents: np.ndarray, order: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut a tree into connected pieces of at most `most` labels.

    From the leaves up, a subtree is cut off where one label more would make it too large; that
    label is a leaf of the next level, in which the subtrees below it are gone.

    Returns
    -------
    piece : ndarray of int64 of shape (m,)
        The piece of each label.
    wave : ndarray of int64 of shape (n_pieces,)
        Pieces above each.
    height : ndarray of int64 of shape (m,)
        Labels below each on the longest way down within its piece.
    """
    m = len(parents)
    above = parents.tolist()
    level, size, height = [0] * m, [1] * m, [0] * m
    # The highest level among the children, the labels of that level below, and their height.
    top, n_top, high = [0] * m, [0] * m, [0] * m
    for j in reversed(order.tolist()):
        fits = n_top[j] < most
        level[j], size[j], height[j] = (
            (top[j], 1 + n_top[j], high[j]) if fits else (top[j] + 1, 1, 0)
        )
        p = above[j]
        if p < 0:
            continue
        if level[j] > top[p]:
            top[p], n_top[p], high[p] = level[j], 0, 0
        if level[j] == top[p]:
            n_top[p] += size[j]
            high[p] = max(high[p], 1 + height[j])
    piece = [0] * m
    wave: list[int] = []
    for j in order.tolist():
        p = above[j]
        if p >= 0 and level[p] == level[j]:
            piece[j] = piece[p]
        else:
            piece[j] = len(wave)
            wave.append(0 if p < 0 else 1 + wave[piece[p]])
    return np.array(piece, np.int64), np.array(wave, np.int64), np.array(height, np.int64)


@dataclass(frozen=True)
class BlockPlan:
    """The cut.

    Attributes
    ----------
    blocks : list of ndarray of int64
        Labels of each block. Where they do not depend on each other the blocks of the most frequent
        come first, and each has its labels in ascending order.
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
    caller: str = "",
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
    caller : str, default=""
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
    each = workspace_bytes(n_lanes)
    most = MAX_BLOCK_LABELS
    n_here = -(-n_workers // n_processes)  # workers of one process
    if max_memory is not None:
        n_here = max(1, min(n_here, allowed // each))
        n_workers = min(n_workers, n_here * n_processes)
        most = max(0, allowed // n_here - each) // 2 // max(1, label_bytes)
    require_bytes(
        held + n_here * each,
        max_memory,
        f"{describe(n_lanes)}, for each of {n_here} workers",
        MORE_ROOM,
        caller,
    )

    def block_size(n_left: int) -> int:
        """Return the size of the next block, a multiple of the lanes."""
        size = min(most, MAX_BLOCK_LABELS, n_left // (BLOCKS_PER_WORKER * n_workers))
        size = round(size / n_lanes)
        return max(1, size if labels_per_lane is None else min(size, labels_per_lane)) * n_lanes

    if parents is not None:
        waves = cut_tree(parents, label_counts, block_size)
    else:
        order = np.argsort(-label_counts, kind="stable")
        wave = []
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

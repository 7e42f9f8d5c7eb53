"""Cuts a tree of labels into blocks of work, where a label waits for its parent.

::

    the tree -> pieces: connected, of at most as many labels as a block
                whole subtrees, and what is left above them, cut in the same way again
             -> waves: a piece goes into the one after that of the piece above it
             -> blocks: pieces of a wave, together

A label's parent is in its own block or in an earlier wave. Trees over labels are broad: most
subtrees hold fewer labels than a block and hang from the root, so that most blocks need no other.
"""

from collections.abc import Callable

import numpy as np


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
        n_left, room = int(size[pieces].sum()), 0
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
        begin, n = first[level + 1], first[level + 2] - first[level + 1]
        at = np.repeat(begin - np.concatenate(([0], np.cumsum(n)[:-1])), n) + np.arange(n.sum())
        level = children[at]
        levels.append(level)
    return np.concatenate(levels)


def _cut_pieces(
    parents: np.ndarray, order: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut a tree into connected pieces of at most `most` labels.

    From the leaves up, a subtree is cut off where one label more would make it too large; that
    label begins the next level, for which all below has gone.

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

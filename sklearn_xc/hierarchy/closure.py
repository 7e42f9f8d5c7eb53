"""All ancestors of each node of a directed acyclic graph, as a sparse matrix."""

import numpy as np
import scipy.sparse as sp

from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.row_ranges import cut_rows

#: Pairs of a node and an ancestor of one of its parents that are looked at together.
_TOGETHER = 1 << 22
#: What is smaller is allocated without a look at the memory that is left.
_SMALL = 1 << 24


class CycleError(ValueError):
    """A graph that should have none has a cycle.

    Attributes
    ----------
    nodes : list of int
        Its nodes, each followed by one of its parents, the last one by the first.
    """

    def __init__(self, nodes: list[int]) -> None:
        super().__init__(f"nodes {nodes} are above one another.")
        self.nodes = nodes


def depths_of(parents: sp.csr_array) -> np.ndarray:
    """Return the length of the longest way from each node up to a root.

    Parameters
    ----------
    parents : csr_array of shape (n_nodes, n_nodes)
        A row for each child.

    Returns
    -------
    ndarray of int64 of shape (n_nodes,)
        0 for roots.

    Raises
    ------
    CycleError
        If the graph has a cycle.

    Notes
    -----
    Source: the topological order of A. B. Kahn, Communications of the ACM 5, 1962. Lists of Python
    take a second for a million nodes whatever the shape of the graph; arrays level by level would
    take many for one that is deep.
    """
    n = parents.shape[0]
    children = parents.T.tocsr()
    ends, below = children.indptr.tolist(), children.indices.tolist()
    waiting = np.diff(parents.indptr).tolist()
    depth = [0] * n
    queue = [node for node in range(n) if not waiting[node]]
    for node in queue:  # which grows meanwhile
        reached = depth[node] + 1
        for child in below[ends[node] : ends[node + 1]]:
            if depth[child] < reached:
                depth[child] = reached
            waiting[child] -= 1
            if not waiting[child]:
                queue.append(child)
    if len(queue) < n:
        raise CycleError(_find_cycle(parents, np.array(waiting) > 0))
    return np.array(depth, np.int64)


def _find_cycle(parents: sp.csr_array, stuck: np.ndarray) -> list[int]:
    """Return a cycle among nodes each of which has a parent among them."""
    node = int(stuck.argmax())
    seen: dict[int, int] = {}
    while node not in seen:
        seen[node] = len(seen)
        above = parents.indices[parents.indptr[node] : parents.indptr[node + 1]]
        node = int(above[stuck[above].argmax()])
    return list(seen)[seen[node] :]


def ancestors_of(parents: sp.csr_array, depth: np.ndarray) -> sp.csr_array:
    """Return the ancestors of each node, itself not among them.

    Nodes are taken by depth, so that all ancestors of their parents are known: a row is the union
    of its parents and their rows.

    Parameters
    ----------
    parents : csr_array of bool of shape (n_nodes, n_nodes)
    depth : ndarray of int64 of shape (n_nodes,)
        From `depths_of`.

    Returns
    -------
    csr_array of bool of shape (n_nodes, n_nodes)
        Canonical.

    Raises
    ------
    MemoryBudgetError
        If there is no room for all pairs of a node and an ancestor.

    Notes
    -----
    O(pairs) memory, and time where nodes have few parents.
    """
    n = len(depth)
    _require(n, int(depth.sum()))  # a node has at least as many ancestors as levels above it
    order = np.argsort(depth, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(n)
    by_depth = _renumbered(parents, order, rank)
    found = _Rows(n)
    starts = np.concatenate([np.flatnonzero(np.diff(depth[order], prepend=-1)), [n]])
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = by_depth[first:last]
        above = found.matrix(first, first)
        per_pair = 1 + np.diff(above.indptr)
        work = np.concatenate([[0], np.cumsum(per_pair[rows.indices])])[rows.indptr]
        for a, b in cut_rows(work, _TOGETHER):
            some = rows[a:b]
            some = sp.csr_array((some.data, some.indices, some.indptr), shape=(b - a, first))
            found.append(some @ above + some)
    return _renumbered(found.matrix(n, n), rank, order)


def _renumbered(matrix: sp.csr_array, rows: np.ndarray, columns: np.ndarray) -> sp.csr_array:
    """Return the rows in another order, with columns under other numbers."""
    _require(len(columns), 2 * matrix.nnz)  # for this copy
    matrix = matrix[rows]
    indices = columns.astype(matrix.indices.dtype)[matrix.indices]
    matrix = sp.csr_array((matrix.data, indices, matrix.indptr), shape=matrix.shape)
    matrix.sort_indices()
    return matrix


class _Rows:
    """A CSR of bool that grows by rows."""

    def __init__(self, n: int) -> None:
        self.n, self.n_rows = n, 0
        self.indptr: np.ndarray = np.zeros(n + 1, np.int32)
        self.indices: np.ndarray = np.empty(n, np.int32)
        self.data = np.ones(n, bool)

    def matrix(self, n_rows: int, n_columns: int) -> sp.csr_array:
        """Return the first rows, which share memory with all."""
        end = int(self.indptr[n_rows])
        parts = (self.data[:end], self.indices[:end], self.indptr[: n_rows + 1])
        return sp.csr_array(parts, shape=(n_rows, n_columns))

    def append(self, rows: sp.csr_array) -> None:
        begin = int(self.indptr[self.n_rows])
        end, stop = begin + rows.nnz, self.n_rows + rows.shape[0]
        if end > len(self.indices):
            # Doubled, as scipy copies views of less than half of an array.
            self._allocate(max(end, 2 * len(self.indices)))
        self.indices[begin:end] = rows.indices
        self.indptr[self.n_rows + 1 : stop + 1] = begin + rows.indptr[1:]
        self.n_rows = stop

    def _allocate(self, room: int) -> None:
        _require(self.n, room)
        dtype = np.int32 if room < 2**31 else np.int64
        grown, end = np.empty(room, dtype), int(self.indptr[self.n_rows])
        grown[:end] = self.indices[:end]
        self.indices, self.data = grown, np.ones(room, bool)
        self.indptr = self.indptr.astype(dtype, copy=False)


def _require(n: int, n_pairs: int) -> None:
    n_bytes = n_pairs * (5 if n_pairs < 2**31 else 9)
    if n_bytes > _SMALL:
        require_bytes(
            n_bytes, None, f"the ancestors of {n} nodes, {n_pairs} pairs",
            "A deep chain of nodes has as many pairs as the square of its length: leave out levels "
            "that nobody asks for.", "LabelHierarchy",
        )  # fmt: skip

"""The graph of a hierarchy: edges from pairs and paths; depths and ancestors."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._labels.names import check_label_names
from sklearn_xc._parallel.memory import require_bytes

WHO = "LabelHierarchy"


def names_and_edges(
    children: list, pairs: list[tuple[Any, Any]], labels: Any
) -> tuple[list, np.ndarray]:
    """Return the names of all nodes, in order of appearance, and edges between their positions.

    Parameters
    ----------
    children : list of names
    pairs : list of (child, parent)
    labels : array-like of names or None
        Names that come first.
    """
    first = [] if labels is None else check_label_names(labels, None, f"{WHO}: labels").tolist()
    flat = [name for pair in pairs for name in pair]
    places = _positions([*first, *children, *flat])
    edges = np.fromiter((places[name] for name in flat), np.int64, len(flat))
    return list(places), edges.reshape(-1, 2)


def pairs_of(edges: Any) -> list[tuple[Any, Any]]:
    """Return pairs of a child's name and a parent's, of an iterable, an array or a data frame."""
    expected = f"{WHO}: edges must be pairs of a child's name and the name of one of its parents"
    edges = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    if isinstance(edges, str | bytes | Mapping) or not isinstance(edges, Iterable):
        raise TypeError(f"{expected}. Got {edges!r}.")
    pairs = []
    for number, pair in enumerate(edges.tolist() if isinstance(edges, np.ndarray) else edges):
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(tuple(pair)) != 2:
            raise ValueError(f"{expected}. Got {pair!r} at {number}.")
        pairs.append(tuple(pair))
    return pairs


def parents_of(given: Any) -> list:
    """Return the parents in a value of a mapping: a name, several, or none."""
    if given is None or (isinstance(given, float) and given != given):
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def names_and_edges_of_paths(paths: Any, separator: str) -> tuple[list, np.ndarray]:
    """Return names and edges of paths such as "plants/trees/oak"; prefixes come last."""
    expected = f"{WHO}: paths must be texts such as 'plants{separator}oak'"
    if isinstance(paths, str | bytes | Mapping) or not isinstance(paths, Iterable):
        raise TypeError(f"{expected}. Got {paths!r}.")
    known: dict[str, int] = {}
    for number, path in enumerate(paths):
        if not isinstance(path, str):
            raise ValueError(f"{expected}. Got {path!r} at {number}.")
        if path in known:
            raise ValueError(f"{WHO}: paths must be distinct. Got {path!r} more than once.")
        known[path] = number
    edges: list[tuple[int, int]] = []
    for path in list(known):
        child, is_new = path, True
        while is_new:
            above, _, last = child.rpartition(separator)
            above = above.rstrip()
            if not last.strip():
                raise ValueError(f"{expected}, without empty parts. Got {path!r}.")
            if not above:
                break
            is_new = above not in known
            known.setdefault(above, len(known))
            edges.append((known[child], known[above]))
            child = above
    return list(known), np.array(edges, np.int64).reshape(-1, 2)


def _positions(names: list) -> dict[Any, int]:
    """Return the position of each name, in order of first appearance."""
    try:
        positions = {name: at for at, name in enumerate(dict.fromkeys(names))}
    except TypeError as error:
        raise TypeError(f"{WHO}: names must be texts or integers. Got an {error}.") from error
    check_label_names(list(positions), len(positions), f"{WHO}: the names of nodes")
    return positions


def depths_of(parents: sp.csr_array) -> tuple[np.ndarray, list[int]]:
    """Return the length of the longest way from each node up to a root, and a cycle, if any.

    Parameters
    ----------
    parents : csr_array of shape (n_nodes, n_nodes)
        A row for each child.

    Returns
    -------
    depths : ndarray of int64 of shape (n_nodes,)
        0 for roots.
    cycle : list of int
        Nodes, each followed by one of its parents, the last one by the first; empty without cycles.

    Notes
    -----
    Source: the topological order of A. B. Kahn, Communications of the ACM 5, 1962. Python lists
    take a second for a million nodes whatever the shape of the graph; arrays level by level take
    many for a deep one.
    """
    n = parents.shape[0]
    children = parents.T.tocsr()
    ends = children.indptr.tolist()
    below = children.indices.tolist()
    waiting = np.diff(parents.indptr).tolist()
    depth = [0] * n
    queue = [node for node in range(n) if not waiting[node]]
    for node in queue:  # grows meanwhile
        reached = depth[node] + 1
        for child in below[ends[node] : ends[node + 1]]:
            depth[child] = max(depth[child], reached)
            waiting[child] -= 1
            if not waiting[child]:
                queue.append(child)
    seen: dict[int, int] = {}
    if len(queue) < n:  # each node that is left has a parent among them
        left = np.array(waiting) > 0
        node = int(left.argmax())
        while node not in seen:
            seen[node] = len(seen)
            above = parents.indices[parents.indptr[node] : parents.indptr[node + 1]]
            node = int(above[left[above].argmax()])
    return np.array(depth, np.int64), list(seen)[seen[node] :] if seen else []


def ancestors_of(parents: sp.csr_array, depths: np.ndarray) -> sp.csr_array:
    """Return the ancestors of each node, without itself, as a canonical csr_array of bool.

    Each product of the matrix with itself doubles the length of the ways that it covers.

    Raises
    ------
    MemoryBudgetError
        If there is no room for all pairs of a node and an ancestor.
    """
    n_pairs = int(depths.sum())  # a node has at least as many ancestors as levels above it
    require_bytes(
        2 * n_pairs * (5 if n_pairs < 2**31 else 9),
        None,
        f"the ancestors of {len(depths)} nodes, {n_pairs} pairs",
        "A deep chain of nodes has as many pairs as the square of its length: leave out levels "
        "that are not needed.",
        WHO,
    )
    found, length = parents, 1
    while length < depths.max(initial=0):
        found, length = found @ found + found, 2 * length
    found = sp.csr_array(found, copy=found is parents)
    found.sort_indices()
    return found

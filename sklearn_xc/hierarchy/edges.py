"""From what people have, mappings, paths or pairs, to names and edges between their positions."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._label_names import check_label_names
from sklearn_xc._name_lists import check_separator


def of_mapping(parents: Any, labels: Any, who: str) -> tuple[list, np.ndarray]:
    """Return names and edges of a mapping from each name to its parents.

    Parameters
    ----------
    parents : mapping, or object with ``items()``
        Of names to a name, several, or None.
    labels : array-like of shape (n_labels,) or None
        Names that come first.
    who : str
        For messages.

    Returns
    -------
    names : list of str or int
    edges : ndarray of int64 of shape (n_edges, 2)
    """
    children, pairs = [], []
    for child, given in parents.items():
        children.append(child)
        pairs += [(child, parent) for parent in _parents_of(given)]
    return _numbered(_listed(labels, who), children, pairs, who)


def of_positions(parents: Any, labels: Any, who: str) -> tuple[list, np.ndarray]:
    """Return names and edges of an array that holds the position of each node's parent.

    Parameters
    ----------
    parents : array-like of int of shape (n_nodes,)
        -1 for none.
    labels : array-like of shape (n_nodes,) or None
        Names of the nodes; None for their numbers.
    who : str
        For messages.
    """
    expected = (
        f"{who}: parents must be a mapping of names to names, or an array of the position of each "
        "node's parent, -1 for none"
    )
    refuse_disguised(parents, f"{who}: parents")
    if sp.issparse(parents) or isinstance(parents, str | bytes):
        raise TypeError(f"{expected}. Got {type(parents).__name__}.")
    try:
        array = np.asarray(parents)
    except ValueError as error:
        raise ValueError(f"{expected}. Got rows of unequal length.") from error
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{expected}. Got shape {array.shape} and dtype {array.dtype}.")
    outside = (array < -1) | (array >= len(array))
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(f"{expected}, of {len(array)} nodes. Got {array[at]} for node {at}.")
    array = array.astype(np.int64)
    children = np.flatnonzero(array >= 0)
    names = np.arange(len(array)) if labels is None else labels
    names = check_label_names(names, len(array), f"{who}: labels").tolist()
    return names, np.column_stack([children, array[children]])


def of_pairs(edges: Any, labels: Any, who: str) -> tuple[list, np.ndarray]:
    """Return names and edges of pairs of a child's name and a parent's.

    Parameters
    ----------
    edges : iterable of (child, parent), or array-like of shape (n_edges, 2)
    labels : array-like of shape (n_labels,) or None
        Names that come first.
    who : str
        For messages.
    """
    expected = f"{who}: edges must be pairs of a child's name and the name of one of its parents"
    refuse_disguised(edges, f"{who}: edges")
    if sp.issparse(edges) or isinstance(edges, str | bytes | Mapping):
        raise TypeError(f"{expected}. Got {type(edges).__name__}.")
    if hasattr(edges, "to_numpy"):  # a data frame, which iterates over its columns
        edges = edges.to_numpy()
    if not isinstance(edges, Iterable):
        raise TypeError(f"{expected}. Got {edges!r}.")
    pairs = []
    for number, pair in enumerate(edges.tolist() if isinstance(edges, np.ndarray) else edges):
        if isinstance(pair, str) or not isinstance(pair, Iterable) or len(tuple(pair)) != 2:
            raise ValueError(f"{expected}. Got {pair!r} at {number}.")
        pairs.append(tuple(pair))
    return _numbered(_listed(labels, who), [], pairs, who)


def of_paths(paths: Any, separator: Any, labels: Any, who: str) -> tuple[list, np.ndarray]:
    """Return names and edges of paths such as "plants/trees/oak".

    Parameters
    ----------
    paths : iterable of n_paths str
    separator : str
    labels : array-like of shape (n_paths,) or None
        The label at the end of each path; None for the paths themselves.
    who : str
        For messages.
    """
    if check_separator(separator, who) is None:
        raise ValueError(f"{who}: separator must be a text such as '/'. Got None.")
    expected = f"{who}: paths must be texts such as 'plants{separator}oak'"
    if isinstance(paths, str | bytes | Mapping) or not isinstance(paths, Iterable):
        raise TypeError(f"{expected}. Got {paths!r}.")
    listed = list(paths)
    ends = listed if labels is None else _listed(labels, who, distinct=False)
    if len(ends) != len(listed):
        raise ValueError(
            f"{who}: labels must be {len(listed)} names, one for each path. Got {len(ends)}."
        )
    places = {} if labels is None else _places(ends, who)
    names = listed if labels is None else list(places)
    known: dict[str, int] = {}
    for number, path in enumerate(listed):
        if not isinstance(path, str):
            raise ValueError(f"{expected}. Got {path!r} at {number}.")
        place = number if labels is None else places[ends[number]]
        if path in known:
            of = "" if labels is None else f", for {names[known[path]]!r} and for {names[place]!r}"
            raise ValueError(f"{who}: paths must be distinct. Got {path!r} more than once{of}.")
        known[path] = place
    inner: list[str] = []
    edges: list[int] = []
    for path in listed:
        child, is_new = path, True
        while is_new:
            above, _, last = child.rpartition(separator)
            above = above.rstrip()
            if not last.strip():
                raise ValueError(f"{expected}, without empty parts. Got {path!r}.")
            if not above:
                break
            is_new = above not in known
            if is_new:
                known[above] = len(names) + len(inner)
                inner.append(above)
            edges += (known[child], known[above])
            child = above
    both = next((path for path in inner if path in places), None)
    if both is not None:
        raise ValueError(
            f"{who}: labels must not be called as the beginning of a path that has no label. Got "
            f"{both!r}."
        )
    return [*names, *inner], _distinct(np.array(edges, np.int64).reshape(-1, 2))


def _distinct(edges: np.ndarray) -> np.ndarray:
    """Return each edge once; a label with several paths may be below itself, which is no edge."""
    edges = edges[edges[:, 0] != edges[:, 1]]
    width = 1 + int(edges.max(initial=0))
    return np.column_stack(np.divmod(np.unique(edges[:, 0] * width + edges[:, 1]), width))


def _parents_of(given: Any) -> list:
    if given is None or (isinstance(given, float) and given != given):
        return []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def _listed(labels: Any, who: str, *, distinct: bool = True) -> list:
    """Return names that the caller gave, as a list."""
    if labels is None:
        return []
    if distinct:
        return check_label_names(labels, None, f"{who}: labels").tolist()
    refuse_disguised(labels, f"{who}: labels")
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise TypeError(f"{who}: labels must be names, one for each path. Got {labels!r}.")
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def _numbered(
    first: list, children: list, pairs: list[tuple[Any, Any]], who: str
) -> tuple[list, np.ndarray]:
    """Return all names, each once in the order in which they come, and edges by their positions."""
    flat = [name for pair in pairs for name in pair]
    places = _places([*first, *children, *flat], who)
    edges = np.fromiter((places[name] for name in flat), np.int64, len(flat))
    return list(places), edges.reshape(-1, 2)


def _places(names: list, who: str) -> dict[Any, int]:
    """Return the position of each name, in the order in which they come first."""
    try:
        places = {name: at for at, name in enumerate(dict.fromkeys(names))}
    except TypeError as error:
        raise TypeError(f"{who}: names must be texts or integers. Got an {error}.") from error
    check_label_names(list(places), len(places), f"{who}: the names of nodes")
    return places

"""Indicators and rankings with ancestors, and without, in pieces of rows.

``ancestors`` is the matrix of :class:`LabelHierarchy`, canonical.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import as_native, refuse_disguised
from sklearn_xc._sparse_input import check_sparse
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.row_ranges import cut_rows

#: Pairs of an entry and a node above it that are made at a time; sorted scores take 60 bytes each.
_TOGETHER = 1 << 20


def read_indicator(Y: Any, n_nodes: int, who: str) -> sp.csr_array:
    """Return an indicator as a canonical CSR of bool with a column for each node.

    Parameters
    ----------
    Y : {array-like, sparse matrix} of shape (n, n_labels)
        Of 0 and 1, with at most `n_nodes` columns.
    n_nodes : int
    who : str
        For messages.

    Raises
    ------
    ValueError, TypeError
        For anything else.
    """
    csr = _read(Y, n_nodes, "biuf", f"{who}: Y", "an indicator of 0 and 1")
    wrong = np.flatnonzero((csr.data != 0) & (csr.data != 1))
    if wrong.size:
        at = int(wrong[0])
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        raise ValueError(
            f"{who}: Y must be an indicator of 0 and 1. Got {csr.data[at]} at row {row}, column "
            f"{csr.indices[at]} (repeated sparse entries are added up)."
        )
    csr.eliminate_zeros()
    return csr.astype(bool)


def read_scores(scores: Any, n_nodes: int, who: str) -> sp.csr_array:
    """Return sparse scores as a canonical CSR with a column for each node; zeros stay stored."""
    if not sp.issparse(scores):
        raise TypeError(
            f"{who}: scores must be a sparse matrix, as decision_function gives after a sparse "
            f"fit. Got {type(scores).__name__}. For others there is consistent_topk."
        )
    csr = _read(scores, n_nodes, "iuf", f"{who}: scores", "scores")
    if np.isnan(csr.data).any():
        at = int(np.isnan(csr.data).argmax())
        row = int(np.searchsorted(csr.indptr, at, side="right")) - 1
        raise ValueError(f"{who}: scores must be numbers. Got NaN in row {row}.")
    return csr


def _read(matrix: Any, n_nodes: int, kinds: str, name: str, expected: str) -> sp.csr_array:
    check_sparse(matrix, name)
    refuse_disguised(matrix, name)
    if not sp.issparse(matrix):
        try:
            matrix = as_native(matrix)
        except ValueError as error:
            raise ValueError(f"{name} must be {expected}. Got rows of unequal length.") from error
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be {expected}, of 2 dimensions. Got shape {matrix.shape}.")
    if matrix.dtype.kind not in kinds:
        raise ValueError(f"{name} must be {expected}. Got dtype {matrix.dtype}.")
    if matrix.shape[1] > n_nodes:
        raise ValueError(
            f"{name} must have at most {n_nodes} columns, one for each node of the hierarchy. Got "
            f"shape {matrix.shape}."
        )
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.int64)  # in which repeated entries add up
    csr = sp.csr_array(matrix)
    # A new one, which knows nothing of the order that its arrays may be said to have.
    parts = (csr.data, csr.indices, csr.indptr)
    csr = sp.csr_array(parts, shape=(matrix.shape[0], n_nodes), copy=True)
    csr.sum_duplicates()
    return csr


def with_ancestors(Y: sp.csr_array, ancestors: sp.csr_array) -> sp.csr_array:
    """Return an indicator in which the ancestors of each row's nodes are added.

    Parameters
    ----------
    Y : csr_array of bool of shape (n, n_nodes)
    ancestors : csr_array of bool of shape (n_nodes, n_nodes)

    Returns
    -------
    csr_array of bool of shape (n, n_nodes)
        Canonical.
    """
    return _in_pieces(Y, ancestors, lambda part: part @ ancestors + part)


def deepest(Y: sp.csr_array, ancestors: sp.csr_array) -> sp.csr_array:
    """Return an indicator without the nodes above another one of their row."""

    def without(part: sp.csr_array) -> sp.csr_array:
        above = part.multiply(part @ ancestors)
        kept = part.astype(np.int8) - above.astype(np.int8)
        kept.eliminate_zeros()
        return kept.astype(bool)

    return _in_pieces(Y, ancestors, without)


def _in_pieces(Y: sp.csr_array, ancestors: sp.csr_array, change: Callable) -> sp.csr_array:
    parts, n_entries = [], 0
    for first, last in _pieces(Y, ancestors):
        parts.append(sp.csr_array(change(Y[first:last])))
        n_entries += parts[-1].nnz
        if len(parts) > 1:
            require_bytes(
                2 * 9 * n_entries, None, f"an indicator of {last} rows with ancestors",
                "Take fewer rows at a time.", "LabelHierarchy",
            )  # fmt: skip
    whole = sp.vstack(parts, format="csr") if len(parts) > 1 else parts[0] if parts else Y.copy()
    whole.sort_indices()
    return whole


def _pieces(Y: sp.csr_array, ancestors: sp.csr_array) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about as many pairs of an entry and a node above it."""
    of_entries = 1 + np.diff(ancestors.indptr).astype(np.int64)[Y.indices]
    return cut_rows(np.concatenate([[0], np.cumsum(of_entries)])[Y.indptr], _TOGETHER)


def consistent(scores: sp.csr_array, ancestors: sp.csr_array) -> Iterator[sp.csr_array]:
    """Yield scores, piece by piece of their rows, in which no node scores above its ancestors.

    Parameters
    ----------
    scores : csr_array of float of shape (n, n_nodes)
        Canonical; what is not stored is not scored.
    ancestors : csr_array of bool of shape (n_nodes, n_nodes)

    Yields
    ------
    csr_array of float of shape (n_rows, n_nodes)
        Each scored node and its ancestors, with the largest of what they and the nodes below them
        score. Canonical.
    """
    n_nodes = scores.shape[1]
    counts = np.diff(ancestors.indptr).astype(np.int64)
    for first, last in _pieces(scores, ancestors):
        piece = slice(scores.indptr[first], scores.indptr[last])
        nodes, values = scores.indices[piece].astype(np.int64), scores.data[piece]
        rows = np.repeat(np.arange(last - first), np.diff(scores.indptr[first : last + 1]))
        n_above = counts[nodes]
        entry = np.repeat(np.arange(len(nodes)), n_above)
        # The place of each ancestor in its node's row, 0, 1, ...
        place = np.arange(len(entry)) - np.repeat(np.cumsum(n_above) - n_above, n_above)
        above = ancestors.indices[ancestors.indptr[nodes[entry]] + place]
        keys = np.concatenate([rows * n_nodes + nodes, rows[entry] * n_nodes + above])
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], np.concatenate([values, values[entry]])[order]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        if len(starts):
            values = np.maximum.reduceat(values, starts)
        rows, nodes = np.divmod(keys[starts], n_nodes)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=last - first))])
        yield sp.csr_array((values, nodes, indptr), shape=(last - first, n_nodes))


def ranked(scores: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best nodes of each row and their scores, padded with -1 and -inf.

    Parameters
    ----------
    scores : csr_array of float of shape (n, n_nodes)
        Canonical; ties go to the smaller node.
    k : int
    """
    n = scores.shape[0]
    rows = np.repeat(np.arange(n), np.diff(scores.indptr))
    order = np.lexsort((-scores.data, rows))  # stable: columns rise within a row
    rank = np.arange(len(rows)) - scores.indptr[rows]
    best = rank < k
    labels, found = np.full((n, k), -1), np.full((n, k), -np.inf, scores.dtype)
    labels[rows[best], rank[best]] = scores.indices[order][best]
    found[rows[best], rank[best]] = scores.data[order][best]
    return labels, found


def as_pairs(labels: Any, scores: Any, n_nodes: int, who: str) -> sp.csr_array:
    """Return a ranking as sparse scores: a node that comes twice in a row has the larger one.

    Raises
    ------
    ValueError, TypeError
        For other shapes, kinds and positions, and NaN.
    """
    expected = f"{who}: labels and scores must be two arrays of shape (n, k), as topk returns them"
    for name, value in (("labels", labels), ("scores", scores)):
        refuse_disguised(value, f"{who}: {name}")
        if sp.issparse(value):
            raise TypeError(
                f"{expected}. Got a sparse matrix as {name}: there is consistent_scores."
            )
    try:
        labels, scores = as_native(labels), as_native(scores)
    except ValueError as error:
        raise ValueError(f"{expected}. Got rows of unequal length.") from error
    if labels.ndim != 2 or labels.shape != scores.shape:
        raise ValueError(f"{expected}. Got shapes {labels.shape} and {scores.shape}.")
    if labels.dtype.kind not in "iu" or scores.dtype.kind not in "iuf":
        raise ValueError(f"{expected}. Got dtypes {labels.dtype} and {scores.dtype}.")
    outside = (labels < -1) | (labels >= n_nodes)
    if outside.any():
        row, rank = np.argwhere(outside)[0]
        raise ValueError(
            f"{who}: labels must be positions of the {n_nodes} nodes, or -1. Got "
            f"{labels[row, rank]} in row {row}."
        )
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    there = labels >= 0
    if np.isnan(scores[there]).any():
        row = int((np.isnan(scores) & there).any(axis=1).argmax())
        raise ValueError(f"{who}: scores must be numbers. Got NaN in row {row}.")
    rows = np.nonzero(there)[0]
    order = np.lexsort((-scores[there], labels[there], rows))
    rows, nodes, values = rows[order], labels[there][order].astype(np.int64), scores[there][order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]) | (nodes[1:] != nodes[:-1])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[new], minlength=len(labels)))])
    return sp.csr_array((values[new], nodes[new], indptr), shape=(len(labels), n_nodes))

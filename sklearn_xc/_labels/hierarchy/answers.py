"""Indicators and rankings with and without ancestors; ``ancestors`` is canonical."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import as_native, refuse_masks_and_dates
from sklearn_xc._input.data import check_sparse
from sklearn_xc.metrics.check import canonical_csr


def read_indicator(Y: Any, n_nodes: int, name: str) -> sp.csr_array:
    """Return an indicator of 0 and 1 as a canonical CSR of bool with a column for each node."""
    csr = _read(Y, n_nodes, "biuf", name)
    wrong = np.flatnonzero((csr.data != 0) & (csr.data != 1))
    if wrong.size:
        raise ValueError(f"{name} must be an indicator of 0 and 1. Got {csr.data[wrong[0]]}.")
    csr.eliminate_zeros()
    return csr.astype(bool)


def read_scores(scores: Any, n_nodes: int, name: str) -> sp.csr_array:
    """Return sparse scores as a canonical CSR with a column for each node; zeros stay stored."""
    if not sp.issparse(scores):
        raise TypeError(
            f"{name} must be a sparse matrix, as decision_function returns after a sparse fit. Got "
            f"{type(scores).__name__}. For rankings, use consistent_topk."
        )
    csr = _read(scores, n_nodes, "iuf", name)
    if np.isnan(csr.data).any():
        raise ValueError(f"{name} must not hold NaN.")
    return csr


def _read(matrix: Any, n_nodes: int, kinds: str, name: str) -> sp.csr_array:
    check_sparse(matrix, name)
    refuse_masks_and_dates(matrix, name)
    matrix = matrix if sp.issparse(matrix) else as_native(matrix)
    if matrix.ndim != 2 or matrix.shape[1] > n_nodes:
        raise ValueError(
            f"{name} must be a matrix with at most {n_nodes} columns, one for each node of the "
            f"hierarchy. Got shape {matrix.shape}."
        )
    if matrix.dtype.kind not in kinds:
        raise ValueError(f"{name} must be an indicator or scores. Got dtype {matrix.dtype}.")
    csr = canonical_csr(matrix if sp.issparse(matrix) else sp.csr_array(matrix))
    parts = (csr.data, csr.indices, csr.indptr)
    return sp.csr_array(parts, shape=(matrix.shape[0], n_nodes), copy=True)


def with_ancestors(Y: sp.csr_array, ancestors: sp.csr_array) -> sp.csr_array:
    """Return an indicator (bool, canonical) with the ancestors of each row's nodes added."""
    added = sp.csr_array(Y @ ancestors + Y)
    added.sort_indices()
    return added


def deepest(Y: sp.csr_array, ancestors: sp.csr_array) -> sp.csr_array:
    """Return an indicator without the nodes above another node of their row."""
    above = Y.multiply(Y @ ancestors)
    kept = sp.csr_array(Y.astype(np.int8) - above.astype(np.int8))
    kept.eliminate_zeros()
    kept.sort_indices()
    return kept.astype(bool)


def consistent(scores: sp.csr_array, ancestors: sp.csr_array) -> sp.csr_array:
    """Return scores in which each node scores as high as any node below it.

    Parameters
    ----------
    scores : csr_array of float of shape (n, n_nodes)
        Canonical; entries that are not stored are not scored.
    ancestors : csr_array of bool of shape (n_nodes, n_nodes)

    Returns
    -------
    csr_array of float of shape (n, n_nodes)
        Canonical: each scored node and its ancestors.
    """
    n, n_nodes = scores.shape
    nodes = scores.indices.astype(np.int64)
    values = scores.data
    rows = np.repeat(np.arange(n), np.diff(scores.indptr))
    above = ancestors[nodes]
    entry = np.repeat(np.arange(len(nodes)), np.diff(above.indptr))
    keys = np.concatenate([rows * n_nodes + nodes, rows[entry] * n_nodes + above.indices])
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], np.concatenate([values, values[entry]])[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if len(starts):
        keys, values = keys[starts], np.maximum.reduceat(values, starts)
    rows, nodes = np.divmod(keys, n_nodes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return sp.csr_array((values, nodes, indptr), shape=(n, n_nodes))


def read_ranking(labels: Any, scores: Any, n_nodes: int, caller: str) -> sp.csr_array:
    """Return a ranking as sparse scores."""
    expected = (
        f"{caller}: labels and scores must be two arrays of shape (n, k), as topk returns them"
    )
    for name, value in (("labels", labels), ("scores", scores)):
        refuse_masks_and_dates(value, f"{caller}: {name}")
        if sp.issparse(value):
            raise TypeError(f"{expected}. Got a sparse matrix: use consistent_scores.")
    labels, scores = as_native(labels), as_native(scores)
    if labels.ndim != 2 or labels.shape != scores.shape:
        raise ValueError(f"{expected}. Got shapes {labels.shape} and {scores.shape}.")
    if labels.dtype.kind not in "iu" or scores.dtype.kind not in "iuf":
        raise ValueError(f"{expected}. Got dtypes {labels.dtype} and {scores.dtype}.")
    outside = (labels < -1) | (labels >= n_nodes)
    if outside.any():
        raise ValueError(
            f"{caller}: labels must be positions of the {n_nodes} nodes, or -1. Got "
            f"{labels[outside][0]}."
        )
    there = labels >= 0
    scores = scores if scores.dtype.kind == "f" else scores.astype(np.float64)
    if np.isnan(scores[there]).any():
        raise ValueError(f"{caller}: scores must not hold NaN.")
    entries = (scores[there], (np.nonzero(there)[0], labels[there].astype(np.int64)))
    ranking = sp.csr_array(entries, shape=(len(labels), n_nodes))
    if ranking.nnz < np.count_nonzero(there):
        raise ValueError(f"{caller}: labels must be distinct within a row.")
    ranking.sort_indices()
    return ranking

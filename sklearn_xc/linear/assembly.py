"""From label columns to distinct problems, and from block solutions back to one weight matrix."""

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc.kernels.rows.csr_order import copy_rows
from sklearn_xc.parallel.spill import maker, release

#: Weights are assembled so many at a time.
WEIGHTS_AT_A_TIME = 2**24


def group_identical_labels(
    y_indptr: np.ndarray, y_rows: np.ndarray, plus: np.ndarray, minus: np.ndarray
) -> np.ndarray:
    """Return for each label the last label that poses the same problem.

    On long-tailed data many labels occur on the same single instance, or on none: a quarter of the
    Tate subjects' columns repeat another one.

    Parameters
    ----------
    y_indptr, y_rows : ndarray of int64 (L + 1,) and int32
        Positive rows of each label, sorted.
    plus, minus : ndarray of float64 of shape (L,)
        Loss weights of each label.

    Returns
    -------
    ndarray of int64 of shape (L,)
        Equal for equal problems.
    """
    last: dict[tuple[bytes, float, float], int] = {}
    group = np.empty(len(plus), np.int64)
    for label in range(len(plus) - 1, -1, -1):
        rows = y_rows[y_indptr[label] : y_indptr[label + 1]].tobytes()
        group[label] = last.setdefault((rows, plus[label], minus[label]), label)
    return group


def in_callers_features(solution: Any, columns: np.ndarray) -> Any:
    """Return a BlockSolution, its weights changed to the features of the caller's X, rising.

    Parameters
    ----------
    solution : BlockSolution
        Over the features of a problem.
    columns : ndarray of int32 of shape (n_features,)
        The caller's number for each of them.
    """
    shape = len(solution.labels), len(columns)
    arrays = solution.values, columns[solution.indices], solution.indptr
    # Two transpositions sort the features of each label.
    rows = sp.csr_array(arrays, shape=shape).tocsc().tocsr()
    solution.indptr, solution.indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
    solution.values = rows.data
    return solution


def assemble_weights(
    solutions: list[Any],
    row_of_label: np.ndarray,
    n_features: int,
    room: int | None = None,
    owner: str = "",
) -> sp.csr_array:
    """Stack the rows of all blocks in the order of the labels; the blocks are emptied on the way.

    The weights are written from the first label to the last, and the rows that no later label needs
    are given back on the way, so that weights are held about once: blocks have their labels in
    rising order, and of labels that share a row the last stands for all.

    Parameters
    ----------
    solutions : list of BlockSolution
        Emptied.
    row_of_label : ndarray of int64 of shape (n_labels,)
        Each label's row in the stacked solutions.
    n_features : int
        Columns.
    room : int or None, default=None
        Weights of more bytes go to files.
    owner : str, default=""
        The estimator that messages name.

    Returns
    -------
    csr_array of shape (n_labels, n_features)
        With sorted indices.
    """
    lengths = np.concatenate([np.diff(s.indptr) for s in solutions])[row_of_label]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    nnz, dtype = int(indptr[-1]), solutions[0].values.dtype
    empty = maker(room is not None and nnz * (4 + dtype.itemsize) > room, owner)
    indices, values = empty(nnz, np.int32), empty(nnz, dtype)
    edges = np.cumsum([0] + [len(block.labels) for block in solutions])
    needed = _needed_until(row_of_label, edges)
    cuts = np.searchsorted(indptr, np.arange(WEIGHTS_AT_A_TIME, indptr[-1], WEIGHTS_AT_A_TIME))
    for first, stop in itertools.pairwise(np.unique([0, *cuts, len(row_of_label)])):
        order = first + np.argsort(row_of_label[first:stop], kind="stable")
        limits = np.searchsorted(row_of_label[first:stop], edges, sorter=order - first)
        for b, block in enumerate(solutions):
            labels = order[limits[b] : limits[b + 1]]
            copy_rows(
                block.indptr, block.indices, block.values, row_of_label[labels] - edges[b], labels,
                indptr, indices, values,
            )  # fmt: skip
            n_gone = int(block.indptr[np.searchsorted(needed[b], stop)])
            release(block.indices, n_gone)
            release(block.values, n_gone)
    solutions.clear()
    if indptr[-1] <= np.iinfo(np.int32).max:  # else scipy makes indices as wide as indptr
        indptr = indptr.astype(np.int32)
    return sp.csr_array((values, indices, indptr), shape=(len(row_of_label), n_features))


def _needed_until(row_of_label: np.ndarray, edges: np.ndarray) -> list[np.ndarray]:
    """Return for each row of each block the last label that needs it, or a row before it."""
    last = np.full(edges[-1], -1)
    np.maximum.at(last, row_of_label, np.arange(len(row_of_label)))
    return [np.maximum.accumulate(last[first:stop]) for first, stop in itertools.pairwise(edges)]

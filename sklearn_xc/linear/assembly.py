"""From label columns to distinct problems, and from block solutions back to one weight matrix."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def group_identical_labels(
    y_indptr: np.ndarray, y_rows: np.ndarray, plus: np.ndarray, minus: np.ndarray
) -> np.ndarray:
    """Return for each label the first label that poses the same problem.

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
    first: dict[tuple[bytes, float, float], int] = {}
    group = np.empty(len(plus), np.int64)
    for label in range(len(plus)):
        rows = y_rows[y_indptr[label] : y_indptr[label + 1]].tobytes()
        group[label] = first.setdefault((rows, plus[label], minus[label]), label)
    return group


def assemble_weights(
    solutions: list[Any], row_of_label: np.ndarray, columns: np.ndarray
) -> sp.csr_array:
    """Stack the rows of all blocks in the order of the labels and of the caller's features.

    Parameters
    ----------
    solutions : list of BlockSolution
        Emptied on the way, so that weights are held about once.
    row_of_label : ndarray of int64 of shape (n_labels,)
        Each label's row in the stacked solutions.
    columns : ndarray of int32 of shape (n_features,)
        The caller's number for each feature of the solutions.

    Returns
    -------
    csr_array of shape (n_labels, n_features)
        With sorted indices.
    """
    lengths = np.concatenate([np.diff(s.indptr) for s in solutions])[row_of_label]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    indices = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1], solutions[0].values.dtype)
    labels_by_row = np.argsort(row_of_label, kind="stable")
    ends = np.cumsum(np.bincount(row_of_label))
    row = 0
    while solutions:
        block = solutions.pop(0)
        shape = (len(block.labels), len(columns))
        weights = sp.csr_array((block.values, columns[block.indices], block.indptr), shape=shape)
        weights = weights.tocsc().tocsr()  # sorts the indices of each row in linear time
        for r in range(len(block.labels)):
            start, stop = weights.indptr[r], weights.indptr[r + 1]
            for label in labels_by_row[ends[row - 1] if row else 0 : ends[row]]:
                indices[indptr[label] : indptr[label + 1]] = weights.indices[start:stop]
                values[indptr[label] : indptr[label + 1]] = weights.data[start:stop]
            row += 1
    return sp.csr_array((values, indices, indptr), shape=(len(row_of_label), len(columns)))

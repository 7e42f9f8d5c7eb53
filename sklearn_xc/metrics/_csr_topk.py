"""From sparse scores to the positions of the best ones."""

from typing import Any

import numpy as np

from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.parallel.row_ranges import cut_rows

# Fewer positions are allocated without a look at the memory that is left.
_SMALL_RESULT = 1 << 22
# Stored scores sorted at a time: keys, order and ranks of 4 Mi entries take about 150 MB.
_BLOCK_ENTRIES = 1 << 22


def topk_of_csr(scores: Any, k: int) -> np.ndarray:
    """Return the columns of the `k` best stored scores of each row.

    Missing entries are not scores, stored zeros are; equal scores go to the smaller column.

    Parameters
    ----------
    scores : csr_array of shape (n_rows, n_columns), without NaN
        The columns of a row may come in any order.
    k : int

    Returns
    -------
    ndarray of shape (n_rows, k), int64
        Best first, padded with -1.

    Notes
    -----
    O(nnz log nnz) time; memory beside the result is bounded by a constant number of entries or by
    the longest row, as long as the columns of each row are in order; else the scores are copied.
    """
    if not scores.has_sorted_indices:
        scores = scores.sorted_indices()  # a copy
    # Unsigned integers have no negatives to sort by.
    data = scores.data if scores.data.dtype.kind == "f" else scores.data.astype(np.float64)
    indptr = scores.indptr.astype(np.int64)
    n_entries = (len(indptr) - 1) * k
    if n_entries > _SMALL_RESULT:
        require_bytes(
            8 * n_entries, None, f"the ranks of {len(indptr) - 1} rows x k={k}", "Lower k."
        )
    positions = np.full((len(indptr) - 1, k), -1, dtype=np.int64)
    for start, stop in cut_rows(indptr, _BLOCK_ENTRIES):
        entries = slice(indptr[start], indptr[stop])
        rows = np.repeat(np.arange(start, stop), np.diff(indptr[start : stop + 1]))
        # Stable, so that equal scores stay in the order of their columns. The rows were in order
        # already: entries move only within their row.
        order = np.lexsort((-data[entries], rows))
        rank = np.arange(indptr[start], indptr[stop]) - indptr[rows]
        best = rank < k
        positions[rows[best], rank[best]] = scores.indices[entries][order[best]]
    return positions

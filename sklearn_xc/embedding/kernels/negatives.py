"""Negatives of instances: candidates of a search that are not their positives."""

import numpy as np

from sklearn_xc._compile.jit import kernel


@kernel
def drop_positives(candidates, rows, indptr, labels, out):
    """Write the best candidates of some instances that are not their positives.

    Parameters
    ----------
    candidates : ndarray of int32 of shape (m, n_candidates)
        Best first, padded with -1.
    rows : ndarray of int64 of shape (m,)
        Instances.
    indptr, labels : ndarray of int64 and int32
        The positives of all instances, CSR; ascending in each row.
    out : ndarray of int32 of shape (n, n_kept)
        Its rows `rows` are overwritten; the rest of each is -1.
    """
    n_kept = out.shape[1]
    for r in range(rows.shape[0]):
        i = rows[r]
        kept = 0
        own = labels[indptr[i] : indptr[i + 1]]
        for c in range(candidates.shape[1]):
            label = candidates[r, c]
            if kept == n_kept:
                break
            at = np.searchsorted(own, label)
            if label >= 0 and (at == own.shape[0] or own[at] != label):
                out[i, kept] = label
                kept += 1
        for c in range(kept, n_kept):
            out[i, c] = -1

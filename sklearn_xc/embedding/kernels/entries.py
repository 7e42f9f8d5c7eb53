"""Entries of sparse rows: taken together from several matrices, and left out at random."""

from sklearn_xc._compile.jit import kernel


@kernel
def copy_entries(starts, counts, ids, values, at, out_ids, out_values):
    """Write the entries of rows one after another, and return where they end.

    Parameters
    ----------
    starts, counts : ndarray of int64 of shape (n,)
        Where the entries of each row are.
    ids : ndarray of int32
    values : ndarray of float
    at : int
        Where the first entry goes.
    out_ids, out_values : ndarray
        Of the same types; overwritten there.
    """
    for i in range(starts.shape[0]):
        for t in range(starts[i], starts[i] + counts[i]):
            out_ids[at], out_values[at] = ids[t], values[t]
            at += 1
    return at


@kernel
def thin_entries(starts, counts, ids, values, draws, dropout, scale):
    """Leave entries out, and multiply the others by `scale`; return how many are left.

    Parameters
    ----------
    starts, counts : ndarray of int64 of shape (n,)
        Where the entries of each row are: one row after another, from 0 on. Changed.
    ids : ndarray of int32
        Changed: the leading ones are left.
    values : ndarray of float
        Changed likewise.
    draws : ndarray of float32
        Of each entry, in [0, 1): it is left out where this is below `dropout`.
    dropout : float32
    scale : float
    """
    n_kept = 0
    for i in range(starts.shape[0]):
        first = n_kept
        for t in range(starts[i], starts[i] + counts[i]):
            # Written in any case, without a branch that no processor foresees: never beyond t.
            ids[n_kept], values[n_kept] = ids[t], scale * values[t]
            n_kept += 1 if draws[t] >= dropout else 0
        starts[i], counts[i] = first, n_kept - first
    return n_kept

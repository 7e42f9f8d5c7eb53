"""Rows as encoders read them: without stored zeros, of numbers whose squares are numbers."""

import numpy as np

from sklearn_xc._data import CsrRows

#: Smaller values are zeros, larger ones are refused: squares, sums of them, and products with
#: weights stay in the range of the dtype.
RANGES = {np.dtype(np.float32): (1e-15, 1e15), np.dtype(np.float64): (1e-100, 1e100)}


def readable_rows(
    rows: CsrRows, name: str, *, is_training: bool, dtype: np.dtype | None = None
) -> CsrRows:
    """Return rows without zeros, stored ones and those that are zeros in effect.

    Parameters
    ----------
    rows : CsrRows of shape (n, n_features)
        Checked: finite.
    name : str
        The argument's name for the message, with the estimator's before it.
    is_training : bool
        Whether a model learns from them: then no row may lose all of its values.
    dtype : numpy.float32 or numpy.float64, default=None
        In which they come back; None for the one that they have.

    Raises
    ------
    ValueError
        For values above those of `RANGES`; if a model is to learn from them also for a row whose
        values are all below.
    """
    rows, dtype = rows.without_zeros(), rows.dtype if dtype is None else dtype
    if not len(rows.data):
        return rows.astype(dtype)
    smallest, largest = RANGES[dtype]
    sizes = np.abs(rows.data)
    if sizes.max() > largest:
        at = int(sizes.argmax())
        row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        raise ValueError(
            f"{name} must have values up to {largest:g} in {dtype}. Got {rows.data[at]:g} in "
            f"row {row}. Scale all of them (sklearn.preprocessing.MaxAbsScaler)."
        )
    is_kept = sizes >= smallest
    if is_kept.all():
        return rows.astype(dtype)
    data = np.where(is_kept, rows.data, 0).astype(rows.dtype)
    kept = CsrRows(rows.indptr, rows.indices, data, rows.shape).without_zeros()
    lost = np.flatnonzero((np.diff(kept.indptr) == 0) & (np.diff(rows.indptr) > 0))
    if is_training and lost.size:
        raise ValueError(
            f"{name} must have a value of at least {smallest:g} in {dtype} in each row that "
            f"is not empty. Got {rows.data[rows.indptr[lost[0]]]:g} in row {lost[0]}. Scale all "
            "values (sklearn.preprocessing.MaxAbsScaler)."
        )
    return kept.astype(dtype)

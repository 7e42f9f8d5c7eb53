"""Sums of the instances of each class."""

import numpy as np

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.kernels.csr_rows import add_row


@kernel
def add_class_sums(X, rows, classes, weight, out):
    """Add ``weight[i] * x_rows[i]`` to ``out[classes[i]]``, for each pair i in turn.

    Parameters
    ----------
    X : tuple of ndarray
        CSR rows.
    rows, classes : ndarray of int32 of shape (n,)
        The pairs.
    weight : ndarray of float64 of shape (n,)
        Of each.
    out : ndarray of shape (n_classes, n_features)
        Added to.
    """
    for pair in range(np.uint64(rows.shape[0])):
        real = out.dtype.type(weight[pair])
        add_row(X, np.uint64(rows[pair]), real, out[np.uint64(classes[pair])])

"""Sums over rows of X."""

import functools
from types import ModuleType
from typing import Any

import numpy as np

from sklearn_xc._compile.jit import kernel


@functools.cache
def row_sums_kernel(rows_of: ModuleType) -> Any:
    """Return ``add_rows`` for one kind of rows: ``csr_rows`` or ``dense_rows``."""
    add_row = rows_of.add_row

    @kernel
    def add_rows(X, rows, weight, out):
        """Add the weighted sum of some rows, and of a constant feature behind them, to `out`.

        Parameters
        ----------
        X : tuple of ndarray
            Rows of length d, as `rows_of` reads them.
        rows : ndarray of int32
            Which of them.
        weight : ndarray of shape (n,)
            Weight of each row of X.
        out : ndarray of float64 of shape (d + 1,)
            Added to.
        """
        d = out.shape[0] - 1
        for r in range(rows.shape[0]):
            i = np.uint32(rows[r])
            w = np.float64(weight[i])
            add_row(X, i, w, out[:d])
            out[d] += w

    return add_rows


@functools.cache
def square_sums_kernel(rows_of: ModuleType) -> Any:
    """Return ``add_squares`` for one kind of rows: ``csr_rows`` or ``dense_rows``."""
    add_row_and_squares = rows_of.add_row_and_squares

    @kernel
    def add_squares(X, weight, sums, squares):
        """Add the weighted sum of all rows, and of their squares, to `sums` and `squares`.

        Parameters
        ----------
        X : tuple of ndarray
            Rows of length d, as `rows_of` reads them.
        weight : ndarray of shape (n,)
            Weight of each row.
        sums, squares : ndarray of float64 of shape (d,)
            Added to.
        """
        for i in range(np.uint32(weight.shape[0])):
            w = np.float64(weight[i])
            add_row_and_squares(X, i, w, w, sums, squares)

    return add_squares

"""Checked X and y.

Instances are canonical CSR (sorted, without duplicates, int64 ``indptr``, int32 ``indices``,
float32 or float64 ``data``) or, in a fit, a dense array; targets are the positive rows of each
binary problem. The caller's arrays are never changed: these are read-only.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.sparse import rows_are_canonical
from sklearn_xc._state.schema import Array, Shape, declares

#: A dense X with a smaller share of non-zeros is trained on as a sparse one: that is faster.
DENSE_SHARE = 0.2


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of `array`.

    A kernel is compiled anew for each combination of arguments that may and may not be written, not
    always to the same roundings. All inputs go through here, so that it makes no difference whether
    the caller's arrays, or those that joblib gives to its workers, are read-only maps of files.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


@declares(
    shape=Shape("rows", "columns"),
    indptr=Array("int64", None, least=0),
    indices=Array("int32", "entries", below="columns"),
    data=Array("real", "entries"),
)
@dataclass(frozen=True)
class CsrRows:
    """Instances in canonical CSR form.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
    indices : ndarray of int32
        Sorted within a row (not after ``arranged``), without duplicates.
    data : ndarray of float32 or float64
    shape : tuple of int
        (n, n_features).
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    shape: tuple[int, int]

    def __post_init__(self) -> None:
        for name in ("indptr", "indices", "data"):
            object.__setattr__(self, name, read_only(getattr(self, name)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # pickle gives back arrays that can be written

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arguments of kernels."""
        return self.indptr, self.indices, self.data

    @property
    def dtype(self) -> np.dtype:
        """Of the features."""
        return self.data.dtype

    def without_zeros(self, empty: Callable[..., np.ndarray] = np.empty) -> "CsrRows":
        """Return the rows without stored zeros, in arrays made by `empty` if there are any."""
        if self.data.all():
            return self
        kept = self.data != 0
        ends = np.concatenate(([0], np.cumsum(kept)))
        indptr = ends[self.indptr]
        nnz = int(indptr[-1])
        indices, data = empty(nnz, self.indices.dtype), empty(nnz, self.data.dtype)
        np.compress(kept, self.indices, out=indices)
        np.compress(kept, self.data, out=data)
        return CsrRows(indptr, indices, data, self.shape)

    def to_csr(self) -> "CsrRows":
        """Return the instances themselves."""
        return self

    def astype(self, dtype: np.dtype) -> "CsrRows":
        """Return the rows in another dtype."""
        data = self.data.astype(dtype, copy=False)
        return CsrRows(self.indptr, self.indices, data, self.shape)

    def to_dense(self) -> "DenseRows":
        """Return the instances as a dense array."""
        n, d = self.shape
        values = np.zeros((n, d), self.dtype)
        values[np.repeat(np.arange(n), np.diff(self.indptr)), self.indices] = self.data
        return DenseRows(values)

    def take(self, rows: np.ndarray, empty: Callable[..., np.ndarray] = np.empty) -> "CsrRows":
        """Return some of the rows, in arrays made by `empty`."""
        lengths = np.diff(self.indptr)[rows]
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        nnz = int(indptr[-1])
        indices, data = empty(nnz, self.indices.dtype), empty(nnz, self.data.dtype)
        at = np.arange(nnz) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        indices[:], data[:] = self.indices[at], self.data[at]
        return CsrRows(indptr, indices, data, (len(lengths), self.shape[1]))


@declares(values=Array("real", "rows", "columns"))
@dataclass(frozen=True)
class DenseRows:
    """Instances as a dense array.

    Attributes
    ----------
    values : ndarray of float32 or float64 of shape (n, n_features)
        C-contiguous.
    """

    values: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arguments of kernels."""
        return (self.values,)

    @property
    def dtype(self) -> np.dtype:
        """Of the features."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n_features)."""
        return self.values.shape  # type: ignore[return-value]

    def to_csr(self) -> CsrRows:
        """Return the instances in canonical CSR form."""
        return as_csr_rows(self.values)

    def to_dense(self) -> "DenseRows":
        """Return the instances themselves."""
        return self

    def as_trained(self) -> "CsrRows | DenseRows":
        """Return the instances, in CSR form if few of their features are not zero."""
        few = np.count_nonzero(self.values) < DENSE_SHARE * self.values.size
        return self.to_csr() if few else self

    def astype(self, dtype: np.dtype) -> "DenseRows":
        """Return the instances in another dtype."""
        return DenseRows(self.values.astype(dtype, copy=False))

    def take(self, rows: np.ndarray) -> "DenseRows":
        """Return some of the rows."""
        return DenseRows(self.values[rows])


def as_csr_rows(X: Any) -> CsrRows:
    """Return a matrix that has been checked in canonical CSR form."""
    if not sp.issparse(X):
        X = sp.csr_array(X)
    elif not rows_are_canonical(X.indptr, X.indices[: X.indptr[-1]]):
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
        X.sum_duplicates()
    n = int(X.indptr[-1])  # the arrays may be longer
    return CsrRows(
        np.ascontiguousarray(X.indptr, np.int64),
        np.ascontiguousarray(X.indices[:n], np.int32),
        np.ascontiguousarray(X.data[:n]),
        X.shape,
    )


@dataclass(frozen=True)
class Targets:
    """Targets as binary problems, and the container and dtype of y.

    Attributes
    ----------
    indptr : ndarray of int64 of shape (n_problems + 1,)
    rows : ndarray of int32
        Positive rows of each binary problem, sorted.
    classes : ndarray of shape (n_labels,)
        Class labels after a 1-D y, else ``arange(n_labels)``. A 1-D y of two classes makes one
        problem, whose positives are the second class.
    kind : {"classes", "dense", "sparse"}
        The container of y.
    dtype : dtype
        Of y.
    container : type or None
        The class of a sparse y.
    """

    indptr: np.ndarray
    rows: np.ndarray
    classes: np.ndarray
    kind: str
    dtype: np.dtype
    container: type | None

    @property
    def n_problems(self) -> int:
        """Number of binary problems."""
        return len(self.indptr) - 1

    def take(self, kept: np.ndarray) -> "Targets":
        """Return the targets of the rows where the mask `kept` is True, renumbered."""
        renumbered = np.cumsum(kept) - 1
        chosen = kept[self.rows]
        indptr = np.concatenate(([0], np.cumsum(chosen)))[self.indptr]
        return replace(self, indptr=indptr, rows=renumbered[self.rows[chosen]].astype(np.int32))

    def by_instance(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of each of n rows in CSR form.

        A 1-D y of two classes, one binary problem elsewhere, has two labels here.

        Returns
        -------
        indptr : ndarray of int64 of shape (n + 1,)
        labels : ndarray of int32
            Rising within a row.
        """
        if self.kind == "classes" and len(self.classes) == 2:
            labels = np.zeros(n, np.int32)
            labels[self.rows] = 1
            return np.arange(n + 1, dtype=np.int64), labels
        columns = np.repeat(np.arange(self.n_problems, dtype=np.int32), np.diff(self.indptr))
        order = np.argsort(self.rows, kind="stable")
        counts = np.bincount(self.rows, minlength=n)
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), columns[order]

    def label_counts(self, kept: np.ndarray) -> np.ndarray:
        """Return the instances of each class among the rows where the mask `kept` is True."""
        counts = np.diff(self.take(kept).indptr)
        if self.kind == "classes" and len(self.classes) == 2:
            return np.array([np.count_nonzero(kept) - counts[0], counts[0]])
        return counts

    def counts_among(self, rows: np.ndarray | None, n: int) -> np.ndarray:
        """Return the instances of each class among some of n rows, None for all."""
        kept = np.zeros(n, bool)
        kept[rows] = True
        return self.label_counts(kept)

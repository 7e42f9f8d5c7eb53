"""X and y, checked: sparse matrices, rows, targets and the frequencies of labels.

Instances are canonical CSR (sorted, without duplicates, int64 ``indptr``, int32 ``indices``,
float32 or float64 ``data``) or, in a fit, a dense array; targets are the positive rows of each
binary problem. The caller's arrays are never changed: these are read-only.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.sklearn_private import num_samples, safe_indexing
from sklearn_xc._state.schema import Array, Holds, Number, Shape, declares

#: Entries compared at a time, which bounds the memory of the comparison.
_CHUNK_ENTRIES = 2**20
#: A dense X with a smaller share of non-zeros is trained on as a sparse one: that is faster.
DENSE_SHARE = 0.2
#: Number of entries in a range of rows: 1 MiB of 8-byte numbers.
ENTRIES = 2**17
#: Number of instances that ``LabelFrequencies`` adds to those without features, and their share of
#: all. Where features are indicators with one level left out, instances without features are
#: common, and outweigh these.
_ADDED, _ADDED_SHARE = 20.0, 0.02
#: Tolerance for the rounding of sums of weights.
_ROUNDED = 1.0 + 1e-6


def check_sparse(matrix: Any, name: str, caller: str = "") -> None:
    """Raise ValueError if `matrix` is sparse and malformed.

    Parameters
    ----------
    matrix : object
        Objects that are not sparse pass unchecked. Never changed.
    name : str
        The argument's name for the message.
    caller : str, default=""
        The function or estimator, named first.

    Raises
    ------
    ValueError
        For a matrix that is not two-dimensional; for index arrays of the wrong type or length, that
        decrease where they must not, or point outside the shape; and for arrays that are masked or
        not in native byte order.

    Notes
    -----
    Two passes over the index arrays; lists and dictionaries are converted to COO. Order and
    repetitions within a row are no fault.
    """
    if not sp.issparse(matrix):
        return
    name = f"{caller}: {name}" if caller else name
    if len(matrix.shape) != 2:
        raise ValueError(
            f"{name}: a sparse matrix of 2 dimensions was expected. Got shape "
            f"{tuple(matrix.shape)}."
        )
    try:
        fault = _fault(matrix)
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        fault = str(error)
    if fault:
        raise ValueError(
            f"{name}: this {type(matrix).__name__} of shape {tuple(matrix.shape)} is malformed: "
            f"{fault}. Its arrays were changed by hand, or read with a shape that is too small."
        )


def _fault(matrix: Any) -> str:
    """Describe what is wrong with a sparse matrix; empty if nothing is."""
    if matrix.format in ("lil", "dok"):
        if matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
            return "a row has other numbers of columns and of values"
        return _fault(matrix.tocoo())
    if matrix.format == "coo":
        rows, columns = matrix.coords
        fault = _array_fault(matrix.data, 1, row=rows, col=columns)
        if not fault and not len(rows) == len(columns) == len(matrix.data):
            fault = "row, col and data differ in length"
        fault = fault or _range_fault(rows, matrix.shape[0], "row")
        return fault or _range_fault(columns, matrix.shape[1], "column")
    if matrix.format == "dia":
        fault = _array_fault(matrix.data, 2, offsets=matrix.offsets)
        if not fault and not len(matrix.offsets) == len(matrix.data) == len(set(matrix.offsets)):
            fault = "offsets must be different, one for each diagonal"
        n, d = matrix.shape
        return fault or _range_fault(matrix.offsets + max(n - 1, 0), max(n - 1, 0) + d, "diagonal")
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    is_blocked = matrix.format == "bsr"
    if fault := _array_fault(data, 3 if is_blocked else 1, indices=indices, indptr=indptr):
        return fault
    block = data.shape[1:] if is_blocked else (1, 1)
    if 0 in block or matrix.shape[0] % block[0] or matrix.shape[1] % block[1]:
        return f"blocks of shape {block} do not fill the shape"
    n_major, n_minor = (n // size for n, size in zip(matrix.shape, block, strict=True))
    minor = "column"
    if matrix.format == "csc":
        n_major, n_minor, minor = n_minor, n_major, "row"
    if len(indptr) != n_major + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return f"indptr must rise from 0 and have {n_major + 1} entries"
    n = int(indptr[-1])
    if n > min(len(indices), len(data)):
        return f"indptr ends at {n}, indices or data hold fewer entries"
    return _range_fault(indices[:n], n_minor, minor)


def _array_fault(data: Any, n_dimensions: int, **arrays: Any) -> str:
    for name, array in {"data": data, **arrays}.items():
        if type(array) is not np.ndarray and not isinstance(array, np.memmap):
            return f"{name} must be an array. Got {type(array).__name__}"
        if array.ndim != (n_dimensions if name == "data" else 1):
            return f"{name} has {array.ndim} dimensions"
        if name != "data" and array.dtype.kind not in "iu":
            return f"{name} must hold integers. Got {array.dtype}"
        if not array.dtype.isnative:
            return (
                f"{name} must be in native byte order, the only one that scipy supports: convert "
                "it before the matrix is made, array.astype(array.dtype.newbyteorder('='))"
            )
    return ""


def _range_fault(indices: np.ndarray, limit: int, what: str) -> str:
    if not len(indices) or (indices.min() >= 0 and indices.max() < limit):
        return ""
    at = int(((indices < 0) | (indices >= limit)).argmax())
    return f"{what} index {indices[at]} is not in 0 to {limit - 1} (entry {at})"


def rows_are_canonical(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Return whether the indices of each row are sorted, without repetitions.

    scipy remembers the answer in a flag that an edit of the arrays leaves unchanged.
    """
    for start in range(0, len(indices) - 1, _CHUNK_ENTRIES):
        piece = indices[start : start + _CHUNK_ENTRIES + 1]
        is_sorted = piece[1:] > piece[:-1]
        inner = slice(*np.searchsorted(indptr, (start + 1, start + len(piece))))
        is_sorted[indptr[inner] - (start + 1)] = True  # where a row begins
        if not is_sorted.all():
            return False
    return True


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of `array`.

    A kernel is compiled for each combination of arguments that may and may not be written, not
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
    _rows_fit=Holds("rows that begin where the ones before end"),
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
    def _rows_fit(self) -> bool:
        begin, end = self.indptr[:-1], self.indptr[1:]
        is_whole = len(end) == self.shape[0] and self.indptr[0] == 0
        return bool(is_whole and self.indptr[-1] == len(self.data) and (begin <= end).all())

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arguments of kernels."""
        return self.indptr, self.indices, self.data

    @property
    def dtype(self) -> np.dtype:
        """Data type of the features."""
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
        at, indptr = entry_places(self.indptr[:-1][rows], np.diff(self.indptr)[rows])
        indices, data = empty(len(at), self.indices.dtype), empty(len(at), self.data.dtype)
        indices[:], data[:] = self.indices[at], self.data[at]
        return CsrRows(indptr, indices, data, (len(indptr) - 1, self.shape[1]))


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
        """Data type of the features."""
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, and of features."""
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
    pair_weight : ndarray of float64, or None
        A weight for each of `rows`.
    """

    indptr: np.ndarray
    rows: np.ndarray
    classes: np.ndarray
    kind: str
    dtype: np.dtype
    container: type | None
    pair_weight: np.ndarray | None = None

    @property
    def n_problems(self) -> int:
        """Number of binary problems."""
        return len(self.indptr) - 1

    def take(self, kept: np.ndarray) -> "Targets":
        """Return the targets of the rows where the mask `kept` is True, renumbered."""
        renumbered = np.cumsum(kept) - 1
        chosen = kept[self.rows]
        indptr = np.concatenate(([0], np.cumsum(chosen)))[self.indptr]
        rows = renumbered[self.rows[chosen]].astype(np.int32)
        weight = None if self.pair_weight is None else self.pair_weight[chosen]
        return replace(self, indptr=indptr, rows=rows, pair_weight=weight)

    def by_instance(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of each of n rows in CSR form.

        A 1-D y of two classes, one binary problem elsewhere, has two labels here.

        Returns
        -------
        indptr : ndarray of int64 of shape (n + 1,)
        labels : ndarray of int32
            Ascending within a row.
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


def entry_places(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of all entries of some rows, and the row pointers of the selection."""
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], counts), bounds


def as_rows(data: Any) -> Any:
    """Return data in a form that can be indexed by rows."""
    if hasattr(data, "tocsr"):
        return data.tocsr()
    is_array_like = hasattr(data, "__array__") and not hasattr(data, "__getitem__")
    return np.asarray(data) if is_array_like else data


def n_rows(X: Any, caller: str) -> int:
    """Return the number of instances, at least one."""
    n = int(num_samples(X))
    if not n:
        shape = getattr(X, "shape", (0,))
        raise ValueError(
            f"{caller}: X has 0 sample(s) (shape={shape}), a minimum of 1 is required by {caller}."
        )
    return n


def in_parts(X: Any, n: int, size: int) -> Iterator[Any]:
    """Yield the n instances of X in chunks of `size` rows."""
    X = as_rows(X)
    if n <= size:
        yield X
        return
    for first in range(0, n, size):
        yield safe_indexing(X, slice(first, min(first + size, n)))


def row_pieces(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of CSR rows, ``(first, last)``, that hold about `ENTRIES` entries each.

    Parameters
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
        Where each row begins. A row of more than `ENTRIES` entries is a range of its own.
    """
    n = len(indptr) - 1
    if indptr[-1] <= ENTRIES and n <= ENTRIES:
        yield 0, n
        return
    # Ranges are also limited in rows, many of which may be empty.
    steps = np.arange(ENTRIES, int(indptr[-1]), ENTRIES)
    cuts = np.searchsorted(indptr, steps, side="left")
    cuts = np.unique(np.concatenate(([0], cuts, np.arange(0, n, ENTRIES), [n])))
    yield from itertools.pairwise(cuts.tolist())


def is_blank(X: CsrRows | DenseRows) -> np.ndarray:
    """Return which instances have no feature other than 0, bool of shape (n,)."""
    if isinstance(X, DenseRows):
        return np.asarray(~X.values.any(axis=1))
    return ~_any_in_row(X, X.data != 0)


def shares_any(X: CsrRows, features: np.ndarray) -> np.ndarray:
    """Return which instances have one of some features, bool of shape (n,).

    `features` is a bool array of shape (n_features,). Zeros that are stored count.
    """
    return _any_in_row(X, features[X.indices])


def _any_in_row(X: CsrRows, chosen: np.ndarray) -> np.ndarray:
    found = np.diff(X.indptr) > 0
    if len(chosen):
        found[found] = np.logical_or.reduceat(chosen, X.indptr[:-1][found])
    return found


def features_of(X: CsrRows | DenseRows, rows: np.ndarray | None = None) -> np.ndarray:
    """Return which features any of some instances has, bool of shape (n_features,).

    Weights of the other features are as random as they were initialised: an instance that has no
    other features is one without.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, n_features)
        Instances.
    rows : ndarray of int, default=None
        Which; None for all.
    """
    named = slice(None) if rows is None else rows
    if isinstance(X, DenseRows):
        return np.asarray(X.values[named].any(axis=0))
    is_named, found = np.zeros(X.shape[0], bool), np.zeros(X.shape[1], bool)
    is_named[named] = True
    for first, last in row_pieces(X.indptr):
        entries = slice(X.indptr[first], X.indptr[last])
        lengths = np.diff(X.indptr[first : last + 1])
        chosen = (X.data[entries] != 0) & np.repeat(is_named[first:last], lengths)
        found[X.indices[entries][chosen]] = True
    return found


@declares(
    counts=Array("count", "labels", least=0),
    total=Number(),
    blank_counts=Array("count", "labels", least=0),
    blank_total=Number(),
    _counts_fit=Holds("no label on more instances than there are"),
)
@dataclass(frozen=True)
class LabelFrequencies:
    """Label frequencies in the training data.

    Attributes
    ----------
    counts : ndarray of float64 of shape (n_labels,)
        Sum of the weights of the instances of each label.
    total : float
        Sum of the weights of all instances.
    blank_counts, blank_total : ndarray of float64 of shape (n_labels,), float
        The same for the instances without features.
    """

    counts: np.ndarray
    total: float
    blank_counts: np.ndarray
    blank_total: float

    @property
    def _counts_fit(self) -> bool:
        some = self.counts.max(initial=0)
        blank = self.blank_counts.max(initial=0)
        return bool(some <= self.total * _ROUNDED and blank <= self.blank_total * _ROUNDED)

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray,
        blank: np.ndarray,
        n_labels: int,
    ) -> "LabelFrequencies":
        """Count the labels of some instances.

        Parameters
        ----------
        rows, labels : ndarray of int of shape (n_pairs,)
            Pairs of an instance and one of its labels.
        weight : ndarray of float of shape (n,)
            Of the instances.
        blank : ndarray of bool of shape (n,)
            Which of them have no features.
        n_labels : int
            Labels.
        """
        weight = weight.astype(np.float64)
        of_pair, on_blank = weight[rows], blank[rows]
        return cls(
            np.bincount(labels, of_pair, minlength=n_labels),
            float(weight.sum()),
            np.bincount(labels[on_blank], of_pair[on_blank], minlength=n_labels),
            float(weight[blank].sum()),
        )

    @classmethod
    def none(cls, n_labels: int) -> "LabelFrequencies":
        """Return the frequencies of no instances."""
        return cls(np.zeros(n_labels), 0.0, np.zeros(n_labels), 0.0)

    def with_labels(self, n_new: int, order: np.ndarray) -> "LabelFrequencies":
        """Return the same with new labels after the old ones, all in a new order."""
        new = np.zeros(n_new)
        counts = np.concatenate([self.counts, new])[order]
        blank_counts = np.concatenate([self.blank_counts, new])[order]
        return LabelFrequencies(counts, self.total, blank_counts, self.blank_total)

    def of_blank(self) -> np.ndarray:
        """Return the expected count of each label if no instance had features.

        Returns
        -------
        ndarray of float64 of shape (n_labels,)
            Between 0 and `total`; `counts` where no instance is without features.
        """
        if self.blank_total == 0:
            return self.counts
        added = _ADDED + _ADDED_SHARE * self.total
        share = self.blank_total / (self.blank_total + added)
        seen = self.blank_counts * (self.total / self.blank_total)
        return np.minimum((1.0 - share) * self.counts + share * seen, self.total)

"""Checks of the arguments of the metrics."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import (
    as_native,
    check_count,
    check_numbers,
    is_missing,
    refuse_masks_and_dates,
    to_array,
)
from sklearn_xc._input.data import check_sparse, rows_are_canonical
from sklearn_xc._labels.names import positions_of

#: Advice on lists of names, for messages.
_ENCODE = "Lists of names become an indicator with encode_targets of the fitted TextClassifierXC"


class TrueLabels(NamedTuple):
    """The true labels as (row, column) pairs, sorted by row, then by column.

    Attributes
    ----------
    rows, columns : ndarray of shape (n_pairs,), int64
    counts : ndarray of shape (n_samples,), int64
        True labels per row, including those without a column (see `check_y_true`).
    n_labels : int or None
        Number of columns, or of classes; None where `Y_true` was 1-D and no classes were given.
    """

    rows: np.ndarray
    columns: np.ndarray
    counts: np.ndarray
    n_labels: int | None


def check_k(k: Any) -> tuple[int, ...]:
    """Return the cut-offs as a tuple of ints; a single int gives a tuple of one."""
    try:
        ks = tuple(check_count(one, "k") for one in (k if np.ndim(k) == 1 else (k,)))
    except ValueError:
        ks = ()
    if not ks:
        raise ValueError(f"k: expected an int of at least 1, or a sequence of them. Got {k!r}.")
    return ks


def check_y_true(Y_true: Any, classes: Any = None) -> TrueLabels:
    """Return the pairs of an indicator (sparse or dense), or of one class per row.

    A 1-D entry that is not among the classes, or is -1 where no classes were given, stands for a
    class that has no column: it is never a hit, and it counts as a true label of its row.
    """
    known = None if classes is None else _check_classes(classes)
    if sp.issparse(Y_true):
        labels = pairs_of_sparse(Y_true, "Y_true")
    else:
        dense = as_array(Y_true, "Y_true", f"an indicator or one class per row. {_ENCODE}")
        if known is not None and dense.ndim == 2 and dense.shape[1] == 1 != len(known):
            dense = dense[:, 0]
        if dense.ndim == 1:
            labels = _pairs_of_classes(dense, known)
        elif dense.ndim == 2:
            labels = pairs_of_dense(dense, "Y_true")
        else:
            raise ValueError(f"Y_true: expected 1 or 2 dimensions. Got shape {dense.shape}.")
    if len(labels.counts) == 0:
        raise ValueError("Y_true: expected at least one row. Got none; the metric is undefined.")
    if known is not None and labels.n_labels != len(known):
        raise ValueError(
            f"classes: Y_true has {labels.n_labels} label columns. Got {len(known)} classes."
        )
    return labels


def as_array(values: Any, name: str, expected: str) -> np.ndarray:
    """Return an argument as a native array, without a mask and with rows of one length."""
    if np.ma.isMaskedArray(values):
        refuse_masks_and_dates(values, name)
    try:
        return as_native(to_array(values))
    except ValueError as error:
        raise ValueError(f"{name}: expected {expected}. Got rows of unequal length.") from error


def pairs_of_sparse(Y: Any, name: str) -> TrueLabels:
    """Return the pairs of a sparse indicator, checked under the argument's name."""
    check_sparse(Y, name)
    _check_indicator_dtype(Y.dtype, name)
    Y = canonical_csr(Y)
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    columns = Y.indices.astype(np.int64)
    true = Y.data == 1
    if not true.all():
        bad = np.flatnonzero(~true & (Y.data != 0))
        if bad.size:
            raise _not_binary(name, Y.data[bad[0]], rows[bad[0]], columns[bad[0]])
        rows, columns = rows[true], columns[true]
    counts = np.bincount(rows, minlength=Y.shape[0])
    return TrueLabels(rows, columns, counts, Y.shape[1])


def canonical_csr(matrix: Any) -> sp.csr_array:
    """Return a checked sparse matrix as a CSR with sorted columns in each row, each once.

    Repeated entries are added up, in int64 where 200 ones would overflow. The arrays are those of
    a canonical CSR that is passed.
    """
    is_narrow = matrix.dtype.kind in "biu"
    if is_narrow and matrix.format in ("coo", "bsr"):  # their conversion adds up
        matrix = matrix.astype(np.int64)
    matrix = matrix.tocsr()
    n = int(matrix.indptr[-1])  # the arrays may be longer
    data, indices = matrix.data[:n], matrix.indices[:n]
    if rows_are_canonical(matrix.indptr, indices):
        return sp.csr_array((data, indices, matrix.indptr), shape=matrix.shape)
    data = data.astype(np.int64) if is_narrow else data
    csr = sp.csr_array((data, indices, matrix.indptr), shape=matrix.shape, copy=True)
    csr.sum_duplicates()
    return csr


def pairs_of_dense(Y: np.ndarray, name: str) -> TrueLabels:
    """Return the pairs of a dense indicator, checked under the argument's name."""
    _check_indicator_dtype(Y.dtype, name)
    true = Y == 1
    bad = np.argwhere(~true & (Y != 0))
    if bad.size:
        row, column = bad[0]
        raise _not_binary(name, Y[row, column], row, column)
    rows, columns = (index.astype(np.int64) for index in np.nonzero(true))
    return TrueLabels(rows, columns, np.bincount(rows, minlength=len(Y)), Y.shape[1])


def _check_indicator_dtype(dtype: np.dtype, name: str) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected an indicator of 0 and 1. Got dtype {dtype}. {_ENCODE}.")


def _not_binary(name: str, value: Any, row: int, column: int) -> ValueError:
    return ValueError(
        f"{name}: an indicator holds only 0 and 1. Got {value} at row {row}, column {column} "
        "(repeated sparse entries are added up)."
    )


def _check_classes(classes: Any) -> np.ndarray:
    """Return the classes of a classifier as a 1-D array, distinct."""
    if np.ma.isMaskedArray(classes):
        refuse_masks_and_dates(classes, "classes")
    if isinstance(classes, list) and classes and all(np.ndim(one) == 1 for one in classes):
        return np.arange(len(classes))  # of scikit-learn's forests, an array for each label
    array = np.asarray(classes)
    if array.ndim != 1 or not array.size:
        raise ValueError(
            "classes: expected a sequence of class labels, as clf.classes_ of a fitted "
            f"classifier. Got {type(classes).__name__} of shape {np.shape(classes)}."
        )
    (most_frequent, count), *_ = Counter(array.tolist()).most_common(1)
    if count > 1:
        raise ValueError(f"classes: expected different ones. Got {most_frequent} twice.")
    return array


def _pairs_of_classes(y: np.ndarray, known: np.ndarray | None) -> TrueLabels:
    if known is not None:
        values = y.tolist()
        is_text = isinstance(known.tolist()[0], str)
        odd = [isinstance(one, str) != is_text or is_missing(one) for one in values]
        if any(odd):
            row = odd.index(True)
            raise ValueError(
                f"Y_true: expected class labels like those in classes, such as {known[0]!r}. Got "
                f"{values[row]!r} at row {row}. {_ENCODE}."
            )
        y = positions_of(y, known)
    elif y.dtype.kind not in "iu":
        raise ValueError(
            "Y_true: a 1-D array must hold one integer position in classes_ per row. Got dtype "
            f"{y.dtype}. If these are class labels, pass classes=clf.classes_ of the classifier. "
            f"{_ENCODE}."
        )
    elif y.size and y.min() < -1:
        row = int(np.flatnonzero(y < -1)[0])
        raise ValueError(
            f"Y_true: positions start at 0, and -1 stands for a class without a column. "
            f"Got {y[row]} at row {row}. If these are class labels, pass classes=clf.classes_."
        )
    y = y.astype(np.int64, copy=False)
    rows = np.flatnonzero(y >= 0)
    n_labels = None if known is None else len(known)
    return TrueLabels(rows, y[rows], np.ones(len(y), dtype=np.int64), n_labels)


def check_topk(topk: Any, k: int, labels: TrueLabels, name: str = "topk") -> np.ndarray:
    """Return the first `k` positions of each row, shape (n_samples, k), int64, -1 for none."""
    if sp.issparse(topk):
        scores = check_sparse_scores(topk, labels, name)
        check_k_of_csr(k, scores, name)
        return topk_of_csr(scores, k)[0]
    expected = "integer label positions of shape (n_samples, at least k), best first"
    is_pair = isinstance(topk, tuple) and len(topk) == 2 and np.ndim(topk[0]) == 2
    indices = as_array(topk[0] if is_pair else topk, name, expected)
    if is_pair:
        _check_scores(as_array(topk[1], name, "scores in rows of one length"), indices.shape, name)
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: expected integer label positions, best first, or a sparse matrix of scores. "
            f"Got a dense array of dtype {indices.dtype}. Dense scores become positions with "
            "np.argsort(-scores, axis=1, kind='stable')[:, :k]."
        )
    if indices.ndim != 2:
        raise ValueError(f"{name}: expected shape (n_samples, at least k). Got {indices.shape}.")
    _check_n_rows(name, indices.shape[0], labels)
    if k > indices.shape[1]:
        raise ValueError(
            f"k must be at most {indices.shape[1]}, the columns of {name}. Got {k}. Ask "
            f"predict_topk for k={k} labels; it pads with -1 where there are fewer."
        )
    positions = indices[:, :k].astype(np.int64, copy=False)
    rows = np.arange(len(positions))[:, None]
    _check_positions(positions, labels.n_labels, rows, name, lowest=-1)
    in_order = np.sort(positions, axis=1)
    twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if twice.any():
        row, rank = np.argwhere(twice)[0]
        raise ValueError(
            f"{name}: expected different labels within a row. Got label {in_order[row, rank]} "
            f"twice among the first {k} of row {row}."
        )
    return positions


def _check_scores(scores: np.ndarray, shape: tuple[int, ...], name: str) -> None:
    if scores.shape != shape or scores.dtype.kind not in "biuf":
        raise ValueError(
            f"{name}: indices and scores must be numbers of the same shape (n_samples, k). Got "
            f"{shape} and {scores.shape}, scores of dtype {scores.dtype}."
        )
    wrong = ~(scores[:, 1:] <= scores[:, :-1]).all(axis=1) | np.isnan(scores).any(axis=1)
    if wrong.any():
        raise ValueError(
            f"{name}: expected scores without NaN, the best first. Got other ones in row "
            f"{wrong.argmax()}. Of predict_proba_topk, whose labels are in the order of their "
            "scores, pass the labels alone: [0]."
        )


def check_sparse_scores(scores: Any, labels: TrueLabels, name: str) -> sp.csr_array:
    """Return a sparse matrix of scores as a canonical CSR, without NaN."""
    check_sparse(scores, name)
    if scores.dtype.kind not in "iuf":
        raise ValueError(
            f"{name}: a sparse argument must be a matrix of scores, as decision_function gives "
            f"after a sparse fit. Got dtype {scores.dtype}."
        )
    _check_n_rows(name, scores.shape[0], labels)
    n_labels = scores.shape[1]
    if labels.n_labels not in (None, n_labels):
        raise ValueError(
            f"{name}: Y_true has {labels.n_labels} label columns, the sparse scores have "
            f"{n_labels}."
        )
    scores = canonical_csr(scores)
    if np.isnan(scores.data).any():
        row = np.searchsorted(scores.indptr, np.isnan(scores.data).argmax(), side="right") - 1
        raise ValueError(f"{name}: expected scores. Got NaN in row {row}.")
    _check_positions(labels.columns, n_labels, labels.rows, "Y_true")
    return scores


def check_k_of_csr(k: int, scores: sp.csr_array, name: str) -> None:
    """Raise ValueError if there are fewer than `k` labels."""
    n_labels = scores.shape[1]
    if k > n_labels:
        raise ValueError(f"k must be at most {n_labels}, the label columns of {name}. Got {k}.")


def _check_n_rows(name: str, n_rows: int, labels: TrueLabels) -> None:
    if n_rows != len(labels.counts):
        raise ValueError(f"{name}: Y_true has {len(labels.counts)} rows, {name} has {n_rows}.")


def _check_positions(
    positions: np.ndarray, n_labels: int | None, rows: np.ndarray, name: str, lowest: int = 0
) -> None:
    bad = positions < lowest
    if n_labels is not None:
        bad |= positions >= n_labels
    if bad.any():
        where = np.unravel_index(bad.argmax(), bad.shape)
        above = "" if n_labels is None else f" and below {n_labels}, the number of labels"
        row = np.broadcast_to(rows, positions.shape)[where]
        raise ValueError(
            f"{name}: label positions must be at least {lowest}{above}. "
            f"Got {positions[where]} at row {row}."
        )


def check_sample_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return the weights as float64 of shape (n_rows,), or None for equal weights."""
    if sample_weight is None:
        return None
    weight = check_numbers(sample_weight, "sample_weight", n_rows, "row of Y_true")
    with np.errstate(over="ignore"):
        total = weight.sum()
    if (weight < 0).any() or not 0 < total < np.inf:
        raise ValueError(
            "sample_weight: expected numbers of at least 0, with a positive and finite sum. Got "
            f"{weight.min():g} at row {weight.argmin()}, and a sum of {total:g}."
        )
    return weight


def check_propensities(propensities: Any, labels: TrueLabels | None = None) -> np.ndarray:
    """Return the propensities as float64 of shape (n_labels,), each in (0, 1]."""
    if propensities is None:
        raise ValueError(
            "propensities holds None, and PSP and PSnDCG need one for each label: "
            "propensity(clf.label_counts_, clf.n_samples_fit_)."
        )
    p = check_numbers(
        propensities, "propensities", None if labels is None else labels.n_labels, "label"
    )
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        raise ValueError(
            f"propensities: expected probabilities in (0, 1]. Got {p[bad.argmax()]} for label "
            f"{bad.argmax()}. Inverse propensities have to be inverted first."
        )
    if labels is not None:
        _check_positions(labels.columns, len(p), labels.rows, "Y_true")
    return p


def topk_of_csr(scores: sp.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns of the `k` best stored scores of each row, and these scores, (n_rows, k).

    Best first, padded with -1 and -inf. Missing entries are not scores, stored zeros are; equal
    scores go to the smaller column. O(nnz log nnz) time, O(nnz) memory.

    Parameters
    ----------
    scores : csr_array of shape (n_rows, n_columns)
        Canonical, without NaN.
    k : int
    """
    # Unsigned integers have no negatives to sort by.
    data = scores.data if scores.data.dtype.kind == "f" else scores.data.astype(np.float64)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((-data, rows))  # stable: equal scores stay in the order of their columns
    rank = np.arange(len(rows)) - scores.indptr[rows]
    best = rank < k
    positions = np.full((scores.shape[0], k), -1, dtype=np.int64)
    positions[rows[best], rank[best]] = scores.indices[order][best]
    found = np.full(positions.shape, -np.inf, data.dtype)
    found[rows[best], rank[best]] = data[order][best]
    return positions, found

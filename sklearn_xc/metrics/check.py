"""Checks of all arguments of the metrics."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import as_native, check_count, check_numbers, refuse_disguised
from sklearn_xc._input.containers import to_array
from sklearn_xc._input.sparse import check_sparse, rows_are_canonical
from sklearn_xc._labels.name_lists import (
    is_written_list,
    likely_separator,
    names_in,
    separator_within,
)
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc._parallel.row_ranges import cut_rows
from sklearn_xc.metrics.classes import check_classes, positions_in

#: What to do with several names per row, which no metric takes.
NAMES_BECOME = (
    "Lists of names become an indicator with encode_targets of the fitted TextClassifierXC, or "
    "transform of the binarizer that the model was fitted with"
)
#: Rows of Y_true that are searched for several names.
_SEARCHED = 1000
#: Positions from which the free memory is checked.
_SMALL_RESULT = 1 << 22
#: Stored scores sorted at a time: keys, order and ranks of 4 Mi entries take about 150 MB.
_BLOCK_ENTRIES = 1 << 22


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
    refuse_disguised(k, "k")
    ks = tuple(k) if isinstance(k, list | tuple | range) or np.ndim(k) == 1 else (k,)
    try:
        ks = tuple(check_count(one, "k") for one in ks)
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
    known = None if classes is None else check_classes(classes)
    if sp.issparse(Y_true):
        labels = pairs_of_sparse(Y_true, "Y_true")
    else:
        dense = as_array(
            Y_true,
            "Y_true",
            f"an indicator matrix or one class per row. {NAMES_BECOME}",
        )
        if known is not None and dense.ndim == 2 and dense.shape[1] == 1 != len(known):
            dense = dense[:, 0]
        if dense.ndim == 1:
            labels = _pairs_of_classes(dense, known)
        elif dense.ndim == 2:
            labels = pairs_of_dense(dense, "Y_true")
        else:
            raise ValueError(f"Y_true: expected 1 or 2 dimensions. Got shape {dense.shape}.")
    if len(labels.counts) == 0:
        raise ValueError("Y_true: expected at least one row. Got none; a mean over them is void.")
    if known is not None and labels.n_labels != len(known):
        raise ValueError(
            f"classes: Y_true has {labels.n_labels} label columns. Got {len(known)} classes."
        )
    return labels


def as_array(values: Any, name: str, expected: str) -> np.ndarray:
    """Return an argument as a native array, without a mask and with rows of one length."""
    if np.ma.isMaskedArray(values):
        refuse_disguised(values, name)
    try:
        return as_native(to_array(values))
    except ValueError as error:
        raise ValueError(f"{name}: expected {expected}. Got rows of unequal length.") from error


def pairs_of_sparse(Y: Any, name: str) -> TrueLabels:
    """Return the pairs of a sparse indicator, checked under the argument's name."""
    check_sparse(Y, name)
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected an indicator of 0 and 1. Got dtype {Y.dtype}.")
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
    """Return a checked sparse matrix as a CSR with rising columns in each row, each once.

    Repeated entries are added up. The arrays are the caller's where they are so already.
    """
    if matrix.format in ("coo", "bsr"):
        matrix = _widened(matrix)  # their conversion adds up
    matrix = matrix.tocsr()
    n = int(matrix.indptr[-1])  # the arrays may be longer
    data, indices = matrix.data[:n], matrix.indices[:n]
    if rows_are_canonical(matrix.indptr, indices):
        return sp.csr_array((data, indices, matrix.indptr), shape=matrix.shape)
    csr = sp.csr_array((_widened(data), indices, matrix.indptr), shape=matrix.shape, copy=True)
    csr.sum_duplicates()
    return csr


def _widened(values: Any) -> Any:
    """Return a matrix or array in a dtype in which the sum of two trues, or of 200 ones, is one."""
    kind = values.dtype.kind
    if kind == "f" or (kind in "iu" and values.dtype.itemsize == 8):
        return values
    return values.astype(np.int64)


def pairs_of_dense(Y: np.ndarray, name: str) -> TrueLabels:
    """Return the pairs of a dense indicator, checked under the argument's name."""
    if Y.dtype.kind not in "biuf":
        hint = f" {NAMES_BECOME}." if _holds_texts(Y.ravel()) else ""
        raise ValueError(f"{name}: expected an indicator of 0 and 1. Got dtype {Y.dtype}.{hint}")
    true = Y == 1
    bad = np.argwhere(~true & (Y != 0))
    if bad.size:
        row, column = bad[0]
        raise _not_binary(name, Y[row, column], row, column)
    rows, columns = (index.astype(np.int64) for index in np.nonzero(true))
    return TrueLabels(rows, columns, np.bincount(rows, minlength=len(Y)), Y.shape[1])


def _not_binary(name: str, value: Any, row: int, column: int) -> ValueError:
    return ValueError(
        f"{name}: an indicator holds only 0 and 1. Got {value} at row {row}, column {column} "
        "(repeated sparse entries are added up)."
    )


def _pairs_of_classes(y: np.ndarray, known: np.ndarray | None) -> TrueLabels:
    several = _several_names(y, known)
    if several is not None:
        raise ValueError(
            "Y_true: expected an indicator matrix or one class per row. Got several names in a "
            f"row, such as {several!r}. {NAMES_BECOME}; of one class per row, pass "
            "classes=clf.classes_ of the classifier."
        )
    if known is not None:
        y = positions_in(known, y)
    elif y.dtype.kind not in "iu":
        raise ValueError(
            "Y_true: a 1-D array must hold one integer position in classes_ per row. Got dtype "
            f"{y.dtype}. If these are class labels, pass classes=clf.classes_ of the classifier."
        )
    elif y.size and y.min() < -1:
        row = int(np.flatnonzero(y < -1)[0])
        raise ValueError(
            f"Y_true: positions start at 0, and -1 stands for a class without a column. "
            f"Got {y[row]} at row {row}. If these are class labels, pass classes=clf.classes_."
        )
    y = as_int64(y, "Y_true")
    rows = np.flatnonzero(y >= 0)
    n_labels = None if known is None else len(known)
    return TrueLabels(rows, y[rows], np.ones(len(y), dtype=np.int64), n_labels)


def _holds_texts(y: np.ndarray) -> bool:
    return y.dtype.kind in "UT" or (y.dtype == object and any(isinstance(one, str) for one in y))


def _several_names(y: np.ndarray, known: np.ndarray | None) -> Any:
    """Return a row that is a list of names, or a text of names with a separator; None without."""
    if y.dtype.kind not in "UTO":
        return None
    rows = y[:_SEARCHED].tolist()
    for row in rows:
        if isinstance(row, list | tuple | set | frozenset | np.ndarray):
            return row
    texts = [row for row in rows if isinstance(row, str)]
    if known is None:
        likely = likely_separator([[row] for row in texts])
        return None if likely is None else next(row for row in texts if likely in row)
    names = set(known.tolist())
    for row in texts:
        if is_written_list(row) and row not in names:
            return row
        separator = None if row in names else separator_within(row, names)
        if separator is not None and all(one in names for one in names_in(row, separator)):
            return row
    return None


def as_int64(positions: np.ndarray, name: str) -> np.ndarray:
    """Return positions as int64, in which those of uint64 may not fit."""
    if positions.dtype == np.uint64 and positions.size and positions.max() >= 2**63:
        raise ValueError(f"{name}: positions must be below 2**63. Got {positions.max()}.")
    return positions.astype(np.int64, copy=False)


def check_topk(
    topk: Any, k: int, labels: TrueLabels, name: str = "topk", *, may_rise: bool = False
) -> np.ndarray:
    """Return the first `k` positions of each row, shape (n_samples, k), int64, -1 for none.

    `name` is that of the argument, for messages. Numbers beside the labels `may_rise` along a row
    where they are not what the labels were ranked by.
    """
    if sp.issparse(topk):
        positions = _positions_of_csr(topk, k, labels, name)
    else:
        positions = _positions_of_arrays(topk, k, labels, name, may_rise)
    in_order = np.sort(positions, axis=1)
    twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if twice.any():
        row, rank = np.argwhere(twice)[0]
        raise ValueError(
            f"{name}: expected different labels within a row. Got label {in_order[row, rank]} "
            f"twice among the first {k} of row {row}."
        )
    return positions


def _positions_of_csr(topk: Any, k: int, labels: TrueLabels, name: str) -> np.ndarray:
    scores = check_sparse_scores(topk, labels, name)
    check_k_of_csr(k, scores, name)
    return topk_of_csr(scores, k)


def check_sparse_scores(scores: Any, labels: TrueLabels, name: str) -> sp.csr_array:
    """Return a sparse matrix of scores as a canonical CSR, without NaN."""
    check_sparse(scores, name)
    if scores.dtype.kind not in "iuf":
        raise ValueError(
            f"{name}: a sparse argument must be a matrix of scores, as decision_function gives "
            f"after a sparse fit. Got dtype {scores.dtype}."
        )
    _check_rows(name, scores.shape[0], labels)
    n_labels = scores.shape[1]
    if labels.n_labels is not None and n_labels != labels.n_labels:
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


def _positions_of_arrays(
    topk: Any, k: int, labels: TrueLabels, name: str, may_rise: bool
) -> np.ndarray:
    expected = "integer label positions of shape (n_samples, at least k), best first"
    if isinstance(topk, tuple):
        if len(topk) != 2:
            raise ValueError(
                f"{name}: a tuple must be (indices, scores) as predict_topk gives. Got "
                f"{len(topk)} entries."
            )
        indices = as_array(topk[0], name, expected)
        scores = as_array(topk[1], name, "scores in rows of one length")
        _check_scores(scores, indices.shape, name, may_rise)
    else:
        indices = as_array(topk, name, expected)
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: expected integer label positions, best first, or a sparse matrix of scores. "
            f"Got a dense array of dtype {indices.dtype}. Dense scores become positions with "
            "np.argsort(-scores, axis=1, kind='stable')[:, :k]."
        )
    if indices.ndim != 2:
        raise ValueError(f"{name}: expected shape (n_samples, at least k). Got {indices.shape}.")
    _check_rows(name, indices.shape[0], labels)
    if k > indices.shape[1]:
        raise ValueError(
            f"k must be at most {indices.shape[1]}, the columns of {name}. Got {k}. Ask "
            f"predict_topk for k={k} labels; it pads with -1 where there are fewer."
        )
    positions = as_int64(indices[:, :k], name)
    rows = np.arange(len(positions))[:, None]
    _check_positions(positions, labels.n_labels, rows, name, lowest=-1)
    return positions


def _check_scores(scores: np.ndarray, shape: tuple[int, ...], name: str, may_rise: bool) -> None:
    if scores.shape != shape or scores.ndim != 2:
        raise ValueError(
            f"{name}: indices and scores must both have shape (n_samples, k). Got "
            f"{shape} and {scores.shape}."
        )
    if scores.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected scores. Got an array of dtype {scores.dtype}.")
    missing = np.isnan(scores).any(axis=1)
    if missing.any():
        raise ValueError(f"{name}: expected scores. Got NaN in row {missing.argmax()}.")
    rising = (scores[:, 1:] > scores[:, :-1]).any(axis=1)
    if rising.any() and not may_rise:
        raise ValueError(
            f"{name}: expected the best score first, but they rise in row {rising.argmax()}. Of "
            "predict_proba_topk, whose labels are in the order of their scores, pass the labels "
            "alone: [0]."
        )


def _check_rows(name: str, n_rows: int, labels: TrueLabels) -> None:
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
    bad = weight < 0
    if bad.any():
        raise ValueError(
            "sample_weight: expected numbers of at least 0. Got "
            f"{weight[bad.argmax()]} at row {bad.argmax()}."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not 0 < total < np.inf:
        raise ValueError(
            f"sample_weight: expected a positive, finite sum. Got {total:g}: "
            + ("only zeros." if total == 0 else "divide them by their maximum.")
        )
    return weight


def check_propensities(propensities: Any, labels: TrueLabels) -> np.ndarray:
    """Return the propensities as float64 of shape (n_labels,), each in (0, 1]."""
    p = check_probabilities(propensities, labels.n_labels)
    _check_positions(labels.columns, len(p), labels.rows, "Y_true")
    return p


def check_probabilities(propensities: Any, n_labels: int | None) -> np.ndarray:
    """Return propensities as float64 of shape (n_labels,), of any shape (n,) where it is None."""
    if propensities is None:
        raise ValueError(
            "propensities holds None, and PSP and PSnDCG need one for each label: "
            "propensity(clf.label_counts_, clf.n_samples_fit_)."
        )
    p = check_numbers(propensities, "propensities", n_labels, "label")
    if np.asarray(propensities).dtype == bool:
        raise ValueError("propensities: expected probabilities in (0, 1]. Got dtype bool.")
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        raise ValueError(
            f"propensities: expected probabilities in (0, 1]. Got {p[bad.argmax()]} for label "
            f"{bad.argmax()}. Inverse propensities have to be inverted first."
        )
    return p


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

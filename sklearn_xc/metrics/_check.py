"""The door of the metrics: each argument is checked here once, then trusted."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc.metrics._csr_topk import topk_of_csr


class TrueLabels(NamedTuple):
    """The true labels as (row, column) pairs, sorted by row, then by column.

    Attributes
    ----------
    rows, columns : ndarray of shape (n_pairs,), int64
    counts : ndarray of shape (n_samples,), int64
        True labels per row, those included that have no column (see `check_y_true`).
    n_labels : int or None
        Number of columns; None where `Y_true` was 1-D.
    """

    rows: np.ndarray
    columns: np.ndarray
    counts: np.ndarray
    n_labels: int | None


def check_k(k: Any) -> tuple[int, ...]:
    """Return the cut-offs as a tuple of ints; a single int gives a tuple of one."""
    ks = tuple(k) if isinstance(k, Iterable) and not isinstance(k, str) else (k,)
    whole = all(isinstance(one, Integral) and not isinstance(one, bool) for one in ks)
    if not ks or not whole or min(ks) < 1:
        raise ValueError(f"k: expected an int of at least 1, or a sequence of them, got {k!r}.")
    return tuple(int(one) for one in ks)


def check_y_true(Y_true: Any) -> TrueLabels:
    """Return the pairs of an indicator (sparse or dense), or of one class position per row.

    A 1-D entry of -1 stands for a class that has no column: it is never a hit, and it counts as a
    true label of its row.
    """
    if sp.issparse(Y_true):
        if Y_true.ndim != 2:
            raise ValueError(f"Y_true: a sparse array must be 2-D, got shape {Y_true.shape}.")
        labels = _pairs_of_sparse(Y_true)
    else:
        try:
            dense = np.asarray(Y_true)
        except ValueError as error:
            raise ValueError(
                "Y_true: expected an indicator matrix or one class position per row, got rows of "
                "unequal length. Lists of labels become an indicator with "
                "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True)."
            ) from error
        if dense.ndim == 1:
            labels = _pairs_of_classes(dense)
        elif dense.ndim == 2:
            labels = _pairs_of_dense(dense)
        else:
            raise ValueError(f"Y_true: expected 1 or 2 dimensions, got shape {dense.shape}.")
    if len(labels.counts) == 0:
        raise ValueError("Y_true: expected at least one row, got none; a mean over them is void.")
    return labels


def _pairs_of_sparse(Y_true: Any) -> TrueLabels:
    Y = sp.csr_array(Y_true)  # shares the arrays of a CSR, so it must not be changed in place
    if not Y.has_canonical_format:
        Y = Y.copy()
        Y.sum_duplicates()
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    columns = Y.indices.astype(np.int64)
    true = Y.data == 1
    if not true.all():
        bad = np.flatnonzero(~true & (Y.data != 0))
        if bad.size:
            raise _not_binary(Y.data[bad[0]], rows[bad[0]], columns[bad[0]])
        rows, columns = rows[true], columns[true]
    counts = np.bincount(rows, minlength=Y.shape[0])
    return TrueLabels(rows, columns, counts, Y.shape[1])


def _pairs_of_dense(Y: np.ndarray) -> TrueLabels:
    if Y.dtype.kind not in "biuf":
        raise ValueError(f"Y_true: expected an indicator of 0 and 1, got dtype {Y.dtype}.")
    true = Y == 1
    bad = np.argwhere(~true & (Y != 0))
    if bad.size:
        row, column = bad[0]
        raise _not_binary(Y[row, column], row, column)
    rows, columns = (index.astype(np.int64) for index in np.nonzero(true))
    return TrueLabels(rows, columns, np.bincount(rows, minlength=len(Y)), Y.shape[1])


def _not_binary(value: Any, row: int, column: int) -> ValueError:
    return ValueError(
        f"Y_true: an indicator holds only 0 and 1, got {value} at row {row}, column {column} "
        "(repeated sparse entries are added up)."
    )


def _pairs_of_classes(y: np.ndarray) -> TrueLabels:
    if y.dtype.kind not in "iu":
        raise ValueError(
            "Y_true: a 1-D array must hold one integer position in classes_ per row, got dtype "
            f"{y.dtype}. TopKScorer takes class labels as they are."
        )
    if y.size and y.min() < -1:
        row = int(np.flatnonzero(y < -1)[0])
        raise ValueError(
            f"Y_true: positions start at 0, and -1 stands for a class without a column; "
            f"got {y[row]} at row {row}."
        )
    rows = np.flatnonzero(y >= 0)
    return TrueLabels(rows, y[rows].astype(np.int64), np.ones(len(y), dtype=np.int64), None)


def check_topk(topk: Any, k: int, labels: TrueLabels) -> np.ndarray:
    """Return the first `k` positions of each row, shape (n_samples, k), int64, -1 for none."""
    if sp.issparse(topk):
        positions = _positions_of_csr(topk, k, labels)
    else:
        positions = _positions_of_arrays(topk, k, labels)
    in_order = np.sort(positions, axis=1)
    twice = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if twice.any():
        row, rank = np.argwhere(twice)[0]
        raise ValueError(
            f"topk: expected different labels within a row, got label {in_order[row, rank]} "
            f"twice among the first {k} of row {row}."
        )
    return positions


def _positions_of_csr(topk: Any, k: int, labels: TrueLabels) -> np.ndarray:
    if topk.ndim != 2 or topk.dtype.kind not in "iuf":
        raise ValueError(
            "topk: a sparse argument must be a 2-D matrix of scores, as decision_function gives "
            f"after a sparse fit, got shape {topk.shape} and dtype {topk.dtype}."
        )
    _check_rows("topk", topk.shape[0], labels)
    n_labels = topk.shape[1]
    if labels.n_labels is not None and n_labels != labels.n_labels:
        raise ValueError(
            f"topk: Y_true has {labels.n_labels} label columns, the sparse scores have {n_labels}."
        )
    if k > n_labels:
        raise ValueError(f"k: got {k}, but topk has only {n_labels} label columns.")
    scores = sp.csr_array(topk)
    if np.isnan(scores.data).any():
        row = np.searchsorted(scores.indptr, np.isnan(scores.data).argmax(), side="right") - 1
        raise ValueError(f"topk: expected scores, got NaN in row {row}.")
    _check_positions(labels.columns, n_labels, labels.rows, "Y_true")
    return topk_of_csr(scores, k)


def _positions_of_arrays(topk: Any, k: int, labels: TrueLabels) -> np.ndarray:
    if isinstance(topk, tuple):
        if len(topk) != 2:
            raise ValueError(
                "topk: a tuple must be (indices, scores) as predict_topk gives, got "
                f"{len(topk)} entries."
            )
        indices = np.asarray(topk[0])
        _check_scores(np.asarray(topk[1]), indices.shape)
    else:
        indices = np.asarray(topk)
    if indices.dtype.kind not in "iu":
        raise ValueError(
            "topk: expected integer label positions, best first, or a sparse matrix of scores, "
            f"got a dense array of dtype {indices.dtype}. Dense scores become positions with "
            "np.argsort(-scores, axis=1, kind='stable')[:, :k]."
        )
    if indices.ndim != 2:
        raise ValueError(f"topk: expected shape (n_samples, at least k), got {indices.shape}.")
    _check_rows("topk", indices.shape[0], labels)
    if k > indices.shape[1]:
        raise ValueError(
            f"k: got {k}, but topk has only {indices.shape[1]} columns. Ask predict_topk for "
            f"k={k} labels; it pads with -1 where there are fewer."
        )
    positions = indices[:, :k].astype(np.int64, copy=False)
    rows = np.arange(len(positions))[:, None]
    _check_positions(positions, labels.n_labels, rows, "topk", lowest=-1)
    return positions


def _check_scores(scores: np.ndarray, shape: tuple[int, ...]) -> None:
    if scores.shape != shape or scores.ndim != 2:
        raise ValueError(
            "topk: indices and scores must both have shape (n_samples, k), got "
            f"{shape} and {scores.shape}."
        )
    missing = np.isnan(scores).any(axis=1)
    if missing.any():
        raise ValueError(f"topk: expected scores, got NaN in row {missing.argmax()}.")
    rising = (scores[:, 1:] > scores[:, :-1]).any(axis=1)
    if rising.any():
        raise ValueError(
            f"topk: expected the best score first, but they rise in row {rising.argmax()}."
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
            f"{name}: label positions must be at least {lowest}{above}; "
            f"got {positions[where]} at row {row}."
        )


def check_sample_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Return the weights as float64 of shape (n_rows,), or None for equal weights."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight: expected shape ({n_rows},), got {weight.shape}.")
    bad = ~np.isfinite(weight) | (weight < 0)
    if bad.any():
        raise ValueError(
            "sample_weight: expected finite numbers of at least 0, got "
            f"{weight[bad.argmax()]} at row {bad.argmax()}."
        )
    if weight.sum() == 0:
        raise ValueError("sample_weight: expected a positive sum, got only zeros.")
    return weight


def check_propensities(propensities: Any, labels: TrueLabels) -> np.ndarray:
    """Return the propensities as float64 of shape (n_labels,), each in (0, 1]."""
    p = np.asarray(propensities, dtype=np.float64)
    if p.ndim != 1:
        raise ValueError(f"propensities: expected one number per label, got shape {p.shape}.")
    if labels.n_labels is not None and len(p) != labels.n_labels:
        raise ValueError(
            f"propensities: Y_true has {labels.n_labels} label columns, got {len(p)} propensities."
        )
    bad = ~((p > 0) & (p <= 1))  # true for NaN
    if bad.any():
        raise ValueError(
            f"propensities: expected probabilities in (0, 1], got {p[bad.argmax()]} for label "
            f"{bad.argmax()}. Inverse propensities have to be inverted first."
        )
    _check_positions(labels.columns, len(p), labels.rows, "Y_true")
    return p

"""Rows or groups assigned to folds, every label in its share: common code of the splitters."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state

from sklearn_xc._checks import check_targets
from sklearn_xc._name_lists import are_name_lists, warn_of_separator
from sklearn_xc._seeds import draw_seed
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.kernels.model_selection.fold_assignment import (
    WHOLE,
    assign_rows,
    find_lost_labels,
    swap_rows,
)
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.preprocessing import LabelBinarizerXC

#: Steps of the search for exchanges: so many, and so many more for each label that is lost, but no
#: more than take some seconds. Where more are lost, there are too few rows for training.
_STEPS, _STEPS_PER_LABEL, _MOST_STEPS = 1000, 50, 20_000
#: Folds of different sizes are divided into no more pieces, nor into so many that the table of
#: counts takes more bytes. What folds need besides is allocated after a look at the memory.
_MOST_PIECES, _LARGE_TABLE = 100, 2**28


class Labels(NamedTuple):
    """Labels that have two positives or more, rarest first, and their rows.

    Attributes
    ----------
    by_row : tuple of ndarray of int64
        ``(indptr, labels)``, CSR.
    by_label : tuple of ndarray of int64
        ``(indptr, rows)``, CSC.
    """

    by_row: tuple[np.ndarray, np.ndarray]
    by_label: tuple[np.ndarray, np.ndarray]


def read_labels(
    splitter: Any, y: Any, n: int, separator: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the checked labels of each row, CSR, of an indicator, of lists of names or of classes.

    Raises
    ------
    ValueError
        As a fit does: another number of rows, values other than 0 and 1, a single class.

    Warns
    -----
    UserWarning
        If classes look like several names each, and there is no separator.
    """
    who = type(splitter).__name__
    if separator is not None or are_name_lists(y):
        y = LabelBinarizerXC(separator=separator).fit_transform(y)
    elif not sp.issparse(y) and np.ndim(y) == 1:
        warn_of_separator(y, who, stacklevel=3)
    return check_targets(splitter, y, n).by_instance(n)


def merge_groups(
    who: str, labels: tuple[np.ndarray, np.ndarray], groups: Any
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the number of each row's group, and the labels of each group, CSR.

    Without groups every row is one.

    Raises
    ------
    ValueError
        For groups that are not one value for each row.
    """
    n = len(labels[0]) - 1
    if groups is None:
        return np.arange(n), labels
    groups = check_array(groups, ensure_2d=False, dtype=None, input_name="groups")
    if groups.shape != (n,):
        raise ValueError(f"{who}: groups must have shape ({n},). Got {groups.shape}.")
    _, group = np.unique(groups, return_inverse=True)
    rows = np.repeat(group, np.diff(labels[0]))
    n_labels = labels[1].max(initial=0) + 1
    merged = sp.coo_array(
        (np.ones(len(rows), bool), (rows, labels[1])), shape=(group.max() + 1, n_labels)
    ).tocsr()
    return group, (merged.indptr.astype(np.int64), merged.indices.astype(np.int64))


def deal(
    splitter: Any,
    labels: tuple[np.ndarray, np.ndarray],
    sizes: Any,
    kind: Any,
    seed: int | None,
    n_rows: np.ndarray | None = None,
) -> np.ndarray:
    """Return the fold of each row or group.

    Folds of different sizes are put together from pieces of about one size, see `assign_rows`.

    Parameters
    ----------
    splitter : object
        Named in messages.
    labels : tuple of ndarray
        ``(indptr, labels)`` of each row, CSR.
    sizes : array-like of int of shape (n_folds,)
        Rows of each fold; groups may not fit exactly.
    kind : array-like of int of shape (n_folds,)
        Folds of one kind should not have all positives of a label that has two; -1 is a fold that
        may.
    seed : int or None
        Of the order in which rows are dealt out; None takes them as they come.
    n_rows : ndarray of int64 of shape (n,), default=None
        Rows of each group, the largest of which are dealt out first; None for single rows.

    Returns
    -------
    ndarray of int64 of shape (n,)

    Warns
    -----
    UnseenLabelWarning
        If folds of one kind have all positives of some label with two or more.
    """
    name = type(splitter).__name__
    n = len(labels[0]) - 1
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    n_rows = np.ones(n, np.int64) if n_rows is None else n_rows
    order = order[np.argsort(-n_rows[order], kind="stable")]
    by_row, by_label = _repeated_labels(*labels, order)
    n_labels = len(by_label[0]) - 1
    pieces = _pieces(np.asarray(sizes), min(_MOST_PIECES, _LARGE_TABLE // (4 * n_labels + 1)))
    n_pieces = int(pieces.sum())
    if n_labels * n_pieces * 4 > _LARGE_TABLE:
        require_bytes(
            n_labels * n_pieces * 4, None, f"the counts of {n_labels} labels in {n_pieces} folds",
            "Lower n_splits.", name,
        )  # fmt: skip
    room = np.concatenate(
        [size // m + (np.arange(m) < size % m) for size, m in zip(sizes, pieces, strict=True)]
    )
    piece_kind, fold = np.repeat(kind, pieces), np.empty(n, np.int64)
    assign_rows(by_row, by_label, _shares(room), piece_kind, room, n_rows[order], fold)
    fold, kind = np.repeat(np.arange(len(pieces)), pieces)[fold], np.array(kind, np.int64)
    is_lost = np.empty(n_labels, bool)
    find_lost_labels(by_label, kind, fold, is_lost)
    n_lost = int(is_lost.sum())
    if n_lost:
        n_steps = min(_STEPS + _STEPS_PER_LABEL * n_lost, _MOST_STEPS)
        swap_rows(by_row, by_label, kind, is_lost, n_steps, np.uint64(seed or 0), fold)
        find_lost_labels(by_label, kind, fold, is_lost)
        n_lost = int(is_lost.sum())
    if n_lost:
        warnings.warn(
            f"{name}: {n_lost} labels have no training instance in some split, though they have "
            "positives in two rows, or groups, or more: no split of these sizes was found in which "
            "all have one. More rows for training, or larger n_splits, leave more choice.",
            UnseenLabelWarning,
            stacklevel=4,
        )
    found = np.empty(n, np.int64)
    found[order] = fold
    return found


def _pieces(sizes: np.ndarray, most: int) -> np.ndarray:
    """Return in how many pieces to divide each fold, so that all have about one size."""
    pieces = np.ones(len(sizes), np.int64)
    if np.ptp(sizes) <= 1:
        return pieces
    least = np.inf
    for n_pieces in range(len(sizes), most + 1):
        tried = np.maximum(1, np.rint(n_pieces * sizes / sizes.sum())).astype(np.int64)
        ratio = (sizes / tried).max() / (sizes / tried).min()
        if ratio < 0.98 * least:  # more pieces take more time
            pieces, least = tried, ratio
    return pieces


def _shares(sizes: Any) -> np.ndarray:
    """Return the share of each fold; folds that differ by a row have equal ones."""
    sizes = np.asarray(sizes, np.int64)
    if sizes.max() - sizes.min() <= 1:
        return np.full(len(sizes), WHOLE // len(sizes))
    return (sizes / sizes.sum() * WHOLE).astype(np.int64)


def _repeated_labels(indptr: np.ndarray, labels: np.ndarray, order: np.ndarray) -> Labels:
    """Return the labels that have two positives or more, of the rows in some order."""
    n = len(indptr) - 1
    lengths = np.diff(indptr)[order]
    ends = np.cumsum(lengths)
    at = np.arange(len(labels)) + np.repeat(indptr[:-1][order] - (ends - lengths), lengths)
    rows, labels = np.repeat(np.arange(n), lengths), labels[at]
    counts = np.bincount(labels)
    by_count = np.argsort(counts, kind="stable")
    by_count = by_count[counts[by_count] >= 2]
    renumbered = np.full(len(counts), -1)
    renumbered[by_count] = np.arange(len(by_count))
    labels = renumbered[labels]
    rows, labels = rows[labels >= 0], labels[labels >= 0]
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n))))
    columns = np.concatenate(([0], np.cumsum(counts[by_count])))
    return Labels((starts, labels), (columns, rows[np.argsort(labels, kind="stable")]))


def seeds_of(random_state: Any, n: int) -> list[int]:
    """Return the seeds of n splits."""
    state = check_random_state(random_state)
    return [draw_seed(state) for _ in range(n)]

"""A splitter that keeps rare labels in the training rows."""

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_array, check_random_state

from sklearn_xc import LabelBinarizerXC
from sklearn_xc._input.arguments import check_count
from sklearn_xc._input.checks import check_targets
from sklearn_xc._input.seeds import draw_seed
from sklearn_xc._input.sklearn_private import num_samples
from sklearn_xc._labels.name_lists import are_name_lists, check_separator, warn_of_separator
from sklearn_xc._parallel.memory import require_bytes
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.model_selection.kernels import (
    assign_rows,
    find_lost_labels,
    swap_rows,
)

_WHO = "RareLabelSplit"
#: Steps of the search for exchanges: at least, for each lost label, and at most (some seconds).
_STEPS, _STEPS_PER_LABEL, _MOST_STEPS = 1000, 50, 20_000
#: Bytes from which the table of counts is checked against the free memory.
_LARGE_TABLE = 2**28

#: (indptr, indices) of a compressed sparse matrix, int64.
_Pointers = tuple[np.ndarray, np.ndarray]


class RareLabelSplit(BaseCrossValidator):
    """K-fold cross-validation in which every label is in every training set.

    Made for the indicators of extreme classification, where most labels have few positives. No
    fold gets all positives of a label that has two or more; the positives of each label are spread
    over the folds as evenly as the other labels of its rows allow; and the numbers of rows of two
    folds differ by at most one. A 1-D y of classes is split likewise: no class with two rows or
    more is ever missing in training.

    If ``split`` gets `groups`, no group is divided. What is said of rows above then holds for
    groups: no fold gets all groups of a label that has two or more. Folds have about equal numbers
    of rows.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    separator : str, default=None
        What separates the names, if each row of y is one string of names.
    shuffle : bool, default=False
        Whether rows are assigned in random order. Otherwise equal data always give equal folds.
    random_state : int, RandomState instance or None, default=None
        Seeds `shuffle`.

    Raises
    ------
    ValueError
        For `n_splits` below 2, a `shuffle` that is not a bool, or a `random_state` without
        `shuffle`.

    Warns
    -----
    sklearn_xc.exceptions.UnseenLabelWarning
        From ``split``, if all positives of a label with two or more are in one fold. Either this
        cannot be avoided (three rows, of which every two share a label of their own, do not fit
        into two folds), or no better folds were found. Never for a 1-D y.

    Notes
    -----
    Rows are assigned one by one, those of the rarest label first, each to the fold that lacks its
    labels most, as measured by the sum, over the labels of the row, of the share of positives that
    the fold still misses. Iterative stratification [1]_ considers only the rarest label, and lets
    the sizes of folds differ. If the positives of a label still end up in one fold, rows are
    exchanged to separate them.

    Time grows with ``nnz(y) * n_splits``. Memory: two copies of the indices of y, and an int32
    table of shape (labels with two positives, n_splits).

    References
    ----------
    .. [1] K. Sechidis, G. Tsoumakas, I. Vlahavas, "On the stratification of multi-label data",
       ECML PKDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.model_selection import RareLabelSplit
    >>> Y = csr_array(np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    >>> for train, test in RareLabelSplit(n_splits=2).split(np.zeros((6, 1)), Y):
    ...     print(test, Y[train].sum(axis=0))
    [0 2 4] [1 1 2]
    [1 3 5] [1 1 1]

    A single split into training and test rows, a quarter to test on:

    >>> train, test = next(RareLabelSplit(n_splits=4).split(np.zeros((6, 1)), Y))
    >>> train.tolist(), test.tolist()
    ([1, 3, 4, 5], [0, 2])
    """

    __metadata_request__split: ClassVar = {"groups": True}  # read by scikit-learn

    def __init__(
        self,
        n_splits: int = 5,
        *,
        separator: str | None = None,
        shuffle: bool = False,
        random_state: Any = None,
    ) -> None:
        self.separator = check_separator(separator, _WHO)
        self.n_splits = check_count(n_splits, f"{_WHO}: n_splits", 2)
        if not isinstance(shuffle, bool | np.bool_):
            raise ValueError(f"{_WHO}: shuffle must be True or False. Got {shuffle!r}.")
        if random_state is not None and not shuffle:
            raise ValueError(
                f"{_WHO}: random_state has no effect without shuffle=True. Got {random_state!r}."
            )
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the training and the test rows of each fold.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Only its length is used.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            A binary indicator, a list of names for each row, or classes.
        groups : array-like of shape (n_samples,), default=None
            The group of each row. All rows of a group are on the same side of a split.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers in increasing order. Each row is in exactly one test fold.

        Raises
        ------
        ValueError
            If there are fewer rows, or groups, than folds, for a y that no classifier would accept,
            or for groups of another length or with missing values.
        """
        n = num_samples(X)
        if self.separator is not None or are_name_lists(y):
            y = LabelBinarizerXC(separator=self.separator).fit_transform(y)
        elif not sp.issparse(y) and np.ndim(y) == 1:
            warn_of_separator(y, _WHO, stacklevel=2)
        labels = check_targets(self, y, n).by_instance(n)
        group = np.arange(n)
        if groups is not None:
            group, labels = _merge_groups(labels, groups)
        size = np.bincount(group)
        if self.n_splits > len(size):
            kind = "rows" if groups is None else "groups"
            raise ValueError(
                f"{_WHO}: n_splits must be at most the number of {kind}, {len(size)}. Got "
                f"n_splits={self.n_splits}."
            )
        if groups is None:
            room = (n + self.n_splits - 1 - np.arange(self.n_splits)) // self.n_splits
        else:  # equal room: a group then prefers an empty fold, so that none stays empty
            room = np.full(self.n_splits, -(-n // self.n_splits))
        seed = draw_seed(check_random_state(self.random_state)) if self.shuffle else None
        fold = _assign_folds(labels, room, size, seed)[group]
        for j in range(self.n_splits):
            yield np.flatnonzero(fold != j), np.flatnonzero(fold == j)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object, default=None
            Not used.
        """
        return self.n_splits


def _merge_groups(labels: _Pointers, groups: Any) -> tuple[np.ndarray, _Pointers]:
    """Return the group number of each row, and the labels of each group in CSR form."""
    n = len(labels[0]) - 1
    groups = check_array(groups, ensure_2d=False, dtype=None, input_name="groups")
    if groups.shape != (n,):
        raise ValueError(f"{_WHO}: groups must have shape ({n},). Got {groups.shape}.")
    _, group = np.unique(groups, return_inverse=True)
    rows = np.repeat(group, np.diff(labels[0]))
    n_labels = labels[1].max(initial=0) + 1
    merged = sp.coo_array(
        (np.ones(len(rows), bool), (rows, labels[1])), shape=(group.max() + 1, n_labels)
    ).tocsr()
    return group, (merged.indptr.astype(np.int64), merged.indices.astype(np.int64))


def _assign_folds(
    labels: _Pointers, room: np.ndarray, size: np.ndarray, seed: int | None
) -> np.ndarray:
    """Return the fold of each row or group, and warn of labels that some training set lacks.

    `room` is the number of rows that each fold takes, `size` the number of rows in each group.
    Large groups are assigned first; `seed` shuffles the others.
    """
    n, n_splits = len(size), len(room)
    order = np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)
    order = order[np.argsort(-size[order], kind="stable")]
    by_row, by_label = _repeated_labels(*labels, order)
    n_labels = len(by_label[0]) - 1
    if n_labels * n_splits * 4 > _LARGE_TABLE:
        what = f"the counts of {n_labels} labels in {n_splits} folds"
        require_bytes(n_labels * n_splits * 4, None, what, "Lower n_splits.", _WHO)
    fold, is_lost = np.empty(n, np.int64), np.empty(n_labels, bool)
    assign_rows(by_row, by_label, room, size[order], fold)
    find_lost_labels(by_label, fold, is_lost)
    n_lost = int(is_lost.sum())
    if n_lost:
        n_steps = min(_STEPS + _STEPS_PER_LABEL * n_lost, _MOST_STEPS)
        swap_rows(by_row, by_label, is_lost, n_steps, np.uint64(seed or 0), fold)
        find_lost_labels(by_label, fold, is_lost)
        n_lost = int(is_lost.sum())
    if n_lost:
        warnings.warn(
            f"{_WHO}: {n_lost} labels have no training instance in some split, though they have "
            "positives in two rows, or groups, or more: no folds of these sizes were found in "
            "which all have one. A larger n_splits leaves more choice.",
            UnseenLabelWarning,
            stacklevel=3,
        )
    found = np.empty(n, np.int64)
    found[order] = fold
    return found


def _repeated_labels(
    indptr: np.ndarray, labels: np.ndarray, order: np.ndarray
) -> tuple[_Pointers, _Pointers]:
    """Return CSR and CSC of the reordered rows and the labels with two positives, rarest first."""
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
    return (starts, labels), (columns, rows[np.argsort(labels, kind="stable")])

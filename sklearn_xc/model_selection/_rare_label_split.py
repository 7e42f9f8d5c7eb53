"""A splitter that keeps rare labels in the training rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from sklearn_xc import LabelBinarizerXC
from sklearn_xc._input.arguments import check_count, draw_seed
from sklearn_xc._input.checks import check_targets
from sklearn_xc._input.sklearn_private import num_samples
from sklearn_xc._labels.name_lists import are_name_lists, check_separator
from sklearn_xc._warnings import warn
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.model_selection.kernels import assign_rows

_WHO = "RareLabelSplit"


class RareLabelSplit(BaseCrossValidator):
    """K-fold cross-validation that keeps rare labels in every training set.

    Made for the indicators of extreme classification, where most labels have few positives. The
    positives of each label are spread over the folds as evenly as the other labels of its rows
    allow, and no fold gets all positives of a label that has two or more if the assignment can
    avoid it. The numbers of rows of two folds differ by at most one. A 1-D y of classes is split
    likewise: no class with two rows or more is ever missing in training.

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
        From ``split``, if all positives of a label with two or more are in one fold; it counts
        such labels. With three folds or more it is rare. Never for a 1-D y.

    Notes
    -----
    Rows are assigned one by one, those of the rarest label first, each to the fold that lacks its
    labels most, as measured by the sum, over the labels of the row, of the share of positives that
    the fold still misses. Iterative stratification [1]_ considers only the rarest label, and lets
    the sizes of folds differ.

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
        groups : object, default=None
            Must be None: GroupKFold keeps groups together.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers in increasing order. Each row is in exactly one test fold.

        Raises
        ------
        ValueError
            If there are fewer rows than folds, and for a y that no classifier would accept.
        """
        if groups is not None:
            raise ValueError(f"{_WHO}: groups must be None: GroupKFold keeps groups together.")
        n = num_samples(X)
        if self.separator is not None or are_name_lists(y):
            y = LabelBinarizerXC(separator=self.separator).fit_transform(y)
        indptr, labels = check_targets(self, y, n).by_instance(n)
        if self.n_splits > n:
            raise ValueError(
                f"{_WHO}: n_splits must be at most the number of rows, {n}. Got "
                f"n_splits={self.n_splits}."
            )
        order = np.arange(n)
        if self.shuffle:
            seed = draw_seed(check_random_state(self.random_state))
            order = np.random.default_rng(seed).permutation(n)
        fold = np.empty(n, np.int64)
        fold[order] = _assign_folds(*_repeated_labels(indptr, labels, order), self.n_splits)
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


def _repeated_labels(
    indptr: np.ndarray, labels: np.ndarray, order: np.ndarray
) -> tuple[sp.csr_array, np.ndarray]:
    """Return the reordered rows as an indicator of labels with two positives, rarest first."""
    counts = np.bincount(labels, minlength=1)
    shape = (len(order), len(counts))
    Y = sp.csr_array((np.ones(len(labels), bool), labels, indptr), shape=shape)[order]
    by_count = np.argsort(counts, kind="stable")
    by_count = by_count[counts[by_count] >= 2]
    return Y[:, by_count], counts[by_count]


def _assign_folds(Y: sp.csr_array, counts: np.ndarray, n_splits: int) -> np.ndarray:
    """Return the fold of each row, and warn of labels that some training set lacks."""
    n = Y.shape[0]
    by_row, by_label = (
        (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
        for matrix in (Y, Y.tocsc())
    )
    room = (n + n_splits - 1 - np.arange(n_splits)) // n_splits
    fold = np.empty(n, np.int64)
    assign_rows(by_row, by_label, room, fold)
    first = fold[by_label[1][by_label[0][:-1]]]  # of each label's first positive
    n_equal = np.bincount(by_row[1], fold.repeat(np.diff(by_row[0])) == first[by_row[1]])
    n_lost = np.count_nonzero(n_equal == counts)
    if n_lost:
        warn(
            f"{_WHO}: {n_lost} labels have no training instance in some split, though they have "
            "two positives or more. A larger n_splits leaves more choice.",
            UnseenLabelWarning,
        )
    return fold

"""Splitters that keep rare labels in the training rows."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit

from sklearn_xc._arguments import check_count
from sklearn_xc._name_lists import check_separator
from sklearn_xc._sklearn import num_samples, shuffle_split_sizes
from sklearn_xc.model_selection._deal import deal, merge_groups, read_labels, seeds_of


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

    See Also
    --------
    RareLabelShuffleSplit : Random training and test sets of any size.
    train_test_split : One such split, applied to arrays.

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
        self.separator = check_separator(separator, "RareLabelSplit")
        self.n_splits = check_count(n_splits, "RareLabelSplit: n_splits", 2)
        if not isinstance(shuffle, bool | np.bool_):
            raise ValueError(f"RareLabelSplit: shuffle must be True or False. Got {shuffle!r}.")
        if random_state is not None and not shuffle:
            raise ValueError(
                "RareLabelSplit: random_state has no effect without shuffle=True. Got "
                f"{random_state!r}."
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
        labels = read_labels(self, y, n, self.separator)
        group, labels = merge_groups("RareLabelSplit", labels, groups)
        n_rows = np.bincount(group)
        if self.n_splits > len(n_rows):
            kind = "rows" if groups is None else "groups"
            raise ValueError(
                f"RareLabelSplit: n_splits must be at most the number of {kind}, {len(n_rows)}. "
                f"Got n_splits={self.n_splits}."
            )
        if groups is None:
            sizes = (n + self.n_splits - 1 - np.arange(self.n_splits)) // self.n_splits
        else:  # equal room: a group then prefers an empty fold, so that none stays empty
            sizes = np.full(self.n_splits, -(-n // self.n_splits))
        seed = seeds_of(self.random_state, 1)[0] if self.shuffle else None
        fold = deal(self, labels, sizes, np.arange(self.n_splits), seed, n_rows)[group]
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


class RareLabelShuffleSplit(BaseShuffleSplit):
    """Random splits in which every label with two positives or more is in the training rows.

    Otherwise like :class:`RareLabelSplit`: training and test rows each have their share of the
    positives of each label. Splits are drawn independently of each other.

    If ``split`` gets `groups`, no group is divided, and `test_size` and `train_size` count groups,
    as in :class:`sklearn.model_selection.GroupShuffleSplit`.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    test_size : float or int, default=None
        Share of the rows to test on, or their number. None takes what `train_size` leaves, or 0.1.
    train_size : float or int, default=None
        Share of the rows to train on, or their number. None takes what `test_size` leaves.
    separator : str, default=None
        What separates the names, if each row of y is one string of names.
    random_state : int, RandomState instance or None, default=None
        Pass an int to get the same splits again.

    Raises
    ------
    ValueError
        For `n_splits` below 1.

    Warns
    -----
    sklearn_xc.exceptions.UnseenLabelWarning
        From ``split``, if a label with two positives or more has none in the training rows, for
        example because there are more labels than training rows.

    See Also
    --------
    RareLabelSplit : Folds, each of which is the test set once.
    train_test_split : One such split, applied to arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from sklearn_xc.model_selection import RareLabelShuffleSplit
    >>> Y = csr_array(np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]])
    >>> splitter = RareLabelShuffleSplit(n_splits=1, test_size=0.5, random_state=0)
    >>> for train, test in splitter.split(np.zeros((8, 1)), Y):
    ...     print(Y[train].sum(axis=0), Y[test].sum(axis=0))
    [1. 1. 1. 1.] [1. 1. 1. 1.]
    """

    __metadata_request__split: ClassVar = {"groups": True}  # read by scikit-learn

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: Any = None,
        train_size: Any = None,
        separator: str | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            check_count(n_splits, "RareLabelShuffleSplit: n_splits"),
            test_size=test_size,
            train_size=train_size,
            random_state=random_state,
        )
        self._default_test_size = 0.1
        self.separator = check_separator(separator, "RareLabelShuffleSplit")

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the training and the test rows of each split.

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
            Row numbers in random order.

        Raises
        ------
        ValueError
            For sizes that leave no training or test rows, for a y that no classifier would accept,
            or for groups of another length or with missing values.
        """
        n = num_samples(X)
        labels = read_labels(self, y, n, self.separator)
        group, labels = merge_groups("RareLabelShuffleSplit", labels, groups)
        n_groups = len(labels[0]) - 1
        n_train, n_test = shuffle_split_sizes(
            n_groups, self.test_size, self.train_size, self._default_test_size
        )
        sizes, kind = [n_train, n_test], [-1, 0]
        if n_train + n_test < n_groups:  # groups that are in neither part
            sizes, kind = [*sizes, n_groups - n_train - n_test], [-1, 0, 0]
        for seed in seeds_of(self.random_state, self.n_splits):
            fold = deal(self, labels, sizes, kind, seed)[group]
            shuffled = np.random.default_rng((seed, 1)).permutation(n)
            yield shuffled[fold[shuffled] == 0], shuffled[fold[shuffled] == 1]

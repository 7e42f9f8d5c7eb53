"""Splitters that keep rare labels in the training rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator, BaseShuffleSplit

from sklearn_xc._arguments import check_count
from sklearn_xc._name_lists import check_separator
from sklearn_xc._sklearn import num_samples, shuffle_split_sizes
from sklearn_xc.model_selection._deal import deal, read_labels, seeds_of


class RareLabelSplit(BaseCrossValidator):
    """K-fold cross-validation in which every label is in every training set.

    For the indicators of extreme classification, where most labels have a few positives: no fold
    gets all positives of a label that has two or more, the positives of each label are spread over
    the folds as evenly as those of its rows' other labels allow, and the numbers of rows of two
    folds differ by one at most. A 1-D y of classes is split likewise; no class that has two rows is
    ever missing in training.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    separator : str, default=None
        What stands between names, where y has one text of names for each row.
    shuffle : bool, default=False
        Whether rows are dealt out in random order. Otherwise equal data always give equal folds.
    random_state : int, RandomState instance or None, default=None
        For `shuffle`.

    Raises
    ------
    ValueError
        For `n_splits` below 2, a `shuffle` that is no bool, and a `random_state` without `shuffle`.

    Warns
    -----
    sklearn_xc.exceptions.UnseenLabelWarning
        From ``split``: some labels with two positives have them in one fold. It may be that no
        folds are without such labels (three rows, each two of which share a label of their own,
        do not fit into two folds), or that none were found. Never for a 1-D y.

    See Also
    --------
    RareLabelShuffleSplit : Random training and test rows of any size.
    train_test_split : One such split of arrays.

    Notes
    -----
    Rows are dealt out one by one, those of the rarest label first, each to the fold that lacks its
    labels most: the sum, over the labels of the row, of the share of positives that the fold still
    misses. Iterative stratification [1]_ looks at the rarest label alone, and lets the sizes of
    folds differ. Labels that end up in one fold after all are mended by exchanges of rows.

    Time grows with ``nnz(y) * n_splits``, memory holds two copies of the indices of y and a table
    of int32 of shape (labels with two positives, n_splits).

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
            Its length counts.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            A binary indicator, a list of names for each row, or classes.
        groups : object, default=None
            Not used.

        Yields
        ------
        train, test : ndarray of int64
            Rising row numbers. Each row is in one test fold.

        Raises
        ------
        ValueError
            For fewer rows than folds, and a y that no classifier would take.
        """
        n = num_samples(X)
        labels = read_labels(self, y, n, self.separator)
        if self.n_splits > n:
            raise ValueError(
                f"RareLabelSplit: n_splits must be at most the number of rows, {n}. Got "
                f"n_splits={self.n_splits}."
            )
        sizes = np.full(self.n_splits, n // self.n_splits)
        sizes[: n % self.n_splits] += 1
        seed = seeds_of(self.random_state, 1)[0] if self.shuffle else None
        fold = deal(self, labels, sizes, np.arange(self.n_splits), seed)
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
    """Random splits in which every label that has two positives is in the training rows.

    As :class:`RareLabelSplit` otherwise: training and test rows have their shares of the positives
    of each label. Splits are drawn independently of each other.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    test_size : float or int, default=None
        Share of the test rows, or their number. None is what `train_size` leaves, or 0.1.
    train_size : float or int, default=None
        Share of the training rows, or their number. None is what `test_size` leaves.
    separator : str, default=None
        What stands between names, where y has one text of names for each row.
    random_state : int, RandomState instance or None, default=None
        For the same splits again.

    Raises
    ------
    ValueError
        For `n_splits` below 1.

    Warns
    -----
    sklearn_xc.exceptions.UnseenLabelWarning
        From ``split``: some labels with two positives have none in the training rows, as where
        there are more labels than training rows.

    See Also
    --------
    RareLabelSplit : Folds, each of which is the test set once.
    train_test_split : One such split of arrays.

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
            Its length counts.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            A binary indicator, a list of names for each row, or classes.
        groups : object, default=None
            Not used.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers in random order.

        Raises
        ------
        ValueError
            For sizes that leave no training or test rows, and a y that no classifier would take.
        """
        n = num_samples(X)
        labels = read_labels(self, y, n, self.separator)
        n_train, n_test = shuffle_split_sizes(
            n, self.test_size, self.train_size, self._default_test_size
        )
        sizes, kind = [n_train, n_test], [-1, 0]
        if n_train + n_test < n:  # rows that are in neither part
            sizes, kind = [*sizes, n - n_train - n_test], [-1, 0, 0]
        for seed in seeds_of(self.random_state, self.n_splits):
            fold = deal(self, labels, sizes, kind, seed)
            shuffled = np.random.default_rng((seed, 1)).permutation(n)
            yield shuffled[fold[shuffled] == 0], shuffled[fold[shuffled] == 1]

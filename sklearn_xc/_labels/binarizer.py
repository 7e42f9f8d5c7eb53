"""Lists of names as a sparse indicator, and back."""

import copy
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._input.sklearn_private import Interval, StrOptions, fit_context
from sklearn_xc._labels.name_lists import (
    check_separator,
    read_name_lists,
    warn_of_separator,
    warn_of_unknown,
)
from sklearn_xc._labels.names import as_name_array, as_name_of_kind, check_label_names
from sklearn_xc._state.schema import Array, Holds, declares
from sklearn_xc._warnings import warn
from sklearn_xc.exceptions import UnknownLabelWarning
from sklearn_xc.metrics.check import as_array, pairs_of_dense, pairs_of_sparse


@declares(
    classes_=Array("any", "labels"),
    label_counts_=Array("int64", "labels", least=0),
    rare_classes_=Array("any", None),
    _places_fit=Holds("a column for each of classes_"),
)
class LabelBinarizerXC(BaseEstimator):
    """Turn label names into the columns of a sparse indicator, and back.

    Parameters
    ----------
    separator : str, default=None
        What separates the names if a row is one string, such as ";". Blanks around names are
        ignored. With None, a string is one name.
    classes : array-like of shape (n_labels,), default=None
        All names, in the order of the columns. None takes those that occur, sorted.
    min_count : int, default=1
        Names in fewer rows of ``fit`` are left out, then and later, unless they are in `classes`.
    handle_unknown : {"ignore", "error", "add"}, default="ignore"
        What ``transform`` does with an unknown name: leave it out, with a warning that counts such
        names; raise an error; or give it a column after all others.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The names, in the order of the columns.
    label_counts_ : ndarray of int64 of shape (n_labels,)
        Number of rows of ``fit`` with each name.
    rare_classes_ : ndarray of shape (n_rare,)
        Names left out because of `min_count`.

    See Also
    --------
    sklearn_xc.TextClassifierXC : Does this for you.

    Notes
    -----
    Names are either strings or integers. After ``fit``, an integer stands for its string and the
    other way round: 5 for "5" if names were strings. Time and memory grow with the number of names
    in y, never with rows times labels.

    Examples
    --------
    >>> from sklearn_xc import LabelBinarizerXC
    >>> binarizer = LabelBinarizerXC(separator=";")
    >>> Y = binarizer.fit_transform(["soup; freezing", "bread", None])
    >>> Y.toarray()
    array([[0, 1, 1],
           [1, 0, 0],
           [0, 0, 0]], dtype=int8)
    >>> binarizer.inverse_transform(Y)
    [['freezing', 'soup'], ['bread'], []]
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "separator": [str, None],
        "classes": ["array-like", None],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "handle_unknown": [StrOptions({"error", "ignore", "add"})],
    }

    def __init__(
        self,
        *,
        separator: str | None = None,
        classes: Any = None,
        min_count: int = 1,
        handle_unknown: str = "ignore",
    ) -> None:
        self.separator = separator
        self.classes = classes
        self.min_count = min_count
        self.handle_unknown = handle_unknown

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, y: Any, Y: Any = None) -> "LabelBinarizerXC":
        """Learn the names.

        Parameters
        ----------
        y : iterable of n rows
            Each row is a list of names, or one string of names with `separator` between them; None,
            NaN and NA are rows without names. pandas, polars and pyarrow columns are read, too, as
            are data frames of one column.
        Y : object, default=None
            Not used: a ColumnTransformer passes it.

        Returns
        -------
        LabelBinarizerXC
            Itself.

        Raises
        ------
        ValueError, TypeError
            For a y that holds anything but names, or no name that is frequent enough, and for a
            name that is not among `classes`, with ``handle_unknown="error"``.

        Warns
        -----
        UserWarning
            If rows of one name each look as if they held several, with another separator.
        """
        self._fit(self._read(y))
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, y: Any, Y: Any = None) -> sp.csr_array:
        """Learn the names and return the indicator.

        Parameters
        ----------
        y : iterable of n rows
            As in ``fit``.
        Y : object, default=None
            Not used.

        Returns
        -------
        csr_array of int8 of shape (n, n_labels)
        """
        rows = self._read(y)
        self._fit(rows)
        return self._encode(rows)[0]

    def add_names(self, names: Iterable) -> "LabelBinarizerXC":
        """Give each new name a column after all others.

        Parameters
        ----------
        names : iterable of str or int
            Names that are already known stay where they are.

        Returns
        -------
        LabelBinarizerXC
            Itself.

        Raises
        ------
        ValueError
            For strings if names were integers in fit, or the other way round.

        Examples
        --------
        >>> from sklearn_xc import LabelBinarizerXC
        >>> binarizer = LabelBinarizerXC().fit([["soup", "freezing"], ["bread"]])
        >>> binarizer.classes_.tolist()
        ['bread', 'freezing', 'soup']
        >>> binarizer.add_names(["soup", "baking"]).classes_.tolist()
        ['bread', 'freezing', 'soup', 'baking']
        """
        check_is_fitted(self)
        self._add(names)
        return self

    def transform(self, y: Any) -> sp.csr_array:
        """Return the indicator of lists of names.

        Parameters
        ----------
        y : iterable of n rows
            As in ``fit``.

        Returns
        -------
        csr_array of int8 of shape (n, n_labels)

        Raises
        ------
        ValueError
            For an unknown name, with ``handle_unknown="error"``.

        Warns
        -----
        UnknownLabelWarning
            Counts the names left out.

        Examples
        --------
        >>> from sklearn_xc import LabelBinarizerXC
        >>> binarizer = LabelBinarizerXC().fit([["soup", "freezing"], ["bread"]])
        >>> binarizer.classes_.tolist()
        ['bread', 'freezing', 'soup']
        >>> binarizer.transform([["soup"], ["bread", "freezing"]]).toarray()
        array([[0, 0, 1],
               [1, 1, 0]], dtype=int8)
        """
        check_is_fitted(self)
        rows = self._read_known(y)
        if self.handle_unknown == "add":
            self._add(name for row in rows for name in row)
        Y, unknown = self._encode(rows)
        self._report_unknown(unknown)
        return Y

    def inverse_transform(self, Y: Any) -> list[list]:
        """Return the names of each row of an indicator.

        Parameters
        ----------
        Y : {array-like, sparse matrix} of shape (n, n_labels)
            Binary indicator.

        Returns
        -------
        list of n lists of names
            In the order of the columns.

        Raises
        ------
        ValueError
            For another number of columns, or values other than 0 and 1.
        """
        check_is_fitted(self)
        name = f"{type(self).__name__}: Y"
        Y = Y if sp.issparse(Y) else as_array(Y, name, "a binary indicator")
        if Y.ndim != 2 or Y.shape[1] != len(self.classes_):
            raise ValueError(
                f"{name} must have {len(self.classes_)} columns, one for each label. Got shape "
                f"{Y.shape}."
            )
        labels = pairs_of_sparse(Y, name) if sp.issparse(Y) else pairs_of_dense(Y, name)
        names = self.classes_[labels.columns].tolist()
        ends = [0, *np.cumsum(labels.counts).tolist()]
        return [names[a:b] for a, b in pairwise(ends)]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names as the names of columns, such as those of a ColumnTransformer.

        Parameters
        ----------
        input_features : object, default=None
            Not used.

        Returns
        -------
        ndarray of str objects of shape (n_labels,)
        """
        check_is_fitted(self)
        return self.classes_.astype(str).astype(object)

    def encode(self, y: Any) -> tuple[sp.csr_array, np.ndarray]:
        """Return the indicator of the known names, and how many names each row has.

        For metrics: a name that no training row had cannot be found, and counts as missed.

        Parameters
        ----------
        y : iterable of n rows
            As in ``fit``.

        Returns
        -------
        Y : csr_array of int8 of shape (n, n_labels)
        counts : ndarray of int64 of shape (n,)

        Warns
        -----
        UnknownLabelWarning
            If no name of y is known.

        Examples
        --------
        Only one of two names is known:

        >>> from sklearn_xc import LabelBinarizerXC
        >>> binarizer = LabelBinarizerXC().fit([["soup", "freezing"], ["bread"]])
        >>> binarizer.classes_.tolist()
        ['bread', 'freezing', 'soup']
        >>> Y, counts = binarizer.encode([["soup", "pie"]])
        >>> Y.toarray(), counts
        (array([[0, 0, 1]], dtype=int8), array([2]))
        """
        check_is_fitted(self)
        rows = self._read_known(y)
        Y, unknown = self._encode(rows)
        if unknown and not Y.nnz:
            warn_of_unknown(unknown, self._places, f"{type(self).__name__}: y")
        return Y, np.array([len(row) for row in rows], np.int64)

    def _read(self, y: Any) -> list[list]:
        caller = type(self).__name__
        return read_name_lists(y, check_separator(self.separator, caller), caller)

    def _read_known(self, y: Any) -> list[list]:
        """Read names after fit, as texts if those of fit were texts, else as integers."""
        return [[as_name_of_kind(name, self._are_texts) for name in row] for row in self._read(y)]

    def _fit(self, rows: list[list]) -> None:
        caller = type(self).__name__
        if all(len(row) < 2 for row in rows):
            texts = [name for row in rows for name in row if isinstance(name, str)]
            warn_of_separator(texts, caller)
        counts = Counter(name for row in rows for name in row)
        if self.classes is None:
            names = sorted(counts)
            if not names:
                raise ValueError(f"{caller}: y holds no name, in {len(rows)} rows.")
        else:
            names = check_label_names(self.classes, None, f"{caller}: classes").tolist()
        # Names that the user gave stay, whether they occur or not.
        least = self.min_count if self.classes is None else 0
        kept = [name for name in names if counts[name] >= least]
        if not kept:
            raise ValueError(
                f"{caller}: no name is in {least} rows (min_count). The most frequent is "
                f"{counts.most_common(1)[0][0]!r}, in {counts.most_common(1)[0][1]}."
            )
        self.rare_classes_ = as_name_array([name for name in names if counts[name] < least])
        self._set_names(kept)
        self.label_counts_ = np.array([counts[name] for name in kept], np.int64)
        if self.classes is not None:
            unknown = Counter({n: c for n, c in counts.items() if n not in set(names)})
            if self.handle_unknown == "add":
                self._add(unknown)
                new = self.classes_[len(kept) :].tolist()
                self.label_counts_[len(kept) :] = [unknown[name] for name in new]
            else:
                self._report_unknown(unknown)

    def _add(self, names: Iterable) -> None:
        """Give names that are new columns after all others."""
        kept = set(names) - self._places.keys() - set(self.rare_classes_.tolist())
        strange = next((name for name in kept if isinstance(name, str) != self._are_texts), None)
        if strange is not None:
            kind = "texts" if self._are_texts else "integers"
            raise ValueError(f"{type(self).__name__}: names were {kind} in fit. Got {strange!r}.")
        self._set_names([*self.classes_.tolist(), *sorted(kept)])
        self.label_counts_ = np.append(self.label_counts_, np.zeros(len(kept), np.int64))

    def _of_labels(self, places: np.ndarray) -> "LabelBinarizerXC":
        """Return a binarizer of the names at some positions, in this order."""
        changed = self._with_names(self.classes_[places].tolist())
        changed.label_counts_ = self.label_counts_[places]
        return changed

    def _with_names(self, names: list) -> "LabelBinarizerXC":
        """Return a binarizer with other names of the columns."""
        changed = copy.copy(self)
        changed._set_names(names)
        return changed

    @property
    def _places_fit(self) -> bool:
        return self._places == {name: place for place, name in enumerate(self.classes_.tolist())}

    @property
    def _are_texts(self) -> bool:
        return self.classes_.dtype == object

    def _set_names(self, names: list) -> None:
        self.classes_ = as_name_array(names)
        self._places = {name: place for place, name in enumerate(names)}

    def _encode(self, rows: list[list]) -> tuple[sp.csr_array, Counter]:
        """Return the indicator, and how often names that have no column occur."""
        columns = [self._places.get(name, -1) for row in rows for name in row]
        found = np.array(columns, np.int64)
        known = found >= 0
        indptr = np.concatenate(([0], np.cumsum(known)))[np.cumsum([0, *map(len, rows)])]
        Y = sp.csr_array(
            (np.ones(int(known.sum()), np.int8), found[known], indptr),
            shape=(len(rows), len(self.classes_)),
        )
        Y.sort_indices()
        skipped = {*self._places, *self.rare_classes_.tolist()}
        names = (name for row in rows for name in row) if not known.all() else ()
        return Y, Counter(name for name in names if name not in skipped)

    def _report_unknown(self, unknown: Counter) -> None:
        """Raise or warn, as `handle_unknown` says."""
        if not unknown:
            return
        caller, (name, n) = type(self).__name__, unknown.most_common(1)[0]
        message = (
            f"{caller}: y holds {len(unknown)} unknown names, {name!r} most often ({n} times)."
        )
        if self.handle_unknown == "error":
            raise ValueError(
                f"{message} handle_unknown='ignore' leaves them out, 'add' gives them columns."
            )
        warn(f"{message} They are left out.", UnknownLabelWarning)

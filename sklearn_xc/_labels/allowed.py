"""Which labels an answer may name: some for all instances, some for each, or all but some.

``candidates`` and ``exclude`` of ``predict_topk`` become one record here, whatever form they have:

    1-D                       members of ``classes_``, for all instances
    2-D (sparse or an array)  an indicator with a row for each instance, whose non-zeros are meant
    list of lists             names for each instance, where a function takes them; to exclude, also
                              names that the classifier does not know: what an item has already
    texts of several names    the same, where the targets of fit were such, with a separator
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import refuse_disguised
from sklearn_xc._input.containers import as_sequence, is_missing, to_array
from sklearn_xc._input.sparse import check_sparse, rows_are_canonical
from sklearn_xc._labels.name_lists import (
    is_list,
    names_in,
    of_kind,
    separator_within,
    warn_of_unknown,
)
from sklearn_xc._labels.names import column_names
from sklearn_xc._labels.near_names import did_you_mean

#: Names that a message lists at most.
_TOLD = 5


@dataclass(frozen=True)
class AllowedLabels:
    """The labels that an answer may name, as positions.

    Attributes
    ----------
    n_labels : int
        Of the classifier.
    labels : ndarray of int64
        Rising; those of all rows side by side where each has its own.
    indptr : ndarray of int64 of shape (n + 1,), or None
        Where the labels of each row begin and end; None where they are for all rows.
    are_excluded : bool
        Whether each row may have all labels but these. Never without `indptr`.
    """

    n_labels: int
    labels: np.ndarray
    indptr: np.ndarray | None = None
    are_excluded: bool = False

    @property
    def counts(self) -> np.ndarray:
        """How many labels each row names, int64 of shape (n,)."""
        assert self.indptr is not None
        return np.diff(self.indptr)

    @property
    def rows(self) -> np.ndarray:
        """The row of each label, int64."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def places(self) -> np.ndarray:
        """Where in its row each label is, int64."""
        assert self.indptr is not None
        return np.arange(len(self.labels)) - np.repeat(self.indptr[:-1], self.counts)

    def take(self, rows: np.ndarray) -> "AllowedLabels":
        """Return what some of the rows have."""
        if self.indptr is None:
            return self
        counts = self.counts[rows]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        at = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], counts)
        return AllowedLabels(self.n_labels, self.labels[at], indptr, self.are_excluded)

    def but(self, left_out: np.ndarray) -> "AllowedLabels":
        """Return candidates without some labels; what is excluded stays so, and they are not."""
        if not left_out.size or self.are_excluded:
            return self
        kept = np.ones(self.n_labels, bool)
        kept[left_out] = False
        return self._those(kept[self.labels])

    def only(self, chosen: np.ndarray) -> "AllowedLabels":
        """Return those of some labels that each row may have, as candidates."""
        wanted = np.zeros(self.n_labels, bool)
        wanted[chosen] = True
        if not self.are_excluded:
            return self._those(wanted[self.labels])
        allowed = np.ones((len(self.counts), len(chosen)), bool)
        named = wanted[self.labels]
        allowed[self.rows[named], np.searchsorted(chosen, self.labels[named])] = False
        indptr = np.concatenate(([0], np.cumsum(allowed.sum(axis=1))))
        return AllowedLabels(self.n_labels, chosen[np.nonzero(allowed)[1]], indptr)

    def _those(self, kept: np.ndarray) -> "AllowedLabels":
        if self.indptr is None:
            return AllowedLabels(self.n_labels, self.labels[kept])
        indptr = np.concatenate(([0], np.cumsum(kept)))[self.indptr]
        return AllowedLabels(self.n_labels, self.labels[kept], indptr, self.are_excluded)

    def complement(self) -> "AllowedLabels":
        """Return as candidates what rows that exclude some may have; O(n_labels) for each."""
        counts = self.n_labels - self.counts
        is_free = np.ones((len(counts), self.n_labels), bool)
        is_free[self.rows, self.labels] = False
        indptr = np.concatenate(([0], np.cumsum(counts)))
        return AllowedLabels(self.n_labels, np.nonzero(is_free)[1], indptr)

    def table(self, width: int) -> np.ndarray:
        """Return the labels of each row, int64 of shape (n, width), padded with -1."""
        labels = np.full((len(self.counts), width), -1, np.int64)
        labels[self.rows, self.places] = self.labels
        return labels

    def has(self, labels: np.ndarray) -> np.ndarray:
        """Return which labels of an answer a row may have, bool of shape (n, k); not -1."""
        if self.indptr is None:
            is_allowed = np.zeros(self.n_labels + 1, bool)  # the last stands for -1
            is_allowed[self.labels] = True
            return is_allowed[labels]
        own = np.arange(len(labels), dtype=np.int64)[:, None] * self.n_labels
        named = np.isin(own + labels, self.rows * self.n_labels + self.labels)
        return (labels >= 0) & (named ^ self.are_excluded)

    def moved(self, place: np.ndarray, n_labels: int) -> "AllowedLabels":
        """Return the same for a classifier with other positions; -1 where it lacks a label."""
        if len(place) == n_labels and np.array_equal(place, np.arange(n_labels)):
            return self
        labels = place[self.labels]
        if self.indptr is None:
            return AllowedLabels(n_labels, np.sort(labels[labels >= 0]))
        rows = self.rows
        order = np.lexsort((labels, rows))
        order = order[labels[order] >= 0]
        counts = np.bincount(rows[order], minlength=len(self.counts))
        indptr = np.concatenate(([0], np.cumsum(counts)))
        return AllowedLabels(n_labels, labels[order], indptr, self.are_excluded)

    def as_arguments(self, classes: np.ndarray) -> dict[str, Any]:
        """Return the same as arguments of ``predict_topk``, of a classifier with `classes`."""
        if self.indptr is None:
            return {"candidates": classes[self.labels]}
        name = "exclude" if self.are_excluded else "candidates"
        ones = np.ones(len(self.labels), bool)
        shape = (len(self.counts), self.n_labels)
        return {name: sp.csr_array((ones, self.labels, self.indptr), shape=shape)}


def read_allowed(
    candidates: Any,
    exclude: Any,
    classes: np.ndarray,
    n: int,
    who: str,
    *,
    by_name: bool = False,
    separator: str | None = None,
    X: Any = None,
) -> AllowedLabels | None:
    """Return what `candidates` and `exclude` say, None where both are None.

    Parameters
    ----------
    candidates, exclude : object
        At most one that is not None.
    classes : ndarray of shape (n_labels,)
        Of the classifier.
    n : int
        Instances.
    who : str
        For messages.
    by_name : bool, default=False
        Whether lists of names for each instance are taken.
    separator : str or None
        What stood between the names in one text in fit: so it does here.
    X : object of n instances
        For a column of texts, whether it is one beside these.

    Raises
    ------
    ValueError, TypeError
        For both together, unknown names, other shapes, and what is neither names nor an indicator.
    """
    if candidates is None and exclude is None:
        return None
    if candidates is not None and exclude is not None:
        raise ValueError(
            f"{who}: candidates and exclude must not be given together: leave out of candidates "
            "what is excluded. Got both."
        )
    given, name = (exclude, "exclude") if candidates is None else (candidates, "candidates")
    are_excluded, n_labels, name = candidates is None, len(classes), f"{who}: {name}"
    refuse_disguised(given, name)
    given = as_sequence(given)
    if sp.issparse(given) or len(getattr(given, "shape", ())) > 1:
        _refuse_other_columns(given, classes, name)
        indptr, labels = _of_indicator(given, (n, n_labels), name)
        return AllowedLabels(n_labels, labels, indptr, are_excluded)
    if isinstance(given, str | bytes | dict) or not isinstance(given, Iterable) or (
        getattr(given, "shape", (0,)) == ()
    ):  # fmt: skip
        raise TypeError(
            f"{name} must be a list of members of classes_, or an indicator with a row for each "
            f"instance. Got {given!r}."
        )
    entries = given.tolist() if hasattr(given, "tolist") else list(given)
    if separator is not None and _is_column(given, entries, separator, classes, X):
        if len(entries) != n:
            raise ValueError(
                f"{name} must have a text of names for each of {n} instances, where texts hold "
                f"several names with {separator!r} between them. Got {len(entries)}."
            )
        entries = [[] if is_missing(one) else names_in(one, separator) for one in entries]
    if any(is_list(one) for one in entries):
        if not by_name:
            raise ValueError(
                f"{name} for each instance must be an indicator, a sparse matrix or an array of "
                f"shape ({n}, {n_labels}); topk_names takes lists of names. Got a list of lists."
            )
        rows = [_names_of_row(one, number, name, separator) for number, one in enumerate(entries)]
        if len(rows) != n:
            raise ValueError(
                f"{name} must have a list of names for each of {n} instances. Got {len(rows)}."
            )
        named = [one for row in rows for one in row]
        labels = _places(named, classes, name, may_be_unknown=are_excluded)
        known = np.concatenate(([0], np.cumsum(labels >= 0)))
        indptr = known[np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=int)))]
        labels, shape = labels[labels >= 0], (n, n_labels)
        each = sp.csr_array((np.ones(len(labels), np.int64), labels, indptr), shape=shape)
        indptr, labels = _of_indicator(each, shape, name)
        return AllowedLabels(n_labels, labels, indptr, are_excluded)
    labels = np.unique(_places(entries, classes, name))
    if are_excluded:
        labels = np.delete(np.arange(n_labels), labels)
    return AllowedLabels(n_labels, labels)


def _is_column(given: Any, entries: list, separator: str, classes: np.ndarray, X: Any) -> bool:
    """Return whether entries are texts of names, one for each instance, as y is in fit.

    That is, if one of them holds several names or none, or if they are a column beside X.
    """
    if not entries or not all(isinstance(one, str) or is_missing(one) for one in entries):
        return False
    known = set(classes.tolist())
    if any(
        is_missing(one) or not one.strip() or (separator in one and one not in known)
        for one in entries
    ):
        return True
    are_pandas = hasattr(given, "iloc") and hasattr(X, "iloc")
    return are_pandas and given.index.equals(X.index)


def _names_of_row(entry: Any, number: int, name: str, separator: str | None) -> list:
    if is_missing(entry):
        return []
    if isinstance(entry, str) and separator is not None:
        return names_in(entry, separator)
    if isinstance(entry, dict) or not is_list(entry):
        raise ValueError(
            f"{name} must be names for all instances, or a list of names for each. Got both: "
            f"{entry!r} for instance {number}."
        )
    return entry.tolist() if isinstance(entry, np.ndarray) else list(entry)


def _places(
    names: list, classes: np.ndarray, name: str, *, may_be_unknown: bool = False
) -> np.ndarray:
    """Return the positions of names in `classes`, int64 of shape (n_names,), -1 of unknown ones."""
    known = {one: place for place, one in enumerate(classes.tolist())}
    takes_bools = classes.dtype.kind == "b" or any(isinstance(one, bool) for one in known)
    are_texts = all(isinstance(one, str) for one in known)
    places = np.empty(len(names), np.int64)
    strange: list[Any] = []
    for at, one in enumerate(names):
        is_name = takes_bools or not isinstance(one, bool | np.bool_)
        try:
            places[at] = known.get(of_kind(one, are_texts), -1) if is_name else -1
        except TypeError:  # not hashable
            is_name, places[at] = False, -1
        is_let_pass = is_name and may_be_unknown and not _is_several(one, known)
        is_strange = places[at] < 0 and not is_let_pass
        if is_strange and one not in strange and len(strange) <= _TOLD:
            strange.append(one)
    if may_be_unknown and names and not strange and (places < 0).all():
        warn_of_unknown(names, known, name)
    if strange:
        some = ", ".join(repr(one) for one in strange[:_TOLD])
        separators = (separator_within(one, known) for one in strange)
        separator = next((one for one in separators if one is not None), None)
        hint = did_you_mean(strange[0], known)
        if separator is not None:
            hint = (
                " Several names in one text must be split into a list of names for each instance: "
                f"[text.split({separator!r}) for text in {name.rsplit(maxsplit=1)[-1]}]."
            )
        raise ValueError(
            f"{name} must be members of classes_, the {len(classes)} labels, such as "
            f"{classes[:1].tolist()[0]!r}. Got {some}{', ...' if len(strange) > _TOLD else ''}."
            f"{hint}"
        )
    return places


def _is_several(one: Any, known: dict) -> bool:
    """Return whether a name that is unknown is several known ones in one text."""
    separator = separator_within(one, known)
    return separator is not None and all(part in known for part in names_in(one, separator))


def _of_indicator(given: Any, shape: tuple[int, int], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return row pointers, and the labels of each row, rising."""
    check_sparse(given, name)
    expected = f"{name} must be an indicator of shape {shape}, a row for each instance and a column"
    expected += " for each label, or a list of members of classes_"
    if tuple(given.shape) != shape:
        raise ValueError(f"{expected}. Got shape {tuple(given.shape)}.")
    if not sp.issparse(given):
        values = to_array(given)
        _check_values(values, name)
        rows, labels = np.nonzero(values)
        counts = np.bincount(rows, minlength=shape[0])
        return np.concatenate(([0], np.cumsum(counts))).astype(np.int64), labels.astype(np.int64)
    matrix = given.tocsr()
    n = int(matrix.indptr[-1])
    _check_values(matrix.data[:n], name)
    if not rows_are_canonical(matrix.indptr, matrix.indices[:n]):
        arrays = matrix.data[:n].copy(), matrix.indices[:n].copy(), matrix.indptr.copy()
        matrix = sp.csr_array(arrays, shape=shape)
        matrix.has_canonical_format = False
        matrix.sum_duplicates()
        n = int(matrix.indptr[-1])
    is_meant = matrix.data[:n] != 0
    indptr = np.concatenate(([0], np.cumsum(is_meant)))[matrix.indptr]
    return indptr.astype(np.int64), matrix.indices[:n][is_meant].astype(np.int64)


def _check_values(values: np.ndarray, name: str) -> None:
    if values.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be an indicator of numbers or bools. Got dtype {values.dtype}."
        )
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise ValueError(f"{name} must be an indicator without NaN. Got NaN.")


def _refuse_other_columns(given: Any, classes: np.ndarray, name: str) -> None:
    columns = column_names(given)
    if columns is not None and classes.dtype.kind not in "iu" and columns != classes.tolist():
        raise ValueError(
            f"{name} must have the label columns of classes_, in their order: "
            f"{classes[:3].tolist()}, ... Got {columns[:3]}."
        )

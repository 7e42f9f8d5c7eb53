"""Which labels an answer may contain: some for all instances, some for each, or all but some.

``candidates`` and ``exclude`` of ``predict_topk`` become one record here, whatever form they have:

    1-D                       members of ``classes_``, for all instances
    2-D (sparse or an array)  an indicator with a row for each instance
    list of lists             names for each instance, where a function takes them; lists to exclude
                              may hold names that the classifier does not know
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import as_sequence, is_missing, refuse_masks_and_dates, to_array
from sklearn_xc._input.data import as_csr_rows, check_sparse, entry_places
from sklearn_xc._labels.name_lists import is_list, warn_of_unknown
from sklearn_xc._labels.names import as_name_of_kind, column_names, did_you_mean

#: Names that a message lists at most.
_LISTED = 5


@dataclass(frozen=True)
class AllowedLabels:
    """The labels that an answer may contain, as positions.

    Attributes
    ----------
    n_labels : int
        Of the classifier.
    labels : ndarray of int64
        Ascending; within each row if rows have their own.
    indptr : ndarray of int64 of shape (n + 1,), or None
        Row pointers into `labels`, as in a CSR matrix; None if the labels are for all rows.
    are_excluded : bool
        Whether each row may have all labels but these. Never without `indptr`.
    """

    n_labels: int
    labels: np.ndarray
    indptr: np.ndarray | None = None
    are_excluded: bool = False

    @property
    def counts(self) -> np.ndarray:
        """Number of labels of each row, int64 of shape (n,)."""
        assert self.indptr is not None
        return np.diff(self.indptr)

    @property
    def rows(self) -> np.ndarray:
        """The row of each label, int64."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def places(self) -> np.ndarray:
        """Position of each label within its row, int64."""
        assert self.indptr is not None
        return np.arange(len(self.labels)) - np.repeat(self.indptr[:-1], self.counts)

    def take(self, rows: np.ndarray) -> "AllowedLabels":
        """Return the labels of some rows."""
        if self.indptr is None:
            return self
        at, indptr = entry_places(self.indptr[rows], self.counts[rows])
        return AllowedLabels(self.n_labels, self.labels[at], indptr, self.are_excluded)

    def but(self, left_out: np.ndarray) -> "AllowedLabels":
        """Return candidates without some labels; exclusions are returned unchanged."""
        if not left_out.size or self.are_excluded:
            return self
        kept = np.ones(self.n_labels, bool)
        kept[left_out] = False
        return self._those(kept[self.labels])

    def only(self, chosen: np.ndarray) -> "AllowedLabels":
        """Return as candidates those of the chosen labels that each row may have."""
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
        """Return the same labels at the positions of another classifier, -1 for those it lacks."""
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
        """Return arguments of ``predict_topk`` of a classifier with `classes`."""
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
    caller: str,
    *,
    by_name: bool = False,
) -> AllowedLabels | None:
    """Return the labels that `candidates` or `exclude` allow, None if both are None.

    Parameters
    ----------
    candidates, exclude : object
        At most one that is not None.
    classes : ndarray of shape (n_labels,)
        Of the classifier.
    n : int
        Instances.
    caller : str
        For messages.
    by_name : bool, default=False
        Whether lists of names for each instance are accepted.

    Raises
    ------
    ValueError, TypeError
        For both together, unknown names, other shapes, and anything but names or an indicator.
    """
    if candidates is None and exclude is None:
        return None
    if candidates is not None and exclude is not None:
        raise ValueError(
            f"{caller}: candidates and exclude must not be given together: leave out of candidates "
            "what is excluded. Got both."
        )
    are_excluded = candidates is None
    n_labels = len(classes)
    given, name = (exclude, "exclude") if are_excluded else (candidates, "candidates")
    name = f"{caller}: {name}"
    refuse_masks_and_dates(given, name)
    given = as_sequence(given)
    if sp.issparse(given) or len(getattr(given, "shape", ())) > 1:
        _refuse_other_columns(given, classes, name)
        return AllowedLabels(n_labels, *_of_indicator(given, (n, n_labels), name), are_excluded)
    is_scalar = isinstance(given, str | bytes | dict) or getattr(given, "shape", (0,)) == ()
    if is_scalar or not isinstance(given, Iterable):
        raise TypeError(
            f"{name} must be a list of members of classes_, or an indicator with a row for each "
            f"instance. Got {given!r}."
        )
    entries = given.tolist() if hasattr(given, "tolist") else list(given)
    if any(is_list(one) for one in entries):
        if not by_name:
            raise ValueError(
                f"{name} for each instance must be an indicator, a sparse matrix or an array of "
                f"shape ({n}, {n_labels}); topk_names takes lists of names. Got a list of lists."
            )
        each = _of_lists(entries, classes, n, name, may_be_unknown=are_excluded)
        return AllowedLabels(n_labels, *_of_indicator(each, (n, n_labels), name), are_excluded)
    labels = np.unique(_positions(entries, classes, name))
    if are_excluded:
        labels = np.delete(np.arange(n_labels), labels)
    return AllowedLabels(n_labels, labels)


def _of_lists(
    entries: list, classes: np.ndarray, n: int, name: str, *, may_be_unknown: bool
) -> sp.csr_array:
    """Return lists of names, one for each instance, as an indicator."""
    rows = [_names_of_row(one, number, name) for number, one in enumerate(entries)]
    if len(rows) != n:
        raise ValueError(
            f"{name} must have a list of names for each of {n} instances. Got {len(rows)}."
        )
    named = [one for row in rows for one in row]
    labels = _positions(named, classes, name, may_be_unknown=may_be_unknown)
    known = np.concatenate(([0], np.cumsum(labels >= 0)))
    indptr = known[np.concatenate(([0], np.cumsum([len(row) for row in rows], dtype=int)))]
    labels = labels[labels >= 0]
    return sp.csr_array((np.ones(len(labels), np.int64), labels, indptr), shape=(n, len(classes)))


def _names_of_row(entry: Any, number: int, name: str) -> list:
    if is_missing(entry):
        return []
    if isinstance(entry, dict) or not is_list(entry):
        raise ValueError(
            f"{name} must be names for all instances, or a list of names for each. Got both: "
            f"{entry!r} for instance {number}."
        )
    return entry.tolist() if isinstance(entry, np.ndarray) else list(entry)


def _positions(
    names: list, classes: np.ndarray, name: str, *, may_be_unknown: bool = False
) -> np.ndarray:
    """Return the positions of names in `classes`, int64 of shape (n_names,), -1 if unknown."""
    known = {one: position for position, one in enumerate(classes.tolist())}
    takes_bools = any(isinstance(one, bool) for one in known)
    positions = np.full(len(names), -1, np.int64)
    are_texts = all(isinstance(one, str) for one in known)
    strange: list[Any] = []
    for at, one in enumerate(names):
        is_name = isinstance(one, Hashable) and (
            takes_bools or not isinstance(one, bool | np.bool_)
        )
        if is_name:
            positions[at] = known.get(as_name_of_kind(one, are_texts), -1)
        if positions[at] < 0 and not (is_name and may_be_unknown) and one not in strange:
            strange.append(one)
    if strange:
        listed = ", ".join(repr(one) for one in strange[:_LISTED])
        raise ValueError(
            f"{name} must be members of classes_, the {len(classes)} labels, such as "
            f"{classes[:1].tolist()[0]!r}. Got {listed}{', ...' if len(strange) > _LISTED else ''}."
            f"{did_you_mean(strange[0], known)}"
        )
    if names and (positions < 0).all():
        warn_of_unknown(names, known, name)
    return positions


def _of_indicator(given: Any, shape: tuple[int, int], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of each row, ascending, and row pointers."""
    check_sparse(given, name)
    expected = f"{name} must be an indicator of shape {shape}, a row for each instance and a column"
    expected += " for each label, or a list of members of classes_"
    if tuple(given.shape) != shape:
        raise ValueError(f"{expected}. Got shape {tuple(given.shape)}.")
    matrix = given.tocsr() if sp.issparse(given) else to_array(given)
    if matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be an indicator of numbers or bools. Got dtype {matrix.dtype}."
        )
    if np.isnan(matrix.data if sp.issparse(matrix) else matrix).any():
        raise ValueError(f"{name} must be an indicator without NaN. Got NaN.")
    rows = as_csr_rows(matrix if sp.issparse(matrix) else matrix != 0).without_zeros()
    return rows.indices.astype(np.int64), rows.indptr


def _refuse_other_columns(given: Any, classes: np.ndarray, name: str) -> None:
    columns = column_names(given)
    if columns is not None and classes.dtype.kind not in "iu" and columns != classes.tolist():
        raise ValueError(
            f"{name} must have the label columns of classes_, in their order: "
            f"{classes[:3].tolist()}, ... Got {columns[:3]}."
        )

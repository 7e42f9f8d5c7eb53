"""The labels of two models and of the truth, matched by name."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from sklearn_xc._arguments import refuse_disguised
from sklearn_xc._containers import as_sequence, frame_columns
from sklearn_xc._label_names import check_label_names, column_names, places_in
from sklearn_xc._name_lists import are_name_lists, read_name_lists
from sklearn_xc._out_of_fold import classes_of
from sklearn_xc._topk import topk, unwrap
from sklearn_xc.metrics.check import TrueLabels, as_array, check_y_true


@dataclass(frozen=True)
class CommonLabels:
    """All labels that one of two models knows, and then those that only the truth has.

    Attributes
    ----------
    names : list
        Of each label.
    n_known : int
        How many of them some model knows: the first ones.
    places : tuple of two ndarray of int64
        For each model, the positions of its ``classes_`` among the names.
    true : TrueLabels
        What is true of each instance, in positions among the names.
    counts : ndarray of int64 of shape (n_labels,) or None
        Training instances of each label, in the model that had more. None where no model says.
    n_trained : tuple of two int or None
        Training instances of each model, None where it does not say.
    """

    names: list
    n_known: int
    places: tuple[np.ndarray, np.ndarray]
    true: TrueLabels
    counts: np.ndarray | None
    n_trained: tuple[int | None, int | None]

    def rank(self, which: int, model: Any, X: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best labels of each instance, in positions among the names, and scores."""
        labels, scores = topk(model, X, k)
        place = self.places[which]
        return np.where(labels >= 0, place[labels], -1), scores

    def predict(self, which: int, model: Any, X: Any) -> sp.csr_array | None:
        """Return what ``predict`` names as an indicator, None where it gives one class each."""
        if not hasattr(model, "predict"):
            return None
        answer = model.predict(X)
        shape = (len(self.true.counts), len(self.names))
        if isinstance(answer, list) and are_name_lists(answer):
            at = {name: place for place, name in enumerate(self.names)}
            columns = np.array([at[name] for row in answer for name in row], np.int64)
            indptr = np.cumsum([0, *map(len, answer)])
        else:
            indicator = answer if sp.issparse(answer) else np.asarray(answer)
            if indicator.ndim != 2:
                return None
            found = sp.csr_array(indicator)
            found.eliminate_zeros()
            columns, indptr = self.places[which][found.indices], found.indptr
        ones = np.ones(len(columns), np.int8)
        named = sp.csr_array((ones, columns, indptr), shape=shape)
        named.sort_indices()
        return named


def common_labels(who: str, models: tuple[Any, Any], y: Any, classes: Any) -> CommonLabels:
    """Match the labels of two fitted models, and read the truth.

    Parameters
    ----------
    who : str
        For messages.
    models : tuple of two classifiers
    y : {array-like, sparse matrix} of shape (n, n_labels) or (n,), or lists of names
        True labels, in a form that one of the models was fitted with.
    classes : array-like of shape (n_labels,) or None
        Names of the columns of y.

    Raises
    ------
    ValueError
        If the labels cannot be matched by name.
    TypeError
        For a model without ``classes_``.
    """
    insides = [unwrap(model, None)[0] for model in models]
    for inside, name in zip(insides, ("model_a", "model_b"), strict=True):
        check_is_fitted(inside)
        if not hasattr(inside, "classes_"):
            raise TypeError(
                f"{who}: {name} must be a classifier. Got {type(inside).__name__} without classes_."
            )
    own = [classes_of(model) for model in models]
    refuse_disguised(y, f"{who}: y")
    readers = [inside for inside in insides if getattr(inside, "binarizer_", None) is not None]
    y = as_sequence(y)
    is_table = sp.issparse(y) or frame_columns(y) is not None
    if not is_table and (are_name_lists(y) or (readers and len(np.shape(y)) == 1)):
        separator = next((one.separator for one in readers if one.separator is not None), None)
        rows = read_name_lists(y, separator, who)
        return _of_names(who, own, insides, rows, f"y such as {rows[0][:1]}" if rows else "y")
    if not sp.issparse(y):
        array = as_array(y, f"{who}: y", "an indicator, one class per row, or lists of names")
        if array.ndim == 2 and array.shape[1] == 1 and len(own[0]) > 1:
            array = array[:, 0]
        if array.ndim == 1:
            one_each = [[one] for one in array.tolist()]
            return _of_names(who, own, insides, one_each, f"y such as {array[:1].tolist()}")
    return _of_columns(who, own, insides, y, classes)


def _of_names(
    who: str, own: list[np.ndarray], insides: list[Any], rows: list[list], what: str
) -> CommonLabels:
    """Return the labels where y holds names or classes."""
    places: dict[Any, int] = {}
    kinds: dict[bool, str] = {}
    for names, source in ((own[0], "model_a"), (own[1], "model_b")):
        _add(places, names.tolist())
        kinds.setdefault(isinstance(names.tolist()[0], str), f"{source}.classes_")
    n_known = len(places)
    _add(places, (name for row in rows for name in row))
    true_names = list(places)[n_known:]
    if true_names:
        kinds.setdefault(isinstance(true_names[0], str), what)
    if len(kinds) > 1:
        raise ValueError(
            f"{who}: labels are matched by name, which needs names of one kind, all texts or all "
            f"numbers. Got texts in {kinds[True]} and numbers in {kinds[False]}: fit with "
            "label_names, or pass y as an indicator with classes, the names of its columns."
        )
    columns = np.array([places[name] for row in rows for name in row], np.int64)
    indptr = np.cumsum([0, *map(len, rows)])
    Y = sp.csr_array((np.ones(len(columns), np.int8), columns, indptr),
                     shape=(len(rows), len(places)))  # fmt: skip
    both = tuple(np.array([places[name] for name in names.tolist()], np.int64) for names in own)
    return _with_counts(list(places), n_known, both, check_y_true(Y), insides)


def _of_columns(
    who: str, own: list[np.ndarray], insides: list[Any], y: Any, classes: Any
) -> CommonLabels:
    """Return the labels where y is an indicator."""
    true = check_y_true(y)
    n_columns = int(true.n_labels or 0)
    columns = column_names(y) if classes is None else classes
    if columns is not None:
        known = check_label_names(columns, n_columns, f"{who}: classes")
    else:
        for name, each in zip(("model_a", "model_b"), own, strict=True):
            if len(each) != n_columns:
                raise ValueError(
                    f"{who}: y must have a column for each of the {len(each)} labels of {name}, or "
                    f"its columns must be named (classes). Got {n_columns} columns."
                )
        if (places_in(own[0], own[1], are_columns=True) != np.arange(n_columns)).any():
            raise ValueError(
                f"{who}: the two models have different classes_, and y does not say whose columns "
                "it has. Pass classes, the names of y's columns, or y as lists of names. Got "
                f"classes_ that begin with {own[0][:3].tolist()} and {own[1][:3].tolist()}."
            )
        has_names = [each.dtype.kind not in "iu" for each in own]
        known = own[1] if has_names == [False, True] else own[0]
    names = known.tolist()
    placed: list[np.ndarray] = []
    for name, each in zip(("model_a", "model_b"), own, strict=True):
        place = places_in(known, each, are_columns=True)
        if isinstance(each.tolist()[0], str) != isinstance(names[0], str) and (place < 0).any():
            raise ValueError(
                f"{who}: {name} must know its labels by the names of y's columns, or have as many "
                f"as there are columns ({n_columns}). Got {len(each)} that begin with "
                f"{each[:3].tolist()}."
            )
        placed.append(place)
    in_order = {name: at for at, name in enumerate(names)}
    for at, (each, place) in enumerate(zip(own, placed, strict=True)):
        unknown = np.flatnonzero(place < 0)  # it may name them, and they are never true
        _add(in_order, each[unknown].tolist())
        placed[at] = place.copy()
        placed[at][unknown] = [in_order[name] for name in each[unknown].tolist()]
    true = true._replace(n_labels=len(in_order))
    return _with_counts(list(in_order), len(in_order), (placed[0], placed[1]), true, insides)


def _add(places: dict[Any, int], names: Iterable) -> None:
    for name in names:
        places.setdefault(name, len(places))


def _with_counts(
    names: list, n_known: int, places: Any, true: TrueLabels, insides: list[Any]
) -> CommonLabels:
    counts = None
    for inside, place in zip(insides, places, strict=True):
        own = getattr(inside, "label_counts_", None)
        if own is not None and len(own) == len(place):
            counts = np.zeros(len(names), np.int64) if counts is None else counts
            counts[place] = np.maximum(counts[place], np.asarray(own).astype(np.int64))
    n_trained = [getattr(inside, "n_samples_fit_", None) for inside in insides]
    return CommonLabels(names, n_known, places, true, counts, (n_trained[0], n_trained[1]))

"""Any classifier as a part of another: its fit to some rows, and its top k of others."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_xc._input.data import as_rows
from sklearn_xc._input.sklearn_private import safe_indexing
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.progress import Task
from sklearn_xc._topk import classes_of, never_seen, topk_allowed, unwrap
from sklearn_xc.exceptions import MemoryBudgetError, SavedModelError

#: Errors that name their estimator themselves.
_OWN = (NotFittedError, SavedModelError)


class Answers(NamedTuple):
    """The best labels of some instances and their scores.

    Attributes
    ----------
    labels : ndarray of int64 of shape (n, k)
        Positions among the labels of the whole y, best first, padded with -1.
    scores : ndarray of float of shape (n, k)
        Padded with -inf.
    """

    labels: np.ndarray
    scores: np.ndarray

    def without(self, left_out: np.ndarray) -> "Answers":
        """Return the same without some labels, given by a mask of shape (n_labels,)."""
        is_out = (self.labels >= 0) & left_out[self.labels]
        order = np.argsort(is_out, axis=1, kind="stable")
        kept = np.where(is_out, -1, self.labels), np.where(is_out, -np.inf, self.scores)
        return Answers(*(np.take_along_axis(one, order, axis=1) for one in kept))


def fit_clone(
    part: str,
    estimator: Any,
    X: Any,
    y: Any,
    arguments: Mapping[str, Any],
    rows: np.ndarray | None,
    caller: str,
    task: Task | None = None,
) -> tuple[Any, float]:
    """Return a clone fitted to some of the rows, and the seconds that it took.

    Parameters
    ----------
    part : str
        The name of the estimator in errors, such as "estimator 'ova'".
    estimator : estimator
    X, y : object
        All instances and their labels.
    arguments : mapping of str to object
        Further arguments of ``fit``, for the rows that it is fitted to.
    rows : ndarray of int64, or None
        None for all.
    caller : str
        For messages.
    task : Task, default=None
        Reports the fit to callbacks.
    """
    began = time.perf_counter()
    if rows is not None:
        X, y = safe_indexing(as_rows(X), rows), safe_indexing(as_rows(y), rows)
    fitted = clone(estimator)
    task = Task() if task is None else task
    with named_errors(part, caller), task.around(fitted):
        fitted.fit(X, y, **arguments)
    return fitted, time.perf_counter() - began


def tagger_in(estimator: Any) -> Any:
    """Return the ``TextClassifierXC`` inside Pipelines and searches, fitted or not, or None."""
    while estimator is not None and not hasattr(estimator, "encode_targets"):
        is_pipeline = hasattr(estimator, "steps")
        estimator = estimator.steps[-1][1] if is_pipeline else getattr(estimator, "estimator", None)
    return estimator


def fitted_counterpart(fitted: Any, key: str) -> Any:
    """Return the fitted part of a parameter such as ``estimator__estimator``, None if unknown."""
    for name in key.split("__") if key else ():
        members = getattr(fitted, "named_estimators_", getattr(fitted, "named_steps", {}))
        fitted = members[name] if name in members else getattr(fitted, f"{name}_", None)
    return fitted


def predict_topk_of(
    part: str,
    fitted: Any,
    X: Any,
    k: int,
    classes: np.ndarray,
    caller: str,
    *,
    are_columns: bool,
    allowed: AllowedLabels | None = None,
    unseen: np.ndarray,
) -> Answers:
    """Return the k best labels of each instance, as positions in `classes`.

    Parameters
    ----------
    part, fitted, X, k
        The classifier's name in errors, the classifier, instances, and how many labels.
    classes : ndarray of shape (n_labels,)
    caller : str
        For messages.
    are_columns : bool
        Whether `classes` are columns of an indicator, which the classifier may number where they
        have names.
    allowed : AllowedLabels, default=None
        Labels that may be returned, as positions in `classes`.
    unseen : ndarray of int64
        Labels without a training instance, likewise.

    Raises
    ------
    ValueError
        If it answers with other classes; and whatever the classifier raises.
    """
    if allowed is not None:
        own = classes_of(fitted)
        places = np.full(len(classes) + 1, -1)  # the last is of classes that y does not have
        places[positions_of(own, classes, are_columns=are_columns)] = np.arange(len(own))
        allowed = allowed.moved(places[:-1], len(own))
    with named_errors(part, caller):
        # After a 1-D y, a classifier has the classes of its training rows only.
        labels, scores = topk_allowed(fitted, X, k, allowed, unseen if are_columns else ())
        known = classes_of(fitted)
    place = positions_of(known, classes, are_columns=are_columns)
    if (place < 0).any():
        raise ValueError(
            f"{caller}: {part} answers with classes that y does not have. Got "
            f"{known[:5].tolist()}, expected some of {classes[:5].tolist()}."
        )
    return Answers(np.where(labels >= 0, place[labels], -1), scores)


def known_counts(
    members: Sequence[Any], classes: np.ndarray, *, are_columns: bool
) -> tuple[np.ndarray, int] | None:
    """Return training instances of each of `classes`, and of all, None if no member counted them.

    Both are those of the first fitted member that has counts: propensities need counts of a single
    training set. 0 for classes that it does not have.
    """
    for member in members:
        classifier = unwrap(member, None)[0]
        if hasattr(classifier, "label_counts_") and hasattr(classifier, "n_samples_fit_"):
            place = positions_of(classes_of(classifier), classes, are_columns=are_columns)
            known = place >= 0
            counts = np.zeros(len(classes), np.int64)
            counts[place[known]] = classifier.label_counts_[known]
            return counts, classifier.n_samples_fit_
    return None


def unknown_to(members: Sequence[Any], label_counts: np.ndarray, *, is_prefit: bool) -> np.ndarray:
    """Return labels without a training instance that no fitted member knows, ascending.

    `label_counts` are training instances of each label; prefit members without counts may have
    been fitted to other rows.
    """
    inner = [unwrap(member, None)[0] for member in members]
    are_counted = not is_prefit or not inner or any(hasattr(one, "label_counts_") for one in inner)
    unseen = np.flatnonzero(label_counts == 0) if are_counted else np.arange(len(label_counts))
    for one in inner:
        if hasattr(one, "predict_topk") and len(classes_of(one)) == len(label_counts):
            own = getattr(one, "_unseen_labels", ())
        elif are_counted:  # it was fitted to the counted rows only
            continue
        else:
            own = never_seen(one)
        unseen = unseen[np.isin(unseen, own)]
    return unseen


class named_errors:  # noqa: N801  used as a function
    """Prefix errors of a part of an estimator with its name."""

    def __init__(self, part: str, caller: str) -> None:
        self.part, self.caller = part, caller

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for plain in (ValueError, TypeError, MemoryBudgetError):
            if isinstance(error, plain) and not isinstance(error, _OWN):
                raise plain(f"{self.caller}: {self.part}: {error}") from error

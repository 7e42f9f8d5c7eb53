"""Fits of any classifier to some rows, and its top k of others."""

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from sklearn_xc._input.sklearn_private import num_samples, safe_indexing
from sklearn_xc._labels.allowed import AllowedLabels
from sklearn_xc._labels.names import positions_of
from sklearn_xc._parallel.progress import Task
from sklearn_xc._topk import classes_of, never_seen, topk_allowed, unwrap
from sklearn_xc.exceptions import MemoryBudgetError, SavedModelError


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


def as_rows(data: Any) -> Any:
    """Return data in a form that can be indexed by rows."""
    if hasattr(data, "tocsr"):
        return data.tocsr()
    is_array_like = hasattr(data, "__array__") and not hasattr(data, "__getitem__")
    return np.asarray(data) if is_array_like else data


def n_rows(X: Any, caller: str) -> int:
    """Return the number of instances, at least one."""
    n = int(num_samples(X))
    if not n:
        shape = getattr(X, "shape", (0,))
        raise ValueError(
            f"{caller}: X has 0 sample(s) (shape={shape}), a minimum of 1 is required by {caller}."
        )
    return n


def in_parts(X: Any, n: int, size: int) -> Iterator[Any]:
    """Yield the n instances of X in chunks of `size` rows."""
    X = as_rows(X)
    if n <= size:
        yield X
        return
    for first in range(0, n, size):
        yield safe_indexing(X, slice(first, min(first + size, n)))


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


class RoutesFit:
    """Passes arguments of ``fit`` on to the estimators inside and to `cv`.

    The rules are those of :class:`sklearn.calibration.CalibratedClassifierCV`, but without metadata
    routing weights reach the last step of a Pipeline, too.
    """

    #: Whether weights also count after the training of the parts.
    _weighs_answers = True

    def _routed_parts(self) -> dict[str, Any]:
        """Return the estimators to fit, by name; None for a default. Defined by subclasses."""
        raise NotImplementedError

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that ``fit`` passes on to the estimators inside and to `cv`.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(method_mapping=to_fit, **self._routed_parts())
        return router.add(cv=getattr(self, "cv", None), method_mapping=to_split)

    def _routed(self, weight: np.ndarray | None, params: Mapping[str, Any]) -> Bunch:
        """Return the arguments of ``fit`` of each part, by its name, and of ``cv.split``."""
        parts = self._routed_parts()
        caller = type(self).__name__
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weight, **params)
        else:
            if params and not parts.keys() - {"final_estimator"}:
                raise TypeError(
                    f"{caller}: fit got {sorted(params)}, but trains no estimator that takes them. "
                    "Arguments for cv need metadata routing: "
                    "sklearn.set_config(enable_metadata_routing=True)."
                )
            routed = Bunch(cv=Bunch(split={}))
            for name, part in parts.items():
                further = {} if name == "final_estimator" else params
                routed[name] = Bunch(fit={**further, **self._weight_argument(name, part, weight)})
        for name, part in parts.items():
            if part is None and weight is not None:
                routed[name] = Bunch(fit={"sample_weight": weight})
        return routed

    def _weight_argument(self, name: str, part: Any, weight: np.ndarray | None) -> dict[str, Any]:
        """Return weights as an argument of ``fit`` of a part, in a Pipeline of its last step."""
        if part is None or weight is None:
            return {}
        prefix = ""
        while hasattr(part, "steps"):
            step, part = part.steps[-1]
            prefix += f"{step}__"
        taken = signature(part.fit).parameters.values()
        takes_weights = any(
            one.name == "sample_weight" or one.kind is one.VAR_KEYWORD for one in taken
        )
        if self._weighs_answers and not takes_weights:
            warnings.warn(
                f"{type(self).__name__}: {name} does not take sample_weight: it is trained without "
                "weights, and only what is learned from its scores is weighted.",
                UserWarning,
                stacklevel=7,
            )
            return {}
        return {f"{prefix}sample_weight": weight}


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
    """Return labels without a training instance that no fitted member knows, rising.

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


#: Errors that name their estimator themselves.
_OWN = (NotFittedError, SavedModelError)


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

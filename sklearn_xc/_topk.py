"""The k best labels from any fitted classifier, also inside Pipelines and searches."""

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.arguments import check_topk_size, refuse_masks_and_dates
from sklearn_xc._input.data import check_sparse, in_parts
from sklearn_xc._input.sklearn_private import ConstantPredictor, num_samples
from sklearn_xc._labels.allowed import AllowedLabels, read_allowed

#: Number of dense scores of a foreign estimator that are reduced at a time.
_CHUNK_SCORES = 2**24
#: Labels that may be returned, or a function that reads them from n and ``classes_``.
Allowed = Callable[[int, np.ndarray], AllowedLabels | None] | AllowedLabels | None


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the classifier inside Pipelines and searches, and X as it reaches that classifier.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, possibly the last step of a Pipeline, the best estimator of a search,
        or wrapped in a meta-estimator with a fitted ``estimator_``.
    X : object
        Input for `estimator`.

    Returns
    -------
    classifier : estimator
    X : object
        Transformed by all steps before it.
    """
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            for step in transformers_of(estimator) if X is not None else ():
                X = step.transform(X)
            estimator = estimator[-1]
        elif _is_wrapper(estimator):
            estimator = estimator.estimator_
        else:
            return estimator, X


def transformers_of(pipeline: Any) -> list[Any]:
    """Return the steps of a Pipeline that an X to be predicted passes before the last one.

    Samplers of imbalanced-learn, which have ``fit_resample``, change training rows only.
    """
    steps = [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]
    return [step for step in steps if not hasattr(step, "fit_resample")]


def _is_wrapper(estimator: Any) -> bool:
    # The estimator_ of an ensemble is not fitted: it is what its estimators_ were copied from.
    has = {name: hasattr(estimator, name) for name in ("predict_topk", "estimator_", "estimators_")}
    return has["estimator_"] and not has["estimators_"] and not has["predict_topk"]


def classes_of(fitted: Any) -> np.ndarray:
    """Return the classes of a fitted classifier; column numbers if each has its own classes."""
    known = unwrap(fitted, None)[0].classes_
    return np.arange(len(known)) if _are_by_label(known) else np.asarray(known)


def _are_by_label(classes: Any) -> bool:
    # A random forest fitted to an indicator has the classes of each column.
    return isinstance(classes, list) and bool(classes) and isinstance(classes[0], np.ndarray)


def never_seen(classifier: Any) -> np.ndarray:
    """Return the labels without training instance of a foreign classifier, if they can be found.

    That is in a classifier that keeps the classes of each label, such as a random forest, or an
    estimator for each label, as ``OneVsRestClassifier`` does.

    Returns
    -------
    ndarray of int64
        Positions in ``classes_``, ascending.
    """
    of_each = getattr(classifier, "classes_", None)
    if not _are_by_label(of_each):
        members = getattr(classifier, "estimators_", ())
        of_each = [one.y_ if isinstance(one, ConstantPredictor) else () for one in members]
    if len(of_each) < 2:  # of the only class of a 1-D y
        return np.empty(0, np.int64)
    return np.flatnonzero([len(own) == 1 and not own[0] for own in of_each])


def topk(
    estimator: Any, X: Any, k: int = 5, *, candidates: Any = None, exclude: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of each instance from any fitted classifier, best first.

    Pipelines and searches do not forward ``predict_topk``; this function looks inside them. For a
    classifier without that method, it calls ``decision_function`` or ``predict_proba`` on a part
    of the rows at a time. Labels that no training row had then come last, as far as the classifier
    shows which these are: ``OneVsRestClassifier`` scores them 0, above most other labels.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, Pipeline, search, or wrapper around one.
    X : object of n instances
        Input for `estimator`.
    k : int, default=5
        How many labels; may exceed their number.
    candidates : sequence, or indicator of shape (n, n_labels), default=None
        The labels that may be returned: members of the classifier's ``classes_``, for all
        instances; or, for each instance, a row of a sparse matrix or array whose non-zeros mark
        the labels. None allows all.
    exclude : sequence, or indicator of shape (n, n_labels), default=None
        The labels that may not be returned, in the same forms. Not together with `candidates`.

    Returns
    -------
    indices : ndarray of int64 of shape (n, k)
        Positions in the classifier's ``classes_``, padded with -1. Ties go to the smaller
        position.
    scores : ndarray of float of shape (n, k)
        Padded with -inf.

    Raises
    ------
    ValueError
        If `k` is not a positive integer, if the index arrays of a sparse matrix point outside its
        shape, or if `candidates` or `exclude` name unknown labels, have the wrong shape, or are
        both given.
    TypeError
        If the estimator gives no scores for classes, if X is a masked array, or if `candidates` or
        `exclude` are given and the estimator's ``predict_topk`` does not take them.
    MemoryBudgetError
        If an answer with k columns does not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MaxAbsScaler
    >>> from sklearn_xc import OvALinearXC, topk
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> model = make_pipeline(MaxAbsScaler(), OvALinearXC(C=1.0)).fit(X, Y)
    >>> topk(model, X, k=1)[0]
    array([[0],
           [1],
           [0]])
    >>> topk(model, X, k=1, exclude=Y[:, ::-1])[0]
    array([[ 0],
           [ 1],
           [-1]])
    """
    if candidates is None and exclude is None:
        return topk_allowed(estimator, X, k, None)
    return topk_allowed(
        estimator, X, k, lambda n, classes: read_allowed(candidates, exclude, classes, n, "topk")
    )


def topk_allowed(
    estimator: Any,
    X: Any,
    k: int,
    allowed: Allowed,
    unseen: Any = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Return the answer of ``topk``, with `candidates` and `exclude` already read.

    Parameters
    ----------
    estimator, X, k
        As of ``topk``.
    allowed : AllowedLabels, callable or None
        Positions in the classifier's ``classes_``, or a function that reads them from n and these.
    unseen : sequence of int, default=()
        Positions of labels without a training instance. They come last, unless the classifier has
        a ``predict_topk`` of its own.
    """
    check_sparse(X, "X", "topk")
    if np.ma.isMaskedArray(X):
        refuse_masks_and_dates(X, "topk: X")
    k = check_topk_size(k, X)
    given, (classifier, X) = X, unwrap(estimator, X)
    if callable(allowed):
        allowed = allowed(int(num_samples(given)), classes_of(classifier))
    if hasattr(classifier, "predict_topk"):
        if allowed is None:
            return classifier.predict_topk(X, k)
        try:
            signature(classifier.predict_topk).bind(X, k, candidates=None, exclude=None)
        except TypeError as error:
            raise TypeError(
                f"topk: candidates and exclude need a predict_topk with these arguments. "
                f"{type(classifier).__name__} has none."
            ) from error
        return classifier.predict_topk(X, k, **allowed.as_arguments(classes_of(classifier)))
    method = next((m for m in ("decision_function", "predict_proba") if hasattr(classifier, m)), "")
    if not method:
        raise TypeError(
            f"topk needs predict_topk, decision_function or predict_proba, and "
            f"{type(classifier).__name__} has none of them."
        )
    parts = []
    first = 0
    for scores in _dense_scores(classifier, method, X):
        rows = np.arange(first, first := first + len(scores))
        scores, last = _with_unseen(scores, classifier, method, unseen)
        own = None if allowed is None else allowed.take(rows)
        parts.append(best_of_dense(scores, k, own, last))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def topk_probabilities(
    estimator: Any, X: Any, k: int, allowed: Allowed
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of each instance by score, and their probabilities.

    Parameters
    ----------
    estimator, X, k, allowed
        As of ``topk_allowed``.

    Returns
    -------
    indices : ndarray of int64 of shape (n, k)
        Padded with -1.
    probabilities : ndarray of float of shape (n, k)
        Padded with 0; NaN where a sparse ``predict_proba`` has no entry.

    Raises
    ------
    TypeError
        If the classifier gives no probabilities.
    """
    check_sparse(X, "X", "topk")
    k, given = check_topk_size(k, X), X
    classifier, X = unwrap(estimator, X)
    if callable(allowed):
        allowed = allowed(int(num_samples(given)), classes_of(classifier))
    if hasattr(classifier, "predict_proba_topk"):
        arguments = {} if allowed is None else allowed.as_arguments(classes_of(classifier))
        return classifier.predict_proba_topk(X, k, **arguments)
    if not hasattr(classifier, "predict_proba"):
        name = type(classifier).__name__
        reads_names = hasattr(classifier, "encode_targets")  # such as a TextClassifierXC
        inner = f"{name}(classifier=TopKCalibrator(...))"
        both = inner if reads_names else f"TopKCalibrator({name}(...))"
        raise TypeError(
            "return_probabilities=True needs a classifier with predict_proba_topk or "
            f"predict_proba: {both} has both. Got {name}."
        )
    labels, _ = topk_allowed(classifier, X, k, allowed)
    probabilities = np.zeros(labels.shape)
    step = max(1, _CHUNK_SCORES // max(1, len(classes_of(classifier))))
    for at, part in enumerate(in_parts(X, len(labels), step)):
        rows = slice(at * step, (at + 1) * step)
        dense = as_matrix(classifier.predict_proba(part), classifier)
        if sp.issparse(dense):
            stored, dense = dense.tocoo(), np.full(dense.shape, np.nan)
            dense[stored.row, stored.col] = stored.data
        found = np.take_along_axis(dense, np.maximum(labels[rows], 0), axis=1)
        probabilities[rows] = np.where(labels[rows] >= 0, found, 0.0)
    return labels, probabilities


def as_matrix(scores: Any, classifier: Any) -> Any:
    """Return scores or probabilities of a classifier as one matrix, a column for each class."""
    if isinstance(scores, list):  # of one array (n, n_classes) per label, as random forests do
        both = zip(scores, classifier.classes_, strict=True)
        return np.column_stack([s @ np.asarray(classes, bool) for s, classes in both])
    return scores.tocsr() if sp.issparse(scores) else np.asarray(scores)


def _dense_scores(classifier: Any, method: str, X: Any) -> Iterator[np.ndarray]:
    # An estimator that is not fitted raises its own error.
    rows = max(1, _CHUNK_SCORES // max(1, len(getattr(classifier, "classes_", ()))))
    for part in in_parts(X, int(num_samples(X)), rows):
        scores = getattr(classifier, method)(part)
        if not hasattr(classifier, "classes_"):
            raise TypeError(
                f"topk needs a classifier, {type(classifier).__name__} has no classes_."
            )
        scores = np.asarray(as_matrix(scores, classifier))
        scores = scores.astype(np.result_type(scores, np.float16), copy=False)  # not integers
        if scores.ndim == 1:  # of the second of two classes, or of the only one
            scores = np.column_stack([-scores, scores])[:, -len(classes_of(classifier)) :]
        yield scores


def _with_unseen(
    scores: np.ndarray, classifier: Any, method: str, unseen: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return dense scores in which unseen labels have the lowest, and the unseen labels."""
    last = np.union1d(np.asarray(unseen, np.int64), never_seen(classifier))
    if not 0 < len(last) < scores.shape[1]:
        return scores, last[:0]
    lowest = np.delete(scores, last, axis=1).min(axis=1, keepdims=True)
    scores = scores.copy()
    scores[:, last] = 0 if method == "predict_proba" else just_below(lowest)
    return scores, last


def best_of_dense(
    scores: np.ndarray, k: int, allowed: AllowedLabels | None, last: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of each row of dense scores, the labels in `last` below others."""
    order = np.argsort(-scores, axis=1, kind="stable")
    if last.size:
        is_last = np.isin(order, last)
        order = np.take_along_axis(order, np.argsort(is_last, axis=1, kind="stable"), axis=1)
    if allowed is None:
        return padded(order[:, :k], np.take_along_axis(scores, order[:, :k], axis=1), k)
    return first_kept(order, np.take_along_axis(scores, order, axis=1), allowed.has(order), k)


def just_below(scores: np.ndarray) -> np.ndarray:
    """Return scores that are lower by 1, or by the spacing of their dtype."""
    return np.minimum(scores - scores.dtype.type(1), np.nextafter(scores, -np.inf))


def first_kept(
    labels: np.ndarray, scores: np.ndarray, kept: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first k labels of each row that a mask (n, m) keeps, padded."""
    order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
    kept, labels, scores = (
        np.take_along_axis(part, order, axis=1) for part in (kept, labels, scores)
    )
    low = scores.dtype.type(-np.inf)
    return padded(np.where(kept, labels, -1), np.where(kept, scores, low), k)


def padded(labels: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the best labels, at most k of each instance, as k columns.

    Parameters
    ----------
    labels, scores : ndarray of int and of float, of shape (n, n_found)
        Best first; ``n_found <= k``.
    k : int

    Returns
    -------
    labels : ndarray of int64 of shape (n, k)
        Padded with -1.
    scores : ndarray of float of shape (n, k)
        Padded with -inf.
    """
    n, n_found = labels.shape
    all_labels = np.full((n, k), -1, np.int64)
    all_scores = np.full((n, k), -np.inf, scores.dtype)
    all_labels[:, :n_found], all_scores[:, :n_found] = labels, scores
    return all_labels, all_scores

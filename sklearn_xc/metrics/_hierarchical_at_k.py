"""Hierarchical precision, recall and F1 of the k best labels."""

from typing import Any

import numpy as np

from sklearn_xc.hierarchy import LabelHierarchy
from sklearn_xc.metrics._hierarchical import check_hierarchy, of_counts, overlap, require_nodes
from sklearn_xc.metrics.check import check_k, check_sample_weight
from sklearn_xc.metrics.hits import Hits, find_hits


def hierarchical_precision_at_k(
    Y_true: Any,
    topk: Any,
    hierarchy: LabelHierarchy,
    k: Any = 5,
    *,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    """Return the hierarchical precision of the k best labels of each row.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        As in :func:`hierarchical_f1_at_k`.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        As in :func:`hierarchical_f1_at_k`.
    hierarchy : LabelHierarchy
        As in :func:`hierarchical_f1_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    classes : array-like of shape (n_labels,), default=None
        As in :func:`hierarchical_f1_at_k`.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it and says what was expected.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import LabelHierarchy
    >>> from sklearn_xc.metrics import hierarchical_precision_at_k
    >>> kinds = LabelHierarchy.from_paths(["plant/oak", "plant/ash", "animal/ant"])
    >>> hierarchical_precision_at_k(np.array([[1, 0, 0]]), np.array([[1, 2]]), kinds, k=(1, 2))
    array([0.5 , 0.25])
    """
    return _at_k("precision", Y_true, topk, hierarchy, k, sample_weight, classes)


def hierarchical_recall_at_k(
    Y_true: Any,
    topk: Any,
    hierarchy: LabelHierarchy,
    k: Any = 5,
    *,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    """Return the hierarchical recall of the k best labels of each row.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        As in :func:`hierarchical_f1_at_k`.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        As in :func:`hierarchical_f1_at_k`.
    hierarchy : LabelHierarchy
        As in :func:`hierarchical_f1_at_k`.
    k : int or sequence of int, default=5
        The cut-offs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    classes : array-like of shape (n_labels,), default=None
        As in :func:`hierarchical_f1_at_k`.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it and says what was expected.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import LabelHierarchy
    >>> from sklearn_xc.metrics import hierarchical_recall_at_k
    >>> kinds = LabelHierarchy.from_paths(["plant/oak", "plant/ash", "animal/ant"])
    >>> hierarchical_recall_at_k(np.array([[1, 0, 0]]), np.array([[1, 0]]), kinds, k=(1, 2))
    array([0.5, 1. ])
    """
    return _at_k("recall", Y_true, topk, hierarchy, k, sample_weight, classes)


def hierarchical_f1_at_k(
    Y_true: Any,
    topk: Any,
    hierarchy: LabelHierarchy,
    k: Any = 5,
    *,
    sample_weight: Any = None,
    classes: Any = None,
) -> Any:
    """Return micro-F1 of the k best labels of each row, with all ancestors on both sides.

    Parameters
    ----------
    Y_true : {sparse matrix, array-like} of shape (n_samples, n_labels) or (n_samples,)
        Indicator, or one class per row, as in :func:`precision_at_k`. A true label without a
        column counts as one missed node.
    topk : ndarray of shape (n_samples, >= k), tuple or sparse matrix
        The ranked labels, as in :func:`precision_at_k`.
    hierarchy : LabelHierarchy
        Its first nodes must be the columns: ``hierarchy.aligned(model.classes_)``.
    k : int or sequence of int, default=5
        The cut-offs.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    classes : array-like of shape (n_labels,), default=None
        ``classes_`` of the classifier, if `Y_true` holds class labels.

    Returns
    -------
    float or ndarray of shape (len(k),), float64
        In [0, 1]; a float for an int `k`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it and says what was expected.

    See Also
    --------
    hierarchical_f1 : For the labels that ``predict`` returns; has the formulae.

    Notes
    -----
    In searches: ``scoring=TopKScorer(metrics=("hierarchical_f1",), hierarchy=kinds)``, which finds
    the labels of each model by name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import LabelHierarchy
    >>> from sklearn_xc.metrics import hierarchical_f1_at_k
    >>> kinds = LabelHierarchy.from_paths(["plant/oak", "plant/ash", "animal/ant"])
    >>> hierarchical_f1_at_k(np.array([[1, 0, 0]]), np.array([[1, 2]]), kinds, k=1)
    0.5
    """
    return _at_k("f1", Y_true, topk, hierarchy, k, sample_weight, classes)


def _at_k(
    measure: str, Y_true: Any, topk: Any, hierarchy: Any, k: Any, sample_weight: Any, classes: Any
) -> Any:
    check_hierarchy(hierarchy)
    ks = check_k(k)
    hits = find_hits(Y_true, topk, max(ks), classes)
    weight = check_sample_weight(sample_weight, len(hits.positions))
    values = _of_hits(measure, hits, ks, weight, hierarchy)
    return float(values[0]) if np.ndim(k) == 0 else values


def _of_hits(
    measure: str,
    hits: Hits,
    ks: tuple[int, ...],
    weight: np.ndarray | None,
    hierarchy: LabelHierarchy,
) -> np.ndarray:
    require_nodes(hits.true, hierarchy, "Y_true")
    highest = int(hits.positions.max(initial=-1))
    if highest >= hierarchy.n_nodes:
        raise ValueError(
            f"topk: expected positions of the {hierarchy.n_nodes} nodes of the hierarchy. Got "
            f"{highest}."
        )
    values = []
    for k in ks:
        first = hits.positions[:, :k]
        rows, ranks = np.nonzero(first >= 0)
        counts = overlap(hits.true, rows, first[rows, ranks], hierarchy)
        values.append(of_counts(measure, counts, weight))
    return np.array(values)


def hierarchical_precision_of_hits(
    hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None, hierarchy: LabelHierarchy
) -> np.ndarray:
    """Return hierarchical precision at each k, shape (len(ks),)."""
    return _of_hits("precision", hits, ks, weight, hierarchy)


def hierarchical_recall_of_hits(
    hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None, hierarchy: LabelHierarchy
) -> np.ndarray:
    """Return hierarchical recall at each k, shape (len(ks),)."""
    return _of_hits("recall", hits, ks, weight, hierarchy)


def hierarchical_f1_of_hits(
    hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None, hierarchy: LabelHierarchy
) -> np.ndarray:
    """Return hierarchical F1 at each k, shape (len(ks),)."""
    return _of_hits("f1", hits, ks, weight, hierarchy)

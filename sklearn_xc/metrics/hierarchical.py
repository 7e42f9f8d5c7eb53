"""Precision, recall and F1 of label sets with their ancestors: some credit for near misses."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._labels.name_lists import are_name_lists
from sklearn_xc.metrics.check import (
    TrueLabels,
    as_array,
    check_sample_weight,
    pairs_of_dense,
    pairs_of_sparse,
)

if TYPE_CHECKING:
    from sklearn_xc._labels.hierarchy import LabelHierarchy


def hierarchical_f1(
    Y_true: Any, Y_pred: Any, hierarchy: "LabelHierarchy", *, sample_weight: Any = None
) -> float:
    r"""Return micro-F1 of label sets to which all ancestors are added.

    A wrong label earns credit for the ancestors that it shares with the true one: "plant/tree/ash"
    is nearer to "plant/tree/oak" than "animal/ant" is.

    Parameters
    ----------
    Y_true, Y_pred : {sparse matrix, array-like} of shape (n_samples, n_labels), or sequence
        Indicators of 0 and 1 whose columns are the first nodes of `hierarchy`
        (`labels` of the methods that make a hierarchy puts those of a model first), or a sequence
        with a list of node names, or one name, for each of n_samples rows.
    hierarchy : LabelHierarchy
        Which labels are above which.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    float
        In [0, 1]; 0 if no label is true and none is predicted.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it and says what was expected.

    See Also
    --------
    hierarchical_precision_recall_f1 : The two shares as well.

    Notes
    -----
    With :math:`\hat A_i` and :math:`A_i` the predicted and true labels of row i and all nodes above
    them,

    .. math:: hP = \frac{\sum_i |\hat A_i \cap A_i|}{\sum_i |\hat A_i|} \qquad
              hR = \frac{\sum_i |\hat A_i \cap A_i|}{\sum_i |A_i|}

    and hF1 is their harmonic mean. Each node counts once per row, however many labels are below
    it. If a hierarchy has a single root, the root does not count, as it would be right in every
    row. For a hierarchy without edges, hF1 is micro-F1. For the k best labels of each row, pass the
    indicator of these as `Y_pred`.

    As a scorer of ``predict``: ``sklearn.metrics.make_scorer(hierarchical_f1, hierarchy=kinds)``.

    Source: [1]_.

    References
    ----------
    .. [1] S. Kiritchenko, S. Matwin, R. Nock and A. F. Famili, "Learning and evaluation in the
       presence of class hierarchies: application to text categorization", Canadian AI 2006.

    Examples
    --------
    >>> from sklearn_xc import LabelHierarchy
    >>> from sklearn_xc.metrics import hierarchical_f1
    >>> kinds = LabelHierarchy.from_paths(["plant/tree/oak", "plant/tree/ash", "animal/ant"])
    >>> hierarchical_f1([["plant/tree/oak"]], [["plant/tree/ash"]], kinds)
    0.6666666666666666
    >>> hierarchical_f1([["plant/tree/oak"]], [["animal/ant"]], kinds)
    0.0
    """
    measures = hierarchical_precision_recall_f1(
        Y_true, Y_pred, hierarchy, sample_weight=sample_weight
    )
    return measures[2]


def hierarchical_precision_recall_f1(
    Y_true: Any, Y_pred: Any, hierarchy: "LabelHierarchy", *, sample_weight: Any = None
) -> tuple[float, float, float]:
    """Return precision, recall and micro-F1 of label sets to which all ancestors are added.

    See :func:`hierarchical_f1` for the definitions.

    Parameters
    ----------
    Y_true, Y_pred : {sparse matrix, array-like} of shape (n_samples, n_labels), or sequence
        As in :func:`hierarchical_f1`.
    hierarchy : LabelHierarchy
        As in :func:`hierarchical_f1`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.

    Returns
    -------
    precision, recall, f1 : float
        In [0, 1]; 0 where no label is predicted, or true.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it and says what was expected.

    Examples
    --------
    >>> from sklearn_xc import LabelHierarchy
    >>> from sklearn_xc.metrics import hierarchical_precision_recall_f1
    >>> kinds = LabelHierarchy.from_paths(["plant/tree/oak", "plant/tree/ash", "animal/ant"])
    >>> Y_true, Y_pred = [["plant/tree/oak", "animal/ant"]], [["plant/tree/oak"]]
    >>> hierarchical_precision_recall_f1(Y_true, Y_pred, kinds)
    (1.0, 0.6, 0.75)
    """
    from sklearn_xc._labels.hierarchy import LabelHierarchy  # which imports this package

    if not isinstance(hierarchy, LabelHierarchy):
        raise TypeError(
            "hierarchy: expected a LabelHierarchy, as LabelHierarchy.from_paths and the others "
            f"make. Got {type(hierarchy).__name__}."
        )
    true = _pairs(Y_true, "Y_true", hierarchy)
    named = _pairs(Y_pred, "Y_pred", hierarchy)
    if len(true.counts) != len(named.counts):
        raise ValueError(
            f"Y_pred: expected {len(true.counts)} rows, as Y_true has. Got {len(named.counts)}."
        )
    if not len(true.counts):
        raise ValueError("Y_true: expected at least one row. Got none; the metric is undefined.")
    weight = check_sample_weight(sample_weight, len(true.counts))
    counts = _overlap(true, named, hierarchy)
    sums = counts.sum(axis=1) if weight is None else (counts * weight).sum(axis=1)
    both, n_named, n_true = sums.tolist()

    def share(part: float, whole: float) -> float:
        return min(part / whole, 1.0) if whole > 0 else 0.0

    return share(both, n_named), share(both, n_true), share(2 * both, n_named + n_true)


def _pairs(Y: Any, name: str, hierarchy: "LabelHierarchy") -> TrueLabels:
    if not sp.issparse(Y):
        if are_name_lists(Y):
            return pairs_of_sparse(hierarchy.encode(Y), name)
        Y = as_array(Y, name, "an indicator matrix, lists of names, or names")
        if Y.ndim == 1:
            return pairs_of_sparse(hierarchy.encode(Y), name)
        if Y.ndim != 2:
            raise ValueError(f"{name}: expected 1 or 2 dimensions. Got shape {Y.shape}.")
    labels = pairs_of_sparse(Y, name) if sp.issparse(Y) else pairs_of_dense(Y, name)
    if (labels.n_labels or 0) > hierarchy.n_nodes:
        raise ValueError(
            f"{name}: expected at most {hierarchy.n_nodes} columns, one for each node of the "
            f"hierarchy. Got {labels.n_labels}."
        )
    return labels


def _overlap(true: TrueLabels, named: TrueLabels, hierarchy: "LabelHierarchy") -> np.ndarray:
    """Return how many nodes of each row are in both, are named, and are true: (3, n_samples).

    A true label that has no column counts as one node.
    """
    shape = (len(true.counts), hierarchy.n_nodes)
    root = hierarchy.roots[0] if len(hierarchy.roots) == 1 < hierarchy.n_nodes else -1
    sides = []
    for pairs in (true, named):
        ones = np.ones(len(pairs.rows), bool)
        Y = sp.csr_array((ones, (pairs.rows, pairs.columns)), shape=shape)
        Y = hierarchy.with_ancestors(Y)
        Y.data = Y.indices != root
        Y.eliminate_zeros()
        sides.append(Y)
    both = sides[0].multiply(sides[1]).tocsr()
    counts = np.array([np.diff(Y.indptr) for Y in (both, sides[1], sides[0])])
    counts[2] += true.counts - np.bincount(true.rows, minlength=shape[0])
    return counts

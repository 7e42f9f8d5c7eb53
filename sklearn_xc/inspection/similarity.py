"""Which labels are like one another, and which instances, to a fitted model."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._arguments import check_count
from sklearn_xc._label_names import place_of
from sklearn_xc._topk import check_topk_size, classes_of
from sklearn_xc.inspection._vectors import instance_vectors, label_vectors
from sklearn_xc.kernels.prediction.class_scores import topk_scores

#: Values that are held at a time.
_PIECE = 2**22


def similar_labels(model: Any, label: Any, k: int = 10) -> list[tuple[Any, float]]:
    """Return the labels most similar to a given one according to a fitted model, best first.

    Similarity is the cosine of the vectors that the model has learnt for labels: its embeddings
    (``label_embeddings_``) if it has them, otherwise its weights (``coef_``). Labels of the same
    instances have similar vectors, and so do labels of the same topic.

    Parameters
    ----------
    model : estimator
        Fitted: a classifier with either, or a Pipeline, a search, a ``TextClassifierXC`` or a
        wrapper around one. For a stack, the first member that has label vectors is used.
    label : object
        A member of ``classes_``.
    k : int, default=10
        Maximum number of labels.

    Returns
    -------
    list of (name, similarity)
        At most k, without `label` itself; similarities are cosines, in [-1, 1]. Ties go to the
        smaller position. Labels about which nothing is known, without a training instance or with
        weights of 0, are similar to none: they are in no list, and the list for a label whose
        weights are all 0 is empty.

    Raises
    ------
    ValueError
        If `label` is unknown, nothing is known about it, or `k` is not a positive integer.
    TypeError
        If the model has no label vectors.

    See Also
    --------
    similar_instances : The same for instances.

    Notes
    -----
    All weights are read once. `prune` removes weights, and with them some similarity of rare
    labels.

    Examples
    --------
    >>> from sklearn_xc import TextClassifierXC
    >>> from sklearn_xc.inspection import similar_labels
    >>> texts = ["clear soup stock", "soup of bones", "stock of bones", "rye bread", "wheat bread"]
    >>> tags = ["soup;stock", "soup", "stock", "bread;rye", "bread"]
    >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
    >>> [name for name, _ in similar_labels(tagger, "soup", k=2)]
    ['stock', 'rye']
    """
    k = check_count(k, "similar_labels: k")
    vectors, places, is_known = label_vectors(model, "similar_labels")
    classes = classes_of(model)
    at = _place_of(label, classes, places, is_known)
    products, norms = _products(vectors, at)
    is_known = is_known & (norms > 0) & (places >= 0)
    if not is_known[at]:
        return []
    is_known[at] = False
    cosines = np.full(len(norms), -np.inf)
    cosines[is_known] = (products[is_known] / norms[is_known] / norms[at]).clip(-1.0, 1.0)
    order = np.lexsort((places, -cosines))[: min(k, np.count_nonzero(is_known))]
    names = classes[places[order]].tolist()
    return list(zip(names, cosines[order].tolist(), strict=True))


def similar_instances(model: Any, X: Any, x: Any, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Return the instances of a set most similar to given ones according to a fitted model.

    Similarity is the cosine of embeddings if the model has them (``embed``), otherwise of
    features, after all steps before the classifier.

    Parameters
    ----------
    model : estimator
        Fitted: a classifier, or a Pipeline, a search, a ``TextClassifierXC`` or a wrapper around
        one. For a stack, the first member that has label vectors is used.
    X : object of n_reference instances
        The instances to search, in the form that `model` takes, such as a feature matrix or texts.
    x : object of n instances
        The instances to compare them with, in the same form.
    k : int, default=10
        Number of instances of X to return; may exceed their number.

    Returns
    -------
    indices : ndarray of int64 of shape (n, k)
        Rows of X, most similar first, padded with -1. Ties go to the smaller row number. An
        instance that is in X is most similar to itself.
    similarities : ndarray of float of shape (n, k)
        Cosines, in [-1, 1], padded with -inf. Instances without features are similar to none: they
        get a row of padding, and are never found.

    Raises
    ------
    ValueError
        If `k` is not a positive integer, and for input that `model` refuses.

    See Also
    --------
    similar_labels : The same for labels.

    Notes
    -----
    All pairs are compared, a few instances at a time. Sparse features stay sparse.

    Examples
    --------
    >>> from sklearn_xc import TextClassifierXC
    >>> from sklearn_xc.inspection import similar_instances
    >>> texts = ["clear soup stock", "soup of bones", "stock of bones", "rye bread", "wheat bread"]
    >>> tags = ["soup;stock", "soup", "stock", "bread;rye", "bread"]
    >>> tagger = TextClassifierXC(separator=";").fit(texts, tags)
    >>> rows, similarities = similar_instances(tagger, texts, ["a bread of rye flour"], k=2)
    >>> [texts[row] for row in rows[0]]
    ['rye bread', 'wheat bread']
    """
    k = check_topk_size(k, x, who="similar_instances")
    reference, asked = (_unit(one) for one in instance_vectors(model, "similar_instances", X, x))
    if reference[0].shape[1] != asked[0].shape[1]:
        raise ValueError(
            "similar_instances: X and x must have the same features. Got "
            f"{reference[0].shape[1]} and {asked[0].shape[1]}."
        )
    (rows, has_any), (wanted, is_asked) = reference, asked
    columns = sp.csr_array(rows.T) if sp.issparse(rows) else rows.T
    n, n_reference = wanted.shape[0], rows.shape[0]
    indices = np.full((n, k), -1, np.int64)
    found = np.full((n, k), -np.inf, np.result_type(rows.dtype, wanted.dtype))
    kept, step = min(k, n_reference), max(1, _PIECE // n_reference)
    for first in range(0, n, step):
        part = slice(first, first + step)
        cosines = wanted[part] @ columns
        cosines = np.ascontiguousarray(cosines.toarray() if sp.issparse(cosines) else cosines)
        cosines.clip(-1.0, 1.0, out=cosines)
        cosines[:, ~has_any] = -np.inf
        cosines[~is_asked[part]] = -np.inf
        best, values = (
            np.empty((len(cosines), kept), np.int64),
            np.empty((len(cosines), kept), found.dtype),
        )
        topk_scores(cosines, kept, best, values)
        indices[part, :kept] = np.where(np.isneginf(values), -1, best)
        found[part, :kept] = values
    return indices, found


def _place_of(label: Any, classes: np.ndarray, places: np.ndarray, is_known: np.ndarray) -> int:
    """Return the row of a label's vector."""
    place = place_of(label, classes, "similar_labels")
    at = np.flatnonzero(places == place)
    if not len(at) or not is_known[at[0]]:
        raise ValueError(
            f"similar_labels: label must be one that the model knows something of. Got {label!r}, "
            "which has no training instance."
        )
    return int(at[0])


def _products(vectors: Any, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inner products of one row with all, and the norms of all, float64 (n,) each."""
    n, width = vectors.shape
    products, squares = np.empty(n), np.empty(n)
    if not sp.issparse(vectors):
        own, step = vectors[at].astype(np.float64), max(1, _PIECE // max(1, width))
        for first in range(0, n, step):
            part = vectors[first : first + step].astype(np.float64)
            products[first : first + step] = part @ own
            squares[first : first + step] = np.einsum("ij,ij->i", part, part)
        return products, np.sqrt(squares)
    own = vectors[[at]].toarray()[0].astype(np.float64)
    bounds = [0]
    while bounds[-1] < n:  # rows of about so many values
        last = np.searchsorted(vectors.indptr, vectors.indptr[bounds[-1]] + _PIECE, "right") - 1
        bounds.append(int(min(n, max(last, bounds[-1] + 1))))
    for first, last in pairwise(bounds):
        a, b = vectors.indptr[first], vectors.indptr[last]
        values = vectors.data[a:b].astype(np.float64)
        indptr = vectors.indptr[first : last + 1] - a
        part = sp.csr_array((values, vectors.indices[a:b], indptr), shape=(last - first, width))
        products[first:last] = part @ own
        np.square(values, out=part.data)
        squares[first:last] = part.sum(axis=1)
    return products, np.sqrt(squares)


def _unit(vectors: Any) -> tuple[Any, np.ndarray]:
    """Return rows of norm 1, and which are not 0."""
    if sp.issparse(vectors):
        squares = sp.csr_array(
            (np.square(vectors.data.astype(np.float64)), vectors.indices, vectors.indptr),
            shape=vectors.shape,
        ).sum(axis=1)
    else:
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    norms = np.sqrt(np.asarray(squares))
    has_any = norms > 0
    scale = (1.0 / np.where(has_any, norms, 1.0)).astype(vectors.dtype)
    if not sp.issparse(vectors):
        return vectors * scale[:, None], has_any
    values = vectors.data * np.repeat(scale, np.diff(vectors.indptr))
    return sp.csr_array((values, vectors.indices, vectors.indptr), shape=vectors.shape), has_any

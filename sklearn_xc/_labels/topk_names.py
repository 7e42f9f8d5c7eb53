"""The k best labels by name."""

from itertools import pairwise
from typing import Any

import numpy as np

from sklearn_xc._labels.allowed import AllowedLabels, read_allowed
from sklearn_xc._topk import classes_of, topk_allowed, topk_probabilities


def topk_names(
    estimator: Any,
    X: Any,
    k: int = 5,
    *,
    return_scores: bool = False,
    return_probabilities: bool = False,
    candidates: Any = None,
    exclude: Any = None,
) -> list[list]:
    """Return the names of the k best labels of each instance, best first, without padding.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, Pipeline, search, or wrapper around one.
    X : object of n instances
        Input for `estimator`.
    k : int, default=5
        Maximum number of labels.
    return_scores : bool, default=False
        Whether to return pairs of name and score.
    return_probabilities : bool, default=False
        Whether to return pairs of name and probability. The classifier must have
        ``predict_proba_topk``, as :class:`~sklearn_xc.TopKCalibrator` does, or ``predict_proba``.
    candidates : sequence of names, sequence of n lists of names, or indicator of shape \
            (n, n_labels), default=None
        The labels that may be returned: names, for all instances; or, for each instance, a list of
        names or a row of a sparse matrix or array whose non-zeros mark the labels. None allows
        all.
    exclude : sequence of names, sequence of n lists of names, or indicator of shape \
            (n, n_labels), default=None
        The labels that may not be returned, in the same forms. Not together with `candidates`.
        Lists for each instance, such as the labels that it already has, may hold names that the
        classifier does not know. pandas makes lists of strings such as "soup;bread" by
        ``column.str.split(";")``.

    Returns
    -------
    list of n lists
        Each has at most k names, or pairs (name, score), in descending order of score; or pairs
        (name, probability), the same names in descending order of probability. A probability that
        the classifier does not give is NaN, and last: ``predict_proba``, after a fit with a sparse
        y, gives none for labels beyond the ``top_k`` best of a row.

    Raises
    ------
    ValueError, TypeError
        As in :func:`topk`; also if both scores and probabilities are requested, or if the
        classifier has no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC, topk_names
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> model = OvALinearXC(C=1.0, label_names=["soup", "bread"]).fit(X, Y)
    >>> topk_names(model, X, k=1)
    [['soup'], ['bread'], ['soup']]
    >>> topk_names(model, X, k=2, exclude=[["soup"], [], ["soup", "bread"]])
    [['bread'], ['bread', 'soup'], []]
    """
    if return_scores and return_probabilities:
        raise ValueError(
            "topk_names: return_scores and return_probabilities must not be True together. Got "
            "both."
        )

    def allowed(n: int, own: np.ndarray) -> AllowedLabels | None:
        return read_allowed(candidates, exclude, own, n, "topk_names", by_name=True)

    ask = topk_probabilities if return_probabilities else topk_allowed
    are_all = candidates is None and exclude is None
    labels, scores = ask(estimator, X, k, None if are_all else allowed)
    if return_probabilities:
        order = np.argsort(np.where(labels < 0, np.inf, -scores), axis=1, kind="stable")
        labels, scores = (np.take_along_axis(one, order, axis=1) for one in (labels, scores))
    found = labels >= 0
    each = classes_of(estimator)[labels[found]].tolist()
    if return_scores or return_probabilities:
        each = list(zip(each, scores[found].tolist(), strict=True))
    ends = np.concatenate(([0], np.cumsum(found.sum(axis=1)))).tolist()
    return [each[a:b] for a, b in pairwise(ends)]

"""The k best labels by name."""

from itertools import pairwise
from typing import Any

import numpy as np

from sklearn_xc._label_names import check_label_names
from sklearn_xc._topk import topk, unwrap


def topk_names(
    estimator: Any, X: Any, k: int = 5, *, names: Any = None, return_scores: bool = False
) -> list[list]:
    """Return the names of the k best labels of each instance, best first, without padding.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier, Pipeline, search, or wrapper around one.
    X : object of n instances
        Input for `estimator`.
    k : int, default=5
        How many labels at most.
    names : array-like of shape (n_labels,), default=None
        Names of the labels, in the order of ``classes_``. None takes ``classes_`` themselves: the
        names of columns where fit saw any, else their numbers.
    return_scores : bool, default=False
        Whether to return pairs of a name and its score.

    Returns
    -------
    list of n lists
        Of at most k names, or of pairs (name, score).

    Raises
    ------
    ValueError, TypeError
        As of :func:`topk`, and for other than n_labels `names`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc import OvALinearXC, topk_names
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> model = OvALinearXC(C=1.0, label_names=["soup", "bread"]).fit(X, Y)
    >>> topk_names(model, X, k=1)
    [['soup'], ['bread'], ['soup']]
    """
    labels, scores = topk(estimator, X, k)
    classes = np.asarray(unwrap(estimator, None)[0].classes_)
    if names is not None:
        classes = check_label_names(names, len(classes), "topk_names: names")
    found = labels >= 0
    each = classes[labels[found]].tolist()
    if return_scores:
        each = list(zip(each, scores[found].tolist(), strict=True))
    ends = np.concatenate(([0], np.cumsum(found.sum(axis=1)))).tolist()
    return [each[a:b] for a, b in pairwise(ends)]

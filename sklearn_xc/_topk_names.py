"""The k best labels by name."""

from itertools import pairwise
from typing import Any

import numpy as np

from sklearn_xc._allowed_labels import AllowedLabels, read_allowed
from sklearn_xc._label_names import check_label_names
from sklearn_xc._topk import classes_of, topk_allowed, topk_chances, unwrap


def topk_names(
    estimator: Any,
    X: Any,
    k: int = 5,
    *,
    names: Any = None,
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
        How many labels at most.
    names : array-like of shape (n_labels,), default=None
        Names of the labels, in the order of ``classes_``. None takes ``classes_`` themselves: the
        names of columns where fit saw any, else their numbers.
    return_scores : bool, default=False
        Whether to return pairs of a name and its score.
    return_probabilities : bool, default=False
        Whether to return pairs of a name and its probability, of a classifier that has
        ``predict_proba_topk``, as :class:`~sklearn_xc.TopKCalibrator`, or ``predict_proba``.
    candidates : sequence of names, sequence of n lists of names, or indicator of shape \
            (n, n_labels), default=None
        The labels that may be returned: for all instances, or for each its own, by name or as a
        sparse matrix or an array whose non-zeros are meant. None is all.
    exclude : sequence of names, sequence of n lists of names, or indicator of shape \
            (n, n_labels), default=None
        The labels that may not, in the same forms. Not together with `candidates`. Lists for each
        instance, such as what it has already, may hold names that the classifier does not know.
        Both may also be the column of texts that ``fit`` of a ``TextClassifierXC`` takes with a
        `separator`, such as "soup;bread" for each instance.

    Returns
    -------
    list of n lists
        Of at most k names, or of pairs (name, score), by falling score; or of pairs (name,
        probability): the same names by falling probability. It is NaN, and last, where the
        classifier does not tell it: that of a label beyond the ``top_k`` best of a row, from a
        ``predict_proba`` after a fit with a sparse y.

    Raises
    ------
    ValueError, TypeError
        As of :func:`topk`, for other than n_labels `names`, for scores and probabilities together,
        and for probabilities of a classifier that has none.

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

    def names_of(own: np.ndarray) -> np.ndarray:
        return own if names is None else check_label_names(names, len(own), "topk_names: names")

    def allowed(n: int, own: np.ndarray) -> AllowedLabels | None:
        separator = getattr(unwrap(estimator, None)[0], "_separator_of_names", None)
        return read_allowed(
            candidates, exclude, names_of(own), n, "topk_names", by_name=True,
            separator=separator, X=X,
        )  # fmt: skip

    ask = topk_chances if return_probabilities else topk_allowed
    are_all = candidates is None and exclude is None
    labels, scores = ask(estimator, X, k, None if are_all else allowed)
    if return_probabilities:
        order = np.argsort(np.where(labels < 0, np.inf, -scores), axis=1, kind="stable")
        labels, scores = (np.take_along_axis(one, order, axis=1) for one in (labels, scores))
    classes = names_of(classes_of(estimator))
    found = labels >= 0
    each = classes[labels[found]].tolist()
    if return_scores or return_probabilities:
        each = list(zip(each, scores[found].tolist(), strict=True))
    ends = np.concatenate(([0], np.cumsum(found.sum(axis=1)))).tolist()
    return [each[a:b] for a, b in pairwise(ends)]

"""What each label adds to a macro-averaged metric at k, from calibrated probabilities."""

import numpy as np

#: Metrics at k that a ranking can be made for.
OBJECTIVES = ("macro_f1", "macro_recall")
#: Steps of the Frank-Wolfe method; the utility is constant to four digits after ten.
_STEPS = 30
#: A step covers half of the way at most.
_LONGEST = 0.5


def macro_gains(
    probabilities: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    share: np.ndarray,
    k: int,
    objective: str,
) -> np.ndarray:
    """Return numbers a, b of each label: the k labels with the largest ``a p + b`` are best.

    With t the share of instances that are given a label and have it, and q the share of those that
    are given it, a label's recall is t / s and its F1 is 2 t / (q + s), where s is the share of
    instances that have it. The derivatives of their sum with respect to t and q are a and b. For
    F1, the Frank-Wolfe method finds t and q: each step gives every instance the labels that are
    best by the current derivatives, and moves the shares towards what they then are.

    Parameters
    ----------
    probabilities : ndarray of float of shape (n, m)
        Probability of each of the m best labels of an instance.
    labels : ndarray of int64 of shape (n, m)
        -1 where there are no more.
    weight : ndarray of float of shape (n,)
        Weights of the instances.
    share : ndarray of float of shape (n_labels,)
        s, above 0.
    k : int
        Labels that each instance is given.
    objective : {"macro_f1", "macro_recall"}

    Returns
    -------
    ndarray of float64 of shape (n_labels, 2)
        a and b.

    Notes
    -----
    Source: [1]_; differs in that s is the share in training, and in that the last derivatives are
    kept, instead of the derivatives of all steps, among which an instance would draw.

    References
    ----------
    .. [1] E. Schultheis, W. Kotlowski, M. Wydmuch, R. Babbar, S. Borman and K. Dembczynski,
       "Consistent algorithms for multi-label classification with macro-at-k metrics", ICLR 2024.
    """
    if objective == "macro_recall":
        return np.column_stack([1.0 / share, np.zeros(len(share))])
    total, k = weight.sum(), min(k, labels.shape[1])

    def shares(gains: np.ndarray) -> np.ndarray:
        """Return t and q if each instance is given the labels of largest gains."""
        worth = gains_of(probabilities, labels, gains)
        first = np.argpartition(-worth, k - 1, axis=1)[:, :k]
        given, p = (np.take_along_axis(values, first, axis=1) for values in (labels, probabilities))
        at, ranks = np.nonzero(given >= 0)
        given, p, own = given[at, ranks], p[at, ranks], weight[at] / total
        return np.stack([np.bincount(given, w, len(share)) for w in (own * p, own)])

    t, q = found = shares(np.column_stack([np.ones(len(share)), np.zeros(len(share))]))
    for step in range(_STEPS):
        gains = np.column_stack([2.0 / (q + share), -2.0 * t / (q + share) ** 2])
        found = found + min(_LONGEST, 2.0 / (step + 2)) * (shares(gains) - found)
        t, q = found
    return gains


def gains_of(probabilities: np.ndarray, labels: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Return the gain of each label that is listed for an instance, -inf for none."""
    a, b = gains.T
    return np.where(labels >= 0, a[labels] * probabilities + b[labels], -np.inf)

"""nDCG of each instance, for choices that are made by held-out instances."""

import numpy as np

from sklearn_xc.metrics._ndcg import best_gains
from sklearn_xc.metrics.hits import discounts


def ranking_gains(topk: np.ndarray, indptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return nDCG@k of each instance.

    Parameters
    ----------
    topk : ndarray of int of shape (n, k)
        Labels, best first; -1 where there are no more.
    indptr, labels : ndarray of int of shape (n + 1,) and (n_pairs,)
        True labels in CSR form, rising in each row.

    Returns
    -------
    ndarray of float64 of shape (n,)
        0 to 1; 0 for an instance without labels.
    """
    n, k = topk.shape
    counts = np.diff(indptr)
    hit = np.zeros(topk.shape, bool)
    if len(labels) and k:
        width = 1 + max(int(labels.max()), int(topk.max()))
        keys = np.repeat(np.arange(n), counts) * width + labels
        wanted = np.arange(n)[:, None] * width + topk
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        hit = (keys[place] == wanted) & (topk >= 0)
    if not k:
        return np.zeros(n)
    return (hit * discounts(k)).sum(axis=1) / best_gains(counts, (k,))[:, 0]

"""nDCG of each instance, for choices made on held-out instances."""

import numpy as np

from sklearn_xc.metrics.at_k import ndcg_of_rows
from sklearn_xc.metrics.check import TrueLabels
from sklearn_xc.metrics.hits import Hits, is_true


def ranking_gains(topk: np.ndarray, indptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return nDCG@k of each instance, 0 for one without labels, float64 of shape (n,).

    `topk` holds labels, best first, padded with -1, shape (n, k); `indptr` and `labels` the true
    ones in CSR form, sorted in each row.
    """
    n, k = topk.shape
    if not k:
        return np.zeros(n)
    counts = np.diff(indptr)
    true = TrueLabels(np.repeat(np.arange(n), counts), labels, counts, None)
    hit = is_true(true, np.arange(n)[:, None], topk)
    return ndcg_of_rows(Hits(hit, topk, true), (k,))[:, 0]

"""How many of the truly best rows a search finds."""

import numpy as np

from sklearn_xc.search.exact import ExactIndex
from sklearn_xc.search.protocol import MipsIndex


def search_recall(
    index: MipsIndex,
    W: np.ndarray,
    first: int,
    last: int | None,
    V: np.ndarray,
    k: int,
    n_candidates: int,
) -> float:
    """Return the share of the k best rows that are among an index's candidates.

    Parameters
    ----------
    index : MipsIndex
        An index built on these columns of W.
    W : ndarray of float32 or float64 of shape (n_labels, dim)
        C-contiguous.
    first, last : int
        The range of columns; a `last` of None is dim.
    V : ndarray of shape (n, last - first)
        At least one query; C-contiguous, of the dtype of W.
    k : int
        Number of best rows, at most n_labels.
    n_candidates : int
        Number of candidates to request; a recall of 1 needs at least k.

    Returns
    -------
    float
        Mean over the queries. If rows tie for the k-th place, the smaller labels count, as in
        `ExactIndex`.

    Notes
    -----
    The exact search takes O(n n_labels (last - first)) time.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.search import ProductIndex, search_recall
    >>> rng = np.random.default_rng(0)
    >>> W, queries = rng.standard_normal((1000, 8)), rng.standard_normal((50, 8))
    >>> index = ProductIndex()
    >>> index.build(W)
    >>> recall = search_recall(index, W, 0, None, queries, k=5, n_candidates=20)
    >>> round(recall, 1)
    0.9
    """
    exact = ExactIndex()
    exact.build(W, first, last)
    best = exact.query(V, k).labels
    candidates = index.query(V, n_candidates).labels
    found = [np.isin(*pair).sum() for pair in zip(best, candidates, strict=True)]
    return float(np.mean(found)) / k

"""Clusters of equal sizes."""

import numpy as np
from sklearn.utils.validation import check_array

from sklearn_xc._compile.arithmetic.sampling import mix_key
from sklearn_xc._input.arguments import check_count, refuse_masks_and_dates
from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import for_row_ranges
from sklearn_xc.embedding.kernels.balanced_tree import rows_on_the_left, split_subtree

#: Levels whose nodes are split one by one, so that threads have 64 subtrees to share.
_LEVELS = 6
#: So few numbers are split in one go.
_FEW = 2**18


def balanced_clusters(
    V: np.ndarray, n_clusters: int, seed: int, n_jobs: int | None = None
) -> np.ndarray:
    """Return clusters of rows that are near each other, with sizes that differ by at most one.

    Rows are cut in two by 2-means, and each part is cut again, until there are enough parts. A
    part holds a whole number of clusters, a quarter to three quarters of those being cut, so that
    groups of rows stay whole where possible. Each assignment is the best one in which both parts
    have their exact sizes; ties are broken by row number. Large nodes are cut along a direction
    that is found on 256 of their rows and improved in one round on all rows.

    Parameters
    ----------
    V : array-like of shape (n, dim)
        Rows of any norm; float32 and float64 are kept, other dtypes become float64. If all rows
        have the same norm, near also means a small angle.
    n_clusters : int
        Number of clusters, from 1 to n.
    seed : int
        Seed for the rows that rounds start from; not negative.
    n_jobs : int or None, default=None
        Number of threads, as joblib counts them. The clusters do not depend on it.

    Returns
    -------
    ndarray of int64 of shape (n,)
        The cluster of each row, 0 to ``n_clusters - 1``.

    Raises
    ------
    TypeError
        For a sparse matrix or a masked array.
    ValueError
        If there are more clusters than rows, or none; for NaN, infinity, and anything other than a
        matrix of numbers; for a seed that is not an integer from 0 to 2**63 - 1.

    Notes
    -----
    Takes O(n dim log(n_clusters)) time, and 12 bytes per row besides the result.

    Source: the balanced hierarchical 2-means of [1]_, which cuts in halves. It differs in that it
    chooses where to cut, finds directions on a sample, from two pairs of rows, and cuts into any
    number of clusters.

    References
    ----------
    .. [1] Y. Prabhu, A. Kag, S. Harsola, R. Agrawal, M. Varma. Parabel: partitioned label trees for
       extreme classification with application to dynamic search advertising. WWW 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_xc.embedding.samplers import balanced_clusters
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> cluster = balanced_clusters(V, n_clusters=2, seed=0)
    >>> bool(cluster[0] == cluster[2]), bool(cluster[1] == cluster[3])
    (True, True)
    """
    refuse_masks_and_dates(V, "balanced_clusters: V")
    V = check_array(V, dtype=[np.float64, np.float32], input_name="V")
    n_clusters = check_count(n_clusters, "balanced_clusters: n_clusters")
    if n_clusters > len(V) or not 0 <= seed < 2**63:
        raise ValueError(
            f"balanced_clusters: n_clusters must be from 1 to the number of rows, {len(V)}, and "
            f"seed from 0 to 2**63 - 1. Got {n_clusters} and {seed}."
        )
    return clusters_of(V, n_clusters, int(seed), n_jobs)


def clusters_of(V: np.ndarray, n_clusters: int, seed: int, n_jobs: int | None) -> np.ndarray:
    """Return what ``balanced_clusters`` does, of arrays that have been checked; NaN are any row."""
    V, n = read_only(np.ascontiguousarray(V)), len(V)
    order = np.arange(n, dtype=np.int32)
    cluster = np.zeros(n, np.int64)
    key = mix_key(seed, 0)

    def split_all(nodes: list[tuple[int, int, int, int, int]], depth: int) -> list[int]:
        on_the_left = [0] * len(nodes)

        def split(begin: int, end: int) -> None:
            for i in range(begin, end):
                on_the_left[i] = split_subtree(V, order, cluster, *nodes[i], depth, key)

        for_row_ranges(split, len(nodes), 1, n_jobs)
        return on_the_left

    # A node: its range of `order`, its number of clusters, the first of them, its own number.
    nodes = [(0, n, n_clusters, 0, 1)]
    for _ in range(_LEVELS if V.size > _FEW else 0):
        below = []
        for (first, last, c, c0, node), a in zip(nodes, split_all(nodes, 1), strict=True):
            if a > 0:
                middle = first + rows_on_the_left(last - first, c, a)
                below.append((first, middle, a, c0, 2 * node))
                below.append((middle, last, c - a, c0 + a, 2 * node + 1))
        nodes = below
    split_all(nodes, 3 * n_clusters.bit_length())
    return cluster

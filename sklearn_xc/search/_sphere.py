"""k-means of points of one norm by inner products."""

import numpy as np

from sklearn_xc._parallel.row_ranges import for_row_ranges
from sklearn_xc.search.kernels.clusters import sum_members, two_nearest

#: Affinities that a thread holds at a time, and points at most.
_AFFINITIES, _POINTS = 2**20, 1024
_MAX_ITER = 10


def cluster_directions(
    points: np.ndarray, n_clusters: int, rng: np.random.Generator, n_jobs: int | None
) -> np.ndarray:
    """Return the directions that the points gather around.

    Up to ten rounds of spherical k-means from `n_clusters` of the points. A cluster that loses all
    points begins again at one that is far from its centroid; a sum without direction leaves a
    centroid where it was.

    Parameters
    ----------
    points : ndarray of float32 or float64 of shape (n, width)
        Of equal norms.
    n_clusters : int
        At most n.
    rng : Generator
        Chooses the starts.
    n_jobs : int or None
        Threads; the result does not depend on them.

    Returns
    -------
    ndarray of shape (n_clusters, width)
        Of norm 1, of the type of the points.
    """
    starts = points[rng.choice(len(points), n_clusters, replace=False)].astype(np.float64)
    # Where a start is 0: the other points are 0, too, but rows that have moved will find it.
    anywhere = rng.normal(size=starts.shape)
    centroids = _of_norm_1(starts, _of_norm_1(anywhere, anywhere)).astype(points.dtype)
    before = np.full(len(points), -1, np.int32)
    for _ in range(_MAX_ITER):
        nearest, affinity, _ = nearest_centroids(points, centroids, n_jobs)
        if (nearest == before).all():
            break
        before = nearest.copy()
        empty = np.flatnonzero(np.bincount(nearest, minlength=n_clusters) == 0)
        nearest[np.argsort(affinity, kind="stable")[: len(empty)]] = empty
        sums = np.zeros(centroids.shape)
        sum_members(points, nearest, sums)
        centroids = _of_norm_1(sums, centroids).astype(points.dtype)
    return centroids


def nearest_centroids(
    points: np.ndarray, centroids: np.ndarray, n_jobs: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the centroid of each point with the largest inner product.

    Parameters
    ----------
    points : ndarray of shape (n, width)
    centroids : ndarray of shape (n_clusters, width)
    n_jobs : int or None
        Threads.

    Returns
    -------
    nearest : ndarray of int32 of shape (n,)
        Ties go to the first.
    affinity, gap : ndarray of float64 of shape (n,)
        The inner product, and its lead on that of the next centroid.
    """
    n = len(points)
    nearest, affinity, gap = np.empty(n, np.int32), np.empty(n), np.empty(n)

    @np.errstate(over="ignore", invalid="ignore")
    def assign(first: int, last: int) -> None:
        products = points[first:last] @ centroids.T
        two_nearest(products, nearest[first:last], affinity[first:last], gap[first:last])

    for_row_ranges(assign, n, points_together(len(centroids)), n_jobs)
    return nearest, affinity, gap


def points_together(n_clusters: int) -> int:
    """Return for how many points the affinities to all clusters are held at a time."""
    return max(1, min(_POINTS, _AFFINITIES // n_clusters))


def _of_norm_1(vectors: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Return the rows divided by their norms; those of norm 0 as in `otherwise`."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(norms > 0, vectors / np.where(norms > 0, norms, 1.0), otherwise)

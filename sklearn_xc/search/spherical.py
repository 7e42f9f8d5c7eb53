"""Search among the rows of a few spherical clusters, kept up to date while W is moved."""

import copy

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import for_row_ranges
from sklearn_xc.search.kernels.clusters import (
    Clusters,
    augment_rows,
    largest_norm,
    list_members,
    refresh_rows,
    search_clusters,
    sum_members,
    two_nearest,
)
from sklearn_xc.search.protocol import Candidates

#: Rows that the centroids are made of, for each of them.
_SAMPLE = 100
#: Multiplications of the queries that a thread takes at a time, a few milliseconds, and of the
#: smallest call that threads are started for.
_WORK = 2**24
#: A gap below this share of the largest norm, times the type's precision, may be rounding.
_ROUNDING = 64
#: Affinities that a thread holds at a time, and points at most.
_AFFINITIES = 2**20
_POINTS = 1024
_MAX_ITER = 10


class SphericalIndex(BaseEstimator):
    """The best rows of W among those in the clusters with the best centroids.

    Rows are augmented by one number that gives all of them the same norm, so that a large inner
    product means a small angle, and clustered by spherical k-means. A query visits clusters, best
    centroid first, until it has seen at least `n_candidates` rows; it returns the best
    `n_candidates` of these.

    After an update, each row is again in the cluster of its nearest centroid. Most rows need not
    be compared with the centroids for this: a row stays if, since its last comparison, it has
    moved by less than half the lead of its nearest centroid over the next. The centroids, and the
    norm that rows are augmented to, stay those of ``build``; a row that outgrows this norm is
    augmented by 0. When all rows have moved far, clusters become uneven or alike: build the index
    again.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of clusters, at most the number of labels; None is the square root of that number.
    n_jobs : int or None, default=None
        Number of threads, as joblib counts them. Results do not depend on it.

    Attributes
    ----------
    has_exact_scores : bool
        True.
    row_copies : float
        1.0; see `MipsIndex`.
    centroids_ : ndarray of shape (n_clusters, d + 1)
        Centroids of norm 1, with the augmented coordinate last.
    bound_ : float
        The norm that rows are augmented to: the largest norm of a row in ``build``.

    Notes
    -----
    A query takes O((n_clusters + n_candidates + n_labels / n_clusters) d) time if clusters are
    even; an updated row takes O(d), or O(n_clusters d) if it is compared with the centroids.
    Memory: a copy of the columns of W.

    Source: [1]_, sections 3 and 4.1, with one level of clusters. It differs in that rows move
    between clusters while W changes, in that a query stops by a number of rows, n_candidates,
    instead of a number of clusters, and in the sample of at most 100 rows for each centroid.

    References
    ----------
    .. [1] A. Auvolat, S. Chandar, P. Vincent, H. Larochelle, Y. Bengio. Clustering is efficient for
       approximate maximum inner product search. arXiv:1507.05910, 2015.

    Examples
    --------
    Rows in all directions are the worst case. More candidates contain more of the five best rows:

    >>> import numpy as np
    >>> from sklearn_xc.search import SphericalIndex, search_recall
    >>> rng = np.random.default_rng(0)
    >>> W, queries = rng.standard_normal((1000, 8)), rng.standard_normal((50, 8))
    >>> index = SphericalIndex()
    >>> index.build(W)
    >>> [round(search_recall(index, W, 0, None, queries, 5, n), 1) for n in (20, 100, 500)]
    [0.5, 0.8, 1.0]
    """

    has_exact_scores = True
    row_copies = 1.0

    def __init__(self, n_clusters: int | None = None, n_jobs: int | None = None) -> None:
        self.n_clusters = n_clusters
        self.n_jobs = n_jobs

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Cluster the rows; see `MipsIndex.build`."""
        self._W = read_only(W)
        self._first = first
        self._d = (W.shape[1] if last is None else last) - first
        n_labels = len(W)
        rng = np.random.default_rng(seed)
        wanted = round(n_labels**0.5) if self.n_clusters is None else self.n_clusters
        n_clusters = max(1, min(wanted, n_labels))
        self.bound_ = largest_norm(self._W, first, first + self._d)
        n_sample = min(n_labels, _SAMPLE * n_clusters)
        sample = np.sort(rng.choice(n_labels, n_sample, replace=False))
        points = np.empty((n_sample, self._d + 1), W.dtype)
        augment_rows(self._W, first, sample, self.bound_, points)
        self.centroids_ = cluster_directions(points, n_clusters, rng, self.n_jobs)
        nearest, gap = self._assign(np.arange(n_labels, dtype=np.int32))
        rows = np.ascontiguousarray(W[:, first : first + self._d]).copy()
        lists = np.empty(n_labels, np.int32), np.empty(n_clusters + 1, np.int64)
        self._clusters = Clusters(rows, nearest, gap, *lists)
        list_members(self._clusters)

    def update(self, rows: np.ndarray) -> None:
        """Move rows to the cluster of their nearest centroid; see `MipsIndex.update`."""
        loose = np.empty(len(rows), np.int32)
        rounding = _ROUNDING * float(np.finfo(self._W.dtype).eps) * self.bound_
        n_loose = refresh_rows(
            self._W, self._first, read_only(rows), self.bound_, rounding, self._clusters, loose
        )
        if n_loose == 0:
            return
        loose = loose[:n_loose]
        nearest, self._clusters.gap[loose] = self._assign(loose)
        if (nearest != self._clusters.cluster[loose]).any():
            self._clusters.cluster[loose] = nearest
            list_members(self._clusters)

    def following(self, W: np.ndarray) -> "SphericalIndex":
        """Return an index with the same clusters; see `MipsIndex.following`."""
        other = copy.copy(self)
        other._W = read_only(W)
        other._clusters = Clusters(*(array.copy() for array in self._clusters))
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the best rows of the best clusters; see `MipsIndex.query`."""
        V, centroids = read_only(V), read_only(self.centroids_)
        found = Candidates.empty(len(V), n_candidates, V.dtype)

        def search(begin: int, end: int) -> None:
            search_clusters(V, begin, end, centroids, self._clusters, n_wanted, *found)

        n_clusters, n_wanted = len(centroids), min(n_candidates, len(self._W))
        n_scored = n_clusters + n_wanted + len(self._W) // n_clusters
        n_together = max(1, _WORK // (n_scored * self._d))
        for_row_ranges(search, len(V), n_together, self.n_jobs)
        return found

    def _assign(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest centroid of some labels and its lead on the next."""
        nearest, gap = np.empty(len(labels), np.int32), np.empty(len(labels))

        def assign(begin: int, end: int) -> None:
            points = np.empty((end - begin, self._d + 1), self._W.dtype)
            augment_rows(self._W, self._first, labels[begin:end], self.bound_, points)
            nearest[begin:end], _, gap[begin:end] = nearest_centroids(points, self.centroids_, 1)

        for_row_ranges(assign, len(labels), points_together(len(self.centroids_)), self.n_jobs)
        return nearest, gap


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

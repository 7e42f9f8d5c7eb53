"""Search among the rows of a few spherical clusters, kept up to date while W is moved."""

import copy

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.row_ranges import for_row_ranges
from sklearn_xc.search._sphere import cluster_directions, nearest_centroids, points_together
from sklearn_xc.search.kernels.clusters import (
    Layout,
    augment_rows,
    fill_slots,
    largest_norm,
    move_labels,
    refresh_rows,
    room_for,
    search_clusters,
)
from sklearn_xc.search.protocol import Candidates

#: Rows that the centroids are made of, for each of them.
_SAMPLE = 100
#: Multiplications of the queries that a thread takes at a time, a few milliseconds, and of the
#: smallest call that threads are started for.
_WORK = 2**24
#: A gap below this share of the largest norm, times the type's precision, may be rounding.
_ROUNDING = 64


class SphericalIndex(BaseEstimator):
    """The best rows of W among those in the clusters with the best centroids.

    Rows are augmented by one number that gives all of them the same norm, so that a large inner
    product means a small angle, and clustered by spherical k-means. A query visits clusters, best
    centroid first, until it has seen at least `n_candidates` rows; it returns the best
    `n_candidates` of these. Rows are copied cluster by cluster, so that scanning a cluster reads
    memory in order.

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
        2.0; see `MipsIndex`.
    centroids_ : ndarray of shape (n_clusters, d + 1)
        Centroids of norm 1, with the augmented coordinate last.
    bound_ : float
        The norm that rows are augmented to: the largest norm of a row in ``build``.

    Notes
    -----
    A query takes O((n_clusters + n_candidates + n_labels / n_clusters) d) time if clusters are
    even; an updated row takes O(d), or O(n_clusters d) if it is compared with the centroids.
    Memory: the copies, with spare slots, take up to twice as much as the columns of W.

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
    row_copies = 2.0

    def __init__(self, n_clusters: int | None = None, n_jobs: int | None = None) -> None:
        self.n_clusters = n_clusters
        self.n_jobs = n_jobs

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Cluster the rows and copy them; see `MipsIndex.build`."""
        self._W = read_only(W)
        self._first, self._d = first, (W.shape[1] if last is None else last) - first
        n_labels, rng = len(W), np.random.default_rng(seed)
        wanted = round(n_labels**0.5) if self.n_clusters is None else self.n_clusters
        n_clusters = max(1, min(wanted, n_labels))
        self.bound_ = largest_norm(self._W, first, first + self._d)
        n_sample = min(n_labels, _SAMPLE * n_clusters)
        sample = np.sort(rng.choice(n_labels, n_sample, replace=False))
        points = np.empty((n_sample, self._d + 1), W.dtype)
        augment_rows(self._W, first, sample, self.bound_, points)
        self.centroids_ = cluster_directions(points, n_clusters, rng, self.n_jobs)
        nearest, gap = self._assign(np.arange(n_labels, dtype=np.int32))
        self._arrange(nearest, gap)

    def update(self, rows: np.ndarray) -> None:
        """Copy rows again, and move those with another nearest centroid; see `MipsIndex.update`."""
        loose = np.empty(len(rows), np.int32)
        rounding = _ROUNDING * float(np.finfo(self._W.dtype).eps) * self.bound_
        n_loose = refresh_rows(
            self._W, self._first, read_only(rows), self.bound_, rounding, self._layout, loose
        )
        if n_loose == 0:
            return
        loose = loose[:n_loose]
        nearest, gap = self._assign(loose)
        done = 0
        while (done := move_labels(loose, nearest, gap, done, self._layout)) < n_loose:
            self._arrange(self._layout.cluster, self._layout.gap)

    def following(self, W: np.ndarray) -> "SphericalIndex":
        """Return an index with the same clusters; see `MipsIndex.following`."""
        other = copy.copy(self)
        other._W = read_only(W)
        other._layout = type(self._layout)(*(array.copy() for array in self._layout))
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the best rows of the best clusters; see `MipsIndex.query`."""
        V, centroids = read_only(V), read_only(self.centroids_)
        found = Candidates.empty(len(V), n_candidates, V.dtype)

        def search(begin: int, end: int) -> None:
            search_clusters(V, begin, end, centroids, self._layout, n_candidates, *found)

        n_clusters = len(centroids)
        n_scored = n_clusters + n_candidates + len(self._W) // n_clusters
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

    def _arrange(self, cluster: np.ndarray, gap: np.ndarray) -> None:
        """Copy all rows cluster by cluster, with slots to spare in and behind the clusters."""
        n_labels, n_clusters = len(cluster), len(self.centroids_)
        size = np.bincount(cluster, minlength=n_clusters)
        room = size + size // 8 + 4
        begin = np.cumsum(room) - room
        taken = int(room.sum())
        n_slots = taken + max(n_labels // 4, room_for(int(room.max())))
        order = np.argsort(cluster, kind="stable")
        slot = np.empty(n_labels, np.int64)
        slot[order] = np.arange(n_labels) + np.repeat(begin - np.cumsum(size) + size, size)
        self._layout = Layout(
            np.empty((n_slots, self._d), self._W.dtype),
            np.empty(n_slots, np.int32),
            begin, size, room, np.array([taken]), slot, cluster, gap,
        )  # fmt: skip
        fill_slots(self._W, self._first, self._layout)

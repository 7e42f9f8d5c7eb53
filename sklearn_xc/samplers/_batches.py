"""Mini-batches of shuffled rows and of whole clusters."""

import copy
from collections.abc import Iterator

import numpy as np

from sklearn_xc.exceptions import SavedModelError
from sklearn_xc.samplers.balanced import clusters_of

#: What random numbers are for: clusters and batches of one epoch have their own.
_BATCHES, _CLUSTERS = 0, 1


class Clusters:
    """Rows by cluster, and mini-batches of them.

    Parameters
    ----------
    V : ndarray of shape (n, dim)
        What near rows are judged by.
    n_clusters : int
        Their sizes differ by one at most.
    seed : tuple of int
        Of the clusters.
    n_jobs : int or None
        Threads.

    Attributes
    ----------
    rows : ndarray of int64 of shape (n,)
        Cluster by cluster, ascending in each.
    starts : ndarray of int64 of shape (n_clusters + 1,)
        Where each cluster begins in `rows`.
    """

    def __init__(
        self, V: np.ndarray, n_clusters: int, seed: tuple[int, int], n_jobs: int | None
    ) -> None:
        n = len(V)
        if n_clusters == n:  # nothing to compute
            cluster = np.arange(n)
        else:
            number = np.random.default_rng((*seed, _CLUSTERS)).integers(2**63)
            cluster = clusters_of(V, n_clusters, int(number), n_jobs)
        self.rows = np.argsort(cluster, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(cluster, minlength=n_clusters))])

    @classmethod
    def kept(cls, n: int, rows: np.ndarray | None, starts: np.ndarray | None) -> "Clusters":
        """Return clusters of a checkpoint, of n rows.

        Raises
        ------
        SavedModelError
            Unless each row is in one of the clusters, whose sizes differ by one at most.
        """
        fits = (
            rows is not None
            and starts is not None
            and rows.dtype == starts.dtype == np.int64
            and np.array_equal(np.sort(rows, axis=None), np.arange(n))
            and starts.ndim == rows.ndim == 1
            and len(starts) > 1
            and (starts[0], starts[-1]) == (0, n)
            and (np.diff(starts) > 0).all()
            and np.ptp(np.diff(starts)) <= 1
        )
        if not fits:
            raise SavedModelError(f"its clusters are not those of {n} instances.")
        made = cls.__new__(cls)
        made.rows, made.starts = rows, starts  # type: ignore[assignment]
        return made

    def merged(self, n_together: int) -> "Clusters":
        """Return larger clusters, each of so many that follow one another: they are near, too."""
        larger = copy.copy(self)
        larger.starts = np.append(self.starts[:-1:n_together], self.starts[-1])
        return larger

    def batches(self, batch_size: int, seed: tuple[int, int]) -> Iterator[np.ndarray]:
        """Yield the rows of mini-batches of random clusters.

        Clusters queue in a random order. A mini-batch takes from the front of the queue while
        whole clusters fit. The places left are filled with single rows from the back, so that all
        mini-batches have the same size and few clusters are broken up for it. No cluster may be
        larger than a mini-batch.
        """
        rng = np.random.default_rng((*seed, _BATCHES))
        sizes = np.diff(self.starts)
        order = rng.permutation(len(sizes))
        firsts, ends = self.starts[order], np.cumsum(sizes[order])
        shifts = np.repeat(firsts - ends + sizes[order], sizes[order])
        queue = self.rows[np.arange(len(self.rows)) + shifts]
        front, back = 0, len(queue)
        while front < back:
            fits = np.searchsorted(ends, front + batch_size, side="right")
            end = min(int(ends[fits - 1]), back)
            n_single = min(batch_size - (end - front), back - end)
            yield np.concatenate([queue[front:end], queue[back - n_single : back]])
            front, back = end, back - n_single


def shuffled_batches(n: int, batch_size: int, seed: tuple[int, int]) -> Iterator[np.ndarray]:
    """Yield the rows of random mini-batches."""
    order = np.random.default_rng((*seed, _BATCHES)).permutation(n)
    for first in range(0, n, batch_size):
        yield order[first : first + batch_size]

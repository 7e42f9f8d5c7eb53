"""Mini-batches of whole clusters."""

from collections.abc import Iterator

import numpy as np

from sklearn_xc.embedding.samplers.balanced import clusters_of
from sklearn_xc.embedding.samplers.in_batch import BATCHES, CLUSTERS, InBatchSampler


class ClusterSampler(InBatchSampler):
    """Mini-batches of random clusters, which a subclass finds in ``_read``.

    Attributes
    ----------
    _rows : ndarray of int64 of shape (n,)
        Cluster by cluster, rising in each.
    _starts : ndarray of int64 of shape (n_clusters + 1,)
        Bounds of the clusters in `_rows`.
    """

    _kept_arrays = ("_rows", "_starts")

    def _find_clusters(self, V: np.ndarray, n_clusters: int, epoch: int) -> None:
        """Set `_rows` and `_starts` to clusters of near rows, of sizes that differ by one."""
        if n_clusters == len(V):
            cluster = np.arange(len(V))
        else:
            rng = np.random.default_rng((self.seed_, epoch, CLUSTERS))
            cluster = clusters_of(V, n_clusters, int(rng.integers(2**63)), self.n_jobs_)
        self._rows = np.argsort(cluster, kind="stable")
        self._starts = np.append(0, np.cumsum(np.bincount(cluster, minlength=n_clusters)))

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the rows of mini-batches of random clusters.

        Clusters queue in a random order. A mini-batch takes from the front of the queue while
        whole clusters fit. The places left are filled with single rows from the back, so that all
        mini-batches have the same size and few clusters are broken up for it. No cluster may be
        larger than a mini-batch.
        """
        starts = self._starts_at(epoch)
        sizes = np.diff(starts)
        order = np.random.default_rng((self.seed_, epoch, BATCHES)).permutation(len(sizes))
        firsts, ends = starts[order], np.cumsum(sizes[order])
        shifts = np.repeat(firsts - ends + sizes[order], sizes[order])
        queue = self._rows[np.arange(len(self._rows)) + shifts]
        front, back = 0, len(queue)
        while front < back:
            n_whole = np.searchsorted(ends, front + self.batch_size_, side="right")
            end = min(int(ends[n_whole - 1]), back)
            n_single = min(self.batch_size_ - (end - front), back - end)
            yield np.concatenate([queue[front:end], queue[back - n_single : back]])
            front, back = end, back - n_single

    def _starts_at(self, epoch: int) -> np.ndarray:
        """Return the bounds of the clusters of an epoch."""
        return self._starts

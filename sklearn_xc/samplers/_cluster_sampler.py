"""What samplers share whose mini-batches are made of clusters."""

from collections.abc import Iterator

import numpy as np

from sklearn_xc.samplers._batches import Clusters
from sklearn_xc.samplers.in_batch import InBatchSampler


class ClusterSampler(InBatchSampler):
    """Mini-batches of random clusters, which a subclass makes: it sets ``_clusters``.

    Parameters
    ----------
    batch_size, refresh_interval, seed, n_jobs
        As in `InBatchSampler`.
    cluster_size : int or None, default=None
        Instances of a cluster; None leaves it to the subclass.
    """

    _clusters: Clusters

    def __init__(
        self,
        batch_size: int,
        refresh_interval: int = 5,
        seed: int = 0,
        n_jobs: int | None = None,
        *,
        cluster_size: int | None = None,
    ) -> None:
        super().__init__(batch_size, refresh_interval, seed, n_jobs)
        self.cluster_size = cluster_size

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        return self._clusters.batches(self.batch_size, (self.seed, epoch))

    def _clustered(self, V: np.ndarray, n_clusters: int, epoch: int) -> Clusters:
        return Clusters(V, n_clusters, (self.seed, epoch), self.n_jobs)

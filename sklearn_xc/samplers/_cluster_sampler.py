"""What samplers share whose mini-batches are made of clusters."""

from collections.abc import Iterator

import numpy as np

from sklearn_xc.samplers._batches import Clusters
from sklearn_xc.samplers.in_batch import InBatchSampler


class ClusterSampler(InBatchSampler):
    """Mini-batches of random clusters, which a subclass makes: it sets ``_clusters``."""

    _clusters: Clusters

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        return self._clusters.batches(self.batch_size_, (self.seed_, epoch))

    def _clustered(self, V: np.ndarray, n_clusters: int, epoch: int) -> Clusters:
        return Clusters(V, n_clusters, (self.seed_, epoch), self.n_jobs_)

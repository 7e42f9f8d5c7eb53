"""What samplers share whose mini-batches are made of clusters."""

from collections.abc import Iterator

import numpy as np

from sklearn_xc.samplers._batches import Clusters
from sklearn_xc.samplers.in_batch import InBatchSampler
from sklearn_xc.samplers.protocol import TrainingState


class ClusterSampler(InBatchSampler):
    """Mini-batches of random clusters, which a subclass makes.

    It sets ``_found``, when a refresh is due, and ``_clusters``, those of the epoch.
    """

    _found: Clusters
    _clusters: Clusters

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        return self._clusters.batches(self.batch_size_, (self.seed_, epoch))

    def _kept(self) -> dict[str, np.ndarray]:
        return {"cluster_rows": self._found.rows, "cluster_starts": self._found.starts}

    def _resume(self, found: dict[str, np.ndarray], epoch: int, state: TrainingState) -> None:
        super()._resume(found, epoch, state)
        self._clusters = self._found = Clusters.kept(
            state.n, found.get("cluster_rows"), found.get("cluster_starts")
        )

    def _clustered(self, V: np.ndarray, n_clusters: int, epoch: int) -> Clusters:
        return Clusters(V, n_clusters, (self.seed_, epoch), self.n_jobs_)

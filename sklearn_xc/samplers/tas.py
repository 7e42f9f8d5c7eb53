"""Mini-batches from clusters that are made once."""

from sklearn_xc.samplers._cluster_sampler import ClusterSampler
from sklearn_xc.samplers.protocol import Scene


class TasSampler(ClusterSampler):
    """Topic-aware sampling: mini-batches of clusters of features that never change.

    Parameters
    ----------
    batch_size : int
        Instances of a mini-batch.
    refresh_interval : int, default=5
        Not used.
    seed : int, default=0
        Of clusters and mini-batches.
    n_jobs : int or None, default=None
        Threads of the clustering, as joblib counts them. Results do not depend on it.
    cluster_size : int or None, default=None
        Instances of a cluster; None is `batch_size`, which it never exceeds: a mini-batch is a
        cluster.

    Notes
    -----
    Source: [1]_; differs in that clusters have equal sizes, that no teacher balances the margins,
    and that each instance comes once in an epoch.

    References
    ----------
    .. [1] S. Hofstatter, S. Lin, J. Yang, J. Lin, A. Hanbury. Efficiently teaching an effective
       dense retriever with balanced topic aware sampling. SIGIR 2021.
    """

    def _due(self, epoch: int, scene: Scene) -> int:
        return 0

    def _look(self, epoch: int, scene: Scene) -> None:
        size = self.batch_size if self.cluster_size is None else self.cluster_size
        n_clusters = -(-scene.n // min(size, self.batch_size))
        self._clusters = self._clustered(scene.static(), n_clusters, epoch)

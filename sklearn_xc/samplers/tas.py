"""Mini-batches from clusters that are made once."""

from numbers import Integral

from sklearn_xc._sklearn import Interval
from sklearn_xc.samplers._cluster_sampler import ClusterSampler
from sklearn_xc.samplers.protocol import TrainingState


class TasSampler(ClusterSampler):
    """Topic-aware sampling: mini-batches of clusters that never change.

    They are clusters of what the untrained encoder makes of the instances.

    Parameters
    ----------
    cluster_size : int or None, default=None
        Instances of a cluster, at most the size of a mini-batch. None is that size: a mini-batch is
        a cluster.

    Notes
    -----
    Source: [1]_; differs in that clusters have equal sizes, that no teacher balances the margins,
    and that each instance comes once in an epoch.

    References
    ----------
    .. [1] S. Hofstatter, S. Lin, J. Yang, J. Lin, A. Hanbury. Efficiently teaching an effective
       dense retriever with balanced topic aware sampling. SIGIR 2021.
    """

    reads = ("initial",)

    _parameter_constraints: dict = {  # noqa: RUF012
        "cluster_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, cluster_size: int | None = None) -> None:
        self.cluster_size = cluster_size

    def _look(self, epoch: int, state: TrainingState) -> None:
        size = self.batch_size_ if self.cluster_size is None else self.cluster_size
        n_clusters = -(-state.n // min(size, self.batch_size_))
        self._clusters = self._clustered(state.initial(), n_clusters, epoch)

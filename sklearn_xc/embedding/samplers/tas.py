"""Mini-batches from clusters that are made once."""

from numbers import Integral

from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.embedding.samplers._clusters import ClusterSampler
from sklearn_xc.embedding.samplers.in_batch import InBatchSampler
from sklearn_xc.embedding.samplers.protocol import TrainingState


class TasSampler(ClusterSampler):
    """Topic-aware sampling: mini-batches made of clusters that never change.

    The clusters are those of the untrained encoder's embeddings of the instances.

    Parameters
    ----------
    cluster_size : int or None, default=None
        Number of instances in a cluster, at most the size of a mini-batch. None is that size: each
        mini-batch is one cluster.
    batch_size : int or "auto", default="auto"
        Instances per mini-batch; see `InBatchSampler`.

    Notes
    -----
    Source: [1]_. It differs in that clusters have equal sizes, no teacher balances the margins,
    and each instance occurs once per epoch.

    References
    ----------
    .. [1] S. Hofstatter, S. Lin, J. Yang, J. Lin, A. Hanbury. Efficiently teaching an effective
       dense retriever with balanced topic aware sampling. SIGIR 2021.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.embedding.samplers import TasSampler
    >>> clf = NGAMEEmbeddingXC(sampler=TasSampler(cluster_size=32))

    Mini-batches of two instances each, which are near each other:

    >>> import numpy as np
    >>> from sklearn_xc.embedding.samplers import Positives, TrainingState
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> labels = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> positives = Positives(np.arange(5), np.array([0, 1, 0, 1], np.int32))
    >>> state = TrainingState(
    ...     n=4, n_labels=3, positives=positives, inputs=lambda: V, instances=lambda: V,
    ...     last_seen=lambda: V, initial=lambda: V, labels=lambda: labels,
    ... )
    >>> sampler = TasSampler(batch_size=2)
    >>> sampler.start(n=4, n_epochs=1, seed=0)
    >>> sampler.refresh(0, state)
    >>> [rows.tolist() for rows in sampler.batches(0)]
    [[0, 2], [1, 3]]
    """

    reads = ("initial",)

    _parameter_constraints: dict = {  # noqa: RUF012
        **InBatchSampler._parameter_constraints,
        "cluster_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, cluster_size: int | None = None, batch_size: int | str = "auto") -> None:
        self.cluster_size = cluster_size
        self.batch_size = batch_size

    def _read(self, epoch: int, state: TrainingState) -> None:
        size = self.batch_size_ if self.cluster_size is None else self.cluster_size
        n_clusters = -(-state.n // min(size, self.batch_size_))
        self._find_clusters(state.initial(), n_clusters, epoch)

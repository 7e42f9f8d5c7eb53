"""Mini-batches of whole clusters: instances that are near each other have hard negatives."""

from collections.abc import Iterator
from numbers import Integral

import numpy as np

from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.embedding.samplers.clusters import clusters_of
from sklearn_xc.embedding.samplers.in_batch import BATCHES, CLUSTERS, InBatchSampler
from sklearn_xc.embedding.samplers.protocol import TrainingState

#: Rows of a cluster at the start of the curriculum, and how often they double at most.
_SMALLEST, _DOUBLINGS = 8, 12


class ClusterSampler(InBatchSampler):
    """Mini-batches of random clusters, which a subclass finds in ``refresh``.

    Attributes
    ----------
    _rows : ndarray of int64 of shape (n,)
        Cluster by cluster, ascending in each.
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
        firsts = starts[order]
        ends = np.cumsum(sizes[order])
        shifts = np.repeat(firsts - ends + sizes[order], sizes[order])
        queue = self._rows[np.arange(len(self._rows)) + shifts]
        front = 0
        back = len(queue)
        while front < back:
            n_whole = np.searchsorted(ends, front + self.batch_size_, side="right")
            end = min(int(ends[n_whole - 1]), back)
            n_single = min(self.batch_size_ - (end - front), back - end)
            yield np.concatenate([queue[front:end], queue[back - n_single : back]])
            front, back = end, back - n_single

    def _starts_at(self, epoch: int) -> np.ndarray:
        """Return the bounds of the clusters of an epoch."""
        return self._starts


class NgameSampler(ClusterSampler):
    """Mini-batches made of random clusters of the instances' embeddings.

    After some training, an instance is near its labels, and near instances with nearly the same
    labels. So the labels of its cluster include the negatives that score best for it, and no
    search is needed. The larger the clusters, the harder the negatives. Untrained embeddings are
    a poor guide to what will be near: if embeddings change in training, the first epoch has random
    mini-batches, and the first clustering comes before the second epoch.

    Parameters
    ----------
    refresh_interval : int, default=5
        Number of epochs between clusterings, from the second epoch on.
    cluster_size : int or None, default=None
        Maximum number of instances in a cluster. None is a curriculum: 8, doubled every
        ``max(1, n_epochs // 12)`` epochs. Never above the size of a mini-batch; 1 makes
        mini-batches random.
    batch_size : int or "auto", default="auto"
        Instances per mini-batch; see `InBatchSampler`.

    Notes
    -----
    A clustering takes O(n dim log(n / cluster_size)) time, an epoch's mini-batches O(n). In the
    curriculum, the number of clusters is a power of two, and clusters grow by joining those that
    follow one another in the tree, which gives 1 to 3 % more inertia than clustering again but
    takes no time. If embeddings never change, there is only one clustering.

    Source: Algorithm 1 of [1]_. It differs in the first epoch; in the size that the curriculum
    starts with, which the paper does not give; in how clusters grow; and in that an instance is in
    one mini-batch of each epoch even if n is not a multiple of the sizes.

    References
    ----------
    .. [1] K. Dahiya, N. Gupta, D. Saini, A. Soni, Y. Wang, K. Dave, J. Jiao, G. K, P. Dey,
       A. Singh, D. Hada, V. Jain, B. Paliwal, A. Mittal, S. Mehta, R. Ramjee, S. Agarwal, P. Kar,
       M. Varma. NGAME: negative mining-aware mini-batching for extreme classification. WSDM 2023.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.embedding.samplers import NgameSampler
    >>> clf = NGAMEEmbeddingXC(sampler=NgameSampler(refresh_interval=3))

    Over 60 epochs, clusters grow up to the size of a mini-batch:

    >>> sampler = NgameSampler(batch_size=64)
    >>> sampler.start(n=1000, n_epochs=60, seed=0)
    >>> [sampler.cluster_size_at(epoch) for epoch in (0, 5, 10, 15, 20)]
    [8, 16, 32, 64, 64]
    """

    reads = ("last_seen",)

    _parameter_constraints: dict = {  # noqa: RUF012
        **InBatchSampler._parameter_constraints,
        "refresh_interval": [Interval(Integral, 1, None, closed="left")],
        "cluster_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        refresh_interval: int = 5,
        cluster_size: int | None = None,
        batch_size: int | str = "auto",
    ) -> None:
        self.refresh_interval = refresh_interval
        self.cluster_size = cluster_size
        self.batch_size = batch_size

    def cluster_size_at(self, epoch: int) -> int:
        """Return the maximum number of instances in a cluster in an epoch of training.

        Parameters
        ----------
        epoch : int
            From 0.

        Returns
        -------
        int
        """
        if self.cluster_size is not None:
            return min(self.cluster_size, self.batch_size_)
        smallest = min(_SMALLEST, self.batch_size_)
        times = epoch // max(1, self.n_epochs_ // _DOUBLINGS)
        return smallest << min(times, (self.batch_size_ // smallest).bit_length() - 1)

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Cluster the embeddings if that is due; see `BatchSampler.refresh`."""
        self._moves = state.moves
        if epoch == self._refresh_epoch(epoch):
            self._find_clusters(state.last_seen(), self._n_clusters(epoch), epoch)

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        if self._moves and epoch == 0:  # untrained embeddings say little about what will be near
            return InBatchSampler.batches(self, epoch)
        return super().batches(epoch)

    def _refresh_epoch(self, epoch: int) -> int:
        """Return the epoch of the last clustering."""
        if not self._moves:
            return 0
        return epoch - (epoch - 1) % self.refresh_interval if epoch else 1

    def _starts_at(self, epoch: int) -> np.ndarray:
        """Return the bounds of the clusters of an epoch, larger ones than when they were found."""
        n_joined = self._n_clusters(self._refresh_epoch(epoch)) // self._n_clusters(epoch)
        return np.append(self._starts[:-1:n_joined], self._starts[-1])

    def _n_clusters(self, epoch: int) -> int:
        n_clusters = -(-self._n // self.cluster_size_at(epoch))
        if self.cluster_size is None:
            n_clusters = 1 << (n_clusters - 1).bit_length()
        return min(n_clusters, self._n)


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

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Cluster the initial embeddings, once; see `BatchSampler.refresh`."""
        if epoch > 0:
            return
        size = self.batch_size_ if self.cluster_size is None else self.cluster_size
        n_clusters = -(-state.n // min(size, self.batch_size_))
        self._find_clusters(state.initial(), n_clusters, epoch)

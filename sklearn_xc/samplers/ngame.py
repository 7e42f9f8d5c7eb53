"""Mini-batches of instances that are near each other, so that their labels are hard negatives."""

from collections.abc import Iterator
from numbers import Integral

import numpy as np

from sklearn_xc._sklearn import Interval
from sklearn_xc.samplers._batches import shuffled_batches
from sklearn_xc.samplers._cluster_sampler import ClusterSampler
from sklearn_xc.samplers.protocol import TrainingState

#: Rows of a cluster at the start of the curriculum, and how often it doubles if epochs last.
_SMALLEST, _DOUBLINGS = 8, 12


class NgameSampler(ClusterSampler):
    """Mini-batches made of random clusters of the instances' embeddings.

    After some training, an instance is near its labels, and near instances with nearly the same
    labels. So the labels of its cluster include the negatives that score best for it, and no
    search is needed. The larger the clusters, the harder the negatives. Untrained embeddings tell
    little about what will be near: if embeddings change in training, the first epoch has random
    mini-batches, and the first clustering comes before the second epoch.

    Parameters
    ----------
    refresh_interval : int, default=5
        Number of epochs between clusterings, from the second epoch on.
    cluster_size : int or None, default=None
        Maximum number of instances in a cluster. None is a curriculum: 8, doubled every
        ``max(1, n_epochs // 12)`` epochs. Never above the size of a mini-batch; 1 makes
        mini-batches random.

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
    >>> from sklearn_xc.samplers import NgameSampler
    >>> clf = NGAMEEmbeddingXC(sampler=NgameSampler(refresh_interval=3))

    Over 60 epochs, clusters grow up to the size of a mini-batch:

    >>> sampler = NgameSampler()
    >>> sampler.start(batch_size=64, n_epochs=60, seed=0)
    >>> [sampler.cluster_size_at(epoch) for epoch in (0, 5, 10, 15, 20)]
    [8, 16, 32, 64, 64]
    """

    reads = ("last_seen",)

    _parameter_constraints: dict = {  # noqa: RUF012
        "refresh_interval": [Interval(Integral, 1, None, closed="left")],
        "cluster_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, refresh_interval: int = 5, cluster_size: int | None = None) -> None:
        self.refresh_interval = refresh_interval
        self.cluster_size = cluster_size

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
        """Look at the embeddings again if a refresh is due; clusters grow in any case."""
        self._is_random = state.moves and epoch == 0
        if self._is_random:
            self._n, self._refreshed = state.n, None
            return
        super().refresh(epoch, state)
        clustered = self._n_clusters(self._due(epoch, state), state)
        self._clusters = self._found.merged(clustered // self._n_clusters(epoch, state))

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        if self._is_random:
            return shuffled_batches(self._n, self.batch_size_, (self.seed_, epoch))
        return super().batches(epoch)

    def _kept(self) -> dict[str, np.ndarray]:
        return {} if self._is_random else super()._kept()

    def _resume(self, found: dict[str, np.ndarray], epoch: int, state: TrainingState) -> None:
        if state.moves and epoch == 0:
            self._refreshed = None
        else:
            super()._resume(found, epoch, state)

    def _n_clusters(self, epoch: int, state: TrainingState) -> int:
        n_clusters = -(-state.n // self.cluster_size_at(epoch))
        if self.cluster_size is None:
            n_clusters = 1 << (n_clusters - 1).bit_length()
        return min(n_clusters, state.n)

    def _due(self, epoch: int, state: TrainingState) -> int:
        return epoch - (epoch - 1) % self.refresh_interval if state.moves else 0

    def _look(self, epoch: int, state: TrainingState) -> None:
        self._found = self._clustered(state.last_seen(), self._n_clusters(epoch, state), epoch)

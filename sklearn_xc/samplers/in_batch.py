"""Random mini-batches, whose labels are each other's negatives."""

from collections.abc import Iterator

import numpy as np

from sklearn_xc.samplers._batches import shuffled_batches
from sklearn_xc.samplers.protocol import Scene


class InBatchSampler:
    """Random mini-batches.

    Other samplers are this one with a part of their own.

    Parameters
    ----------
    batch_size : int
        Instances of a mini-batch.
    refresh_interval : int, default=5
        Epochs between refreshes; there is nothing to refresh here.
    seed : int, default=0
        Of the order of the instances. An epoch's depends on the seed and the epoch alone.
    n_jobs : int or None, default=None
        Threads of a refresh, as joblib counts them. Results do not depend on it.

    Notes
    -----
    Source: the in-batch negatives of [1]_.

    References
    ----------
    .. [1] V. Karpukhin, B. Oguz, S. Min, P. Lewis, L. Wu, S. Edunov, D. Chen, W. Yih. Dense passage
       retrieval for open-domain question answering. EMNLP 2020.
    """

    def __init__(
        self,
        batch_size: int,
        refresh_interval: int = 5,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.batch_size = batch_size
        self.refresh_interval = refresh_interval
        self.seed = seed
        self.n_jobs = n_jobs
        self._n = 0
        self._refreshed: int | None = None

    def refresh(self, epoch: int, scene: Scene) -> None:
        """Look at the embeddings, if it is time to; see `BatchSampler.refresh`."""
        self._n = scene.n
        due = self._due(epoch, scene)
        # A refresh that is due now is done even if one for this epoch is there: that of other data.
        if due == epoch or due != self._refreshed:
            self._look(due, scene)
            self._refreshed = due

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        return shuffled_batches(self._n, self.batch_size, (self.seed, epoch))

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return None: there are only those of the mini-batch."""
        return None

    def select(self, losses: np.ndarray) -> np.ndarray | None:
        """Return None: all instances count."""
        return None

    def _due(self, epoch: int, scene: Scene) -> int:
        """Return the epoch of the last refresh that should have been, or should be now."""
        return epoch - epoch % self.refresh_interval

    def _look(self, epoch: int, scene: Scene) -> None:
        """Do the refresh of an epoch."""

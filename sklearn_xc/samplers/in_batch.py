"""Random mini-batches, whose labels are each other's negatives."""

from collections.abc import Collection, Iterator

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc.samplers._batches import shuffled_batches
from sklearn_xc.samplers.protocol import TrainingState


class InBatchSampler(BaseEstimator):
    """Random mini-batches.

    The other samplers are subclasses that replace a part of this one, and your own can be, too.
    Most need a constructor, ``reads``, and one of ``batches``, ``negatives`` and ``select``. A
    subclass that replaces ``refresh`` must also call this one.

    Attributes
    ----------
    batch_size_, n_epochs_, seed_, n_jobs_
        As given to ``start``.

    Notes
    -----
    Source: the in-batch negatives of [1]_.

    References
    ----------
    .. [1] V. Karpukhin, B. Oguz, S. Min, P. Lewis, L. Wu, S. Edunov, D. Chen, W. Yih. Dense passage
       retrieval for open-domain question answering. EMNLP 2020.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.samplers import InBatchSampler
    >>> NGAMEEmbeddingXC(sampler=InBatchSampler())
    NGAMEEmbeddingXC(sampler=InBatchSampler())
    """

    reads: Collection[str] = ()
    n_negatives: int = 0

    _parameter_constraints: dict = {}  # noqa: RUF012

    def start(
        self, batch_size: int, n_epochs: int = 1, seed: int = 0, n_jobs: int | None = None
    ) -> None:
        """Begin a training; see `BatchSampler.start`.

        Raises
        ------
        ValueError
            For parameters out of range.
        """
        self._validate_params()
        self.batch_size_ = batch_size
        self.n_epochs_ = n_epochs
        self.seed_ = seed
        self.n_jobs_ = n_jobs
        self._n = 0
        self._refreshed: int | None = None

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Look at the embeddings if a refresh is due; see `BatchSampler.refresh`."""
        self._n = state.n
        due = self._due(epoch, state)
        # A refresh that is due now is done even if one for this epoch is there: that of other data.
        if due == epoch or due != self._refreshed:
            self._look(due, state)
            self._refreshed = due

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        return shuffled_batches(self._n, self.batch_size_, (self.seed_, epoch))

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return None: the only negatives are those of the mini-batch."""
        return None

    def select(self, losses: np.ndarray) -> np.ndarray | None:
        """Return None: all instances count."""
        return None

    def _kept(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint keeps after an epoch, without what ``start`` sets."""
        return {}

    def _resume(self, found: dict[str, np.ndarray], epoch: int, state: TrainingState) -> None:
        """Continue as after an epoch of which `found` was kept."""
        self._n = state.n
        self._refreshed = self._due(epoch, state)

    def _due(self, epoch: int, state: TrainingState) -> int:
        """Return the epoch of the last refresh that should have been, or should be now."""
        return 0

    def _look(self, epoch: int, state: TrainingState) -> None:
        """Do the refresh of an epoch."""

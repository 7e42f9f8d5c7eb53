"""Random mini-batches, whose labels are each other's negatives."""

from collections.abc import Collection, Iterator
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.sklearn_private import Interval, StrOptions
from sklearn_xc.embedding.samplers.protocol import TrainingState

#: ``batch_size="auto"``: mini-batches of an epoch, and limits of their size. The largest is the
#: paper's.
_STEPS_OF_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 200, 64, 1600
#: Streams of random numbers: mini-batches of an epoch, and what else a sampler draws.
BATCHES, CLUSTERS, INDEX = 0, 1, 2


class InBatchSampler(BaseEstimator):
    """Random mini-batches.

    The other samplers are subclasses that replace a part of this one, and your own can be, too.
    Most need a constructor, ``reads``, and one of ``batches``, ``negatives`` and ``select``. A
    subclass that replaces ``refresh`` must also call this one.

    Parameters
    ----------
    batch_size : int or "auto", default="auto"
        Instances per mini-batch. "auto" is a two-hundredth of the instances, from 64 to 1600.

    Attributes
    ----------
    batch_size_, n_epochs_, seed_, n_jobs_
        Set by ``start``.

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
    >>> from sklearn_xc.embedding.samplers import InBatchSampler
    >>> NGAMEEmbeddingXC(sampler=InBatchSampler(batch_size=128))
    NGAMEEmbeddingXC(sampler=InBatchSampler(batch_size=128))
    """

    reads: Collection[str] = ()
    n_negatives: int = 0
    batch_size: int | str = "auto"
    #: Names of the arrays that a checkpoint keeps.
    _kept_arrays: tuple[str, ...] = ()

    _parameter_constraints: dict = {  # noqa: RUF012
        "batch_size": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(self, batch_size: int | str = "auto") -> None:
        self.batch_size = batch_size

    def start(self, n: int, n_epochs: int = 1, seed: int = 0, n_jobs: int | None = None) -> None:
        """Begin a training; see `BatchSampler.start`."""
        self._validate_params()
        self.batch_size_ = min(_LARGEST_BATCH, max(_SMALLEST_BATCH, n // _STEPS_OF_EPOCH))
        if self.batch_size != "auto":
            self.batch_size_ = int(self.batch_size)
        self.n_epochs_, self.seed_, self.n_jobs_, self._n = n_epochs, seed, n_jobs, n

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Read embeddings if that is due; see `BatchSampler.refresh`."""
        if self._is_due(epoch, state):
            self._read(epoch, state)

    def batches(self, epoch: int) -> Iterator[np.ndarray]:
        """Yield the instances of each mini-batch; see `BatchSampler.batches`."""
        order = np.random.default_rng((self.seed_, epoch, BATCHES)).permutation(self._n)
        for first in range(0, self._n, self.batch_size_):
            yield order[first : first + self.batch_size_]

    def negatives(self, rows: np.ndarray) -> np.ndarray | None:
        """Return None: the only negatives are those of the mini-batch."""
        return None

    def select(self, losses: np.ndarray) -> np.ndarray | None:
        """Return None: all instances count."""
        return None

    def _is_due(self, epoch: int, state: TrainingState) -> bool:
        """Return whether embeddings are read before an epoch."""
        return epoch == 0

    def _read(self, epoch: int, state: TrainingState) -> None:
        """Read embeddings."""

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        return {name: getattr(self, name) for name in self._kept_arrays if hasattr(self, name)}

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from the arrays of a checkpoint, after ``start``."""
        for name in self._kept_arrays:
            if name in found:
                setattr(self, name, found[name])

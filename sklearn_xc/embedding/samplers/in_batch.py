"""Random mini-batches, whose labels are each other's negatives, and two samplers based on them."""

from collections.abc import Collection, Iterator
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._input.sklearn_private import Interval, StrOptions
from sklearn_xc.embedding.kernels.negatives import drop_positives
from sklearn_xc.embedding.samplers.protocol import TrainingState
from sklearn_xc.search import MipsIndex, make_index

#: ``batch_size="auto"``: mini-batches of an epoch, and limits of their size. The largest is the
#: paper's.
_STEPS_OF_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 200, 64, 1600
#: Streams of random numbers: mini-batches of an epoch, and what else a sampler draws.
BATCHES, CLUSTERS, INDEX = 0, 1, 2
#: Queries of a search, and labels found at a time for instances with very many true labels.
_CHUNK_QUERIES = 8192
_CHUNK_LABELS = 2**23


class InBatchSampler(BaseEstimator):
    """Random mini-batches.

    The other samplers are subclasses that replace a part of this one, and your own can be, too.
    Most need a constructor, ``reads``, and one of ``batches``, ``negatives`` and ``select``.

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
        """Do nothing: random mini-batches need no embeddings; see `BatchSampler.refresh`."""

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

    def _kept(self) -> dict[str, np.ndarray]:
        """Return the arrays of a checkpoint."""
        return {name: getattr(self, name) for name in self._kept_arrays if hasattr(self, name)}

    def _resume(self, found: dict[str, np.ndarray]) -> None:
        """Continue from the arrays of a checkpoint, after ``start``."""
        for name in self._kept_arrays:
            if name in found:
                setattr(self, name, found[name])


class OrderedSgdSampler(InBatchSampler):
    """Ordered SGD: only the instances of a random mini-batch with the largest losses count.

    Parameters
    ----------
    share : float, default=0.5
        The share of the instances of a mini-batch that count; their number is rounded, and at
        least one.
    batch_size : int or "auto", default="auto"
        Instances per mini-batch; see `InBatchSampler`.

    Notes
    -----
    Source: Algorithm 1 of [1]_, with q = ``share * batch_size``; the same share applies to a
    shorter last mini-batch.

    References
    ----------
    .. [1] K. Kawaguchi and H. Lu. Ordered SGD: a new stochastic optimization framework for
       empirical risk minimization. AISTATS 2020.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.embedding.samplers import OrderedSgdSampler
    >>> clf = NGAMEEmbeddingXC(sampler=OrderedSgdSampler(share=0.25))

    The larger half of four losses counts:

    >>> import numpy as np
    >>> OrderedSgdSampler().select(np.array([0.3, 0.9, 0.1, 0.5]))
    array([False,  True, False,  True])
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        **InBatchSampler._parameter_constraints,
        "share": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(self, share: float = 0.5, batch_size: int | str = "auto") -> None:
        self.share = share
        self.batch_size = batch_size

    def select(self, losses: np.ndarray) -> np.ndarray:
        """Return which instances have the largest losses; ties go to the first."""
        q = min(max(1, round(self.share * len(losses))), len(losses))
        counts = np.zeros(len(losses), bool)
        counts[np.argsort(-losses, kind="stable")[:q]] = True
        return counts


class AnceSampler(InBatchSampler):
    """Random mini-batches and, for each instance, the wrong labels that scored best.

    Parameters
    ----------
    refresh_interval : int, default=5
        Number of epochs between searches.
    n_negatives : int, default=10
        Number of labels found for each instance; fewer if there are not as many.
    index : str or MipsIndex, default="exact"
        A key of ``search.registry.INDEXES``, or an index, which is cloned.
    batch_size : int or "auto", default="auto"
        Instances per mini-batch; see `InBatchSampler`.

    Notes
    -----
    A search makes one query per instance, for `n_negatives` labels plus as many as it has true
    labels. The negatives take 4 bytes each.

    Source: [1]_. It differs in that the search is done between epochs instead of alongside them.

    References
    ----------
    .. [1] L. Xiong, C. Xiong, Y. Li, K. Tang, J. Liu, P. Bennett, J. Ahmed, A. Overwijk.
       Approximate nearest neighbor negative contrastive learning for dense text retrieval.
       ICLR 2021.

    Examples
    --------
    >>> from sklearn_xc import NGAMEEmbeddingXC
    >>> from sklearn_xc.embedding.samplers import AnceSampler
    >>> clf = NGAMEEmbeddingXC(sampler=AnceSampler(n_negatives=20))

    Instances 0 and 2 have label 0, instances 1 and 3 have label 1. For each of them, label 2 is
    the wrong label that scores best:

    >>> import numpy as np
    >>> from sklearn_xc.embedding.samplers import Positives, TrainingState
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> labels = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    >>> positives = Positives(np.arange(5), np.array([0, 1, 0, 1], np.int32))
    >>> state = TrainingState(
    ...     n=4, n_labels=3, positives=positives, inputs=lambda: V, instances=lambda: V,
    ...     last_seen=lambda: V, initial=lambda: V, labels=lambda: labels,
    ... )
    >>> sampler = AnceSampler(n_negatives=1, batch_size=2)
    >>> sampler.start(n=4, n_epochs=1, seed=0)
    >>> sampler.refresh(0, state)
    >>> sampler.negatives(np.arange(4)).ravel()
    array([2, 2, 2, 2], dtype=int32)
    """

    reads = ("instances", "labels")

    _kept_arrays = ("_negatives",)

    _parameter_constraints: dict = {  # noqa: RUF012
        **InBatchSampler._parameter_constraints,
        "refresh_interval": [Interval(Integral, 1, None, closed="left")],
        "n_negatives": [Interval(Integral, 1, None, closed="left")],
        "index": "no_validation",  # checked by start
    }

    def __init__(
        self,
        refresh_interval: int = 5,
        n_negatives: int = 10,
        index: str | MipsIndex = "exact",
        batch_size: int | str = "auto",
    ) -> None:
        self.refresh_interval = refresh_interval
        self.n_negatives = n_negatives
        self.index = index
        self.batch_size = batch_size

    def start(self, n: int, n_epochs: int = 1, seed: int = 0, n_jobs: int | None = None) -> None:
        """Begin a training; see `BatchSampler.start`."""
        super().start(n, n_epochs, seed, n_jobs)
        make_index(self.index, caller="AnceSampler: index")

    def negatives(self, rows: np.ndarray) -> np.ndarray:
        """Return the negatives that the last search found; see `BatchSampler.negatives`."""
        return self._negatives[rows]

    def refresh(self, epoch: int, state: TrainingState) -> None:
        """Search the labels if that is due; see `BatchSampler.refresh`."""
        if epoch % self.refresh_interval != 0:
            return
        W = np.ascontiguousarray(state.labels())
        V = state.instances().astype(W.dtype, copy=False)
        index = make_index(self.index, self.n_jobs_, "AnceSampler: index")
        number = np.random.default_rng((self.seed_, epoch, INDEX)).integers(2**31)
        index.build(W, seed=int(number))
        indptr, labels = (read_only(array) for array in state.positives)
        degrees = np.diff(indptr)
        self._negatives = np.full((state.n, self.n_negatives), -1, np.int32)
        # By the number of true labels, so that instances with few do not search as far as others.
        order = np.argsort(degrees, kind="stable")
        first = 0
        while first < state.n:
            rows = order[first : first + _CHUNK_QUERIES]
            n_candidates = min(len(W), self.n_negatives + int(degrees[rows[-1]]))
            rows = rows[: max(1, _CHUNK_LABELS // n_candidates)]
            first += len(rows)
            found = index.query(np.ascontiguousarray(V[rows]), n_candidates)
            drop_positives(
                read_only(found.labels), read_only(rows), indptr, labels, self._negatives
            )

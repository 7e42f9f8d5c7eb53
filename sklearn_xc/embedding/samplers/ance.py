"""Random mini-batches, with negatives that a search finds now and then."""

from numbers import Integral

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._input.kernels.positives import drop_positives
from sklearn_xc._input.sklearn_private import Interval
from sklearn_xc.embedding.samplers.in_batch import INDEX, InBatchSampler
from sklearn_xc.embedding.samplers.protocol import TrainingState
from sklearn_xc.search import MipsIndex, make_index

#: Queries of a search, and labels found at a time for instances with very many true labels.
_TOGETHER, _CANDIDATES = 8192, 2**23


class AnceSampler(InBatchSampler):
    """Random mini-batches and, for each instance, the wrong labels that scored best.

    Parameters
    ----------
    refresh_interval : int, default=5
        Number of epochs between searches.
    n_negatives : int, default=10
        Number of labels found for each instance; fewer if there are not as many.
    index : str or MipsIndex, default="exact"
        A key of ``mips.INDEXES``, or an index, which is cloned.
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
        make_index(self.index, who="AnceSampler: index")

    def negatives(self, rows: np.ndarray) -> np.ndarray:
        """Return the negatives that the last search found; see `BatchSampler.negatives`."""
        return self._negatives[rows]

    def _is_due(self, epoch: int, state: TrainingState) -> bool:
        return epoch % self.refresh_interval == 0

    def _read(self, epoch: int, state: TrainingState) -> None:
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
            rows = order[first : first + _TOGETHER]
            n_candidates = min(len(W), self.n_negatives + int(degrees[rows[-1]]))
            rows = rows[: max(1, _CANDIDATES // n_candidates)]
            first += len(rows)
            found = index.query(np.ascontiguousarray(V[rows]), n_candidates)
            drop_positives(
                read_only(found.labels), read_only(rows), indptr, labels, self._negatives
            )

"""Random mini-batches, with negatives that a search finds now and then."""

import numpy as np

from sklearn_xc.mips import INDEXES, MipsIndex
from sklearn_xc.samplers.in_batch import InBatchSampler
from sklearn_xc.samplers.protocol import Scene

#: Labels found for an instance.
N_NEGATIVES = 10
#: Queries of a search.
_TOGETHER = 8192
#: Labels found at a time, for instances with very many of their own.
_CANDIDATES = 2**23
#: What the random numbers of an index are for.
_INDEX = 2


class AnceSampler(InBatchSampler):
    """Random mini-batches, and for each instance the wrong labels that scored best.

    Parameters
    ----------
    batch_size : int
        Instances of a mini-batch.
    refresh_interval : int, default=5
        Epochs between searches.
    seed : int, default=0
        Of the order of the instances and of the index.
    n_jobs : int or None, default=None
        Threads of an index that is given by name, as joblib counts them.
    n_negatives : int, default=10
        Labels found for each instance; fewer where there are not as many.
    index : str or MipsIndex, default="exact"
        A key of ``mips.INDEXES``, or an index.

    Notes
    -----
    A search takes the time of a query for each instance, for `n_negatives` labels and as many as it
    has true ones. The negatives take 4 bytes each.

    Source: [1]_; differs in that the search is done between epochs and not beside them.

    References
    ----------
    .. [1] L. Xiong, C. Xiong, Y. Li, K. Tang, J. Liu, P. Bennett, J. Ahmed, A. Overwijk.
       Approximate nearest neighbor negative contrastive learning for dense text retrieval.
       ICLR 2021.
    """

    def __init__(
        self,
        batch_size: int,
        refresh_interval: int = 5,
        seed: int = 0,
        n_jobs: int | None = None,
        *,
        n_negatives: int = N_NEGATIVES,
        index: str | MipsIndex = "exact",
    ) -> None:
        super().__init__(batch_size, refresh_interval, seed, n_jobs)
        self.n_negatives = n_negatives
        self.index = index

    def negatives(self, rows: np.ndarray) -> np.ndarray:
        """Return the negatives that the last search found; see `BatchSampler.negatives`."""
        return self._negatives[rows]

    def _look(self, epoch: int, scene: Scene) -> None:
        from sklearn_xc._data import read_only
        from sklearn_xc.kernels.embedding.wrong_labels import keep_wrong

        W = np.ascontiguousarray(scene.labels())
        V = scene.instances().astype(W.dtype, copy=False)
        index = self.index
        if isinstance(index, str):
            index = INDEXES[index](n_jobs=self.n_jobs)
        number = np.random.default_rng((self.seed, epoch, _INDEX)).integers(2**31)
        index.build(W, seed=int(number))
        indptr, labels = (read_only(array) for array in scene.is_positive)
        degrees = np.diff(indptr)
        self._negatives = np.full((scene.n, self.n_negatives), -1, np.int32)
        # By the number of true labels, so that instances with few do not search as far as others.
        order = np.argsort(degrees, kind="stable")
        first = 0
        while first < scene.n:
            rows = order[first : first + _TOGETHER]
            n_candidates = min(len(W), self.n_negatives + int(degrees[rows[-1]]))
            rows = rows[: max(1, _CANDIDATES // n_candidates)]
            first += len(rows)
            found = index.query(np.ascontiguousarray(V[rows]), n_candidates)
            keep_wrong(read_only(found.labels), read_only(rows), indptr, labels, self._negatives)

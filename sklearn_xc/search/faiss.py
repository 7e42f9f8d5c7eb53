"""Search by the inverted lists of the faiss library."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import count_threads, for_row_ranges
from sklearn_xc.search.kernels.candidates import rank_labels
from sklearn_xc.search.protocol import Candidates

#: Rows that a centroid is made of, at most.
_SAMPLE = 100
#: By default, as many lists are searched as hold this many times the candidates, on average.
_REACH = 2.0
#: Queries ranked at a time.
_CHUNK_QUERIES = 256


class FaissIndex(BaseEstimator):
    """The best rows of W among those in a few inverted lists of faiss (``IndexIVFFlat``).

    Each row is listed under the nearest of `n_clusters` centroids, which are found by spherical
    k-means, and a query searches the `n_probe` lists of the best centroids. faiss computes in
    float32; the candidates that it finds are then scored against W and ranked in the dtype of W,
    so a float64 W is searched in float32 but its scores are exact. An update moves the changed
    rows between lists; the centroids stay those of ``build``.

    Parameters
    ----------
    n_clusters : int or None, default=None
        Number of lists, at most the number of labels; None is the square root of that number.
    n_probe : int or None, default=None
        Number of lists that a query searches. None is as many as hold ``2 * n_candidates`` labels
        on average. If the lists hold fewer than `n_candidates` labels, fewer are found.
    n_jobs : int or None, default=None
        Number of threads, as joblib counts them. Results do not depend on it.

    Attributes
    ----------
    has_exact_scores : bool
        True.
    row_copies : float
        1.5; see `MipsIndex`.

    Raises
    ------
    ImportError
        In ``build``, if faiss is missing: ``pip install "sklearn-xc[faiss]"``.

    Notes
    -----
    faiss brings its own OpenMP runtime. On macOS, it may crash next to another one, such as
    torch's, especially with more than one thread.

    For 20 queries or more, faiss compares them with centroids by BLAS, whose rounding may decide
    between two equally distant centroids.

    References
    ----------
    .. [1] M. Douze et al. The Faiss library. arXiv:2401.08281, 2024.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.search import FaissIndex
    >>> clf = DecompMIPSClassifier(index=FaissIndex(n_probe=4))

    With faiss installed:

    >>> import numpy as np
    >>> index = FaissIndex(n_clusters=2, n_probe=2)
    >>> index.build(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))  # doctest: +SKIP
    >>> index.query(np.array([[1.0, 0.0]]), n_candidates=2).labels  # doctest: +SKIP
    array([[0, 2]], dtype=int32)
    """

    has_exact_scores = True
    row_copies = 1.5

    def __init__(
        self, n_clusters: int | None = None, n_probe: int | None = None, n_jobs: int | None = None
    ) -> None:
        self.n_clusters = n_clusters
        self.n_probe = n_probe
        self.n_jobs = n_jobs

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Train the centroids and list the rows; see `MipsIndex.build`."""
        faiss = _import_faiss()
        self._W = read_only(W)
        self._first = first
        self._last = W.shape[1] if last is None else last
        d = int(self._last - first)
        n_labels = len(W)  # faiss takes no integers of numpy
        wanted = round(n_labels**0.5) if self.n_clusters is None else self.n_clusters
        self._n_lists = max(1, min(wanted, n_labels))
        self._index = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(d), d, self._n_lists, faiss.METRIC_INNER_PRODUCT
        )
        clustering = self._index.cp
        clustering.seed = int(seed)
        clustering.spherical = True
        clustering.min_points_per_centroid, clustering.max_points_per_centroid = 1, _SAMPLE
        rows = self._columns(slice(None))
        with _threads(faiss, self.n_jobs):
            self._index.train(rows)
            self._index.add(rows)
            self._index.set_direct_map_type(faiss.DirectMap.Array)

    def update(self, rows: np.ndarray) -> None:
        """List changed rows again; see `MipsIndex.update`."""
        if len(rows) > 0:
            with _threads(_import_faiss(), self.n_jobs):
                self._index.update_vectors(rows.astype(np.int64), self._columns(rows))

    def following(self, W: np.ndarray) -> "FaissIndex":
        """Return an index with the same lists; see `MipsIndex.following`."""
        other = copy.copy(self)
        other._W = read_only(W)
        other._index = _import_faiss().clone_index(self._index)
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the best rows of the best lists; see `MipsIndex.query`."""
        faiss = _import_faiss()
        V = read_only(V)
        found = Candidates.empty(len(V), n_candidates, V.dtype)
        parameters = faiss.SearchParametersIVF(nprobe=self._lists_to_search(n_candidates))
        with _threads(faiss, self.n_jobs):
            queries = np.ascontiguousarray(V, np.float32)
            _, labels = self._index.search(queries, n_candidates, params=parameters)
        counts = (labels >= 0).sum(axis=1)  # padded with -1
        labels = labels.astype(np.int32)

        no_offsets = read_only(np.empty(0, self._W.dtype))

        def rank(begin: int, end: int) -> None:
            chosen = no_offsets, labels[begin:end], counts[begin:end]
            rank_labels(self._W, self._first, V, begin, *chosen, *found.part(begin, end))

        for_row_ranges(rank, len(V), _CHUNK_QUERIES, self.n_jobs)
        return found

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        if "_index" in state:
            state["_index"] = _import_faiss().serialize_index(self._index)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_index" in state:
            self._index = _import_faiss().deserialize_index(state["_index"])

    def _lists_to_search(self, n_candidates: int) -> int:
        if self.n_probe is not None:
            return min(self.n_probe, self._n_lists)
        share = min(1.0, _REACH * n_candidates / len(self._W))
        return max(1, math.ceil(share * self._n_lists))

    def _columns(self, rows: Any) -> np.ndarray:
        """Return the indexed columns of some rows as faiss takes them."""
        return np.ascontiguousarray(self._W[rows, self._first : self._last], np.float32)


@contextmanager
def _threads(faiss: Any, n_jobs: int | None) -> Iterator[None]:
    """Give faiss its threads and take them back: their number belongs to the process."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count_threads(n_jobs))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError(
            'FaissIndex needs the faiss library: pip install "sklearn-xc[faiss]". '
            "SphericalIndex needs nothing."
        ) from error
    return faiss

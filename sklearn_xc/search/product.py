"""Search that is cut into blocks of columns, coupled by what the blocks' centroids score."""

import copy

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._compile.emitters.byte_lanes import LANES, TABLE
from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import for_row_ranges
from sklearn_xc.search.kernels.product_codes import WIDTH, cluster_blocks, encode_rows, fill_tables
from sklearn_xc.search.kernels.product_scan import search_codes
from sklearn_xc.search.protocol import Candidates

#: Labels that the blocks are clustered on, and rounds of Lloyd's algorithm.
_SAMPLE = 2048
_ROUNDS = 8
#: Codes that a thread reads before it takes other queries, a few milliseconds, and the
#: least number of queries.
_CHUNK_CODES = 2**26
_CHUNK_QUERIES = 40


class ProductIndex(BaseEstimator):
    """The rows of W with the largest scores, where each row is approximated by centroids.

    The columns are cut into blocks of two, and each block is clustered separately around
    16 centroids (product quantisation [1]_). A query is scored against the centroids of each
    block; the estimated score of a label is the sum of the scores of its centroids. These sums are
    looked up for *all* labels, 64 at a time in vector registers [2]_. This is far faster than
    inner products, and finds better candidates than clusters of whole rows do if the rows have
    many directions.

    In terms of message passing between blocks of columns, each block sends a message about every
    label, rounded to a centroid, and one round couples the blocks.

    A row that changes gets new codes, which costs as much as some 30 inner products. The centroids
    stay those of ``build``, and a row counts as no farther out than its nearest centroids: rows
    beyond all of them tie. So an index of weights that are all alike, such as zero before
    training, cannot distinguish them. Build the index again when rows have moved far; this is
    cheap.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads, as joblib counts them. Results do not depend on it.

    Attributes
    ----------
    has_exact_scores : bool
        False.
    row_copies : float
        0.1; see `MipsIndex`.

    Notes
    -----
    A query takes O(n_labels d) byte operations. One instruction does 64 of these with AVX-512, 32
    with AVX2, and 16 with SSSE3 and on 64-bit ARM. On other processors, and if NUMBA_CPU_FEATURES
    rules these out, it does one, and a query takes some forty times as long. Memory: d/4 bytes per
    label. Centroids are float32.

    In each block, a label's distance from the best possible score is rounded to one of 256 steps,
    and the sum over blocks stops at 255. The steps are chosen such that the best labels are
    resolved, as many as requested. The candidates are exactly the labels with the smallest sums,
    and always as many as requested; labels with the same sum, and those beyond the last step, are
    ordered by label.

    Source: [1]_ and [2]_. It differs in that sums saturate in eight bits, in steps that are chosen
    for each query such that the best labels are resolved.

    References
    ----------
    .. [1] H. Jégou, M. Douze and C. Schmid, "Product quantization for nearest neighbor search",
       IEEE Transactions on Pattern Analysis and Machine Intelligence 33, 2011.
    .. [2] F. André, A.-M. Kermarrec and N. Le Scouarnec, "Cache locality is not enough:
       high-performance nearest neighbor search with product quantization fast scan", PVLDB 9, 2015.

    Examples
    --------
    Scores are estimates: request more labels than needed, and score them again.

    >>> import numpy as np
    >>> from sklearn_xc.search import ProductIndex, search_recall
    >>> rng = np.random.default_rng(0)
    >>> W, queries = rng.standard_normal((1000, 8)), rng.standard_normal((50, 8))
    >>> index = ProductIndex()
    >>> index.build(W)
    >>> [round(search_recall(index, W, 0, None, queries, 5, n), 1) for n in (5, 20, 100)]
    [0.5, 0.9, 1.0]
    """

    has_exact_scores = False
    row_copies = 0.1

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Cluster the blocks and encode all rows; see `MipsIndex.build`."""
        self._W = read_only(W)
        self._first = first
        self._last = W.shape[1] if last is None else last
        n_blocks = 2 * -(-(self._last - first) // (2 * WIDTH))  # codes come in pairs
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.choice(len(W), min(len(W), _SAMPLE), replace=False))
        starts = rng.permuted(np.tile(np.arange(len(rows)), (n_blocks, 1)), axis=1)
        starts = np.ascontiguousarray(np.resize(starts.T, (max(TABLE, len(rows)), n_blocks)).T)
        self._centroids = np.empty((n_blocks, WIDTH, TABLE), np.float32)
        self._halves = np.empty((n_blocks, TABLE), np.float32)
        cluster_blocks(
            self._W, rows, starts, first, self._last, _ROUNDS, self._centroids, self._halves
        )
        self._codes = np.zeros((-(-len(W) // LANES), n_blocks // 2, LANES), np.uint8)
        self._frequencies = np.zeros((n_blocks, TABLE), np.int32)
        self._encode(np.arange(len(W), dtype=np.int32), is_new=True)

    def update(self, rows: np.ndarray) -> None:
        """Encode rows again; see `MipsIndex.update`."""
        self._encode(rows, is_new=False)

    def following(self, W: np.ndarray) -> "ProductIndex":
        """Return an index with the same centroids and codes; see `MipsIndex.following`."""
        other = copy.copy(self)
        other._W = read_only(W)
        other._codes, other._frequencies = self._codes.copy(), self._frequencies.copy()
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the rows with the best estimated scores; see `MipsIndex.query`."""
        V, n, type_ = read_only(V), len(V), self._W.dtype
        shape = n, n_candidates
        found = Candidates(np.empty(shape, np.int32), np.empty(shape, type_), np.empty(n, np.int64))

        def search(begin: int, end: int) -> None:
            self._search(V[begin:end], *found.part(begin, end))

        n_together = _CHUNK_QUERIES * max(1, _CHUNK_CODES // (_CHUNK_QUERIES * self._codes.size))
        for_row_ranges(search, n, n_together, self.n_jobs)
        return found

    def _search(
        self, V: np.ndarray, labels: np.ndarray, scores: np.ndarray, counts: np.ndarray
    ) -> None:
        n, n_labels = len(V), len(self._W)
        tables = np.empty((n, *self._frequencies.shape), np.uint8)
        tops, steps = np.empty(n), np.empty(n)
        tables_out = tables, tops, steps
        shares = self._frequencies, n_labels, labels.shape[1] / n_labels
        fill_tables(V, self._centroids, *shares, *tables_out)
        search_codes(self._codes, n_labels, *tables_out, labels, scores, counts)

    def _encode(self, rows: np.ndarray, is_new: bool) -> None:
        encode_rows(
            self._W,
            read_only(rows),
            self._first,
            self._last,
            self._centroids,
            self._halves,
            self._codes,
            self._frequencies,
            is_new,
        )

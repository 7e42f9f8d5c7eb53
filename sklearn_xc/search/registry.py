"""Search indexes by name, and an index of one's own from a name or from an instance."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from sklearn_xc._input.parts import check_part
from sklearn_xc.search.exact import ExactIndex
from sklearn_xc.search.faiss import FaissIndex
from sklearn_xc.search.product import ProductIndex
from sklearn_xc.search.protocol import Candidates, MipsIndex
from sklearn_xc.search.spherical import SphericalIndex

INDEXES: dict[str, Callable[..., MipsIndex]] = {
    "exact": ExactIndex,
    "product": ProductIndex,
    "spherical": SphericalIndex,
    "faiss": FaissIndex,
}

#: Default of an index; see `MipsIndex`.
_ROW_COPIES = 2.0
#: Attributes of every index; see `MipsIndex`.
_ATTRIBUTES = ("has_exact_scores", "build", "update", "following", "query")


def make_index(
    index: str | MipsIndex, n_jobs: int | None = None, caller: str = "index"
) -> MipsIndex:
    """Return a new index that is not shared and not built yet.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance, which is copied as `sklearn.base.clone` copies
        parameters, so that the caller's is never changed. The results of indexes of other classes
        are checked.
    n_jobs : int or None, default=None
        Number of threads for an index made from a name. An instance keeps its own.
    caller : str, default="index"
        How messages name the argument, such as "DecompMIPSClassifier: index".

    Returns
    -------
    MipsIndex

    Raises
    ------
    ValueError
        If `index` is neither.

    Examples
    --------
    >>> from sklearn_xc.search import SphericalIndex, make_index
    >>> make_index("spherical", n_jobs=2)
    SphericalIndex(n_jobs=2)
    >>> own = SphericalIndex(n_clusters=8)
    >>> make_index(own), make_index(own) is own
    (SphericalIndex(n_clusters=8), False)
    """
    if isinstance(index, str) and index in INDEXES:
        return INDEXES[index](n_jobs=n_jobs)
    own = copy_index(index, caller)
    assert not isinstance(own, str)
    return own if type(own) in INDEXES.values() else CheckedIndex(own, caller)


def copy_index(index: str | MipsIndex, caller: str = "index") -> str | MipsIndex:
    """Return a name, or a copy of the parameters of an instance, for `make_index`.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance.
    caller : str, default="index"
        How messages name the argument, such as "DecompMIPSClassifier: index".

    Returns
    -------
    str or MipsIndex
        The name, or an instance that is not built.

    Raises
    ------
    ValueError
        If `index` is neither.

    Examples
    --------
    >>> from sklearn_xc.search import SphericalIndex, copy_index
    >>> copy_index("product")
    'product'
    >>> own = SphericalIndex(n_clusters=8)
    >>> copy_index(own), copy_index(own) is own
    (SphericalIndex(n_clusters=8), False)
    """
    if isinstance(index, str) and index in INDEXES:
        return index
    check_part(index, caller, INDEXES, _ATTRIBUTES, "sklearn_xc.search.MipsIndex")
    return cast(MipsIndex, clone(index, safe=False))


def index_bytes(index: str | MipsIndex, shape: tuple[int, int], itemsize: int) -> int:
    """Return roughly how much memory an index of rows takes besides the rows.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance.
    shape : tuple of int
        Shape of the rows.
    itemsize : int
        Bytes per number.

    Returns
    -------
    int
        Bytes.

    Examples
    --------
    For a million labels with 128 float32 numbers each, which themselves take 512 MB:

    >>> from sklearn_xc.search import INDEXES, index_bytes
    >>> {name: index_bytes(name, (1_000_000, 128), 4) // 10**6 for name in INDEXES}
    {'exact': 0, 'product': 51, 'spherical': 512, 'faiss': 768}
    """
    kind: Any = INDEXES[index] if isinstance(index, str) else index
    return int(getattr(kind, "row_copies", _ROW_COPIES) * shape[0] * shape[1] * itemsize)


class CheckedIndex:
    """An index from outside the package; its candidates are checked before kernels read them.

    Parameters
    ----------
    index : MipsIndex
    caller : str
        How messages name the argument, such as "DecompMIPSClassifier: index".
    """

    def __init__(self, index: MipsIndex, caller: str) -> None:
        self.index, self.caller = index, caller
        self.has_exact_scores = index.has_exact_scores

    def build(self, W: np.ndarray, first: int = 0, last: int | None = None, seed: int = 0) -> None:
        """Index some columns of W; see `MipsIndex.build`."""
        self._n_labels = len(W)
        self._dtype = W.dtype
        self.index.build(W, first, last, seed)

    def update(self, rows: np.ndarray) -> None:
        """Register changed rows; see `MipsIndex.update`."""
        self.index.update(rows)

    def following(self, W: np.ndarray) -> "CheckedIndex":
        """Return an index that follows a copy of W; see `MipsIndex.following`."""
        other = CheckedIndex(self.index.following(W), self.caller)
        other._n_labels, other._dtype = self._n_labels, self._dtype
        return other

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the candidates of the index; see `MipsIndex.query`.

        Raises
        ------
        ValueError
            If they are not as `MipsIndex.query` describes.
        """
        caller = f"{self.caller}: {type(self.index).__name__}.query must return"
        found: Any = self.index.query(V, n_candidates)
        if not isinstance(found, Candidates):
            raise ValueError(
                f"{caller} Candidates(labels, scores, counts) (see sklearn_xc.search). "
                f"Got {type(found).__name__}."
            )
        shape = len(V), n_candidates
        expected = (shape, np.int32), (shape, self._dtype), (shape[:1], np.int64)
        for name, (size, dtype), array in zip(found._fields, expected, found, strict=True):
            is_array = isinstance(array, np.ndarray)
            if not is_array or array.shape != size or array.dtype != dtype:
                got = f"{array.dtype} of shape {array.shape}" if is_array else type(array).__name__
                raise ValueError(
                    f"{caller} {name} as an ndarray of {np.dtype(dtype)} of shape {size}. Got "
                    f"{got}."
                )
        labels, _, counts = found
        if ((counts < 0) | (counts > n_candidates)).any():
            raise ValueError(f"{caller} counts from 0 to {n_candidates}. Got {counts}.")
        is_found = np.arange(n_candidates) < counts[:, None]
        order = np.sort(labels, axis=1)
        fits = np.where(is_found, (labels >= 0) & (labels < self._n_labels), labels == -1)
        fits[:, 1:] &= (order[:, 1:] != order[:, :-1]) | (order[:, 1:] < 0)
        if not fits.all():
            raise ValueError(
                f"{caller} distinct labels from 0 to {self._n_labels - 1}, counts of them, and -1 "
                f"behind. Got {labels[~fits.all(axis=1)][0]}."
            )
        return Candidates(*map(np.ascontiguousarray, found))

    def __repr__(self) -> str:
        return repr(self.index)

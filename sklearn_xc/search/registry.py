"""Search indexes by name, and an index of one's own from a name or from an instance."""

from collections.abc import Callable
from typing import Any, cast

from sklearn.base import clone

from sklearn_xc._input.parts import check_part
from sklearn_xc.search._checked import CheckedIndex
from sklearn_xc.search.exact import ExactIndex
from sklearn_xc.search.faiss import FaissIndex
from sklearn_xc.search.product import ProductIndex
from sklearn_xc.search.protocol import MipsIndex
from sklearn_xc.search.spherical import SphericalIndex

INDEXES: dict[str, Callable[..., MipsIndex]] = {
    "exact": ExactIndex,
    "product": ProductIndex,
    "spherical": SphericalIndex,
    "faiss": FaissIndex,
}

#: Of an index that does not tell; see `MipsIndex`.
_ROW_COPIES = 2.0
#: What every index has; see `MipsIndex`.
INDEX_METHODS = ("build", "update", "following", "query")


def make_index(index: str | MipsIndex, n_jobs: int | None = None, who: str = "index") -> MipsIndex:
    """Return a new index that is not shared and not built yet.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance, which is copied as `sklearn.base.clone` copies
        parameters, so that the caller's is never changed. The results of indexes of other classes
        are checked.
    n_jobs : int or None, default=None
        Number of threads for an index made from a name. An instance keeps its own.
    who : str, default="index"
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
    own = copy_index(index, who)
    assert not isinstance(own, str)
    return own if type(own) in INDEXES.values() else CheckedIndex(own, who)


def copy_index(index: str | MipsIndex, who: str = "index") -> str | MipsIndex:
    """Return a name, or a copy of the parameters of an instance, for `make_index`.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance.
    who : str, default="index"
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
    attributes = ("has_exact_scores", *INDEX_METHODS)
    check_part(index, who, INDEXES, attributes, "sklearn_xc.search.MipsIndex")
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
    {'exact': 0, 'product': 51, 'spherical': 1024, 'faiss': 768}
    """
    kind: Any = INDEXES[index] if isinstance(index, str) else index
    return int(getattr(kind, "row_copies", _ROW_COPIES) * shape[0] * shape[1] * itemsize)

"""Search indexes by name, and an index of one's own from a name or from an instance."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from sklearn.base import clone

from sklearn_xc.mips.exact import ExactIndex
from sklearn_xc.mips.faiss import FaissIndex
from sklearn_xc.mips.product import ProductIndex
from sklearn_xc.mips.protocol import MipsIndex
from sklearn_xc.mips.spherical import SphericalIndex

INDEXES: dict[str, Callable[..., MipsIndex]] = {
    "exact": ExactIndex,
    "product": ProductIndex,
    "spherical": SphericalIndex,
    "faiss": FaissIndex,
}

#: An index holds about so many copies of the rows, or less than one if it holds codes.
_COPIES = {ProductIndex: 0.1, ExactIndex: 0.0, SphericalIndex: 2.0, FaissIndex: 1.5}
_COPIES_OF_OTHERS = 2.0
#: What every index has; see `MipsIndex`.
INDEX_METHODS = ("build", "update", "following", "query")


def make_index(index: str | MipsIndex, n_jobs: int | None = None, who: str = "index") -> MipsIndex:
    """Return a new index that nobody else holds and that is not built yet.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance that is copied as `sklearn.base.clone` copies
        parameters, so that the caller's is never changed.
    n_jobs : int or None, default=None
        Threads of an index that is made from a name. An instance keeps its own.
    who : str, default="index"
        How messages name the argument, such as "DecompMIPSClassifier: index".

    Returns
    -------
    MipsIndex

    Raises
    ------
    ValueError
        If `index` is neither.
    """
    if isinstance(index, str) and index in INDEXES:
        return INDEXES[index](n_jobs=n_jobs)
    methods = [getattr(index, name, None) for name in INDEX_METHODS]
    is_index = all(map(callable, methods)) and hasattr(index, "has_exact_scores")
    if isinstance(index, type) or not is_index:
        names = ", ".join(map(repr, INDEXES))
        raise ValueError(
            f"{who} must be one of {names}, or an instance with has_exact_scores and the methods "
            f"{', '.join(INDEX_METHODS)} (see sklearn_xc.mips.MipsIndex). Got {index!r}."
        )
    return cast(MipsIndex, clone(index, safe=False))


def index_bytes(index: str | MipsIndex, shape: tuple[int, int], itemsize: int) -> int:
    """Return about how much memory an index of rows takes, besides the rows.

    Parameters
    ----------
    index : str or MipsIndex
        A key of ``INDEXES``, or an instance.
    shape : tuple of int
        Of the rows.
    itemsize : int
        Bytes of a number.
    """
    kind: Any = INDEXES[index] if isinstance(index, str) else type(index)
    return int(_COPIES.get(kind, _COPIES_OF_OTHERS) * shape[0] * shape[1] * itemsize)


def same_index(a: str | MipsIndex, b: str | MipsIndex) -> bool:
    """Tell whether two names or instances stand for the same kind of index, with equal parameters.

    Parameters of an instance are what ``get_params`` returns, or its attributes if it has none.
    """
    if isinstance(a, str) or isinstance(b, str):
        return a is b or (isinstance(a, str) and a == b)
    first, second = _parameters(a), _parameters(b)
    return (
        type(a) is type(b)
        and first.keys() == second.keys()
        and all(np.array_equal(first[name], second[name]) for name in first)
    )


def _parameters(index: Any) -> dict[str, Any]:
    if hasattr(index, "get_params"):
        return dict(index.get_params(deep=False))
    return dict(vars(index))

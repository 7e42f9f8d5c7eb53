"""What a softmax fit holds at its peak."""

from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.parallel.memory import require_bytes
from sklearn_xc.softmax.confidence import ROOM_OF_SCORES
from sklearn_xc.weights.class_weights import scores_bytes

#: Bytes for each row, pair and class: hashes, orders, u and its index.
_A_ROW, _A_PAIR, _A_CLASS = 64, 200, 200
_ADVICE = (
    "Hash the features into fewer (HashingVectorizer, FeatureHasher), select some (SelectKBest, "
    "min_df), pass X as float32, or leave rare classes out."
)


def require_weights(
    estimator: Any, shape: tuple[int, int], dtype: np.dtype, copies: int, why: str, besides: int
) -> None:
    """Raise MemoryBudgetError unless arrays of weights, and what there is besides, have room.

    Parameters
    ----------
    estimator : estimator
        With `max_memory`; named in the message.
    shape : tuple of int
        (n_classes, n_features).
    dtype : dtype
        Of the weights.
    copies : int
        How many arrays of weights there are at a time.
    why : str
        What they are.
    besides : int
        Bytes.
    """
    n_classes, n_features = shape
    require_bytes(
        copies * n_classes * n_features * dtype.itemsize + besides,
        estimator._allowed_bytes(),
        f"the weights, {n_classes} classes x {n_features} features x {dtype.itemsize} bytes"
        + (f", {copies} times ({why})" if copies > 1 else ""),
        _ADVICE,
        type(estimator).__name__,
    )


def besides_weights(
    X: CsrRows,
    given: Any,
    n_pairs: int,
    n_classes: int,
    n_jobs: int | None,
    n_learned: int = 0,
) -> int:
    """Return the bytes of all but the weights.

    Parameters
    ----------
    X : CsrRows
        Instances.
    given : object
        What the caller passed as X: its arrays are not counted.
    n_pairs, n_classes : int
        Sizes.
    n_jobs : int or None
        Threads, each of which scores some rows.
    n_learned : int, default=0
        Instances held out that confidence is learnt of, at most.
    """
    n, itemsize = X.shape[0], X.dtype.itemsize
    of_X = len(X.data) * (4 + itemsize)
    own = 0 if np.shares_memory(X.data, getattr(given, "data", np.empty(0))) else of_X
    scores = scores_bytes(n, n_classes, itemsize, n_jobs)
    scores = max(scores, 4 * 8 * min(n_learned * n_classes, ROOM_OF_SCORES))
    return own + scores + _A_ROW * n + _A_PAIR * n_pairs + _A_CLASS * n_classes

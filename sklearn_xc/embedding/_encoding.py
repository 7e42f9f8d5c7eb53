"""What encoders give, theirs or a user's: checked before anything is made of it."""

from typing import Any

import numpy as np

from sklearn_xc._data import CsrRows
from sklearn_xc.encoders.protocol import Encoder


def encoded(
    encoder: Encoder, inputs: CsrRows, dim: int, dtype: Any, n_jobs: int | None, name: str
) -> np.ndarray:
    """Return embeddings of all inputs, (n, dim); NaN and infinity are left to the caller.

    Raises
    ------
    ValueError
        For what is no array of floats of this shape; the encoder is named.
    """
    V = encoder.encode(inputs, n_jobs=n_jobs)
    return checked(V, f"{name}: encode of {name_of(encoder)}", (inputs.shape[0], dim), dtype)


def checked(V: Any, name: str, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return the embeddings V as an array that kernels read."""
    if not isinstance(V, np.ndarray) or V.dtype.kind != "f" or V.shape != shape:
        kind = f" {V.dtype}" if isinstance(V, np.ndarray) else ""
        raise ValueError(
            f"{name} must return an array of floats of shape {shape}, got "
            f"{type(V).__name__}{kind} of shape {np.shape(V)}."
        )
    return np.ascontiguousarray(V, dtype)


def name_of(encoder: Encoder) -> str:
    """Return how messages call an encoder."""
    return f"encoder {type(encoder).__name__}"


def first_strange(V: np.ndarray) -> int:
    """Return the first row with NaN or infinity, or -1."""
    # A NaN is the smallest entry and the largest.
    if not V.size or np.isfinite([V.min(), V.max()]).all():
        return -1
    return int((~np.isfinite(V)).any(axis=1).argmax())

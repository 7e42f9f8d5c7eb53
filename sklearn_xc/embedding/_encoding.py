"""The one place where encoders are called: what they are given, and what they give, checked."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._data import CsrRows, read_only
from sklearn_xc.embedding._texts import TextRows
from sklearn_xc.encoders.protocol import Encoder
from sklearn_xc.kernels.rows.entries import copy_entries

#: Norms of unit vectors may differ from 1 by this, as those of float16 do.
_ROUNDING = 1e-3


def reads_texts(encoder: Any, name: str) -> bool:
    """Return whether an encoder, or the name of one of ours, reads texts and not sparse rows.

    Raises
    ------
    ValueError
        For an encoder that declares something else; `name` is the estimator's.
    """
    reads = getattr(encoder, "reads", "rows")
    if reads not in ("rows", "texts"):
        raise ValueError(
            f"{name}: {name_of(encoder)} must declare reads = 'rows' or reads = 'texts'. Got "
            f"{reads!r}."
        )
    return bool(reads == "texts")


def inputs_of(rows: CsrRows) -> Any:
    """Return rows as encoders are given them: a csr_array, or an array of texts."""
    if isinstance(rows, TextRows):
        return rows.texts
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def joined_inputs(parts: Sequence[tuple[CsrRows, np.ndarray]]) -> Any:
    """Return chosen rows of several matrices, or texts of several arrays, as one input."""
    if all(isinstance(rows, TextRows) for rows, _ in parts):
        return np.concatenate([rows.texts[at] for rows, at in parts])  # type: ignore[attr-defined]
    starts = [rows.indptr[at] for rows, at in parts]
    counts = [rows.indptr[at + 1] - first for (rows, at), first in zip(parts, starts, strict=True)]
    indptr = np.append(0, np.cumsum(np.concatenate(counts)))
    first = parts[0][0]
    indices, data = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], first.dtype)
    end = 0
    for (rows, _), own_starts, own_counts in zip(parts, starts, counts, strict=True):
        entries = own_starts, own_counts, rows.indices, rows.data
        end = copy_entries(*map(read_only, entries), end, indices, data)
    return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, first.shape[1]))


def encoded(
    encoder: Encoder, rows: CsrRows, dim: int, dtype: Any, n_jobs: int | None, name: str
) -> np.ndarray:
    """Return embeddings of all rows, (n, dim); NaN and infinity are left to the caller.

    Raises
    ------
    ValueError
        For what is no array of floats of this shape; the encoder is named.
    """
    name = f"{name}: encode of {name_of(encoder)}"
    if isinstance(rows, TextRows) and len(rows.data) < rows.shape[0]:  # empty texts are not shown
        out, at = np.zeros((rows.shape[0], dim), dtype), np.flatnonzero(np.diff(rows.indptr))
        if len(at):
            V = encoder.encode(rows.texts[at], n_jobs=n_jobs)
            out[at] = checked(V, name, (len(at), dim), dtype)
        return out
    V = encoder.encode(inputs_of(rows), n_jobs=n_jobs)
    return checked(V, name, (rows.shape[0], dim), dtype)


def checked(V: Any, name: str, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return the embeddings V as an array that kernels read."""
    if not isinstance(V, np.ndarray) or V.dtype.kind != "f" or V.shape != shape:
        kind = f" {V.dtype}" if isinstance(V, np.ndarray) else ""
        raise ValueError(
            f"{name} must return an array of floats of shape {shape}. Got "
            f"{type(V).__name__}{kind} of shape {np.shape(V)}."
        )
    return np.ascontiguousarray(V, dtype)


def require_unit_rows(V: np.ndarray, name: str) -> None:
    """Raise an error for finite embeddings that are not of norm 1, or 0; `name` is whose."""
    norms = np.sqrt(np.einsum("ij,ij->i", V, V))
    is_wrong = (norms != 0) & ~(np.abs(norms - 1) <= _ROUNDING)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise ValueError(
            f"{name} must have rows of norm 1, or 0 for inputs without features. Got norm "
            f"{norms[row]:g} in row {row}: divide rows by their norms."
        )


def name_of(encoder: Any) -> str:
    """Return how messages call an encoder."""
    return f"encoder {type(encoder).__name__}"


def first_non_finite(V: np.ndarray) -> int:
    """Return the first row with NaN or infinity, or -1."""
    # A NaN is the smallest entry and the largest.
    if not V.size or np.isfinite([V.min(), V.max()]).all():
        return -1
    return int((~np.isfinite(V)).any(axis=1).argmax())

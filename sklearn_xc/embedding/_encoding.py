"""Calls of encoders: their inputs, and embeddings that are checked."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import CsrRows, read_only
from sklearn_xc._parallel.progress import Lines
from sklearn_xc._parallel.spill import empty_rows
from sklearn_xc.embedding._inputs import DTYPE, TextRows
from sklearn_xc.embedding.encoders.protocol import Encoder
from sklearn_xc.embedding.kernels.entries import copy_entries

#: Tolerance on the norms of unit vectors; those of float16 need it.
_ROUNDING = 1e-3
#: Texts between two progress lines.
_TEXTS_PER_LINE = 2048


def reads_texts(encoder: Any, estimator: str) -> bool:
    """Return whether an encoder reads texts, not sparse rows."""
    reads = getattr(encoder, "reads", "rows")
    if reads not in ("rows", "texts"):
        raise ValueError(
            f"{estimator}: encoder {type(encoder).__name__} must declare reads = 'rows' or reads = "
            f"'texts'. Got {reads!r}."
        )
    return bool(reads == "texts")


def encoder_input(rows: CsrRows) -> Any:
    """Return rows as encoders read them: a csr_array, or an array of texts."""
    if isinstance(rows, TextRows):
        return rows.texts
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def joined_input(parts: Sequence[tuple[CsrRows, np.ndarray]]) -> Any:
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
    encoder: Encoder, rows: CsrRows, dim: int, dtype: Any, n_jobs: int | None, estimator: str
) -> np.ndarray:
    """Return the embeddings of all rows, (n, dim), checked; blank texts are not encoded."""
    name = f"{estimator}: encode of encoder {type(encoder).__name__}"
    out, at = np.zeros((rows.shape[0], dim), dtype), np.flatnonzero(np.diff(rows.indptr))
    if len(at) == rows.shape[0] or not isinstance(rows, TextRows):
        V = encoder.encode(encoder_input(rows), n_jobs=n_jobs)
        return checked(V, name, out.shape, dtype)
    if len(at):
        V = encoder.encode(rows.texts[at], n_jobs=n_jobs)
        out[at] = checked(V, name, (len(at), dim), dtype)
    return out


def checked(V: Any, name: str, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return embeddings as an array that kernels read; rows must have norm 1 or 0."""
    if not isinstance(V, np.ndarray) or V.dtype.kind != "f" or V.shape != shape:
        kind = f" {V.dtype}" if isinstance(V, np.ndarray) else ""
        raise ValueError(
            f"{name} must return an array of floats of shape {shape}. Got "
            f"{type(V).__name__}{kind} of shape {np.shape(V)}."
        )
    V = np.ascontiguousarray(V, dtype)
    norms = np.sqrt(np.einsum("ij,ij->i", V, V))
    is_wrong = (norms != 0) & ~(np.abs(norms - 1) <= _ROUNDING)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        advice = "divide rows by their norms."
        if not np.isfinite(norms[row]):
            advice = "values are too large, or training diverged: lower learning_rate."
        raise ValueError(
            f"{name} must return rows of norm 1, or 0 for inputs without features. Got norm "
            f"{norms[row]:g} in row {row}: {advice}"
        )
    return V


class EmbeddingCache:
    """Embeddings of training texts, each computed when it is first needed.

    A fit needs them several times while the encoder stays as it is.

    Parameters
    ----------
    texts : ndarray of str objects of shape (n,)
        Training texts; others are computed each time.
    dim : int
    estimator : str
        The estimator's name, for messages.
    verbose : bool, default=False
        Whether to print progress.
    """

    def __init__(
        self, texts: np.ndarray, dim: int, estimator: str, *, verbose: bool = False
    ) -> None:
        self._texts, self._estimator, self._verbose = texts, estimator, verbose
        self._place = {text: i for i, text in enumerate(texts)}
        self._vectors = empty_rows(len(texts), dim, DTYPE, estimator)
        self._is_known = np.zeros(len(texts), bool)

    def encoded(self, rows: TextRows, encode: Callable[[TextRows], np.ndarray]) -> np.ndarray:
        """Return the embeddings of texts, (n, dim); `encode` computes those that are missing."""
        at = np.array([self._place.get(text, -1) for text in rows.texts], np.int64)
        known = np.flatnonzero(at >= 0)
        missing = np.unique(at[known][~self._is_known[at[known]]])
        lines = Lines(self._estimator, "text", len(missing)) if self._verbose else None
        for first in range(0, len(missing), _TEXTS_PER_LINE):
            part = missing[first : first + _TEXTS_PER_LINE]
            self._vectors[part] = encode(TextRows.of(self._texts[part]))
            self._is_known[part] = True
            if lines is not None:
                n_done = first + len(part)
                lines.show(n_done, "embedded", n_done / len(missing))
        if lines is not None:
            lines.close()
        out = empty_rows(len(at), self._vectors.shape[1], DTYPE, self._estimator)
        out[known] = self._vectors[at[known]]
        others = np.flatnonzero(at < 0)
        if len(others):
            out[others] = encode(TextRows.of(rows.texts[others]))
        return out

"""The words whose vectors have the largest cosines with sums of others."""

import numpy as np

#: Bytes of scores, and values of vectors, per piece.
_SCORE_BYTES, _PIECE = 2**26, 2**20
#: Unit vectors that cancel leave a rest below this, per vector.
_CANCELLED = 1e-15


def pair_cosines(vectors: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosines of pairs of rows, float64 of shape (n,); 0 where a vector is zero."""
    cosines = np.empty(len(a))
    step = max(1, _PIECE // vectors.shape[1])
    for first in range(0, len(a), step):
        part = slice(first, first + step)
        cosines[part] = (_units(vectors[a[part]]) * _units(vectors[b[part]])).sum(axis=1)
    return cosines.clip(-1.0, 1.0)


def nearest_rows(
    vectors: np.ndarray, rows: np.ndarray, signs: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows nearest to sums of unit vectors, and their cosines, largest first.

    Products in float32 select the rows that can be among the best; these are ordered by cosines in
    float64, which do not depend on the other sums.

    Parameters
    ----------
    vectors : ndarray of float32 of shape (n_words, dim)
        Finite, C-ordered.
    rows : ndarray of int64 of shape (n, n_terms)
        The terms of each sum, which are not among its answers.
    signs : ndarray of float64 of shape (n_terms,)
        1 to add a term, -1 to subtract it.
    k : int
        Number of answers; fewer if a sum has no more.

    Returns
    -------
    nearest : ndarray of int64 of shape (n, width)
        Ties go to the smaller number.
    cosines : ndarray of float64 of shape (n, width)
        0 with a vector of zeros.
    """
    n, (n_words, dim) = len(rows), vectors.shape
    n_distinct = max((len(np.unique(row)) for row in rows), default=1)
    width = max(0, min(k, n_words - n_distinct))
    nearest, cosines = np.empty((n, width), np.int64), np.empty((n, width))
    if not nearest.size:
        return nearest, cosines
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    inverse = np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0).astype(np.float32)
    step = max(1, min(_SCORE_BYTES // (4 * n_words), _PIECE // (dim * rows.shape[1])))
    for first in range(0, n, step):
        part = rows[first : first + step]
        units = _units(vectors[part.ravel()]).reshape(*part.shape, dim)
        sums = (units * signs[:, None]).sum(axis=1)
        sums[np.abs(sums).max(axis=1) < _CANCELLED * len(signs)] = 0.0
        sums = _units(sums)
        scores = sums.astype(np.float32) @ vectors.T
        scores *= inverse
        scores[np.arange(len(part))[:, None], part] = -np.inf
        for i, (own, wanted) in enumerate(zip(scores, sums, strict=True), first):
            nearest[i], cosines[i] = _best(own, wanted, vectors, width)
    return nearest, cosines


def _best(
    scores: np.ndarray, wanted: np.ndarray, vectors: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with the largest cosines to a unit vector, and these, (width,) each."""
    if not wanted.any():
        return np.flatnonzero(scores > -np.inf)[:width], np.zeros(width)
    slack = (vectors.shape[1] + 8) * 2.0**-22  # twice the rounding error of a score
    reached = float(np.partition(scores, len(scores) - width)[len(scores) - width])
    near = np.flatnonzero(scores >= max(-2.0, reached - slack))
    cosines = (_units(vectors[near]) * wanted).sum(axis=1)
    order = np.argsort(-cosines, kind="stable")[:width]
    return near[order], cosines[order].clip(-1.0, 1.0)


def _units(vectors: np.ndarray) -> np.ndarray:
    """Return rows of norm 1 in float64; zeros stay zeros."""
    rows = vectors.astype(np.float64)
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    rows /= np.where(norms > 0, norms, 1.0)
    return rows

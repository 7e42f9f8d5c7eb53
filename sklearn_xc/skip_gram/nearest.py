"""The words whose vectors have the largest cosines with sums of others."""

import numpy as np

#: Bytes of scores, and values of vectors, that are held at a time.
_SCORE_BYTES, _PIECE = 2**26, 2**20
#: What is left of unit vectors that cancel each other, for each of them, is less than this.
_CANCELLED = 1e-15
#: Scores in a group of which the largest one counts first.
_GROUP = 64
#: Squared norms within these are exact enough in float32; other vectors are rescaled before.
_LEAST, _MOST = 1e-20, 1e20


def pair_cosines(vectors: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosines of pairs of rows, float64 of shape (n,); 0 where a vector is.

    Parameters
    ----------
    vectors : ndarray of float32 of shape (n_words, dim)
    a, b : ndarray of int64 of shape (n,)
        Rows.
    """
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

    Products in float32 with all vectors, a block of sums at a time, leave those rows that can be
    among the best whatever the rounding was. These are ordered by cosines in float64, which depend
    on the two vectors alone: neither on the block nor on the place in it.

    Parameters
    ----------
    vectors : ndarray of float32 of shape (n_words, dim)
        Finite, C-ordered.
    rows : ndarray of int64 of shape (n, n_terms)
        The terms of each sum; they are not among its answers.
    signs : ndarray of float64 of shape (n_terms,)
        1 to add a term, -1 to subtract it.
    k : int
        How many; there are fewer columns where a sum has fewer answers.

    Returns
    -------
    nearest : ndarray of int64 of shape (n, width)
        Ties go to the smaller number.
    cosines : ndarray of float64 of shape (n, width)
        0 with a vector of zeros.
    """
    n, (n_words, dim) = len(rows), vectors.shape
    n_distinct = 1 + np.count_nonzero(np.diff(np.sort(rows, axis=1), axis=1), axis=1)
    width = max(0, min(k, n_words - int(n_distinct.max(initial=1))))
    nearest, cosines = np.empty((n, width), np.int64), np.empty((n, width))
    if not nearest.size:
        return nearest, cosines
    factors, inverse_norms = _moderate(vectors)
    step = max(1, _SCORE_BYTES // (4 * n_words))
    step = min(step, max(1, _PIECE // (dim * rows.shape[1])))
    for first in range(0, n, step):
        part = rows[first : first + step]
        units = _units(vectors[part.ravel()]).reshape(*part.shape, dim)
        sums = (units * signs[:, None]).sum(axis=1)
        sums[np.abs(sums).max(axis=1) < _CANCELLED * len(signs)] = 0.0
        sums = _units(sums)
        scores = sums.astype(np.float32) @ factors.T
        scores *= inverse_norms
        scores[np.arange(len(part))[:, None], part] = -np.inf
        for i, (own, wanted) in enumerate(zip(scores, sums, strict=True), first):
            nearest[i], cosines[i] = _best(own, wanted, vectors, width)
    return nearest, cosines


def _best(
    scores: np.ndarray, wanted: np.ndarray, vectors: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with the largest cosines to a unit vector, (width,) each, and these."""
    if not wanted.any():  # nothing is similar to nothing
        return np.flatnonzero(scores > -np.inf)[:width], np.zeros(width)
    # Products, norms and the roundings to float32 are within half of this of the truth.
    slack = (vectors.shape[1] + 8) * 2.0**-22
    # Not below all cosines: where whole groups are terms of the sum, it is their -inf.
    near = np.flatnonzero(scores >= max(-2.0, _reached_by(scores, width) - slack))
    cosines = np.empty(len(near))
    step = max(1, _PIECE // vectors.shape[1])
    for first in range(0, len(near), step):
        part = slice(first, first + step)
        cosines[part] = (_units(vectors[near[part]]) * wanted).sum(axis=1)
    order = np.argsort(-cosines, kind="stable")[:width]
    return near[order], cosines[order].clip(-1.0, 1.0)


def _reached_by(scores: np.ndarray, width: int) -> float:
    """Return a number that at least `width` scores reach, and few more.

    The largest scores of groups are scores too, and take a small part of the time to sort out.
    """
    if len(scores) >= _GROUP * 8 * width:
        n_groups = len(scores) // _GROUP
        scores = scores[: n_groups * _GROUP].reshape(_GROUP, n_groups).max(axis=0)
    last = len(scores) - width
    return float(np.partition(scores, last)[last])


def _units(vectors: np.ndarray) -> np.ndarray:
    """Return rows of norm 1 in float64; zeros stay zeros."""
    rows = vectors.astype(np.float64)
    norms = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    rows /= np.where(norms > 0, norms, 1.0)
    return rows


def _moderate(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors whose squares float32 can hold, and their inverse norms, 0 for zeros.

    The vectors are the given ones, or a copy where some are very long or short.
    """
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
    odd = np.flatnonzero(~((squares > _LEAST) & (squares < _MOST)))
    peaks = np.abs(vectors[odd]).max(axis=1, initial=0.0)
    odd, peaks = odd[peaks > 0], peaks[peaks > 0]
    if odd.size:
        vectors = vectors.copy()
        vectors[odd] /= peaks[:, None]
        squares[odd] = np.einsum("ij,ij->i", vectors[odd], vectors[odd])
    has_any = squares > 0
    return vectors, np.where(has_any, 1.0 / np.sqrt(np.where(has_any, squares, 1.0)), 0.0).astype(
        np.float32
    )

"""Equal rows: hashes of instances, and the distinct ones among them."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from sklearn_xc._input.data import CsrRows, DenseRows, row_pieces
from sklearn_xc._input.kernels.csr_rows import hash_rows

#: Number of values of a dense X that are hashed at a time.
_CHUNK_VALUES = 2**22


def distinct_instances(
    X: CsrRows | DenseRows, indptr: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct instances with at least one label and a weight above 0.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, d)
        Checked instances.
    indptr, labels : ndarray of int64 and int32
        Their labels in CSR form, ascending in each row.
    weight : ndarray of float64 of shape (n,)
        Not negative. Those of equal instances with equal label sets are summed.

    Returns
    -------
    rows : ndarray of int64 of shape (m,)
        One row of X for each, in an order determined by their content.
    total : ndarray of float64 of shape (m,)
        Their weights.
    """
    return distinct_by_hash(hash_instances(X), indptr, labels, weight)


def distinct_by_hash(
    hashes: np.ndarray, indptr: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct instances by their hashes, as ``distinct_instances`` does.

    Parameters
    ----------
    hashes : ndarray of uint64 of shape (n, m)
        Equal for equal instances. The last column is the first sort key.
    indptr, labels, weight
        As in ``distinct_instances``.
    """
    used = np.flatnonzero((np.diff(indptr) > 0) & (weight > 0))
    sets = np.empty((len(weight), 2), np.uint64)
    hash_rows(indptr, labels, np.ones(len(labels), np.uint64), sets)
    hashes = np.column_stack([hashes, sets])[used]
    order = np.lexsort((weight[used], *hashes.T))  # sums of weights round by their order
    is_first = np.ones(len(used), bool)
    is_first[1:] = (hashes[order][1:] != hashes[order][:-1]).any(axis=1)
    total = np.bincount(np.cumsum(is_first) - 1, weights=weight[used][order])
    return used[order][is_first], total


def hash_instances(X: CsrRows | DenseRows) -> np.ndarray:
    """Return two hashes of each instance, equal for equal ones, uint64 of shape (n, 2)."""
    n, d = X.shape
    hashes = np.empty((n, 2), np.uint64)
    if isinstance(X, CsrRows):
        for first, last in row_pieces(X.indptr):
            start, indptr = X.indptr[first], X.indptr[first : last + 1]
            entries = slice(start, indptr[-1])
            bits = _bits(X.data[entries])
            hash_rows(indptr - start, X.indices[entries], bits, hashes[first:last])
        return hashes
    n_together = max(1, _CHUNK_VALUES // d)
    indices = np.tile(np.arange(d, dtype=np.int32), min(n, n_together))
    for first in range(0, n, n_together):
        values = X.values[first : first + n_together]
        indptr = np.arange(len(values) + 1, dtype=np.int64) * d
        hash_rows(indptr, indices, _bits(values.ravel()), hashes[first : first + n_together])
    return hashes


def hash_texts(texts: Iterable[str]) -> np.ndarray:
    """Return a hash of each text, in two numbers: uint64 of shape (n, 2)."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for text in texts
    ]
    hashes: Any = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2)
    return hashes.astype(np.uint64)


def _bits(values: np.ndarray) -> np.ndarray:
    return (values + 0).astype(np.float64).view(np.uint64)  # the sum makes -0.0 a 0.0

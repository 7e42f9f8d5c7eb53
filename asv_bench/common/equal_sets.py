"""Label sets as classes: rows with the same labels are of one class."""

from typing import Any

import numpy as np
import scipy.sparse as sp


def equal_sets(Y_train: Any, Y_test: Any) -> list[tuple[np.ndarray, Any]]:
    """Return the rows of both parts whose label set two or more training rows have, as classes.

    Parameters
    ----------
    Y_train, Y_test : sparse array of shape (n, n_labels)
        Labels.

    Returns
    -------
    list of tuple of (ndarray of int64, csr_array of shape (n_rows, n_classes))
        For training and test, the rows and an indicator with a single 1 in each.
    """
    keys = [_keys(Y) for Y in (Y_train, Y_test)]
    counts: dict[bytes, int] = {}
    for key in keys[0]:
        counts[key] = counts.get(key, 0) + 1
    frequent = [key for key, count in counts.items() if count >= 2 and key]
    numbers = {key: number for number, key in enumerate(frequent)}
    parts = []
    for of_part in keys:
        rows = np.array([i for i, key in enumerate(of_part) if key in numbers], np.int64)
        classes = np.array([numbers[of_part[i]] for i in rows], np.int64)
        shape = (len(rows), len(numbers))
        ones = np.ones(len(rows), np.int8)
        indicator = sp.csr_array((ones, classes, np.arange(len(rows) + 1)), shape=shape)
        parts.append((rows, indicator))
    return parts


def _keys(Y: Any) -> list[bytes]:
    Y = sp.csr_array(Y)
    Y.sort_indices()
    indices = Y.indices.astype(np.int32)
    return [indices[a:b].tobytes() for a, b in zip(Y.indptr[:-1], Y.indptr[1:], strict=True)]

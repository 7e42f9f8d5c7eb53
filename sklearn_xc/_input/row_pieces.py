"""Ranges of rows with about equally many entries, which bound temporary arrays."""

import itertools
from collections.abc import Iterator

import numpy as np

#: Number of entries in a range: 1 MiB of 8-byte numbers.
ENTRIES = 2**17


def row_pieces(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of CSR rows, ``(first, last)``, that hold about `ENTRIES` entries each.

    Parameters
    ----------
    indptr : ndarray of int64 of shape (n + 1,)
        A row with more entries comes alone.
    """
    n = len(indptr) - 1
    if indptr[-1] <= ENTRIES and n <= ENTRIES:
        yield 0, n
        return
    # Ranges are also limited in rows, many of which may be empty.
    steps = np.arange(ENTRIES, int(indptr[-1]), ENTRIES)
    cuts = np.searchsorted(indptr, steps, side="left")
    cuts = np.unique(np.concatenate(([0], cuts, np.arange(0, n, ENTRIES), [n])))
    yield from itertools.pairwise(cuts.tolist())

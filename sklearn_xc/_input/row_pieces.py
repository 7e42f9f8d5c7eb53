"""Ranges of rows of about equal size, so that what is worked out for each entry stays small."""

import itertools
from collections.abc import Iterator

import numpy as np

#: A range holds about so many entries: with numbers of 8 bytes for each, 1 MiB.
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
    # The rows count too: there may be very many without an entry.
    steps = np.arange(ENTRIES, int(indptr[-1]), ENTRIES)
    cuts = np.searchsorted(indptr, steps, side="left")
    cuts = np.unique(np.concatenate(([0], cuts, np.arange(0, n, ENTRIES), [n])))
    yield from itertools.pairwise(cuts.tolist())

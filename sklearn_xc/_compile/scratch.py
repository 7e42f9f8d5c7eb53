"""Work space whose place in memory is chosen: it changes no result, or reads begin where they may.

Compiled loops that read some arrays and write others have two versions: one for arrays that are far
enough apart for several entries at a time, and one for all others. As sums may be reordered, the
two round differently. Small arrays that were allocated one after the other may be near or far, as
it happens; those of ``scratch`` never are near.
"""

import numpy as np
import numpy.typing as npt

from sklearn_xc._compile.jit import inlined

#: Entries between the end of an array and whatever follows: four registers of 64 bytes, at 4 bytes.
GAP = 64
#: Bytes of two cache lines, which are fetched together.
_CACHE_LINES = 128


@inlined
def scratch(n, dtype):
    """Return an array of n entries, not initialised, with room behind it that nobody uses."""
    return np.empty(n + GAP, dtype)[:n]


def aligned_zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """Return zeros that begin with a cache line."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.zeros(n_bytes + _CACHE_LINES, np.uint8)
    first = -room.ctypes.data % _CACHE_LINES
    return room[first : first + n_bytes].view(dtype).reshape(shape)

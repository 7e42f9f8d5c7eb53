"""Work space whose place in memory changes no result.

Compiled loops that read some arrays and write others have two versions: one for arrays that are far
enough apart for several entries at a time, and one for all others. As sums may be reordered, the
two round differently. Small arrays that were allocated one after the other may be near or far, as
it happens; these never are near.
"""

import numpy as np

from sklearn_xc.kernels.compiling.jit import inlined

#: Entries between the end of an array and whatever follows: four registers of 64 bytes, at 4 bytes.
GAP = 64


@inlined
def scratch(n, dtype):
    """Return an array of n entries, not initialised, with room behind it that nobody uses."""
    return np.empty(n + GAP, dtype)[:n]

"""Sums over many columns, few of them non-zero: added in any order, read with columns rising.

A byte marks each group of eight columns with an addition. It is written unconditionally: an
unpredictable test whether a column is new made counting two to three times slower.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined

_ONE, _3, _8, _58 = (np.uint64(number) for number in (1, 3, 8, 58))
# The lowest bit times this number has another number from 0 to 63 in its upper six bits, each time.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, np.uint64)
for _bit in range(64):
    _PLACE[((int(_DE_BRUIJN) << _bit) % 2**64) >> 58] = _bit


def new_sums(n_columns, dtype):
    """Return empty sums.

    Parameters
    ----------
    n_columns : int
    dtype : dtype
        Of integers.

    Returns
    -------
    sums : ndarray of `dtype` of shape (>= n_columns,)
    marks : ndarray of uint8
        1 for each eight columns with an addition.
    eights : ndarray of uint64
        The same memory, eight marks at a time.
    """
    eights = np.zeros(n_columns // 64 + 1, np.uint64)
    return np.zeros(64 * len(eights), dtype), eights.view(np.uint8), eights


@inlined
def add(sums, marks, column, addend):
    """Add a positive number to the sum of a column, a uint64."""
    marks[column >> _3] = 1
    sums[column] += addend


@inlined
def _lowest(bits):
    """Return the place of the lowest bit."""
    return _PLACE[((bits & (~bits + _ONE)) * _DE_BRUIJN) >> _58]


@inlined
def take(sums, eights, columns_out, sums_out, n_out):
    """Write columns and sums from `n_out` on, reset them, and return the new `n_out`.

    One further place is overwritten as well.
    """
    at = np.uint64(n_out)
    for i in range(np.uint64(eights.shape[0])):
        marked = eights[i]
        if marked == 0:
            continue
        eights[i] = 0
        while marked != 0:
            first = (i << _3 | _lowest(marked) >> _3) << _3
            marked &= marked - _ONE
            for column in range(first, first + _8):
                columns_out[at] = column
                sums_out[at] = sums[column]
                at += np.uint64(sums[column] != 0)
                sums[column] = 0
    return np.int64(at)

"""Sums over dense vectors in float64.

They take numpy's place where its temporaries would cost, and BLAS's, whose bits depend on the
number of its threads.
"""

import numpy as np

from sklearn_xc._compile.jit import inlined


@inlined
def inner_product(a, b):
    """Return the inner product, summed in float64."""
    total = np.float64(0.0)
    for j in range(a.shape[0]):
        total += np.float64(a[j]) * np.float64(b[j])
    return total


@inlined
def dot_of_rows(A, i, B, j, first):
    """Return the inner product of ``A[i, first : first + d]`` and row j of B, (m, d).

    It is a loop of its own in every kernel, so that all searches give a row the same score.

    Parameters
    ----------
    A, B : ndarray of float32 or float64
        C-contiguous, of one type.
    i, j, first : uint64
    """
    total = A.dtype.type(0)
    for c in range(np.uint64(B.shape[1])):
        total += A[i, first + c] * B[j, c]
    return total


@inlined
def sum_of(x):
    """Return the sum of the entries.

    It is for sums of what a loop writes: in that loop itself they round by where the arrays are.
    LLVM runs a loop in vectors unless it writes close behind what it reads, and a sum in vectors
    has another order.
    """
    total = np.float64(0.0)
    for j in range(x.shape[0]):
        total += np.float64(x[j])
    return total


@inlined
def largest_entry(x):
    """Return the largest entry that is not NaN, -inf if there is none."""
    # One chain of comparisons would wait for each of them.
    a = b = c = d = -np.inf
    whole = x.shape[0] - x.shape[0] % 4
    for j in range(0, whole, 4):
        a = x[j] if x[j] > a else a
        b = x[j + 1] if x[j + 1] > b else b
        c = x[j + 2] if x[j + 2] > c else c
        d = x[j + 3] if x[j + 3] > d else d
    for j in range(whole, x.shape[0]):
        a = x[j] if x[j] > a else a
    return max(max(a, b), max(c, d))

"""Loops over functions of one number, as kernels have them: the compiler makes vectors of them."""

import numpy as np

from sklearn_xc._compile.jit import kernel


def each(function):
    """Return a kernel that writes the function of each entry of a float64 array to another."""

    @kernel
    def write_each(x, out):
        for j in range(np.uint64(x.shape[0])):
            out[j] = function(x[j])

    return write_each

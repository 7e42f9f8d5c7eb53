"""Where small arrays lie in memory changes no bit of what is computed with them."""

import numpy as np
import pytest

from sklearn_xc._compile.jit import scratch

_LARGEST_DISTANCE = 4 * 64  # four registers of 64 bytes


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_scratch(dtype):
    for n in (0, 1, 7):
        found = scratch(n, dtype)
        assert (found.shape, found.dtype) == ((n,), dtype)
        assert found.base.nbytes - found.nbytes >= _LARGEST_DISTANCE

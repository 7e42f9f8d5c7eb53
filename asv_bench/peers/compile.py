"""What the first use of OvALinearXC costs on a machine: the compilation of its kernels."""

import numpy as np

from asv_bench.common.measure import cpu_seconds, warm_up
from sklearn_xc import OvALinearXC
from sklearn_xc.datasets import make_xc_classification


def compile_seconds() -> float:
    """Return the CPU seconds of a first small fit on float32.

    The process must be a fresh one, whose environment names an empty folder as NUMBA_CACHE_DIR;
    otherwise kernels are read from the cache.
    """
    X, Y = make_xc_classification(
        n_samples=60, n_features=40, n_labels=6, nnz_per_row=5, random_state=0, return_X_y=True
    )
    _, seconds = cpu_seconds(warm_up, OvALinearXC(), X.astype(np.float32), Y)
    return seconds

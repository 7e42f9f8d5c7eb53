"""Benchmarks over time; ``../README.md`` has the commands.

Compiled loops are warmed up in ``setup_cache`` and ``setup``; only ``cold_start`` counts
compilation. The threads under test are the package's own, so BLAS gets one: the variables below
are read when numpy is first imported, and child processes inherit them.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

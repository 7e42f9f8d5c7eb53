"""What estimators have compiled, the next process finds on disk."""

import gc

from registry import VARIANTS, of_variant
from small_data import awkward

from sklearn_xc._compile.cache import KernelCache
from sklearn_xc._compile.numba_private import Dispatcher


def test_every_kernel_has_a_key():
    """One without is compiled anew in each process, for as long as it takes."""
    X, Y = awkward()
    for name, variant in VARIANTS:
        x = X if variant else X.toarray()
        of_variant(name, variant).fit(x, Y).predict_topk(x, 3)
    found = set()
    for kernel in gc.get_objects():
        # A dead weak reference has a type, and no class.
        if issubclass(type(kernel), Dispatcher) and isinstance(kernel._cache, KernelCache):
            for arguments in kernel.overloads:
                found.add(kernel.py_func.__module__)
                # Raises an error if there is none.
                kernel._cache._index_key(arguments, kernel.targetctx.codegen())
    for folder in ("one_vs_all", "softmax", "decomposition", "embedding"):
        assert any(name.startswith(f"sklearn_xc.{folder}.kernels.") for name in found)

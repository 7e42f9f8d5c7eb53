"""What users hear of compilation."""

import pytest
from joblib import Parallel, delayed

from sklearn_xc import exceptions
from sklearn_xc.kernels._notices import KernelCacheWarning, warn_once


def test_all_threads_together_give_one_warning(monkeypatch):
    monkeypatch.setattr("sklearn_xc.kernels._notices._has_warned", False)
    tell = delayed(warn_once)
    with pytest.warns(KernelCacheWarning) as caught:
        Parallel(n_jobs=4, require="sharedmem")(tell(f"problem {n}") for n in range(8))
    assert len(caught) == 1


def test_the_warning_has_a_public_name():
    assert exceptions.KernelCacheWarning is KernelCacheWarning
    assert "KernelCacheWarning" in exceptions.__all__

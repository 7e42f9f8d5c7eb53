"""Kernels over functions from outside the package are not kept on disk."""

import numba
import pytest

from sklearn_xc.kernels.compiling.cache import KernelCache
from sklearn_xc.kernels.compiling.numba_private import NullCache
from sklearn_xc.kernels.decomposition.outside import (
    callable_in_kernels,
    is_of_package,
    kernel_over,
)
from sklearn_xc.losses import MaxMargin


def twice(x):
    return 2.0 * x


@numba.njit
def thrice(x):
    return 3.0 * x


@pytest.mark.parametrize(("function", "expected"), [(twice, 2.0), (thrice, 3.0)])
def test_a_kernel_calls_a_function_from_outside(function, expected):
    called = callable_in_kernels(function)

    @kernel_over(MaxMargin.gradient, function)
    def compute(x):
        return called(x)

    assert not is_of_package(function)
    assert compute(1.0) == expected
    assert isinstance(compute._cache, NullCache)


def test_a_kernel_over_functions_of_the_package_is_kept():
    assert is_of_package(MaxMargin.gradient)
    assert callable_in_kernels(MaxMargin.gradient) is MaxMargin.gradient

    @kernel_over(MaxMargin.gradient, MaxMargin.support_floor)
    def compute(x):
        return x

    assert isinstance(compute._cache, KernelCache)

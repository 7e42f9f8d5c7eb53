"""Functions from outside the package, called by its kernels."""

import numba
import pytest

from sklearn_xc._compile.jit import callable_in_kernels, kernel
from sklearn_xc.decomposition.losses import MaxMargin


def twice(x):
    return 2.0 * x


@numba.njit
def thrice(x):
    return 3.0 * x


@pytest.mark.parametrize(("function", "expected"), [(twice, 2.0), (thrice, 3.0)])
def test_a_kernel_calls_a_function_from_outside(function, expected):
    called = callable_in_kernels(function)

    @kernel
    def compute(x):
        return called(x)

    assert compute(1.0) == expected


def test_functions_of_the_package_are_left_as_they_are():
    assert callable_in_kernels(MaxMargin.gradient) is MaxMargin.gradient

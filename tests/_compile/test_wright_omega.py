"""The Wright omega function against scipy's and its own equation."""

import numpy as np
import scipy.special
from vector_loops import each

from sklearn_xc.softmax.kernels.implicit_step import wright_omega

omega_each = each(wright_omega)

#: On both sides of the changes of start, by one rounding and by more.
BRANCHES = [
    value
    for at in (-20.0, 1.0)
    for value in (at - 1e-3, np.nextafter(at, -np.inf), at, np.nextafter(at, np.inf), at + 1e-3)
]


def omega(z):
    out = np.full(len(z), np.nan)
    omega_each(np.asarray(z, np.float64), out)
    return out


def test_equals_scipy():
    ranges = [(-700.0, -20.0, 2001), (-25.0, 5.0, 20001), (1.0, 800.0, 5001)]
    extremes = [-700.0, -1.0, 0.0, 1.0 + np.e, 1e8, 1e15, 1e150]
    z = np.concatenate([*(np.linspace(*each) for each in ranges), BRANCHES, extremes])
    z = np.concatenate([z, np.geomspace(1.0, 1e150, 2001)])
    np.testing.assert_allclose(omega(z), scipy.special.wrightomega(z), rtol=1e-14)


def test_below_the_range_of_exp():
    """Down to -708 values are normal; then they lose digits, until they are 0."""
    found = omega([-708.0, -730.0, -745.0, -746.0, -1e4, -1e308])
    np.testing.assert_allclose(found, np.exp([-708.0, -730.0, -745.0, -746.0, -1e4, -1e308]))
    assert found[2] > 0
    assert (found[3:] == 0).all()


def test_solves_its_equation():
    z = np.random.default_rng(0).uniform(-700.0, 1e6, 1000)
    w = omega(z)
    np.testing.assert_allclose(w + np.log(w), z, rtol=1e-15, atol=1e-13)

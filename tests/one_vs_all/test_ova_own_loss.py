"""A loss from outside the package, passed as an object."""

import pickle

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc import OvALinearXC, OvALinearXCCV
from sklearn_xc.one_vs_all.losses import HuberHinge, MarginLoss, SquaredHinge


class SmoothedHinge(MarginLoss):
    """A hinge with a parabola of some width at its kink."""

    active_below = 1.0

    def __init__(self, width=0.5):
        self.width = width

    def functions(self):
        zero, half, one = np.float32(0), np.float32(0.5), np.float32(1)
        width = np.float32(self.width)

        def value(margin):
            gap = max(one - margin, zero)
            return half * gap * gap / width if gap < width else gap - half * width

        def slope(margin):
            return -min(max(one - margin, zero) / width, one)

        def curvature(margin):
            return one / width if zero < one - margin < width else zero

        return value, slope, curvature


class Altered(MarginLoss):
    """The squared hinge with one function replaced."""

    active_below = 1.0

    def __init__(self, name, function, active_below=1.0):
        self.name, self.function, self.active_below = name, function, active_below

    def functions(self):
        names = ("value", "slope", "curvature")
        own = dict(zip(names, SquaredHinge().functions(), strict=True))
        own[self.name] = self.function
        return tuple(own.values())


@pytest.fixture(scope="module")
def xy():
    rng = np.random.default_rng(0)
    X = sp.random_array((120, 30), density=0.3, rng=rng, format="csr")
    Y = sp.csr_array((X.toarray() @ rng.normal(size=(30, 4)) > 0.4).astype(np.int8))
    return X, Y


#: Each width is compiled anew, for many seconds, for sparse and for dense X: these two
#: for sparse X suffice.
NARROW, WIDE = SmoothedHinge(0.5), SmoothedHinge(2.0)


@pytest.mark.parametrize("loss", [NARROW, pytest.param(WIDE, marks=pytest.mark.slow)])
def test_it_is_minimised(loss, xy, dense_objective):
    X, Y = xy
    clf = OvALinearXC(loss=loss, tol=1e-6, prune=0, C=2.0)
    clf.fit(X, Y)
    assert (clf.fit_report_["status"] == "converged").all()
    for j in range(4):
        positive = Y[:, [j]].toarray()[:, 0] > 0
        objective = dense_objective(X.toarray(), positive, loss=loss, plus=2.0, minus=2.0)
        assert clf.fit_report_["objective"][j] == pytest.approx(objective.minimum(), rel=1e-5)


def test_clone_pickle_threads_and_cross_validation(xy):
    X, Y = xy
    clf = OvALinearXC(loss=SmoothedHinge(0.5), n_jobs=2)
    other = pickle.loads(pickle.dumps(clone(clf).fit(X, Y)))
    assert other.loss == SmoothedHinge(0.5) != SmoothedHinge(0.8)
    assert other.loss != HuberHinge()
    assert repr(other.loss) == "SmoothedHinge(width=0.5)"
    one = clone(clf).set_params(n_jobs=1).fit(X, Y)
    assert one.coef_.data.tobytes() == other.coef_.data.tobytes()
    chosen = OvALinearXCCV(Cs=[0.1, 1.0], cv=2, loss=NARROW).fit(X, Y)
    assert chosen.C_ in (0.1, 1.0)


@pytest.mark.parametrize(
    ("loss", "problem"),
    [
        (Altered("slope", lambda m: 1.0), "not rise with the margin. Got slope 1"),
        (Altered("curvature", lambda m: -2.0), "convex .* curvature -2"),
        (Altered("value", lambda m: np.nan), "value.* is nan"),
        (Altered("value", SquaredHinge().functions()[0], 0.5), "active_below=0.5, but a loss"),
    ],
)
def test_what_cannot_be_minimised_is_refused(loss, problem, xy):
    with pytest.raises(ValueError, match=f"^OvALinearXC: loss.*{problem}"):
        OvALinearXC(loss=loss).fit(*xy)


def uncompilable(margin):
    return {"value": margin}[margin]


@pytest.mark.parametrize(
    ("name", "function", "problem"),
    [
        ("value", uncompilable, "cannot be compiled: .*"),
        ("value", numba.njit(uncompilable), "cannot be compiled: .*"),
        ("slope", lambda m, n: 0.0, "cannot be compiled: .*"),
        ("curvature", lambda m: (m, m), r"must return a number\. Got UniTuple"),
    ],
)
def test_functions_that_numba_cannot_compile(name, function, problem, xy):
    loss = Altered(name, function)
    with pytest.raises(ValueError, match=rf"^OvALinearXC: loss: {name} of Altered\(.* {problem}"):
        OvALinearXC(loss=loss).fit(*xy)

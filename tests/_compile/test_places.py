"""No bit depends on where arrays are: loops that write close behind what they read sum otherwise.

LLVM tests before a loop whether what is written begins less than a few vectors behind what is read,
as it does for short arrays that were allocated one after another. Then it runs the loop number by
number, and sums in that order.
"""

import numpy as np
import pytest

from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only
from sklearn_xc.decomposition.losses import cross_entropy, triplet
from sklearn_xc.one_vs_all.kernels import dense_rows
from sklearn_xc.one_vs_all.kernels.newton_direction import cg_function
from sklearn_xc.search.kernels import clusters
from sklearn_xc.softmax.kernels import implicit_step
from sklearn_xc.softmax.kernels.rules import RULES, SampledClasses, TargetClass

#: Arrays one after another, in bytes between them, and far from each other.
GAPS, FAR = (0, 16, 48), 8192


def placed(arrays, order, gap):
    """Return copies in one block of memory, in some order."""
    room, at, out = np.zeros(2**17, np.uint8), 0, list(arrays)
    for i in order:
        array = arrays[i]
        out[i] = room[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
        out[i][:] = array
        at += -(-array.nbytes // 16) * 16 + gap
    return out


def assert_places_do_not_matter(call, arrays):
    """Compare what ``call`` returns and writes, for arrays in several places."""
    rng = np.random.default_rng(0)
    found = []
    orders = [rng.permutation(len(arrays)) for _ in range(6)]
    for order, gap in [(orders[0], FAR), *((order, gap) for order in orders for gap in GAPS)]:
        given = placed(arrays, order, gap)
        found.append((call(*given), *(array.tobytes() for array in given)))
    assert all(each == found[0] for each in found[1:])


def arrays_of(n_arrays, n, seed):
    return list(0.1 + np.random.default_rng(seed).random((n_arrays, n)))


def a_rule(rule, *told):
    step, settings = rule.step, type(rule.settings)(*told)

    @kernel
    def take_step(alpha, q, c, p, settings):
        sampled = SampledClasses(alpha, q, q, c)
        return step(100.0, 1.3, TargetClass(0.2, 0.2, 1.0), sampled, 3.0, p, settings)

    return lambda alpha, q, c, p: take_step(alpha, q, c, p, settings)


def an_empty_row():
    solve = kernel(implicit_step._solve_empty)
    return lambda alpha, q, c, p: solve(100.0, alpha, 0.2, q, 3.0, p)


def a_loss(loss):
    gradient = kernel(loss.gradient)
    return lambda scores, out, work, _: gradient(scores, 2, len(scores), 1.0, out, work)


CALLS = {
    "U-max": lambda: a_rule(RULES["umax"], 0.5),
    "implicit": lambda: a_rule(RULES["implicit"]),
    "one vs each": lambda: a_rule(RULES["ove"]),
    "importance": lambda: a_rule(RULES["is"]),
    "raman": lambda: a_rule(RULES["raman"], 0.5),
    "empty row": an_empty_row,
    "cross-entropy": lambda: a_loss(cross_entropy),
    "triplet": lambda: a_loss(triplet),
}


@pytest.mark.parametrize("name", CALLS)
def test_short_arrays_of_scores(name):
    call = CALLS[name]()
    for n in (5, 8, 12, 16, 20, 27):
        for seed in range(10):
            assert_places_do_not_matter(call, arrays_of(4, n, seed))


def test_augmented_rows():
    rows, dim = np.arange(1), 12
    for seed in range(20):
        W = np.random.default_rng(seed).normal(size=(1, dim))
        assert_places_do_not_matter(
            lambda W, out: clusters.augment_rows(W, 0, rows, 9.0, out),
            [W, np.zeros((1, dim + 1))],
        )


def test_conjugate_gradients():
    solve = kernel(cg_function(dense_rows))
    chosen = np.arange(30, dtype=np.int32)
    for d in (6, 10, 14):
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = (read_only(rng.normal(size=(30, d))),)
            curvatures = 0.1 + rng.random(30)

            def call(gradient, diagonal, work, X=X, curvatures=curvatures):
                cg = 1e-6, 0.5, 4
                return solve(X, chosen, curvatures, 1.0, 1.0, gradient, diagonal, cg, work)

            gradient, diagonal = rng.normal(size=d + 2), 1.0 + rng.random(d + 2)
            assert_places_do_not_matter(call, [gradient, diagonal, np.zeros((6, d + 2))])

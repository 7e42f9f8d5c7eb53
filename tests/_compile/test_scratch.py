"""Where small arrays lie in memory changes no bit of what is computed with them."""

import itertools

import numpy as np
import pytest

from sklearn_xc._compile.jit import kernel
from sklearn_xc._compile.scratch import GAP, scratch
from sklearn_xc.softmax.kernels.batch import BatchWork
from sklearn_xc.softmax.kernels.implicit_batch import N_WORK, ScoreStep, solve_batch
from sklearn_xc.softmax.kernels.passes import Batches, Visits

_LARGEST_DISTANCE = 4 * 64  # four registers of 64 bytes


@kernel
def solve(scale, alpha, gram, place, group, q, c, own, c_y, u, p, totals, work):
    step = ScoreStep(scale, alpha, gram, place, group, q, c, own, c_y, u)
    return solve_batch(step, p, totals, work, 1e-11)


def draw_update(n, m):
    """Return the arguments of an update of n instances, each with a class of its own, in order."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 5))
    place = np.where(np.arange(n) % 2, rng.permutation(max(n, m))[:n] % m, -1)
    return {
        "scale": 0.5 + 8.0 * rng.random(n), "alpha": 1.0 + rng.random(m), "gram": X @ X.T,
        "place": place, "group": np.arange(n), "q": rng.normal(size=(n, m)),
        "c": np.full(m, 1.1), "own": rng.normal(size=n), "c_y": np.full(n, 1.1),
        "u": rng.random(n), "p": np.zeros((n, m)), "totals": np.zeros(n),
        "work": np.zeros((N_WORK, n, m)),
    }  # fmt: skip


def lay_out(arrays, rng):
    """Return copies in one piece of memory, in any order, at least GAP entries apart."""
    room = np.zeros(sum(a.size + 2 * GAP for a in arrays.values()))
    copies, at = {}, 0
    for name in rng.permutation(list(arrays)):
        a = arrays[name]
        copies[name] = room[at : at + a.size].view(a.dtype).reshape(a.shape)
        copies[name][...] = a
        at += a.size + rng.integers(GAP, 2 * GAP)
    return [copies[name] for name in arrays]


@pytest.mark.parametrize(("n", "m"), [(8, 4), (5, 9), (16, 17)])
def test_the_place_of_arguments(n, m):
    found = set()
    for seed in range(200):
        arguments = lay_out(draw_update(n, m), np.random.default_rng(seed))
        assert solve(*arguments) <= 1e-11
        found.add(b"".join(a.tobytes() for a in arguments[9:12]))
    assert len(found) == 1


def beginnings(arrays):
    """Return addresses of arrays of floats, or nested tuples of them."""
    for a in arrays:
        if isinstance(a, tuple):
            yield from beginnings(a)
        elif a.dtype.kind == "f":
            yield a.ctypes.data


def test_arrays_of_a_batch_are_apart():
    """Also the smallest, which an allocator puts side by side."""
    n, rows = np.arange(3), np.zeros(3, np.int32)
    visits = Visits((np.arange(4), n, n), n, rows, rows, n, n)
    batches = Batches(np.array([0, 2, 3]), n, 3)
    for _ in range(20):
        work = BatchWork.for_pass(visits, batches, 1, np.ones((2, 3), np.float32))
        places = sorted(beginnings([a for a in work if a is not work.block and a is not work.line]))
        assert len(places) >= 12
        assert min(b - a for a, b in itertools.pairwise(places)) >= _LARGEST_DISTANCE


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_scratch(dtype):
    for n in (0, 1, 7):
        found = scratch(n, dtype)
        assert (found.shape, found.dtype) == ((n,), dtype)
        assert found.base.nbytes - found.nbytes >= _LARGEST_DISTANCE

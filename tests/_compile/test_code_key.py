"""Compiled code that holds functions from outside the package is never stale."""

import types
from collections import namedtuple
from typing import NamedTuple

import numba
import numpy as np
import pytest
import scipy
from numba import njit, typeof
from numba.extending import register_jitable
from scipy.sparse._sparsetools import csr_matvec

from sklearn_xc._compile.code_key import NoKeyError, code_key
from sklearn_xc._compile.jit import kernel


def key_of(function, *arguments):
    """Return the key of a kernel that closes over a function."""

    def of_kernel(x):
        return function(x)

    return code_key(of_kernel, tuple(map(typeof, arguments)))


def made(source, file="/somewhere.py", **names):
    """Return the function f of a text, as of another version of one file."""
    space = {"__name__": "somewhere", "register_jitable": register_jitable, **names}
    exec(compile(source, file, "exec"), space)
    return space["f"]


class Pair(NamedTuple):
    low: float
    high: float


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("def f(x): return x + 1", {}), ("def f(x): return x - 1", {})),
        (("def f(x): return x + 1", {}), ("def f(x): return x + 2", {})),
        (("def f(x, a=1): return x + a", {}), ("def f(x, a=2): return x + a", {})),
        (("def f(x): return x + A", {"A": 1}), ("def f(x): return x + A", {"A": 2})),
        (
            ("def f(x): return x + A[0]", {"A": np.zeros(2)}),
            ("def f(x): return x + A[0]", {"A": np.ones(2)}),
        ),
        (
            ("def g(x): return x + 1\ndef f(x): return g(x)", {}),
            ("def g(x): return x + 2\ndef f(x): return g(x)", {}),
        ),
        (
            ("def f(x): return g(x)", {"g": njit(lambda x: x)}),
            ("def f(x): return g(x)", {"g": njit(lambda x: x, fastmath=True)}),
        ),
        (
            ("def f(x): return A(x, x).low", {"A": namedtuple("A", "low high")}),
            ("def f(x): return A(x, x).low", {"A": namedtuple("A", "high low")}),
        ),
    ],
    ids=["code", "constant", "default", "global", "array", "called", "options", "fields"],
)
def test_what_differs_has_another_key(one, other):
    assert key_of(made(one[0], **one[1])) == key_of(made(one[0], **one[1]))
    assert key_of(made(one[0], **one[1])) != key_of(made(other[0], **other[1]))


@pytest.mark.parametrize("value", [types.ModuleType("elsewhere"), scipy, pytest.Item, csr_matvec])
def test_what_may_change_unseen_has_no_key(value):
    function = made("def f(x): return A(x)", A=value)
    with pytest.raises(NoKeyError, match="may change"):
        key_of(function)


def test_fields_of_records_in_a_signature(monkeypatch):
    """numba's types tell how many there are: the compiled code reads the first, or the second."""

    def low(x):
        return x.low

    before = code_key(low, (typeof(Pair(1.0, 2.0)),))
    assert before == code_key(low, (typeof(Pair(3.0, 4.0)),))
    monkeypatch.setattr(Pair, "_fields", ("high", "low"))
    assert before != code_key(low, (typeof(Pair(1.0, 2.0)),))
    nested = code_key(low, (typeof((1, Pair(1.0, 2.0))),))
    monkeypatch.undo()
    assert nested != code_key(low, (typeof((1, Pair(1.0, 2.0))),))


def test_records_of_a_function_are_compiled_by_each_process(tmp_path, monkeypatch):
    """The next process has another class of that name, which compiled code does not take."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    class Local(NamedTuple):
        x: float

    probe = kernel(lambda record: record.x + 1.0)
    assert probe(Local(1.0)) == 2.0
    assert not list(tmp_path.rglob("*.nbc"))

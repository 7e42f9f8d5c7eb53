"""A barrier at which threads wait within a kernel, for phases of some tens of microseconds.

Waiting costs no system call where all threads come soon. One that waits longer yields its core to
others, so that more threads than cores only delay each other.

A thread that cannot come calls ``abandon``, and no other waits for it then.
"""

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.jit import inlined
from sklearn_xc._compile.numba_private import cgutils

#: Looks before a thread offers its core. With 1000, eight threads on one core took three times as
#: long.
_N_LOOKS = 100
#: The words of a barrier, each in a cache line of its own (two are often fetched together).
_ARRIVED, _ROUND, _ABANDONED, _N_WORDS = 0, 16, 32, 48
_HAS_PAUSE = platform.machine().lower() in ("x86_64", "amd64", "i686")


def new_barrier() -> np.ndarray:
    """Return a barrier for any number of threads, as long as all give the same."""
    return np.zeros(_N_WORDS, np.int64)


def abandon(barrier: np.ndarray) -> None:
    """Let all threads pass, now and from now on: ``wait_for_all`` returns False."""
    barrier[_ABANDONED] = 1


@inlined
def wait_for_all(barrier, n_threads):
    """Wait until `n_threads` threads are here; return whether to go on.

    What any of them wrote before is seen by all of them after.
    """
    if n_threads == 1:
        return True
    before = load_word(barrier, _ROUND)
    if add_to_word(barrier, _ARRIVED, 1) == n_threads - 1:
        add_to_word(barrier, _ARRIVED, -n_threads)
        add_to_word(barrier, _ROUND, 1)
    n_looks = 0
    while load_word(barrier, _ROUND) == before and load_word(barrier, _ABANDONED) == 0:
        if n_looks < _N_LOOKS:
            n_looks += 1
            pause()
        else:
            offer_core()
    return load_word(barrier, _ABANDONED) == 0


def _address(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]])


def _load_word(typing, barrier, word):
    """Return a word that others write, and see all that they wrote before it."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature, args)
        return builder.load_atomic(address, "acquire", 8)

    return types.int64(barrier, types.int64), generate


def _add_to_word(typing, barrier, word, number):
    """Add to a word that others write as well; return what it was."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature, args)
        return builder.atomic_rmw("add", address, args[2], "acq_rel")

    return types.int64(barrier, types.int64, types.int64), generate


def _pause(typing):
    """Hint to the processor that this loop waits."""

    def generate(context, builder, signature, args):
        if _HAS_PAUSE:
            function = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            builder.call(cgutils.get_or_insert_function(builder.module, function, name), [])
        return context.get_dummy_value()

    return types.none(), generate


def _offer_core(typing):
    """Let another thread have the core, if one waits for it."""

    def generate(context, builder, signature, args):
        function = ir.FunctionType(ir.IntType(32), [])
        name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
        builder.call(cgutils.get_or_insert_function(builder.module, function, name), [])
        return context.get_dummy_value()

    return types.none(), generate


# Named so that they are called from kernels without the first argument.
load_word: Any = intrinsic(_load_word)
add_to_word: Any = intrinsic(_add_to_word)
pause: Any = intrinsic(_pause)
offer_core: Any = intrinsic(_offer_core)

"""Inner products of dense rows whose bits depend on the two rows alone.

A loop that LLVM vectorises sums in an order of LLVM's choice, which differs from kernel to kernel,
and below some 32 numbers not in vectors at all. Here the order is written down: number j is added
to lane j modulo the lanes of 64 bytes, then halves are added to halves. So all searches give the
same score to the same row.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.emitters.int16_lanes import splat
from sklearn_xc._compile.numba_private import TypingError, cgutils

_VECTOR_BYTES = 64
#: A product and its sum may be one instruction, with one rounding.
_FUSED = ("contract",)
_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _dense_dot(typing, a, a_first, b, b_first, n):
    """Return the inner product of n numbers of `a` and of `b`.

    Parameters
    ----------
    a, b : ndarray of float32 or float64
        C-contiguous, of one type and any shape.
    a_first, b_first : uint64
        Where the numbers begin in the flattened arrays.
    n : uint64
    """
    if a.dtype != b.dtype or a.layout != "C" or b.layout != "C":
        raise TypingError(f"dense_dot needs C-contiguous arrays of one type, not {a} and {b}")
    u64 = types.uint64
    return a.dtype(a, u64, b, u64, u64), _generate


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the loop over whole vectors, the rest, and the sum of the lanes."""
    a, b = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2))
    a_first, b_first, n = args[1], args[3], args[4]
    number = a.type.pointee
    size = context.get_abi_sizeof(number)
    lanes = _VECTOR_BYTES // size
    vector = ir.VectorType(number, lanes)
    zero = ir.Constant(vector, [0.0] * lanes)

    def pointer(array: Any, first: Any, at: Any) -> Any:
        address = builder.gep(array, [builder.add(first, at)])
        return builder.bitcast(address, vector.as_pointer())

    def add(total: Any, one: Any, other: Any) -> Any:
        product = builder.fmul(one, other, flags=_FUSED)
        return builder.fadd(total, product, flags=_FUSED)

    # Whole vectors.
    rest = builder.urem(n, ir.Constant(_I64, lanes))
    end = builder.sub(n, rest)
    before = builder.block
    head, body, after = (builder.append_basic_block(f"dot.{part}") for part in "hba")
    builder.branch(head)
    builder.position_at_end(head)
    at, total = builder.phi(_I64), builder.phi(vector)
    builder.cbranch(builder.icmp_unsigned("<", at, end), body, after)
    builder.position_at_end(body)
    one, other = (
        builder.load(pointer(x, first, at), align=size) for x, first in ((a, a_first), (b, b_first))
    )
    for phi, begin, then in (
        (at, ir.Constant(_I64, 0), builder.add(at, ir.Constant(_I64, lanes))),
        (total, zero, add(total, one, other)),
    ):
        phi.add_incoming(begin, before)
        phi.add_incoming(then, body)
    builder.branch(head)

    # The rest, in lanes that are switched on for it.
    builder.position_at_end(after)
    some, done = (builder.append_basic_block(f"dot.{part}") for part in ("some", "done"))
    builder.cbranch(builder.icmp_unsigned("!=", rest, ir.Constant(_I64, 0)), some, done)
    builder.position_at_end(some)
    numbers = ir.Constant(ir.VectorType(_I32, lanes), list(range(lanes)))
    limit = splat(builder, builder.trunc(rest, _I32), numbers.type)
    mask = builder.icmp_unsigned("<", numbers, limit)
    name = f"v{lanes}f{8 * size}"
    load = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(vector, [vector.as_pointer(), _I32, mask.type, vector]),
        f"llvm.masked.load.{name}.p0{name}",
    )
    one, other = (
        builder.call(load, [pointer(x, first, end), ir.Constant(_I32, size), mask, zero])
        for x, first in ((a, a_first), (b, b_first))
    )
    with_rest = add(total, one, other)
    builder.branch(done)
    builder.position_at_end(done)
    lane_sums = builder.phi(vector)
    lane_sums.add_incoming(total, after)
    lane_sums.add_incoming(with_rest, some)

    # Halves to halves.
    while lanes > 1:
        lanes //= 2
        lower, upper = (
            builder.shuffle_vector(
                lane_sums,
                lane_sums,
                ir.Constant(ir.VectorType(_I32, lanes), list(range(first, first + lanes))),
            )
            for first in (0, lanes)
        )
        lane_sums = builder.fadd(lower, upper)
    return builder.extract_element(lane_sums, ir.Constant(_I32, 0))


# Named so that it is called from kernels without the first argument.
dense_dot: Any = intrinsic(_dense_dot)

"""One CSR row times a block of int16 columns, as a vector instruction sequence.

numba has no vector types, and its loop over the columns keeps the sums in memory. Here they are one
LLVM vector for all columns, which stays in registers on any processor wide enough; LLVM splits it
on the others. The block's rows that come up soon are prefetched: at 93,000 features it is 12 MB,
and waiting for it is most of the work.
"""

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: How many non-zeros ahead the block is prefetched. 8 to 64 were tried on three sets.
AHEAD = 32
_CACHE_LINE = 64
_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_F32 = ir.FloatType()


@functools.cache
def row_screen(width: int) -> Any:
    """Return the function for a block of `width` columns: 16, 32 or 64.

    It is called from kernels as ``screen(indices, data, start, stop, end, block, first,
    threshold)``: non-zeros `start` to `stop` of a CSR matrix that ends at `end`, an int16 block of
    shape (d, width), the number that the sums begin with and float32 thresholds (width,). It
    returns a uint64 whose bit k tells that the k-th sum is above the k-th threshold, or is NaN.
    """

    @intrinsic
    def screen(typing, indices, data, start, stop, end, block, first, threshold):
        signature = types.uint64(
            indices, data, types.uint64, types.uint64, types.uint64, block, types.float32,
            threshold,
        )  # fmt: skip
        return signature, functools.partial(_generate, width)

    return screen


def _generate(width: int, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the loop over the non-zeros of the row."""
    indices, data, block, threshold = (
        context.make_array(signature.args[a])(context, builder, args[a]).data for a in (0, 1, 5, 7)
    )
    start, stop, end, first = args[2], args[3], args[4], args[6]
    sums_type, column_type = ir.VectorType(_F32, width), ir.VectorType(_I16, width)

    def splat(value: Any) -> Any:
        undefined = ir.Constant(sums_type, ir.Undefined)
        one = builder.insert_element(undefined, value, ir.Constant(_I32, 0))
        everywhere = ir.Constant(ir.VectorType(_I32, width), [0] * width)
        return builder.shuffle_vector(one, undefined, everywhere)

    def block_row(t: Any) -> Any:
        feature = builder.zext(builder.load(builder.gep(indices, [t])), _I64)
        return builder.gep(block, [builder.mul(feature, ir.Constant(_I64, width))])

    begin = splat(first)
    entry = builder.block
    loop = builder.append_basic_block("row.loop")
    after = builder.append_basic_block("row.after")
    builder.cbranch(builder.icmp_unsigned("<", start, stop), loop, after)

    builder.position_at_end(loop)
    t, sums = builder.phi(_I64), builder.phi(sums_type)
    soon = builder.add(t, ir.Constant(_I64, AHEAD))
    soon = builder.select(builder.icmp_unsigned("<", soon, end), soon, t)
    _prefetch_lines(builder, block_row(soon), 2 * width)
    column = builder.load(builder.bitcast(block_row(t), column_type.as_pointer()), align=2)
    value = builder.load(builder.gep(data, [t]))
    if signature.args[1].dtype == types.float64:
        value = builder.fptrunc(value, _F32)
    product = builder.fmul(splat(value), builder.sitofp(column, sums_type), flags=("contract",))
    new_sums = builder.fadd(sums, product, flags=("contract",))
    new_t = builder.add(t, ir.Constant(_I64, 1))
    for phi, before, new in ((t, start, new_t), (sums, begin, new_sums)):
        phi.add_incoming(before, entry)
        phi.add_incoming(new, loop)
    builder.cbranch(builder.icmp_unsigned("<", new_t, stop), loop, after)

    builder.position_at_end(after)
    total = builder.phi(sums_type)
    total.add_incoming(begin, entry)
    total.add_incoming(new_sums, loop)
    limits = builder.load(builder.bitcast(threshold, sums_type.as_pointer()), align=4)
    above = builder.bitcast(builder.fcmp_unordered(">", total, limits), ir.IntType(width))
    return above if width == _I64.width else builder.zext(above, _I64)


def _prefetch_lines(builder: Any, address: Any, n_bytes: int) -> None:
    pointer = _I8.as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
    prefetch = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0i8")
    address = builder.bitcast(address, pointer)
    for offset in range(0, n_bytes, _CACHE_LINE):
        line = builder.gep(address, [ir.Constant(_I64, offset)])
        read, keep, data = (ir.Constant(_I32, number) for number in (0, 3, 1))
        builder.call(prefetch, [line, read, keep, data])


def _lowest_bit(typing, mask):
    """Return the number of the lowest bit that is set in a uint64 that is not 0."""

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def _prefetch_item(typing, array, index):
    """Ask for the cache line that holds ``array[index]``."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        _prefetch_lines(builder, builder.gep(data, [args[1]]), 1)
        return context.get_dummy_value()

    return types.none(array, types.uint64), generate


# Named so that they are called from kernels without the first argument.
lowest_bit: Any = intrinsic(_lowest_bit)
prefetch: Any = intrinsic(_prefetch_item)

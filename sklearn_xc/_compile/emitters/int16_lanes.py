"""One CSR row times a block of int16 columns, as a vector instruction sequence.

numba has no vector types, and its loop over the columns keeps the sums in memory. Here they are
LLVM vectors, which stay in registers on any processor with enough of them. Two non-zeros are taken
at a time: their rows of the block are interleaved, so that one instruction (``pmaddwd`` on x86)
multiplies and adds both for a column, in exact int32. The block's rows that come up soon are
prefetched: at 93,000 features it is 12 MB, and waiting for it is most of the work.
"""

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.emitters.instructions import splat
from sklearn_xc._compile.numba_private import cgutils

#: How many non-zeros ahead the block is prefetched. 4 to 256 were tried.
AHEAD = 96
_CACHE_LINE = 64
#: Columns that are taken together, at most: a vector of AVX-512. One vector of all columns is
#: slower: LLVM loads all of a row before it multiplies, and is out of registers for the sums.
_GROUP = 32
#: Columns whose interleaved halves fill one 128-bit part of a vector each: wider vectors interleave
#: within those parts.
_PART = 8
_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))


@functools.cache
def row_screen(width: int) -> Any:
    """Return the function for a block of `width` columns: 32 or 64.

    It is called from kernels as ``screen(indices, values, start, stop, end, block, first,
    limits)``: non-zeros `start` to `stop` of a CSR matrix with int16 values that ends at `end`, an
    int16 block of shape (d, width), the number that the sums begin with and int32 limits (width,).
    It returns a uint64 whose bit k is set if the k-th sum is at least the k-th limit. The sums are
    int32 and wrap around.
    """

    @intrinsic
    def screen(typing, indices, values, start, stop, end, block, first, limits):
        u64 = types.uint64
        signature = u64(indices, values, u64, u64, u64, block, types.int32, limits)
        return signature, functools.partial(_generate, width)

    return screen


def _generate(width: int, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the loop over the non-zeros of the row."""
    indices, values, block, limits = (
        context.make_array(signature.args[a])(context, builder, args[a]).data for a in (0, 1, 5, 7)
    )
    start, stop, end, first = args[2], args[3], args[4], args[6]
    together = min(width, _GROUP)
    group_type, half_type = ir.VectorType(_I16, together), ir.VectorType(_I32, together // 2)
    one, zero = ir.Constant(_I64, 1), ir.Constant(_I16, 0)
    halves, restored = _interleaving(together)
    groups = range(0, width, together)

    def block_row(t: Any) -> Any:
        feature = builder.zext(builder.load(builder.gep(indices, [t])), _I64)
        return builder.gep(block, [builder.mul(feature, ir.Constant(_I64, width))])

    def load(address: Any, group: int, vector: Any, align: int) -> Any:
        address = builder.gep(address, [ir.Constant(_I64, group)])
        return builder.load(builder.bitcast(address, vector.as_pointer()), align=align)

    begin = splat(builder, first, half_type)
    entry = builder.block
    loop = builder.append_basic_block("row.loop")
    after = builder.append_basic_block("row.after")
    builder.cbranch(builder.icmp_unsigned("<", start, stop), loop, after)

    builder.position_at_end(loop)
    t = builder.phi(_I64)
    sums = [builder.phi(half_type) for _ in groups for _ in halves]
    for ahead in (AHEAD, AHEAD + 1):
        soon = builder.add(t, ir.Constant(_I64, ahead))
        soon = builder.select(builder.icmp_unsigned("<", soon, end), soon, t)
        _prefetch_lines(builder, block_row(soon), 2 * width)
    # A row's last non-zero may have none beside it: itself then, times 0.
    follows = builder.icmp_unsigned("<", builder.add(t, one), stop)
    u = builder.select(follows, builder.add(t, one), t)
    value_t, value_u = (builder.load(builder.gep(values, [at])) for at in (t, u))
    value_u = builder.select(follows, value_u, zero)
    pair = builder.shl(builder.zext(value_u, _I32), ir.Constant(_I32, 16))
    pair = splat(builder, builder.or_(pair, builder.zext(value_t, _I32)), half_type)
    pair = builder.bitcast(pair, group_type)
    row_t, row_u = block_row(t), block_row(u)
    new_sums: list[Any] = []
    for group in groups:
        columns = load(row_t, group, group_type, 2), load(row_u, group, group_type, 2)
        for half in halves:
            products = _add_neighbours(builder, builder.shuffle_vector(*columns, half), pair)
            new_sums.append(builder.add(sums[len(new_sums)], products))
    new_t = builder.add(t, ir.Constant(_I64, 2))
    t.add_incoming(start, entry)
    t.add_incoming(new_t, loop)
    for total, new in zip(sums, new_sums, strict=True):
        total.add_incoming(begin, entry)
        total.add_incoming(new, loop)
    builder.cbranch(builder.icmp_unsigned("<", new_t, stop), loop, after)

    builder.position_at_end(after)
    totals = [builder.phi(half_type) for _ in sums]
    for total, new in zip(totals, new_sums, strict=True):
        total.add_incoming(begin, entry)
        total.add_incoming(new, loop)
    passed = ir.Constant(_I64, 0)
    for g, group in enumerate(groups):
        total = builder.shuffle_vector(*totals[2 * g : 2 * g + 2], restored)
        limit = load(limits, group, total.type, 4)
        bits = builder.bitcast(builder.icmp_signed(">=", total, limit), ir.IntType(together))
        bits = builder.shl(builder.zext(bits, _I64), ir.Constant(_I64, group))
        passed = builder.or_(passed, bits)
    return passed


def _interleaving(width: int) -> tuple[list[Any], Any]:
    """Return the shuffles that interleave two rows into halves, and the one to join the halves."""
    half = _PART // 2
    lower = [first + c for first in range(0, width, _PART) for c in range(half)]
    upper = [c + half for c in lower]

    def mask(numbers: list[int]) -> Any:
        return ir.Constant(ir.VectorType(_I32, len(numbers)), numbers)

    restored = sorted(range(width), key=(lower + upper).__getitem__)
    interleaved = [mask([n for c in side for n in (c, width + c)]) for side in (lower, upper)]
    return interleaved, mask(restored)


def _add_neighbours(builder: Any, a: Any, b: Any) -> Any:
    """Return ``a[2k] * b[2k] + a[2k + 1] * b[2k + 1]``, in the form that LLVM knows."""
    width = a.type.count
    wide = ir.VectorType(_I32, width)
    product = builder.mul(builder.sext(a, wide), builder.sext(b, wide))
    half = ir.VectorType(_I32, width // 2)
    even, odd = (
        builder.shuffle_vector(product, product, ir.Constant(half, list(range(k, width, 2))))
        for k in (0, 1)
    )
    return builder.add(even, odd)


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

"""One CSR row times a block of weights, and moves of a block, summed in vector registers.

numba has no vector types, and its loop over the columns reads and writes the sums once for every
few non-zeros. Here they are LLVM vectors, as in ``int16_lanes``, and stay in registers for the
whole row.
"""

from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.emitters.instructions import splat, sum_over

#: Bytes of a block's row: two cache lines, so that the weights of 8,000 features fit into 1 MB.
ROW_BYTES = 128
_VECTOR_BYTES = 64
#: Non-zeros that are taken together, with sums of their own: additions wait for each other less.
_CHUNK_NONZEROS = 2
#: A product and its sum may be one instruction, with one rounding.
_FUSED = ("contract",)
_I64 = ir.IntType(64)


def _write_row_products(typing, indices, values, start, stop, block, factors, out, at):
    """Write ``out[at + c] = factors[c] * sum_t values[t] block[indices[t], c]``.

    Parameters
    ----------
    indices, values : ndarray of int32 and float
        CSR rows.
    start, stop : uint64
        The row's non-zeros.
    block : ndarray of shape (n_features, width)
        C-ordered, of the type of `values`, ``ROW_BYTES`` a row.
    factors : ndarray of shape (width,)
    out : ndarray of shape (>= at + width,)
        Overwritten there.
    at : uint64
    """
    u64 = types.uint64
    signature = types.none(indices, values, u64, u64, block, factors, out, u64)
    return signature, _generate


def _generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the loop over the non-zeros of the row."""
    indices, values, block, factors, out = (
        context.make_array(signature.args[a])(context, builder, args[a]).data
        for a in (0, 1, 4, 5, 6)
    )
    start, stop, at = args[2], args[3], args[7]
    number = values.type.pointee
    size = context.get_abi_sizeof(number)
    width, lanes = ROW_BYTES // size, _VECTOR_BYTES // size
    vector = ir.VectorType(number, lanes)
    offsets = [ir.Constant(_I64, c) for c in range(0, width, lanes)]
    zero = ir.Constant(vector, [0.0] * lanes)

    def pointer(array: Any, first: Any, offset: Any) -> Any:
        address = builder.gep(array, [builder.add(first, offset)])
        return builder.bitcast(address, vector.as_pointer())

    def add_nonzero(t: Any, sums: list[Any]) -> list[Any]:
        feature = builder.zext(builder.load(builder.gep(indices, [t])), _I64)
        first = builder.mul(feature, ir.Constant(_I64, width))
        value = splat(builder, builder.load(builder.gep(values, [t])), vector)
        weights = [builder.load(pointer(block, first, c), align=size) for c in offsets]
        products = [builder.fmul(value, weight, flags=_FUSED) for weight in weights]
        return [builder.fadd(*each, flags=_FUSED) for each in zip(sums, products, strict=True)]

    def add_nonzeros(n: int, t: Any, sums: list[Any]) -> list[Any]:
        new: list[Any] = []
        for k in range(n):
            own = sums[k * len(offsets) : (k + 1) * len(offsets)]
            new += add_nonzero(builder.add(t, ir.Constant(_I64, k)), own)
        return new + sums[len(new) :]

    rest = builder.urem(builder.sub(stop, start), ir.Constant(_I64, _CHUNK_NONZEROS))
    t, sums = start, [zero] * (_CHUNK_NONZEROS * len(offsets))
    for n, end in ((_CHUNK_NONZEROS, builder.sub(stop, rest)), (1, stop)):
        t, sums = sum_over(builder, t, end, n, sums, partial(add_nonzeros, n))
    for place, c in enumerate(offsets):
        total = sums[place]
        for k in range(1, _CHUNK_NONZEROS):
            total = builder.fadd(total, sums[place + k * len(offsets)])
        factor = builder.load(pointer(factors, c, ir.Constant(_I64, 0)), align=size)
        builder.store(builder.fmul(total, factor), pointer(out, at, c), align=size)
    return context.get_dummy_value()


# Named so that they are called from kernels without the first argument.
write_row_products: Any = intrinsic(_write_row_products)

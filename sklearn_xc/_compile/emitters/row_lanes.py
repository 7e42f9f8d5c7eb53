"""One row of X times a block of 16 columns, and multiples of it added to a block.

The columns are lanes of a vector, one label each. A sum may have a wider type than what is summed:
the scores of float32 weights are taken in float64. What happens in a lane does not depend on the
others, and X is read once for all of them. A loop in numba would keep the sums in memory.
"""

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.emitters.instructions import splat, sum_over

#: Columns of a block: of float32 numbers, those of one feature fill a cache line.
LANES = 16
#: Non-zeros that are taken together, with sums of their own: additions wait for each other less.
_CHUNK_NONZEROS = 2
#: A product and its sum are one instruction, where the processor has it, with one rounding.
_FUSED = ("contract",)
_I64 = ir.IntType(64)


def _write_row_scores(typing, indices, values, start, stop, block, out, at):
    """Write ``out[at, c] = sum_t values[t] block[indices[t], c]``, summed in the type of `out`.

    Parameters
    ----------
    indices, values : ndarray of int32 and float
        CSR rows.
    start, stop : uint64
        Those of the row.
    block : ndarray of shape (n_features, LANES)
        C-ordered, of the type of `values`.
    out : ndarray of shape (> at, LANES)
        Overwritten there.
    at : uint64
    """
    u64 = types.uint64
    return types.none(indices, values, u64, u64, block, out, u64), _generate_scores


def _add_row_multiples(typing, indices, values, start, stop, moves, at, block):
    """Do ``block[indices[t], c] += values[t] * moves[at, c]``, in the type of `block`.

    Parameters
    ----------
    indices, values, start, stop
        As for ``write_row_scores``.
    moves : ndarray of shape (> at, LANES)
        Of the type of `block`.
    at : uint64
    block : ndarray of shape (n_features, LANES)
        C-ordered. Rows do not hold a feature twice.
    """
    u64 = types.uint64
    return types.none(indices, values, u64, u64, moves, u64, block), _generate_multiples


def _add_row_squares(typing, indices, values, start, stop, moves, at, block):
    """Do as ``add_row_multiples`` with the squares of the non-zeros."""
    u64 = types.uint64
    signature = types.none(indices, values, u64, u64, moves, u64, block)
    return signature, functools.partial(_generate_multiples, is_squared=True)


def _weigh_row(
    typing, values, slopes, bends, r, weight, square, costs, loss, shift, trace, curvatures, at
):
    """Weigh the losses of one row, and what follows from them.

    With ``c = weight * costs``: ``loss += c values[r]``, ``slopes[r] *= -c``, ``shift +=
    slopes[r]``, ``curvatures[at] = c bends[r]`` and ``trace += square c bends[r]``.

    Parameters
    ----------
    values, slopes, bends : ndarray of float64 of shape (> r, LANES)
    r : uint64
    weight, square : float64
    costs, loss, shift, trace : ndarray of float64 of shape (LANES,)
    curvatures : ndarray of shape (> at, LANES)
        Float32 or float64.
    at : uint64
    """
    u64, f64 = types.uint64, types.float64
    signature = types.none(
        values, slopes, bends, u64, f64, f64, costs, loss, shift, trace, curvatures, u64
    )
    return signature, _generate_weighing


class _Row:
    """The non-zeros of a row, as instructions read them."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.builder = builder
        self.start = args[2]
        self.stop = args[3]
        self.indices, self.values = (
            _data(context, builder, signature, args, place) for place in (0, 1)
        )

    def feature(self, t: Any) -> Any:
        """Return the feature of a non-zero."""
        return self.builder.zext(self.builder.load(self.builder.gep(self.indices, [t])), _I64)

    def value(self, t: Any, number: Any) -> Any:
        """Return a non-zero in all lanes, as another type of number."""
        value = self.builder.load(self.builder.gep(self.values, [t]))
        if value.type != number:
            value = self.builder.fpext(value, number)
        return splat(self.builder, value, ir.VectorType(number, LANES))


def _data(context: Any, builder: Any, signature: Any, args: Any, place: int) -> Any:
    return context.make_array(signature.args[place])(context, builder, args[place]).data


def _pointer(builder: Any, array: Any, row: Any) -> Any:
    """Return where a row of a block begins, as that of a vector."""
    first = builder.mul(row, ir.Constant(_I64, LANES))
    vector = ir.VectorType(array.type.pointee, LANES)
    return builder.bitcast(builder.gep(array, [first]), vector.as_pointer())


def _generate_scores(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the loop over the non-zeros of the row."""
    row = _Row(context, builder, signature, args)
    block, out = (_data(context, builder, signature, args, place) for place in (4, 5))
    number = out.type.pointee
    size = context.get_abi_sizeof(block.type.pointee)
    vector = ir.VectorType(number, LANES)

    def add(t: Any, total: Any) -> Any:
        weights = builder.load(_pointer(builder, block, row.feature(t)), align=size)
        if weights.type != vector:
            weights = builder.fpext(weights, vector)
        product = builder.fmul(row.value(t, number), weights, flags=_FUSED)
        return builder.fadd(total, product, flags=_FUSED)

    def add_nonzeros(n: int, t: Any, sums: list[Any]) -> list[Any]:
        return [
            *(add(builder.add(t, ir.Constant(_I64, k)), sums[k]) for k in range(n)),
            *sums[n:],
        ]

    rest = builder.urem(builder.sub(row.stop, row.start), ir.Constant(_I64, _CHUNK_NONZEROS))
    t, sums = row.start, [ir.Constant(vector, [0.0] * LANES)] * _CHUNK_NONZEROS
    for n, end in ((_CHUNK_NONZEROS, builder.sub(row.stop, rest)), (1, row.stop)):
        t, sums = sum_over(builder, t, end, n, sums, functools.partial(add_nonzeros, n))
    total = sums[0]
    for other in sums[1:]:
        total = builder.fadd(total, other)
    place = _pointer(builder, out, args[6])
    builder.store(total, place, align=context.get_abi_sizeof(number))
    return context.get_dummy_value()


def _generate_multiples(
    context: Any, builder: Any, signature: Any, args: Any, is_squared: bool = False
) -> Any:
    """Write the loop over the non-zeros of the row."""
    row = _Row(context, builder, signature, args)
    moves, block = (_data(context, builder, signature, args, place) for place in (4, 6))
    number = block.type.pointee
    size = context.get_abi_sizeof(number)
    move = builder.load(_pointer(builder, moves, args[5]), align=size)

    def add(t: Any, _: list[Any]) -> list[Any]:
        place = _pointer(builder, block, row.feature(t))
        value = row.value(t, number)
        if is_squared:
            value = builder.fmul(value, value)
        product = builder.fmul(value, move, flags=_FUSED)
        total = builder.fadd(builder.load(place, align=size), product, flags=_FUSED)
        builder.store(total, place, align=size)
        return []

    sum_over(builder, row.start, row.stop, 1, [], add)
    return context.get_dummy_value()


def _generate_weighing(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Write the row's losses."""
    values, slopes, bends, costs, loss, shift, trace, curvatures = (
        _data(context, builder, signature, args, place) for place in (0, 1, 2, 6, 7, 8, 9, 10)
    )
    double = values.type.pointee
    vector = ir.VectorType(double, LANES)
    size, of_curvature = (
        context.get_abi_sizeof(array.type.pointee) for array in (values, curvatures)
    )
    zero = ir.Constant(_I64, 0)

    def load(array: Any, row: Any = zero) -> Any:
        return builder.load(_pointer(builder, array, row), align=size)

    def add(array: Any, term: Any) -> None:
        place = _pointer(builder, array, zero)
        builder.store(
            builder.fadd(builder.load(place, align=size), term, flags=_FUSED), place, size
        )

    cost = builder.fmul(splat(builder, args[4], vector), load(costs))
    add(loss, builder.fmul(cost, load(values, args[3]), flags=_FUSED))
    slope = builder.fneg(builder.fmul(cost, load(slopes, args[3])))
    builder.store(slope, _pointer(builder, slopes, args[3]), size)
    add(shift, slope)
    bend = builder.fmul(cost, load(bends, args[3]))
    add(trace, builder.fmul(bend, splat(builder, args[5], vector), flags=_FUSED))
    if curvatures.type.pointee != double:
        bend = builder.fptrunc(bend, ir.VectorType(curvatures.type.pointee, LANES))
    builder.store(bend, _pointer(builder, curvatures, args[11]), of_curvature)
    return context.get_dummy_value()


# Named so that they are called from kernels without the first argument.
write_row_scores: Any = intrinsic(_write_row_scores)
add_row_multiples: Any = intrinsic(_add_row_multiples)
add_row_squares: Any = intrinsic(_add_row_squares)
weigh_row: Any = intrinsic(_weigh_row)

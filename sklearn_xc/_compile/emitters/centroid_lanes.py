"""Sixteen centroids in up to four dimensions, one in each lane of a vector register.

Which of them is nearest to a block of columns, and what they score with it. Four columns are always
read: centroids of a narrower block are 0 in those behind it. numba has no vector types; here the
centroids are LLVM vectors, which any processor takes in as many parts as it needs.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.emitters.byte_lanes import TABLE
from sklearn_xc._compile.emitters.int16_lanes import splat
from sklearn_xc._compile.numba_private import cgutils

#: Columns that are read, and the most that a block has.
WIDTH = 4
_I32, _I64, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_FLOATS, _INTS = ir.VectorType(_FLOAT, TABLE), ir.VectorType(_I32, TABLE)
_BYTES = ir.VectorType(ir.IntType(8), TABLE)
_FUSED = ("contract",)
#: Lanes may be added in any order, and among NaN no one asks for the largest.
_FLAGS = {"fadd": ("reassoc",), "fmax": ("nnan",)}
#: Largest number of a byte.
_HIGHEST = 255.0


def _nearest_centroid(typing, values, at, block, width, centroids, halves):
    """Return the number of the centroid that is nearest to a block of a row, the first of equals.

    Distances that agree to six digits are equal, and so are those that are lost beside the norms.

    Parameters
    ----------
    values : ndarray of float32 of shape (>= at + WIDTH,)
    at : uint64
        The first of the block's values.
    block : uint64
    width : int64
        How many of the values are the block's.
    centroids : ndarray of float32 of shape (n_blocks, WIDTH, 16)
    halves : ndarray of float32 of shape (n_blocks, 16)
        Half of the squared norms of the centroids.
    """
    arguments = (values, types.uint64, types.uint64, types.int64, centroids, halves)
    return types.int64(*arguments), _generate_nearest


def _generate_nearest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    values, centroids, halves = _data(context, builder, signature, args, (0, 4, 5))
    distances, nothing = _load(builder, halves, args[2]), ir.Constant(_FLOAT, 0.0)
    half = nothing
    for j, (value, line) in enumerate(_columns(builder, values, args[1], centroids, args[2])):
        product = builder.fmul(splat(builder, value, _FLOATS), line, _FUSED)
        distances = builder.fsub(distances, product, _FUSED)
        # What follows the block would hide distances, however near.
        is_own = builder.icmp_signed("<", ir.Constant(_I64, j), args[3])
        own = builder.select(is_own, value, nothing)
        square = builder.fmul(own, own, _FUSED)
        half = builder.fadd(half, builder.fmul(square, ir.Constant(_FLOAT, 0.5), _FUSED), _FUSED)
    distances = builder.fadd(distances, splat(builder, half, _FLOATS))
    # The bits of floats that are not negative rise with them. The last four give way to the number,
    # so that the least key tells it: there is an instruction for the least, none for its place.
    bits = builder.bitcast(distances, _INTS)
    zero = ir.Constant(_INTS, [0] * TABLE)
    bits = builder.select(builder.icmp_signed("<", bits, zero), zero, bits)
    bits = builder.and_(bits, ir.Constant(_INTS, [-TABLE] * TABLE))
    keys = builder.or_(bits, ir.Constant(_INTS, list(range(TABLE))))
    least = _reduce(builder, "smin", keys)
    return builder.zext(builder.and_(least, ir.Constant(_I32, TABLE - 1)), _I64)


def _score_centroids(typing, values, at, block, centroids, frequencies, falls):
    """Write by how much each centroid's inner product with a block falls short of the largest.

    Parameters
    ----------
    values, at, block, centroids
        As in ``nearest_centroid``.
    frequencies : ndarray of int32 of shape (n_blocks, 16)
        Labels of each centroid.
    falls : ndarray of float32 of shape (n_blocks, 16)
        Overwritten in the block's row.

    Returns
    -------
    largest, total, total_squares : float32
        The largest inner product; sums over all labels of what their centroids fall short, and of
        its square.
    """
    returned = types.UniTuple(types.float32, 3)
    arguments = (values, types.uint64, types.uint64, centroids, frequencies, falls)
    return returned(*arguments), _generate_scores


def _generate_scores(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    values, centroids, frequencies, falls = _data(context, builder, signature, args, (0, 3, 4, 5))
    products = ir.Constant(_FLOATS, [0.0] * TABLE)
    for value, line in _columns(builder, values, args[1], centroids, args[2]):
        product = builder.fmul(splat(builder, value, _FLOATS), line, _FUSED)
        products = builder.fadd(products, product, _FUSED)
    largest = _reduce(builder, "fmax", products)
    fall = builder.fsub(splat(builder, largest, _FLOATS), products)
    builder.store(fall, _place(builder, falls, args[2], _FLOATS), align=4)
    weights = builder.sitofp(_load(builder, frequencies, args[2], _INTS), _FLOATS)
    weighted = builder.fmul(weights, fall)
    total = _reduce(builder, "fadd", weighted)
    total_squares = _reduce(builder, "fadd", builder.fmul(weighted, fall))
    return context.make_tuple(builder, signature.return_type, (largest, total, total_squares))


def _write_entries(typing, falls, scale, block, query, tables):
    """Write a block's line of a table: ``falls * scale``, rounded, at most 255.

    Parameters
    ----------
    falls : ndarray of float32 of shape (n_blocks, 16)
        Not negative.
    scale : float32
    block : uint64
    query : uint64
    tables : ndarray of uint8 of shape (n, n_blocks, 16)
        Overwritten in the query's line of the block.
    """
    arguments = (falls, types.float32, types.uint64, types.uint64, tables)
    return types.none(*arguments), _generate_entries


def _generate_entries(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    falls, tables = _data(context, builder, signature, args, (0, 4))
    shape = context.make_array(signature.args[4])(context, builder, args[4]).shape
    scaled = builder.fmul(_load(builder, falls, args[2]), splat(builder, args[1], _FLOATS))
    half, highest = (ir.Constant(_FLOATS, [number] * TABLE) for number in (0.5, _HIGHEST))
    rounded = builder.fadd(scaled, half)
    # NaN is not below the highest, so that no number is beyond what the conversion takes.
    rounded = builder.select(builder.fcmp_ordered("<", rounded, highest), rounded, highest)
    entries = builder.trunc(builder.fptosi(rounded, _INTS), _BYTES)
    line = builder.add(builder.mul(args[3], builder.extract_value(shape, 1)), args[2])
    builder.store(entries, _place(builder, tables, line, _BYTES), align=1)
    return context.get_dummy_value()


def _data(context: Any, builder: Any, signature: Any, args: Any, which: Any) -> list[Any]:
    """Return the addresses of some arguments' items."""
    return [context.make_array(signature.args[a])(context, builder, args[a]).data for a in which]


def _columns(builder: Any, values: Any, at: Any, centroids: Any, block: Any) -> Any:
    """Yield each value of the block, and the centroids' values in that column."""
    first = builder.mul(block, ir.Constant(_I64, WIDTH))
    for j in range(WIDTH):
        number = ir.Constant(_I64, j)
        value = builder.load(builder.gep(values, [builder.add(at, number)]))
        yield value, _load(builder, centroids, builder.add(first, number))


def _place(builder: Any, array: Any, line: Any, vector: Any) -> Any:
    place = builder.gep(array, [builder.mul(line, ir.Constant(_I64, TABLE))])
    return builder.bitcast(place, vector.as_pointer())


def _load(builder: Any, array: Any, line: Any, vector: Any = _FLOATS) -> Any:
    return builder.load(_place(builder, array, line, vector), align=4)


def _reduce(builder: Any, operation: str, lanes: Any) -> Any:
    """Return the sum, largest or smallest of all lanes."""
    item = lanes.type.element
    name = f"llvm.vector.reduce.{operation}.v{TABLE}{'i' if item == _I32 else 'f'}32"
    begin = [ir.Constant(_FLOAT, -0.0)] if operation == "fadd" else []
    signature = ir.FunctionType(item, [*(each.type for each in begin), lanes.type])
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(function, [*begin, lanes], fastmath=_FLAGS.get(operation, ()))


# Named so that they are called from kernels without the first argument.
nearest_centroid: Any = intrinsic(_nearest_centroid)
score_centroids: Any = intrinsic(_score_centroids)
write_entries: Any = intrinsic(_write_entries)

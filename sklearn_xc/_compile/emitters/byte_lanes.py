"""Sums of table entries that 4-bit codes point to, for 64 labels at a time.

A table of 16 bytes fits into a vector register, and one instruction (``pshufb`` on x86, ``tbl`` on
ARM) looks up a code of every label in it. numba has no vector types; here the sums are LLVM
vectors, which stay in registers for all codes of a label. Sums stop at 255 instead of wrapping.
"""

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sklearn_xc._compile.emitters.instructions import splat
from sklearn_xc._compile.numba_private import cgutils

#: Labels that are taken together: one bit of a uint64 each.
LANES = 64
TABLE = 16

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_VECTOR = ir.VectorType(_I8, LANES)
#: By CPU feature, best first: the look-up instruction, and how many bytes it takes.
_LOOK_UPS = {
    "avx512bw": ("llvm.x86.avx512.pshuf.b.512", 64),
    "avx2": ("llvm.x86.avx2.pshuf.b", 32),
    "ssse3": ("llvm.x86.ssse3.pshuf.b.128", 16),
    "neon": ("llvm.aarch64.neon.tbl1.v16i8", 16),
}


@functools.cache
def sum_codes(n_queries: int, feature: str | None = None) -> Any:
    """Return the function that sums table entries, for `n_queries` queries side by side.

    It is called from kernels as ``function(codes, group, tables, first, sums, at)``, where

    codes : ndarray of uint8 of shape (n_groups_in_all, n_tables / 2, 64)
        Two codes of a label in each byte, that of the earlier table in the lower half.
    group : uint64
        The group of 64 labels.
    tables : ndarray of uint8 of shape (n, n_tables, 16)
        Of all queries.
    first : uint64
        The first of the queries.
    sums : ndarray of uint8 of shape (>= n_queries, > at, 64)
        Overwritten: the sums over the tables, at most 255.
    at : uint64
        Where the group goes.

    Parameters
    ----------
    n_queries : int
    feature : str or None
        The CPU feature to use: "avx512bw", "avx2", "ssse3", "neon" or "none"; None is the best that
        the code is compiled for.
    """

    @intrinsic
    def sum_codes(typing, codes, group, tables, first, sums, at):
        u64 = types.uint64
        signature = types.none(codes, u64, tables, u64, sums, u64)
        return signature, functools.partial(_generate, n_queries, feature)

    return sum_codes


def _generate(
    n_queries: int, feature: str | None, context: Any, builder: Any, signature: Any, args: Any
) -> Any:
    """Write the loop over pairs of tables; there is at least one."""
    look_up = _look_up(builder, feature or _best_feature(context))
    add = _function(builder, f"llvm.uadd.sat.v{LANES}i8", _VECTOR, [_VECTOR, _VECTOR])
    arrays = [context.make_array(signature.args[a])(context, builder, args[a]) for a in (0, 2, 4)]
    codes, tables, sums = (array.data for array in arrays)
    n_pairs, n_tables, n_lines = (builder.extract_value(array.shape, 1) for array in arrays)
    codes = _line(builder, codes, builder.mul(args[1], n_pairs), LANES)
    queries = [builder.add(args[3], _i64(q)) for q in range(n_queries)]
    tables = [_line(builder, tables, builder.mul(query, n_tables), TABLE) for query in queries]

    before = builder.block
    loop, after = (builder.append_basic_block(f"pairs.{part}") for part in ("loop", "after"))
    builder.branch(loop)
    builder.position_at_end(loop)
    pair = builder.phi(_I64)
    totals = [builder.phi(_VECTOR) for _ in queries]
    both = _load(builder, codes, builder.mul(pair, _i64(LANES)), LANES)
    pair_tables = builder.mul(pair, _i64(2 * TABLE))
    new = list(totals)
    for half, own_codes in enumerate(_halves(builder, both)):
        place = builder.add(pair_tables, _i64(half * TABLE))
        for q, table in enumerate(tables):
            entries = _load(builder, table, place, TABLE)
            new[q] = builder.call(add, [new[q], look_up(entries, own_codes)])
    following = builder.add(pair, _i64(1))
    zero = ir.Constant(_VECTOR, [0] * LANES)
    for phi, first, then in zip(
        [pair, *totals], [_i64(0), *[zero] * n_queries], [following, *new], strict=True
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(then, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, n_pairs), loop, after)

    builder.position_at_end(after)
    for q, total in enumerate(new):
        number = builder.add(builder.mul(n_lines, _i64(q)), args[5])
        address = _line(builder, sums, number, LANES)
        builder.store(total, builder.bitcast(address, _VECTOR.as_pointer()), align=1)
    return context.get_dummy_value()


def _line(builder: Any, array: Any, number: Any, width: int) -> Any:
    return builder.gep(array, [builder.mul(number, _i64(width))])


def _sums_within(typing, sums, query, group, limit):
    """Return a uint64 whose bit k is set if a query's sum for label k of a group is in a limit.

    Parameters
    ----------
    sums : ndarray of uint8 of shape (n, n_groups, 64)
    query, group : uint64
    limit : uint8
        Sums up to this one are.
    """
    arguments = (sums, types.uint64, types.uint64, types.uint8)
    return types.uint64(*arguments), _generate_within


def _generate_within(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    sums = context.make_array(signature.args[0])(context, builder, args[0])
    line = builder.add(builder.mul(args[1], builder.extract_value(sums.shape, 1)), args[2])
    values = _load(builder, sums.data, builder.mul(line, _i64(LANES)), LANES)
    limit = splat(builder, args[3], _VECTOR)
    return builder.bitcast(builder.icmp_unsigned("<=", values, limit), _I64)


def _count_bits(typing, mask):
    """Return how many bits of a uint64 are set."""

    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


def _halves(builder: Any, both: Any) -> tuple[Any, Any]:
    """Return the lower and the upper four bits of each byte."""
    low = ir.Constant(_VECTOR, [TABLE - 1] * LANES)
    words = ir.VectorType(_I16, LANES // 2)  # no processor shifts bytes
    shifted = builder.lshr(builder.bitcast(both, words), ir.Constant(words, [4] * words.count))
    return builder.and_(both, low), builder.and_(builder.bitcast(shifted, _VECTOR), low)


def _best_feature(context: Any) -> str:
    """Return the best look-up of the processor that the code is compiled for.

    That is numba's target, which NUMBA_CPU_NAME and NUMBA_CPU_FEATURES may set below the processor
    at hand: an instruction that the target lacks would end the process. Where numba does not expose
    its target, no instruction is taken for granted but that of ARM's 64-bit base.
    """
    target = getattr(context.codegen(), "magic_tuple", lambda: ("", ""))()
    triple = str(target[0])
    enabled = str(target[-1]).split(",")
    if triple.startswith(("aarch64", "arm64")):
        return "neon"
    return next((feature for feature in _LOOK_UPS if f"+{feature}" in enabled), "none")


def _look_up(builder: Any, feature: str) -> Any:
    """Return a function that writes the look-up of 64 codes in a table of 16 bytes."""
    if feature == "none":
        return functools.partial(_look_up_singly, builder)
    name, width = _LOOK_UPS[feature]
    vector = ir.VectorType(_I8, width)
    instruction = _function(builder, name, vector, [vector, vector])

    def look_up(table: Any, codes: Any) -> Any:
        repeated = _shuffle(builder, table, table, [k % TABLE for k in range(width)])
        parts = [
            builder.call(
                instruction, [repeated, _shuffle(builder, codes, codes, range(c, c + width))]
            )
            for c in range(0, LANES, width)
        ]
        while len(parts) > 1:
            lanes = range(2 * parts[0].type.count)
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [_shuffle(builder, a, b, lanes) for a, b in pairs]
        return parts[0]

    return look_up


def _look_up_singly(builder: Any, table: Any, codes: Any) -> Any:
    """Write the look-up without an instruction for it."""
    found = ir.Constant(_VECTOR, ir.Undefined)
    for lane in range(LANES):
        number = ir.Constant(_I32, lane)
        code = builder.zext(builder.extract_element(codes, number), _I32)
        found = builder.insert_element(found, builder.extract_element(table, code), number)
    return found


def _shuffle(builder: Any, a: Any, b: Any, lanes: Any) -> Any:
    lanes = list(lanes)
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, len(lanes)), lanes))


def _load(builder: Any, array: Any, at: Any, n_bytes: int) -> Any:
    address = builder.bitcast(builder.gep(array, [at]), ir.VectorType(_I8, n_bytes).as_pointer())
    return builder.load(address, align=1)


def _function(builder: Any, name: str, out: Any, arguments: list[Any]) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(out, arguments), name)


def _i64(number: int) -> Any:
    return ir.Constant(_I64, number)


# Named so that they are called from kernels without the first argument.
sums_within: Any = intrinsic(_sums_within)
count_bits: Any = intrinsic(_count_bits)

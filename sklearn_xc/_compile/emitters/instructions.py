"""Instructions that several emitters write: a number in all lanes, and a loop with sums."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def splat(builder: Any, value: Any, vector: Any) -> Any:
    """Return a vector of one number."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, value, ir.Constant(_I32, 0))
    everywhere = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, undefined, everywhere)


def sum_over(
    builder: Any, first: Any, end: Any, step: int, sums: list[Any], add: Callable[..., list[Any]]
) -> tuple[Any, list[Any]]:
    """Write ``while t < end: sums = add(t, sums); t += step``, and return t and the sums after it.

    `first` and `end` are uint64; the loop is not entered if none is to be added.
    """
    before = builder.block
    head, body, after = (builder.append_basic_block(f"loop.{part}") for part in "hba")
    builder.branch(head)
    builder.position_at_end(head)
    t = builder.phi(_I64)
    totals = [builder.phi(total.type) for total in sums]
    builder.cbranch(builder.icmp_unsigned("<", t, end), body, after)
    builder.position_at_end(body)
    new = add(t, totals)
    following = builder.add(t, ir.Constant(_I64, step))
    builder.branch(head)
    for phi, initial, later in zip([t, *totals], [first, *sums], [following, *new], strict=True):
        phi.add_incoming(initial, before)
        phi.add_incoming(later, body)
    builder.position_at_end(after)
    return t, totals

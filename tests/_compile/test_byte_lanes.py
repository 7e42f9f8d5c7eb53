"""Sums of table entries for 64 labels at a time, by every look-up that this processor has."""

import numpy as np
import pytest
from llvmlite import binding, ir

from sklearn_xc._compile.emitters.byte_lanes import (
    _LOOK_UPS,
    LANES,
    TABLE,
    _best_feature,
    _look_up,
    count_bits,
    sum_codes,
    sums_within,
)
from sklearn_xc._compile.jit import kernel
from sklearn_xc._input.data import read_only

N_GROUPS, FIRST, AT = 4, 2, 3


def runnable_features():
    enabled = binding.get_host_cpu_features()
    return [*(name for name in _LOOK_UPS if enabled.get(name)), "none"]


@pytest.fixture(scope="module", params=runnable_features(), ids=str)
def feature(request):
    return request.param


@pytest.fixture(scope="module", params=[1, 5])
def sum_groups(request, feature):
    """Return a function that sums for some queries, and their number."""
    function = sum_codes(request.param, feature)

    @kernel
    def call(codes, group, tables, first, sums, at):
        function(codes, np.uint64(group), tables, np.uint64(first), sums, np.uint64(at))

    return call, request.param


def slow_sums(codes, tables):
    """Return the sums (n, n_groups, 64), at most 255."""
    n_groups, n_pairs, _ = codes.shape
    both = np.stack([codes % TABLE, codes // TABLE], axis=2).reshape(n_groups, 2 * n_pairs, LANES)
    sums = np.zeros((len(tables), n_groups, LANES), np.int64)
    for b in range(2 * n_pairs):
        sums += tables[:, b].astype(np.int64)[:, both[:, b]]
    return np.minimum(sums, 255)


def unaligned(array):
    """Return a copy that begins at an odd address."""
    room = np.empty(array.nbytes + 1, np.uint8)
    place = room[1:] if room.ctypes.data % 2 == 0 else room[:-1]
    copy = place[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize(("n_pairs", "highest"), [(1, 255), (17, 7)])
def test_against_numpy(sum_groups, n_pairs, highest):
    """Of all codes; sums in reach of a byte, and such that stop at its end."""
    call, n_queries = sum_groups
    rng = np.random.default_rng(n_pairs)
    codes = unaligned(rng.integers(0, 256, (N_GROUPS, n_pairs, LANES), np.uint8))
    tables = rng.integers(0, highest, (FIRST + n_queries + 1, 2 * n_pairs, TABLE), np.uint8, True)
    tables = unaligned(tables)
    expected = slow_sums(codes, tables)[FIRST:-1]
    for group in range(N_GROUPS):
        sums = unaligned(np.full((n_queries + 1, AT + 2, LANES), 77, np.uint8))
        call(read_only(codes), group, read_only(tables), FIRST, sums, AT)
        found = sums[:n_queries, AT]
        np.testing.assert_array_equal(found, expected[:, group])
        found[:] = 77
        assert (sums == 77).all()


def test_sums_within_a_limit():
    @kernel
    def call(sums, query, group, limit):
        mask = sums_within(sums, np.uint64(query), np.uint64(group), np.uint8(limit))
        return mask, count_bits(mask)

    sums = unaligned(np.random.default_rng(0).integers(0, 256, (3, 4, LANES), np.uint8))
    for query in range(3):
        for limit in (0, 1, 100, 254, 255, int(sums[query, 2, 0])):
            mask, n = call(read_only(sums), query, 2, limit)
            is_within = sums[query, 2] <= limit
            bits = (np.uint64(mask) >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)
            np.testing.assert_array_equal(bits, is_within)
            assert n == is_within.sum()


class Target:
    """Stands for numba's target."""

    def __init__(self, *described):
        self.magic_tuple = lambda: described

    def codegen(self):
        return self


@pytest.mark.parametrize(
    ("triple", "features", "expected"),
    [
        ("x86_64-unknown-linux-gnu", "+avx2,+ssse3,+avx512bw", "avx512bw"),
        ("x86_64-unknown-linux-gnu", "+avx2,+ssse3,-avx512bw", "avx2"),
        ("x86_64-unknown-linux-gnu", "+sse2,+ssse3", "ssse3"),
        ("x86_64-unknown-linux-gnu", "", "none"),
        ("aarch64-unknown-linux-gnu", "+neon", "neon"),
        ("arm64-apple-darwin22.6.0", "", "neon"),
        ("riscv64-unknown-linux-gnu", "+v", "none"),
    ],
)
def test_the_look_up_is_one_that_the_target_has(triple, features, expected):
    assert _best_feature(Target(triple, "name", features)) == expected


def test_a_target_that_does_not_tell_gets_no_instruction():
    class Silent:
        def codegen(self):
            return self

    assert _best_feature(Silent()) == "none"


@pytest.mark.parametrize(
    ("feature", "triple", "enabled", "instruction", "n_expected"),
    [
        ("neon", "aarch64-linux-gnu", "", "tbl", 4),
        ("ssse3", "x86_64-linux-gnu", "+ssse3", "pshufb", 4),
        ("avx2", "x86_64-linux-gnu", "+avx2", "vpshufb", 2),
        ("avx512bw", "x86_64-linux-gnu", "+avx512bw", "vpshufb", 1),
    ],
)
def test_a_look_up_is_one_instruction(feature, triple, enabled, instruction, n_expected):
    """Of each part of 64 codes, on processors other than this one too."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this LLVM does not compile for {triple}")
    vector, table = (ir.VectorType(ir.IntType(8), n) for n in (LANES, TABLE))
    pointers = [vector.as_pointer(), table.as_pointer(), vector.as_pointer()]
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), pointers), "function")
    builder = ir.IRBuilder(function.append_basic_block())
    codes, entries, out = function.args
    look_up = _look_up(builder, feature)
    builder.store(look_up(builder.load(entries), builder.load(codes)), out)
    builder.ret_void()
    machine = target.create_target_machine(features=enabled)
    assembly = machine.emit_assembly(binding.parse_assembly(str(module))).split()
    assert assembly.count(instruction) == n_expected

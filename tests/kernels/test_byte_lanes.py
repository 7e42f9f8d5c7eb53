"""Sums of table entries for 64 labels at a time, by every look-up that this processor has."""

import numpy as np
import pytest
from llvmlite import binding, ir

from sklearn_xc._validation import read_only
from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.byte_lanes import (
    _LOOK_UPS,
    LANES,
    TABLE,
    _best_feature,
    _look_up,
    sum_codes,
)

N_GROUPS, FIRST, AT = 3, 2, 5


def runnable_features():
    enabled = binding.get_host_cpu_features()
    return [*(name for name in _LOOK_UPS if enabled.get(name)), "none", None]


@pytest.fixture(scope="module", params=runnable_features(), ids=str)
def feature(request):
    return request.param


@pytest.fixture(scope="module", params=[1, 2, 5])
def sum_group(request, feature):
    """Return a function that sums for some queries, and their number."""
    function = sum_codes(request.param, feature)

    @kernel
    def call(codes, group, tables, first, limits, sums, at, masks):
        group, first, at = np.uint64(group), np.uint64(first), np.uint64(at)
        return function(codes, group, tables, first, limits, sums, at, masks)

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


@pytest.mark.parametrize("n_pairs", [1, 2, 3, 8, 17])
@pytest.mark.parametrize("highest", [1, 7, 255])
def test_against_numpy(sum_group, n_pairs, highest):
    """Of all codes; sums in reach of a byte, and such that stop at its end."""
    call, n_queries = sum_group
    rng = np.random.default_rng(n_pairs)
    codes = unaligned(rng.integers(0, 256, (N_GROUPS, n_pairs, LANES), np.uint8))
    shape = FIRST + n_queries, 2 * n_pairs, TABLE
    tables = unaligned(rng.integers(0, highest, shape, np.uint8, endpoint=True))
    expected = slow_sums(codes, tables)[FIRST:]
    limits = unaligned(rng.choice(expected.ravel(), FIRST + n_queries).astype(np.uint8))
    for group in range(N_GROUPS):
        sums = unaligned(np.full(AT + (n_queries + 1) * LANES, 77, np.uint8))
        masks = np.zeros(n_queries, np.uint64)
        arrays = map(read_only, (codes, tables, limits))
        codes_, tables_, limits_ = arrays
        passed = call(codes_, group, tables_, FIRST, limits_, sums, AT, masks)
        found = sums[AT : AT + n_queries * LANES].reshape(n_queries, LANES)
        np.testing.assert_array_equal(found, expected[:, group])
        assert (sums[:AT] == 77).all()
        assert (sums[AT + n_queries * LANES :] == 77).all()
        is_within = expected[:, group] <= limits[FIRST:, None]
        bits = (masks[:, None] >> np.arange(LANES, dtype=np.uint64)) & np.uint64(1)
        np.testing.assert_array_equal(bits, is_within)
        assert passed == np.bitwise_or.reduce(masks)


def test_sums_stop_at_255(sum_group):
    call, n_queries = sum_group
    codes = np.zeros((1, 2, LANES), np.uint8)
    tables = np.zeros((n_queries, 4, TABLE), np.uint8)
    sums, masks = np.empty((n_queries, LANES), np.uint8), np.empty(n_queries, np.uint64)
    for entries, expected in (((100, 100, 55, 0), 255), ((255, 255, 255, 255), 255), ((1,) * 4, 4)):
        tables[:, :, 0] = entries
        limits = np.full(n_queries, 254, np.uint8)
        call(codes, 0, tables, 0, limits, sums, 0, masks)
        assert (sums == expected).all()
        assert (masks == (0 if expected == 255 else 2**64 - 1)).all()


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

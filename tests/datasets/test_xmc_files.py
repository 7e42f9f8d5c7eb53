import gzip
import lzma
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from slow_xmc import GOOD, Refused, assert_equals_slow, read_slowly

from sklearn_xc.datasets import (
    dump_xmc_file,
    load_xmc_file,
    xmc_reader,
    xmc_writer,
)
from sklearn_xc.exceptions import DataFormatError

FLOATS = [np.float32, np.float64]


def assert_same_bits(A, B):
    assert A.shape == B.shape
    assert A.dtype == B.dtype
    assert A.indptr.tolist() == B.indptr.tolist()
    assert A.indices.tolist() == B.indices.tolist()
    assert A.data.tobytes() == B.data.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD.keys())
def test_reads_what_the_slow_reader_reads(tmp_path, text, dtype):
    path = tmp_path / "data.txt"
    path.write_bytes(text)
    assert_equals_slow(text, *load_xmc_file(path, dtype=dtype), dtype)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_chunks_do_not_matter(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", chunk)
    for text in GOOD.values():
        path = tmp_path / "data.txt"
        path.write_bytes(text)
        assert_equals_slow(text, *load_xmc_file(path), np.float32)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_the_first_bytes_tell_compression(tmp_path, compress):
    path = tmp_path / "any.name"
    path.write_bytes(compress(GOOD["plain"]))
    assert_equals_slow(GOOD["plain"], *load_xmc_file(str(path)), np.float32)


HARD_DECIMALS = [
    "9007199254740993",  # 2**53 + 1, halfway between two doubles
    "9007199254740992",
    "123456789012345678",
    "1234567890123456789",
    "0.1000000000000000055511151231257827",
    "0.30000000000000004",
    "2.2250738585072011e-308",
    "4.9e-324",
    "1e-400",
    "1e22",
    "1e23",
    "8.5e-23",
    "1.00000017881393432617187499",  # just below halfway between two float32
    "1.00000017881393432617187500",
    "3.4028235e38",
    "1" * 400 + "e-400",
    "0." + "0" * 400 + "1e400",
    "5" + "0" * 30,
    "1e-99999999999999999999",
    "0e99999999999999999999",
    "-0",
    "-0.0e-5",
]


def check_decimals(path, tokens, dtype):
    pairs = " ".join(f"{i}:{token}" for i, token in enumerate(tokens))
    path.write_text(f"1 {len(tokens)} 1\n {pairs}\n")
    X, _ = load_xmc_file(path, dtype=dtype)
    with np.errstate(over="ignore"):
        expected = np.array([float(token) for token in tokens]).astype(dtype)
    assert X.data.tobytes() == expected.tobytes()


def test_hard_decimals_are_the_floats_of_python(tmp_path):
    check_decimals(tmp_path / "data.txt", HARD_DECIMALS, np.float32)
    check_decimals(tmp_path / "data.txt", [*HARD_DECIMALS, "1.7976931348623157e308"], np.float64)


@settings(max_examples=200, deadline=None)
@given(
    tokens=st.lists(
        st.from_regex(
            r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?",
            fullmatch=True,
        )
        | st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
        min_size=1,
        max_size=20,
    )
)
def test_decimals_are_the_floats_of_python(tmp_path_factory, tokens):
    tokens = [token for token in tokens if abs(float(token)) < 3e38]
    path = tmp_path_factory.getbasetemp() / "decimals.txt"
    for dtype in FLOATS:
        check_decimals(path, tokens, dtype)


BAD = [
    (b"", 1, "", "expected the header"),
    (b"1 2\n", 1, "1 2", "expected the header"),
    (b"1 -2 3\n", 1, "1 -2 3", "expected the header"),
    (b"0,1 0:1 1:2\n", 1, "0,1 0:1 1:2", "expected the header"),
    (b"1 2147483648 3\n", 1, "2147483648", "expected at most 2147483647 features"),
    (b"1 1 " + b"9" * 5000, 1, None, "expected at most 2147483647 labels"),
    (b"3 4 5\n0 0:1\n1 1:1\n", 3, "end of file", "promises 3 rows, the file ends after 2"),
    (b"1 4 5\n0 0:1\n1 1:1\n", 3, "1 1:1", "one row too many; the header promises 1."),
    (b"1 4 5\n0 0:1\n\n \n1 1:1\n\n", 5, "1 1:1", "one row too many"),
    (b"1 4 5\n1,5 0:1\n", 2, "5", "label out of range; the header promises 5 labels"),
    (b"1 4 5\n99999999999999999999999\n", 2, "99999999999999999999999", "label out of range"),
    (b"2 4 5\n0 0:1\n-1 0:1\n", 3, "-1", "whole number from 0 to 4; it is negative"),
    (b"1 4 5\n1, 0:1\n", 2, "", "expected a label"),
    (b"1 4 5\na,1 0:1\n", 2, "a", "expected a label"),
    (b"1 4 5\n1,2:1 0:1\n", 2, "2:1", "a feature:value pair stands behind a space"),
    (b"1 4 5\n3,1,3 0:1\n", 2, "3", "this label stands twice in the row"),
    (b"1 4 5\n1 4:1\n", 2, "4:1", "feature out of range; the header promises 4 features"),
    (b"1 4 5\n1 -1:1\n", 2, "-1:1", "the feature is negative"),
    (b"1 4 5\n1 2\n", 2, "2", "expected a pair feature:value"),
    (b"1 4 5\n1 2:1 :5\n", 2, ":5", "expected a pair feature:value"),
    (b"1 4 5\n1 2:\n", 2, "2:", "expected a decimal number after the colon"),
    (b"1 4 5\n1 2:1_0\n", 2, "2:1_0", "expected a decimal number"),
    (b"1 4 5\n1 2:0x10\n", 2, "2:0x10", "expected a decimal number"),
    (b"1 4 5\n1 2:1e+\n", 2, "2:1e+", "expected a decimal number"),
    (b"1 4 5\n1 2:1,5\n", 2, "2:1,5", "expected a decimal number"),
    (b"1 4 5\n1 2:3\r4\n", 2, "2:3\\r4", "expected a decimal number"),
    (b"1 4 5\n1 2:nan\r\n", 2, "2:nan", "the value is not finite"),
    (b"1 4 5\n1 2:1e999\n", 2, "1e999", "finite number, this one is too large for float32"),
    (b"2 4 5\n0 0:1\n1 2:3 0:1 2:3\n", 3, "2", "this feature stands twice in the row"),
    (b"2 4 5\n0 0:1\n1 2:\xff\x00\n", 3, "2:\\xff\\x00", "expected a decimal number"),
]


@pytest.mark.parametrize(("text", "line", "token", "message"), BAD)
@pytest.mark.parametrize("chunk", [1 << 20, 5])
def test_errors_say_where_and_what(tmp_path, monkeypatch, text, line, token, message, chunk):
    monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", chunk)
    path = tmp_path / "data.txt"
    path.write_bytes(text)
    with pytest.raises(DataFormatError, match=re.escape(message)) as caught:
        load_xmc_file(path)
    place = f"{path}, line {line}: "
    assert str(caught.value).startswith(place if token is None else f"{place}'{token}': ")
    with pytest.raises(Refused):
        read_slowly(text, np.float32)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_cut_or_damaged_compression(tmp_path, monkeypatch, compress):
    monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", 1000)
    rng = np.random.default_rng(0)
    rows = [f"1 {f}:{v}" for f, v in zip(rng.integers(0, 900, 5000), rng.random(5000), strict=True)]
    whole = compress(("5000 900 5\n" + "\n".join(rows)).encode())
    path = tmp_path / "data.bin"
    for n_bytes in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(
            DataFormatError, match="compressed data are damaged or cut off"
        ) as error:
            load_xmc_file(path)
    assert int(re.search(r"after line (\d+)", str(error.value))[1]) > 4000
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(DataFormatError):
        load_xmc_file(path)


# Writing.


@st.composite
def matrices(draw):
    n_samples = draw(st.integers(0, 6))
    n_features = draw(st.integers(0, 9))
    n_labels = draw(st.integers(0, 9))
    kind = draw(st.sampled_from(["float16", "float32", "float64", "int8", "uint64", "bool"]))
    numbers = {
        "float16": st.floats(width=16, allow_nan=False, allow_infinity=False),
        "float32": st.floats(width=32, allow_nan=False, allow_infinity=False),
        "float64": st.floats(allow_nan=False, allow_infinity=False),
        "int8": st.integers(-128, 127),
        "uint64": st.integers(0, 2**64 - 1),
        "bool": st.booleans(),
    }[kind]

    def rows(n_columns, values):
        cell = st.tuples(st.integers(0, n_columns - 1), values)
        row = st.lists(cell, unique_by=lambda cell: cell[0], max_size=n_columns)
        return [sorted(draw(row)) if n_columns else [] for _ in range(n_samples)]

    def to_csr(rows, n_columns, dtype):
        indptr = np.cumsum([0, *map(len, rows)])
        indices = np.array([f for row in rows for f, _ in row], dtype=np.int64)
        data = np.array([v for row in rows for _, v in row], dtype=dtype)
        return csr_array((data, indices, indptr), shape=(n_samples, n_columns))

    X = to_csr(rows(n_features, numbers), n_features, kind)
    Y = to_csr(rows(n_labels, st.just(1)), n_labels, np.int8)
    return X, Y


@settings(max_examples=300, deadline=None)
@given(pair=matrices(), suffix=st.sampled_from(["", ".gz", ".xz"]))
def test_what_is_written_is_read_back(tmp_path_factory, pair, suffix):
    X, Y = pair
    path = tmp_path_factory.getbasetemp() / f"round_trip.txt{suffix}"
    dump_xmc_file(path, X, Y)
    dtype = np.float32 if X.dtype in (np.float16, np.float32, np.int8, np.bool_) else np.float64
    X_back, Y_back = load_xmc_file(path, dtype=dtype)
    assert_same_bits(X_back, X.astype(dtype))
    assert_same_bits(Y_back, Y)


def test_every_float32_pattern_comes_back(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    values = np.concatenate([values[np.isfinite(values)], rng.random(20_000, dtype=np.float32)])
    X = csr_array(values[None, :])
    path = tmp_path / "data.txt"
    dump_xmc_file(path, X, np.ones((1, 1)))
    assert_same_bits(load_xmc_file(path)[0], X)


def test_written_text(tmp_path):
    path = tmp_path / "data.txt"
    X = np.array([[0, 0.1, 1], [0, 0, 0], [1e-20, 0, 16777216], [2.5, 1e10, 0]], dtype=np.float32)
    Y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]])
    dump_xmc_file(path, X, Y)
    assert path.read_text() == (
        "4 3 3\n0,2 1:0.1 2:1.0\n1 \n 0:1e-20 2:16777216.0\n0,1,2 0:2.5 1:10000000000.0\n"
    )
    dump_xmc_file(path, np.array([[3.0, 0.0, 2.0]]), np.array([[True]]))
    assert path.read_text() == "1 3 1\n0 0:3 2:2\n"
    dump_xmc_file(path, np.zeros((0, 3)), np.zeros((0, 2)))
    assert path.read_text() == "0 3 2\n"


def test_blocks_of_rows_do_not_matter(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = csr_array(rng.random((50, 7), dtype=np.float32) * (rng.random((50, 7)) < 0.5))
    Y = csr_array(rng.random((50, 5)) < 0.3)
    dump_xmc_file(tmp_path / "whole.txt", X, Y)
    monkeypatch.setattr(xmc_writer, "_BLOCK_PAIRS", 3)
    dump_xmc_file(tmp_path / "blocks.txt", X, Y)
    assert (tmp_path / "whole.txt").read_bytes() == (tmp_path / "blocks.txt").read_bytes()


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), "X has 2 rows and Y has 3"),
        (np.ones(3), np.ones((3, 2)), r"X must have two dimensions. Got shape \(3,\)"),
        (np.ones((3, 2)), np.ones(3), r"Y must have two dimensions. Got shape \(3,\)"),
        (np.array([[np.nan]]), np.ones((1, 1)), "NaN or inf"),
        (np.array([[np.inf]]), np.ones((1, 1)), "NaN or inf"),
        (np.array([[1j]]), np.ones((1, 1)), "real numbers. Got dtype complex128"),
        (np.ones((1, 1)), np.array([[2]]), "zeros and ones. Got an entry 2"),
        (np.ones((1, 1)), np.array([[0.5]]), "zeros and ones. Got an entry 0.5"),
        (np.ones((1, 1)), coo_array(([1, 1], ([0, 0], [0, 0]))), "Got an entry 2"),
    ],
)
def test_what_cannot_be_written(tmp_path, X, Y, message):
    with pytest.raises(ValueError, match=message):
        dump_xmc_file(tmp_path / "data.txt", X, Y)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz", "data.txt.xz"])
def test_nothing_is_half_written(tmp_path, monkeypatch, error, name):
    path = tmp_path / name
    path.write_text("the old file")
    written = []

    def format_rows(X, Y, first, last):
        if written:
            raise error
        written.append(first)
        return b" 0:1\n"

    monkeypatch.setattr(xmc_writer, "_BLOCK_PAIRS", 1)
    monkeypatch.setattr(xmc_writer, "_format_rows", format_rows)
    with pytest.raises(type(error)):
        dump_xmc_file(path, np.ones((5, 1)), np.ones((5, 1)))
    assert written
    assert path.read_text() == "the old file"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    dump_xmc_file(tmp_path / "link.txt", np.eye(2), np.eye(2))
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text().startswith("2 2 2\n")


# Hostile bytes.


def mutate(rng, text):
    text = bytearray(text)
    for _ in range(rng.integers(1, 6)):
        start = int(rng.integers(0, len(text) + 1))
        stop = min(len(text), start + int(rng.integers(1, 8)))
        alphabet = b"0123456789,: \t\n\r.-+eEnaif_\x00\xff"
        piece = bytes(rng.choice(list(alphabet), rng.integers(0, 6)).tolist())
        kind = rng.integers(0, 4)
        if kind == 0:
            text[start:stop] = piece
        elif kind == 1:
            text[start:start] = piece
        elif kind == 2:
            text[start:start] = text[start:stop]
        elif rng.random() < 0.2:
            del text[start:]
        else:
            del text[start:stop]
    return bytes(text)


def fuzz(path, monkeypatch, n_rounds, seed):
    """Mutate good files; the reader must do what the slow one does, or say what is wrong."""
    rng = np.random.default_rng(seed)
    seeds = list(GOOD.values())
    accepted = 0
    for i in range(n_rounds):
        text = mutate(rng, seeds[i % len(seeds)])
        monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", int(rng.choice([1, 16, 1 << 20])))
        path.write_bytes(text)
        try:
            X, Y = load_xmc_file(path)
        except DataFormatError as error:
            assert re.match(rf"{re.escape(str(path))}, line \d+: '", str(error))  # noqa: PT017
            with pytest.raises(Refused):
                read_slowly(text, np.float32)
        else:
            assert_equals_slow(text, X, Y, np.float32)
            accepted += 1
    assert 0.05 < accepted / n_rounds < 0.95


def fuzz_compressed(path, n_rounds, seed):
    """Mutate compressed files; whatever happens is a result or a DataFormatError."""
    rng = np.random.default_rng(seed)
    text = b"200 4 5\n" + b"".join(b"%d %d:%d\n" % (i % 5, i % 4, i) for i in range(200))
    seeds = [gzip.compress(text), lzma.compress(text)]
    refused = 0
    for i in range(n_rounds):
        path.write_bytes(mutate(rng, seeds[i % 2]))
        try:
            load_xmc_file(path)
        except DataFormatError:
            refused += 1
    assert refused > 0.8 * n_rounds


def test_fuzz(tmp_path, monkeypatch):
    fuzz(tmp_path / "data.txt", monkeypatch, 2000, seed=0)
    fuzz_compressed(tmp_path / "data.bin", 500, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
def test_fuzz_for_long(tmp_path, monkeypatch, seed):
    fuzz(tmp_path / "data.txt", monkeypatch, 50_000, seed)
    fuzz_compressed(tmp_path / "data.bin", 10_000, seed)


# Cost.


def test_memory_is_that_of_the_result(tmp_path, monkeypatch):
    monkeypatch.setattr(xmc_reader, "_CHUNK_BYTES", 1 << 16)
    row = "1,2,3 " + " ".join(f"{f}:0.{f}" for f in range(100, 300))
    path = tmp_path / "data.txt"
    path.write_text("10000 300 5\n" + f"{row}\n" * 10_000)
    load_xmc_file(path)  # compiles
    tracemalloc.start()
    try:
        X, Y = load_xmc_file(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    sizes = [a.nbytes for M in (X, Y) for a in (M.data, M.indices, M.indptr)]
    assert path.stat().st_size > 15_000_000
    # Some versions count an array that is resized in place twice for a moment.
    assert peak < 1.15 * sum(sizes) + max(sizes) + 2_000_000


def test_import_does_not_start_the_compiler():
    code = "import sys, sklearn_xc.datasets; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)

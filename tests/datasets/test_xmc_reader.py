"""The reader of XMC files against a slow one by regular expressions."""

import gzip
import lzma
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_xmc import GOOD, Refused, assert_equals_slow, read_slowly

from sklearn_xc.datasets import load_xmc_file, xmc
from sklearn_xc.exceptions import DataFormatError, MemoryBudgetError

FLOATS = [np.float32, np.float64]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.txt"


@pytest.mark.parametrize(
    ("block", "dtype"), [(1, np.float32), (7, np.float64), (1 << 20, np.float32)]
)
def test_good_files(path, monkeypatch, block, dtype):
    monkeypatch.setattr(xmc, "_BLOCK_BYTES", block)
    for content in GOOD.values():
        path.write_bytes(content)
        assert_equals_slow(content, *load_xmc_file(path, dtype=dtype), dtype)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_the_first_bytes_tell_compression(tmp_path, compress):
    path = tmp_path / "any.name"
    path.write_bytes(compress(GOOD["plain"]))
    assert_equals_slow(GOOD["plain"], *load_xmc_file(str(path)), np.float32)


def check_decimals(path, tokens, dtype):
    pairs = " ".join(f"{i}:{token}" for i, token in enumerate(tokens))
    path.write_text(f"1 {len(tokens)} 1\n {pairs}\n")
    X, _ = load_xmc_file(path, dtype=dtype)
    expected = np.array([float(token) for token in tokens]).astype(dtype)
    assert X.data.tobytes() == expected.tobytes()


@settings(max_examples=25)
@given(
    tokens=st.lists(
        st.from_regex(
            r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?",
            fullmatch=True,
        )
        | st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr)
        | st.sampled_from(["4.9e-324", "1" * 400 + "e-400", "-0", "0e99999999999999999999"]),
        min_size=1,
        max_size=20,
    )
)
def test_decimals_are_the_floats_of_python(tmp_path_factory, tokens):
    tokens = [token for token in tokens if abs(float(token)) < 3e38]
    for dtype in FLOATS:
        check_decimals(tmp_path_factory.getbasetemp() / "decimals.txt", tokens, dtype)


BAD = [
    (b"", 1, "", "expected the header"),
    (b"1 -2 3\n", 1, "1 -2 3", "expected the header"),
    (b"1 2147483648 3\n", 1, "2147483648", "expected at most 2147483647 features"),
    (b"3 4 5\n0 0:1\n1 1:1\n", 3, "end of file", "promises 3 rows, the file ends after 2"),
    (b"1 4 5\n0 0:1\n\n \n1 1:1\n\n", 5, "1 1:1", "one row too many; the header promises 1."),
    (b"1 4 5\n1,5 0:1\n", 2, "5", "label out of range; the header promises 5"),
    (b"1 4 5\n" + b"9" * 23, 2, "9" * 23, "label out of range"),
    (b"2 4 5\n0 0:1\n-1 0:1\n", 3, "-1", "expected a label, a whole number from 0 to 4"),
    (b"1 4 5\n1, 0:1\n", 2, "", "expected a label"),
    (b"1 4 5\n1,2:1 0:1\n", 2, "1,2:1", "expected a pair feature:value"),
    (b"1 4 5\n3,1,3 0:1\n", 2, "3", "this number is twice in the row"),
    (b"1 4 5\n1 4:1\n", 2, "4:1", "feature out of range; the header promises 4"),
    (b"1 4 5\n1 2\n", 2, "2", "expected a pair feature:value"),
    (b"1 4 5\n1 2:1 :5\n", 2, ":5", "expected a pair feature:value"),
    (b"1 4 5\n1 2: 3\n", 2, "2:", "expected a finite decimal number after the colon"),
    (b"1 4 5\n1 2:1_0\n", 2, "2:1_0", "expected a finite decimal number"),
    (b"1 4 5\n1 2:nan\r\n", 2, "2:nan", "expected a finite decimal number"),
    (b"1 4 5\n1 2:1e999\n", 2, "2:1e999", "this one is too large for float32"),
    (b"2 4 5\n0 0:1\n1 2:3 0:1 2:3\n", 3, "2", "this number is twice in the row"),
    (b"2 4 5\n0 0:1\n1 2:\xff\x00\n", 3, "2:\\xff\\x00", "expected a finite decimal number"),
]


@pytest.mark.parametrize(("content", "line", "token", "message"), BAD)
def test_errors_name_line_and_token(path, content, line, token, message):
    path.write_bytes(content)
    expected = f"{path}, line {line}: '{token}': "
    with pytest.raises(DataFormatError, match=f"^{re.escape(expected)}.*{re.escape(message)}"):
        load_xmc_file(path)
    with pytest.raises(Refused):
        read_slowly(content, np.float32)


@pytest.mark.parametrize("dtype", [None, "float16", "number"])
def test_dtypes(path, dtype):
    with pytest.raises(ValueError, match="load_xmc_file: dtype must be float32 or float64"):
        load_xmc_file(path, dtype=dtype)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_cut_compression(path, compress):
    rng = np.random.default_rng(0)
    rows = [f"1 {f}:{v}" for f, v in zip(rng.integers(0, 900, 5000), rng.random(5000), strict=True)]
    whole = compress(("5000 900 5\n" + "\n".join(rows)).encode())
    for n_bytes in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(DataFormatError, match="data are damaged or cut off") as error:
            load_xmc_file(path)
    assert int(re.search(r"after line (\d+)", str(error.value))[1]) > 4000


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_long_lines_are_refused(path, monkeypatch, compress):
    monkeypatch.setattr(xmc, "MAX_LINE_BYTES", 1000)
    path.write_bytes(compress(b"1 9 9\n0".ljust(1006) + b"\n"))
    load_xmc_file(path)
    path.write_bytes(compress(b"1 9 9\n0".ljust(1007) + b"\n"))
    message = rf"^{re.escape(str(path))}, line 2: '.*\.\.\..*': the line is longer than 1,000 "
    with pytest.raises(DataFormatError, match=message):
        load_xmc_file(path)


def test_a_lack_of_memory_names_the_file(path, monkeypatch):
    def fail(*args):
        raise MemoryError

    monkeypatch.setattr(xmc, "_to_csr", fail)
    path.write_bytes(b"1 9 9\n0 1:2\n")
    message = rf"^{re.escape(str(path))}, after line \d: the memory is used up"
    with pytest.raises(MemoryBudgetError, match=message):
        load_xmc_file(path)


def mutate(rng, content):
    content = bytearray(content)
    for _ in range(rng.integers(1, 3)):
        start = int(rng.integers(0, len(content) + 1))
        stop = min(len(content), start + int(rng.integers(1, 8)))
        alphabet = b"0123456789,: \t\n\r.-+eEnaif_\x00\xff"
        piece = bytes(rng.choice(list(alphabet), rng.integers(0, 6)).tolist())
        content[start : stop if rng.random() < 0.5 else start] = piece
    return bytes(content)


def test_fuzz(path, monkeypatch):
    """The reader reads mutated files as the slow one does, or says where they are wrong."""
    rng = np.random.default_rng(0)
    accepted = 0
    for i in range(500):
        content = mutate(rng, list(GOOD.values())[i % len(GOOD)])
        monkeypatch.setattr(xmc, "_BLOCK_BYTES", int(rng.choice([1, 16, 1 << 20])))
        path.write_bytes(content)
        try:
            X, Y = load_xmc_file(path)
        except DataFormatError as error:
            assert re.match(rf"{re.escape(str(path))}, line \d+: '", str(error))  # noqa: PT017
            with pytest.raises(Refused):
                read_slowly(content, np.float32)
        else:
            assert_equals_slow(content, X, Y, np.float32)
            accepted += 1
    assert 25 < accepted < 475

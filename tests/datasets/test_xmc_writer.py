"""Writing XMC files: bits that come back, matrices that are refused, and files written whole."""

import os
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np
from scipy.sparse import coo_array, csr_array

from sklearn_xc.datasets import dump_xmc_file, load_xmc_file, xmc

X = np.array([[0, 1.5, 0], [2.5, 0, 1]], dtype=np.float32)
Y = np.array([[1, 0], [0, 1]])
KINDS = ["float32", "float64", "int8", "uint64", "bool"]


def assert_same_bits(A, B):
    assert (A.shape, A.dtype) == (B.shape, B.dtype)
    for name in ("indptr", "indices", "data"):
        assert getattr(A, name).tobytes() == getattr(B, name).tobytes()


@settings(max_examples=40)
@given(data=st.data(), suffix=st.sampled_from(["", ".gz", ".xz"]))
def test_written_files_are_read_back(tmp_path_factory, data, suffix):
    kind = data.draw(st.sampled_from(KINDS))
    shape = data.draw(st.tuples(st.integers(0, 6), st.integers(1, 9)))
    finite = {"allow_nan": False, "allow_infinity": False} if "float" in kind else {}
    numbers = st_np.from_dtype(np.dtype(kind), **finite)
    X = csr_array(data.draw(st_np.arrays(kind, shape, elements=numbers, fill=st.just(0))))
    Y = csr_array(data.draw(st_np.arrays(np.int8, (shape[0], 4), elements=st.integers(0, 1))))
    path = tmp_path_factory.getbasetemp() / f"round_trip.txt{suffix}"
    dump_xmc_file(path, X, Y)
    dtype = np.float64 if kind in ("float64", "uint64") else np.float32
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


def test_written_text(tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    X = np.array([[0, 0.1, 1], [0, 0, 0], [1e-20, 0, 16777216], [2.5, 0, 0]], dtype=np.float32)
    Y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]])
    for block in (1, 1 << 18):
        monkeypatch.setattr(xmc, "_BLOCK_PAIRS", block)
        dump_xmc_file(path, X, Y)
        assert path.read_text() == (
            "4 3 3\n0,2 1:0.1 2:1.0\n1 \n 0:1e-20 2:1.6777216e+07\n0,1,2 0:2.5\n"
        )
    dump_xmc_file(path, np.array([[3, 0, 2]]), np.array([[True]]))
    assert path.read_text() == "1 3 1\n0 0:3 2:2\n"


@pytest.mark.parametrize("as_csr", [False, True])
def test_repeated_entries_are_added_up(tmp_path, as_csr):
    path, ones = tmp_path / "data.txt", np.ones(257, np.int8)
    repeated = coo_array((ones, (np.zeros(257, int), np.ones(257, int))), shape=(2, 3))
    if as_csr:
        repeated = csr_array((ones, np.ones(257, int), [0, 257, 257]), shape=(2, 3))
    dump_xmc_file(path, repeated, Y)
    assert load_xmc_file(path)[0].toarray().tolist() == [[0, 257, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"zeros and ones. Got an entry 257"):
        dump_xmc_file(path, X, repeated)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), "X has 2 rows and Y has 3"),
        (np.ones(3), np.ones((3, 2)), r"X must have two dimensions. Got shape \(3,\)"),
        (np.array([[np.inf]]), np.ones((1, 1)), "X holds NaN or inf"),
        (np.array([[1e400]], np.longdouble) * 10, [[1]], "X holds NaN or inf"),
        (np.array([["a"]]), [[1]], "X must hold real numbers. Got dtype <U1"),
        (np.array([[3]], "timedelta64[s]"), [[1]], "X must hold real .* timedelta64"),
        ([[1.0]], [[1j]], "Y must hold real numbers. Got dtype complex128"),
        ([[1.0]], [[0.5]], "Y must be an indicator of zeros and ones. Got an entry 0.5"),
        ([[1.0], [1.0, 2.0]], [[1]], "X: expected a matrix. Got rows of unequal length"),
        ([[1.0]], csr_array((1, 2**40)), "Y must have at most 2147483647 rows and columns"),
    ],
)
def test_refused_matrices(tmp_path, X, Y, message):
    with pytest.raises(ValueError, match=f"^dump_xmc_file: {message}"):
        dump_xmc_file(tmp_path / "data.txt", X, Y)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("malformed", ["column", "column of lil"], indirect=True)
def test_malformed_matrices(tmp_path, malformed):
    with pytest.raises(ValueError, match=r"dump_xmc_file: X: this .* is malformed"):
        dump_xmc_file(tmp_path / "data.txt", malformed(csr_array(X)), Y)


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_an_interrupted_call_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_text("the old file")
    written = []

    def format_rows(X, Y, first, last):
        if written:
            raise KeyboardInterrupt
        written.append(first)
        return b" 0:1\n"

    monkeypatch.setattr(xmc, "_BLOCK_PAIRS", 1)
    monkeypatch.setattr(xmc, "_format_rows", format_rows)
    with pytest.raises(KeyboardInterrupt):
        dump_xmc_file(path, np.ones((5, 1)), np.ones((5, 1)))
    assert path.read_text() == "the old file"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="has other modes and links")
def test_modes_and_links_are_kept(tmp_path):
    path, link = tmp_path / "real.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    dump_xmc_file(link, X, Y)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert re.match("2 3 2\n", path.read_text())

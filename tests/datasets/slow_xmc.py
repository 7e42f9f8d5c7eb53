"""A slow reader of the text format by regular expressions, and files that both read."""

import re

import numpy as np
from scipy.sparse import csr_array

PAIR = re.compile(rb"([0-9]+):([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")


class Refused(Exception):  # noqa: N818 (it reads as what happened)
    """Raised by the slow reader."""


def read_slowly(text, dtype):
    """Read the format line by line with regular expressions; the twin of the fast reader."""
    lines = text.split(b"\n")
    lines = [line.removesuffix(b"\r") for line in (lines if lines[-1] else lines[:-1])]
    header = re.fullmatch(rb"[ \t]*(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]*", lines[0] if lines else b"")
    if not header:
        raise Refused("header")
    n_samples, n_features, n_labels = (int(number[-4000:]) for number in header.groups())
    rows = lines[1:]
    while len(rows) > n_samples and not rows[-1].strip(b" \t\r"):
        rows.pop()
    if len(rows) != n_samples or max(n_features, n_labels) > 2**31 - 1:
        raise Refused("rows")
    X, Y = [], []
    for line in rows:
        tokens = re.split(rb"[ \t]+", line)
        labels = tokens.pop(0).split(b",") if tokens[0] and b":" not in tokens[0] else []
        if not all(re.fullmatch(rb"[0-9]+", label) for label in labels):
            raise Refused("label")
        pairs = [PAIR.fullmatch(token) for token in tokens if token]
        if None in pairs:
            raise Refused("pair")
        with np.errstate(over="ignore"):
            row = {int(pair[1]): dtype(float(pair[2])) for pair in pairs}
        if len(row) < len(pairs) or any(f >= n_features for f in row):
            raise Refused("feature")
        if not np.isfinite(list(row.values())).all():
            raise Refused("value")
        numbers = {int(label) for label in labels}
        if len(numbers) < len(labels) or any(label >= n_labels for label in numbers):
            raise Refused("label")
        X.append(sorted(row.items()))
        Y.append(sorted(numbers))
    return (n_samples, n_features, n_labels), X, Y


def assert_equals_slow(text, X, Y, dtype):
    assert_equal(read_slowly(text, dtype), X, Y, dtype)


def assert_equal(read, X, Y, dtype):
    """Compare matrices with the rows of the slow reader."""
    shape, rows, labels = read
    assert (*X.shape, Y.shape[1]) == shape
    assert Y.shape[0] == X.shape[0]
    assert isinstance(X, csr_array)
    assert isinstance(Y, csr_array)
    assert X.dtype == dtype
    assert Y.dtype == np.int8
    for matrix in (X, Y):
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        assert matrix.has_canonical_format
        matrix.check_format(full_check=True)
    assert np.diff(X.indptr).tolist() == [len(row) for row in rows]
    assert np.diff(Y.indptr).tolist() == [len(row) for row in labels]
    assert X.indices.tolist() == [f for row in rows for f, _ in row]
    assert Y.indices.tolist() == [label for row in labels for label in row]
    assert X.data.tobytes() == np.array([v for row in rows for _, v in row], dtype).tobytes()
    assert (Y.data == 1).all()


GOOD = {
    "plain": b"3 4 5\n0,2 0:1 3:0.5\n4 1:2.25\n1 2:-1e-3\n",
    "no newline at the end": b"1 4 5\n0,2 0:1 3:0.5",
    "blank lines at the end": b"1 4 5\n0,2 0:1 3:0.5\n\n \n\r\n\t\n",
    "windows": b"3 4 5\r\n0,2 0:1 3:0.5\r\n 1:2\r\n\r\n",
    "windows, no newline at the end": b"1 4 5\r\n0,2 0:1 3:0.5\r",
    "without labels": b"4 4 5\n 0:1 3:0.5\n0:1 2:3\n\t2:3\n1:4",
    "without features": b"4 4 5\n0,1\n2 \n3  \n4\t\n",
    "empty rows": b"4 4 5\n\n \n\t\n1 2:3\n",
    "unsorted": b"2 4 5\n4,0,2 3:1 0:2 2:3\n0,1 1:5 0:4\n",
    "extra white space": b" 2\t4  5 \n0,2  0:1 \t3:0.5 \n 1:1\t\n",
    "no rows": b"0 4 5\n",
    "no rows, no newline": b"0 4 5",
    "no columns": b"2 0 0\n\n \n",
    "leading zeros": b"2 04 0005\n00,002 000:1 03:0.5\n0000000000000000000000000001 00:00\n",
    "largest shape": b"1 2147483647 2147483647\n2147483646 2147483646:1\n",
    "stored zeros": b"1 4 5\n0 0:0 1:-0 2:0e5 3:-0.000e-999\n",
    "odd decimals": b"1 9 1\n0 0:1. 1:.5 2:+3 3:-.5e1 4:+1.E+2 5:1e-0 6:00.10 7:5e00 8:-2.\n",
}

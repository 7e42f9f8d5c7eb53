"""Checks of sparse matrices: malformed ones are refused, unusual ones pass."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._input.sparse import check_sparse, problem_of, rows_are_canonical

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
from hostile_matrices import ARRAY_ODDITIES, FAULTS, ODDITIES, stored, well_formed

ALL_FAULTS = [(fmt, what) for fmt, faults in FAULTS.items() for what in faults]


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize(("fmt", "what"), ALL_FAULTS)
def test_each_fault_is_found(fmt, what, kind):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = stored(well_formed(rng, (9, 7), False), fmt, kind)
        assert problem_of(matrix) == ""
        FAULTS[fmt][what](matrix, rng)
        with pytest.raises(ValueError, match=r"^Someone: X: .*malformed"):
            check_sparse(matrix, "X", "Someone")


@pytest.mark.parametrize("what", sorted({*ODDITIES, *ARRAY_ODDITIES} - {"foreign byte order"}))
@pytest.mark.parametrize("fmt", ["csr", "csc"])
def test_what_is_odd_but_right_passes(fmt, what):
    rng = np.random.default_rng(0)
    matrix = stored(well_formed(rng, (9, 7), False), fmt, "array")
    (ODDITIES | ARRAY_ODDITIES)[what](matrix, rng)
    check_sparse(matrix, "X")


@pytest.mark.parametrize(
    ("fmt", "name"),
    [
        ("csr", "data"),
        ("csr", "indices"),
        ("csc", "indptr"),
        ("bsr", "indices"),
        ("coo", "data"),
        ("dia", "offsets"),
        ("dia", "data"),
    ],
)
def test_foreign_byte_order_is_refused(fmt, name):
    matrix = sp.csr_matrix(np.eye(4)).asformat(fmt)
    array = getattr(matrix, name)
    setattr(matrix, name, array.astype(array.dtype.newbyteorder()))
    message = rf"malformed: {name} must be in native byte order.* Got dtype '[<>]{array.dtype.kind}"
    with pytest.raises(ValueError, match=message):
        check_sparse(matrix, "X")


@pytest.mark.parametrize("fmt", FAULTS)
@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (1, 1), (3, 5)])
def test_what_is_empty_passes(fmt, shape):
    check_sparse(sp.csr_array(shape).asformat(fmt), "X")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_last_index_passes_and_the_next_does_not(dtype):
    matrix = sp.csr_array((np.ones(1), np.array([6], dtype), np.array([0, 1], dtype)), shape=(1, 7))
    check_sparse(matrix, "X")
    matrix.indices = matrix.indices + dtype(1)
    with pytest.raises(ValueError, match=r"column index 7 is not in 0 to 6 \(entry 0\)"):
        check_sparse(matrix, "X")


def test_a_fall_is_found_where_pieces_of_the_pointers_meet(monkeypatch):
    monkeypatch.setattr("sklearn_xc._input.sparse._PIECE", 4)
    for at in range(1, 12):
        matrix = sp.csr_array(np.eye(12))
        matrix.indptr = matrix.indptr.copy()
        matrix.indptr[at] = matrix.indptr[at - 1] - 1 if at > 1 else matrix.indptr[at + 1] + 1
        assert "indptr falls" in problem_of(matrix)


def test_blocks_must_fill_the_shape():
    matrix = sp.bsr_array(np.ones((4, 6)), blocksize=(2, 3))
    check_sparse(matrix, "X")
    matrix._shape = (4, 5)
    assert "blocks of 2 x 3 do not fill the shape" in problem_of(matrix)


@pytest.mark.parametrize("matrix", [sp.coo_array(np.ones(3)), sp.coo_array(np.ones((2, 2, 2)))])
def test_two_dimensions(matrix):
    with pytest.raises(ValueError, match=r"^X: a sparse matrix of 2 dimensions was expected. Got"):
        check_sparse(matrix, "X")


def test_what_is_not_sparse_is_not_looked_at():
    for thing in (None, "text", np.ones((2, 2)), [[1]]):
        check_sparse(thing, "X")


@given(st.lists(st.lists(st.integers(0, 6), max_size=5), min_size=1, max_size=6))
def test_canonical_rows(rows):
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    indices = np.array([one for row in rows for one in row], np.int32)
    rising = all(a < b for row in rows for a, b in itertools.pairwise(row))
    assert rows_are_canonical(indptr, indices) == rising

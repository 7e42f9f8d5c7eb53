"""Checks of sparse matrices: malformed ones are refused, unusual ones pass."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._input import data
from sklearn_xc._input.data import check_sparse, rows_are_canonical

sys.path.insert(0, str(Path(__file__).parents[1] / "hostile"))
from hostile_matrices import ARRAY_ODDITIES, FAULTS, ODDITIES, stored, well_formed


@pytest.mark.parametrize("fmt", FAULTS)
def test_each_fault_is_found(fmt):
    for change, seed in itertools.product(FAULTS[fmt].values(), range(3)):
        rng = np.random.default_rng(seed)
        matrix = stored(well_formed(rng, (9, 7), False), fmt, ("array", "matrix")[seed % 2])
        check_sparse(matrix, "X")
        change(matrix, rng)
        with pytest.raises(ValueError, match=r"^Someone: X: .*malformed"):
            check_sparse(matrix, "X", "Someone")


@pytest.mark.parametrize("what", sorted({*ODDITIES, *ARRAY_ODDITIES} - {"foreign byte order"}))
def test_unusual_matrices_pass(what):
    for fmt in ("csr", "csc"):
        rng = np.random.default_rng(0)
        matrix = stored(well_formed(rng, (9, 7), False), fmt, "array")
        (ODDITIES | ARRAY_ODDITIES)[what](matrix, rng)
        check_sparse(matrix, "X")


@pytest.mark.parametrize(
    ("fmt", "name"), [("csr", "data"), ("csc", "indptr"), ("bsr", "indices"), ("dia", "offsets")]
)
def test_foreign_byte_order_is_refused(fmt, name):
    matrix = sp.csr_matrix(np.eye(4)).asformat(fmt)
    array = getattr(matrix, name)
    setattr(matrix, name, array.astype(array.dtype.newbyteorder()))
    with pytest.raises(ValueError, match=rf"malformed: {name} must be in native byte order"):
        check_sparse(matrix, "X")


@pytest.mark.parametrize("fmt", FAULTS)
def test_empty_matrices_pass(fmt):
    for shape in ((0, 0), (0, 4), (4, 0)):
        check_sparse(sp.csr_array(shape).asformat(fmt), "X")


def test_the_last_index_passes_and_the_next_does_not():
    matrix = sp.csr_array((np.ones(1), [6], [0, 1]), shape=(1, 7))
    check_sparse(matrix, "X")
    matrix.indices = matrix.indices + np.int32(1)
    with pytest.raises(ValueError, match=r"column index 7 is not in 0 to 6 \(entry 0\)"):
        check_sparse(matrix, "X")


def test_two_dimensions():
    with pytest.raises(ValueError, match=r"^X: a sparse matrix of 2 dimensions was expected. Got"):
        check_sparse(sp.coo_array(np.ones((2, 2, 2))), "X")
    for other in (None, np.ones((2, 2)), [[1]]):
        check_sparse(other, "X")


@given(
    rows=st.lists(st.lists(st.integers(0, 6), max_size=5), min_size=1, max_size=6),
    piece=st.integers(1, 9),
)
def test_canonical_rows(rows, piece):
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    indices = np.array([one for row in rows for one in row], np.int32)
    rising = all(a < b for row in rows for a, b in itertools.pairwise(row))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "_CHUNK_ENTRIES", piece)
        assert rows_are_canonical(indptr, indices) == rising

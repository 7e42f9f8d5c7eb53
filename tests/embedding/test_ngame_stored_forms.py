"""One matrix in many stored forms: they are the same to a model, to the bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

PROMISED = ("coef_", "label_embeddings_", "threshold_", "label_counts_")


def as_bytes(model, X):
    """Return what the model is, and answers to X in canonical form."""
    found = [np.asarray(getattr(model, name)).tobytes() for name in PROMISED]
    if model.fusion_ is not None:
        found += [part.tobytes() for part in model.fusion_.trees_]
    return found + answers(model, X)


def answers(model, X):
    """Return the bytes of all answers."""
    parts = [model.embed(X), model.predict(X), model.decision_function(X)]
    parts.extend(model.predict_topk(X, 7))
    return [(p.toarray() if sp.issparse(p) else p).tobytes() for p in parts]


def with_entries(matrix, values, seed, n=60, rows=None):
    """Return a CSR with `n` stored `values` where the matrix has nothing, rows unsorted."""
    rng = np.random.default_rng(seed)
    dense = matrix.toarray()
    free = np.argwhere(dense == 0)
    if rows is not None:
        free = free[np.isin(free[:, 0], rows)]
    at = rng.choice(free, min(n, len(free)), replace=False)
    held = sp.coo_array(matrix)
    row, column = np.r_[held.row, at[:, 0]], np.r_[held.col, at[:, 1]]
    data = np.r_[held.data, rng.choice(values, len(at))].astype(matrix.dtype)
    order = np.lexsort((rng.random(len(row)), row))
    indptr = np.searchsorted(row[order], np.arange(matrix.shape[0] + 1))
    return sp.csr_array((data[order], column[order], indptr), shape=matrix.shape)


def halved(matrix, seed):
    """Return a CSR in which each entry is stored as two halves, somewhere in its row."""
    rng = np.random.default_rng(seed)
    held = sp.coo_array(matrix)
    row, column, data = (np.tile(part, 2) for part in (held.row, held.col, held.data / 2))
    order = np.lexsort((rng.random(len(row)), row))
    indptr = np.searchsorted(row[order], np.arange(matrix.shape[0] + 1))
    return sp.csr_array((data[order], column[order], indptr), shape=matrix.shape)


def int64(matrix):
    made = sp.csr_array(matrix).copy()
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


FORMS = {
    "zeros": lambda M, seed: with_entries(M, [0.0], seed),
    "negative zeros": lambda M, seed: with_entries(M, [-0.0, 0.0], seed),
    "zeros in empty rows": lambda M, seed: with_entries(
        M, [0.0], seed, rows=np.flatnonzero(np.diff(M.indptr) == 0)
    ),
    "too small": lambda M, seed: with_entries(
        M,
        [1e-40, -1e-42] if M.dtype == np.float32 else [1e-200, -1e-310],
        seed,
        rows=np.flatnonzero(np.diff(M.indptr)),
    ),
    "duplicates": halved,
    "duplicates that cancel": lambda M, seed: (
        sp.coo_array(
            (
                np.r_[M.data, 1.0, -1.0].astype(M.dtype),
                (np.r_[M.tocoo().row, seed % 9, seed % 9], np.r_[M.tocoo().col, 79, 79]),
            ),
            shape=M.shape,
        )
        if M[seed % 9, 79] == 0
        else M
    ),
    "unsorted": lambda M, seed: with_entries(M, [0.0], seed, n=0),
    "csc": lambda M, seed: sp.csc_array(M),
    "coo": lambda M, seed: sp.coo_matrix(M),
    "lil": lambda M, seed: sp.lil_array(M),
    "int64": lambda M, seed: int64(M),
    "dense": lambda M, seed: M.toarray(),
    "dense, Fortran": lambda M, seed: np.asfortranarray(M.toarray()),
    "dense, negative zeros": lambda M, seed: np.where(M.toarray() == 0, -0.0, M.toarray()),
}


@pytest.fixture(scope="module")
def with_empty(documents):
    """Return documents of which some have no feature, and a label without one."""
    X, Y, Z = (part.tolil() for part in documents)
    X[::13], Z[4] = 0, 0
    return X.tocsr(), Y.tocsr(), Z.tocsr()


@pytest.fixture(scope="module")
def expected(make, with_empty):
    """Return a function that fits canonical matrices, once for each kind of parameters."""
    found = {}

    def fitted(known, dtype):
        key = known, dtype
        if key not in found:
            X, Y, Z = with_empty
            model = make(
                validation_fraction=0.25, label_features=Z.astype(dtype) if known else None
            )
            found[key] = model.fit(X.astype(dtype), Y)
        return found[key]

    return fitted


@settings(max_examples=12)
@given(
    form=st.sampled_from(sorted(FORMS)),
    of_labels=st.sampled_from(sorted(FORMS)),
    seed=st.integers(0, 2**16),
    known=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_fits(form, of_labels, seed, known, dtype, make, with_empty, expected):
    X, Z = (with_empty[i].astype(dtype) for i in (0, 2))
    own = {"label_features": FORMS[of_labels](Z, seed) if known else None}
    model = make(validation_fraction=0.25, **own).fit(FORMS[form](X, seed), with_empty[1])
    assert as_bytes(model, X) == as_bytes(expected(known, dtype), X)


@settings(max_examples=20)
@given(
    form=st.sampled_from(sorted(FORMS)),
    seed=st.integers(0, 2**16),
    known=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_answers(form, seed, known, dtype, with_empty, expected):
    X, model = with_empty[0].astype(dtype), expected(known, dtype)
    assert answers(model, FORMS[form](X, seed)) == answers(model, X)

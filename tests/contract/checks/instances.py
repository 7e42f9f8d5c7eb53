"""Checks of X: however it is stored the answers are the same, and it is left as it was."""

import tempfile
from pathlib import Path

import joblib
import numpy as np
import scipy.sparse as sp

from checks.comparing import (
    answers,
    asks,
    expect,
    expect_refused,
    expect_same,
    unfitted,
)
from checks.problems import awkward, made
from checks.stored_forms import CONTAINERS, FORMS, OF_DENSE, beyond, read_only
from checks.targets import expect_sound


def check_containers_of_X(name, estimator):
    """Check that all of scipy's containers of X give the same model and answers."""
    X, Y = awkward()
    expected = unfitted(estimator).fit(X, Y)
    for container in CONTAINERS:
        x = container(X)
        model = unfitted(estimator).fit(x, Y)
        expect_same(name, f"where X is a {container.__name__}", model, expected, x, X_of_expected=X)


def check_stored_forms_of_X(name, estimator):
    """Check that zeros, repetitions, order and width of indices change nothing."""
    X, Y = awkward()
    expected = unfitted(estimator).fit(X, Y)
    for form, store in FORMS.items():
        x = store(X, np.random.default_rng(0))
        model = unfitted(estimator).fit(x, Y)
        when = f"where X is in another form ({form})"
        expect_same(name, when, model, expected, x, X_of_expected=X)
    narrow = X.astype(np.float32)
    x = FORMS["zeros and halves"](narrow, np.random.default_rng(0))
    model, expected = unfitted(estimator).fit(x, Y), unfitted(estimator).fit(narrow, Y)
    when = "where an X of float32 has repeated entries and stored zeros"
    expect_same(name, when, model, expected, x, X_of_expected=narrow)
    of_dense = unfitted(estimator).fit(X.toarray(), Y)
    for form in ("Fortran", "negative zeros"):
        x = OF_DENSE[form](X, np.random.default_rng(0))
        model = unfitted(estimator).fit(x, Y)
        when = f"where X is dense in another form ({form})"
        expect_same(name, when, model, of_dense, x, X_of_expected=X.toarray())


def check_sparse_and_dense_X(name, estimator):
    """Check that a sparse and a dense X have the same answers."""
    X, Y = awkward()
    for x in (X, X.toarray()):
        model = unfitted(estimator).fit(x, Y)
        expect_same(name, "for a sparse and a dense X", model, model, X, X.toarray())


def check_float32_X(name, estimator):
    """Check that X of float32 is taken, in a fit and by a float64 model."""
    X, Y = made()
    for x in (X, X.astype(np.float32)):
        model = unfitted(estimator).fit(x, Y)
        expect_sound(name, "X is of float32", model, X.astype(np.float32))


def check_empty_rows_of_X(name, estimator):
    """Check that instances without a feature have finite answers."""
    X, Y = made()
    x = X.toarray()
    x[:6] = 0
    model = unfitted(estimator).fit(sp.csr_array(x), Y)
    expect_sound(name, "X has rows without features", model, sp.csr_array(x))
    expect_sound(name, "X has no features at all", model, sp.csr_array((3, 15)))


def check_indices_of_X(name, estimator):
    """Check that a column index outside the shape of X is refused everywhere."""
    X, Y = made()
    says = f"a column index {X.shape[1]} in an X of shape {X.shape}"
    expect_refused(name, says, unfitted(estimator).fit, beyond(X), Y)
    for method, ask in asks(unfitted(estimator).fit(X, Y)).items():
        expect_refused(name, f"{says}, in {method},", ask, beyond(X))


def check_n_features(name, estimator):
    """Check that an X of another width is refused by every answer."""
    X, Y = made()
    for method, ask in asks(unfitted(estimator).fit(X, Y)).items():
        for x in (X[:, :14], sp.hstack([X, X], format="csr"), X[:, :14].toarray()):
            says = f"an X of {x.shape[1]} features after a fit to 15, in {method},"
            expect_refused(name, says, ask, x)


def check_read_only_memory(name, estimator):
    """Check that read-only memory and mapped files train the same model."""
    X, Y = awkward()
    expected = unfitted(estimator).fit(X, Y)
    of_unsorted = read_only(FORMS["zeros"](X, np.random.default_rng(0)))
    of_columns = read_only(Y.tocsc())
    for x, y in ((read_only(X), read_only(Y)), (of_unsorted, of_columns)):
        model = unfitted(estimator).fit(x, y)
        expect_same(name, "where X and y are read-only", model, expected, x, X)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        joblib.dump((X, Y), Path(folder, "data"))
        x, y = joblib.load(Path(folder, "data"), mmap_mode="r")
        model = unfitted(estimator).fit(x, y)
        expect_same(name, "where X and y are mapped from a file", model, expected, x, X)
        del x, y, model


def check_inputs_are_left_alone(name, estimator):
    """Check that no array of X or y is changed or sorted by any call."""
    rng = np.random.default_rng(0)
    x, y = (FORMS["zeros"](part, rng) for part in made())
    before = [
        (which, part, getattr(M, part), getattr(M, part).copy())
        for which, M in (("X", x), ("y", y))
        for part in ("data", "indices", "indptr")
    ]
    model = unfitted(estimator).fit(x, y)
    answers(model, x)
    for call in (lambda: None, lambda: model.score(x, y)):
        call()
        for which, part, array, copy in before:
            expect(
                np.array_equal(array, copy),
                name,
                f"{which}.{part} must be left as it was",
                f"{(array != copy).sum()} other values",
            )
    for which, M, part in (("X", x, "indices"), ("y", y, "indices")):
        kept = next(array for w, p, array, _ in before if (w, p) == (which, part))
        expect(
            M.nnz == len(kept),
            name,
            f"{which} must keep its {len(kept)} stored entries",
            str(M.nnz),
        )

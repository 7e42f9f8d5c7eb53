"""Checks of y: its container and dtype come back, and how it is stored changes nothing."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from checks.comparing import (
    METHODS,
    asks,
    dense,
    described,
    expect,
    expect_refused,
    expect_same,
    expect_same_state,
    unfitted,
)
from checks.problems import awkward, easy, indicator_of, made
from checks.stored_forms import (
    CONTAINERS,
    FORMS,
    NO_INDICATORS,
    OF_DENSE,
    beyond,
    repeated,
)

DTYPES = (bool, np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64)


def check_predict_follows_sparse_y(name, estimator):
    """Check that ``predict`` is a canonical CSR, a matrix or an array as y was."""
    X, Y = awkward()
    first = unfitted(estimator).fit(X, Y)
    for container in CONTAINERS:
        model = unfitted(estimator).fit(X, container(Y))
        expect_sparse(name, "predict", model.predict(X), container, Y.shape)
        when = f"after a fit to a {container.__name__}"
        if issubclass(container, sp.sparray):
            expect_same(name, when, model, first, X)
            continue
        differs = dense(model.predict(X)) != dense(first.predict(X))
        expect(
            not differs.any(), name, f"predict must be the same {when}", f"{differs.sum()} others"
        )
        expect_same_state(name, when, model, first)


def check_scores_follow_sparse_y(name, estimator):
    """Check that scores and probabilities are a finite, canonical CSR, as y was."""
    X, Y = made()
    for container in (sp.csr_matrix, sp.csr_array, sp.csc_array):
        model = unfitted(estimator).fit(X, container(Y))
        for method in METHODS[1:]:
            if hasattr(model, method):
                answer = getattr(model, method)(X)
                expect_sparse(name, method, answer, container, Y.shape)
                expect(
                    np.isfinite(answer.data).all(),
                    name,
                    f"{method} must be finite",
                    f"{answer.data[~np.isfinite(answer.data)][:3].tolist()}",
                )


def expect_sparse(name: str, method: str, answer: Any, container: Any, shape: Any) -> None:
    """Raise unless an answer is a canonical CSR of a shape, and of the kind of a container."""
    kind = sp.csr_matrix if issubclass(container, sp.spmatrix) else sp.csr_array
    says = f"{method} must be a {kind.__name__} of shape {shape} after a fit to a "
    expect(type(answer) is kind and answer.shape == shape, name, says + container.__name__, answer)
    expect(
        answer.has_canonical_format,
        name,
        f"{method} must have sorted indices without repetitions",
        "unsorted or repeated ones",
    )


def check_answers_follow_dense_y(name, estimator):
    """Check that a dense y has dense answers, the same as entries of sparse ones."""
    X, Y = made()
    of_sparse = unfitted(estimator).fit(X, Y)
    for y in (Y.toarray(), Y.toarray().astype(int).tolist()):
        model = unfitted(estimator).fit(X, y)
        for method in METHODS:
            if not hasattr(model, method):
                continue
            answer, other = getattr(model, method)(X), getattr(of_sparse, method)(X)
            expect(
                type(answer) is np.ndarray and answer.shape == Y.shape,
                name,
                f"{method} must be an ndarray of shape {Y.shape} after a fit to a dense indicator",
                answer,
            )
            held = sp.coo_array(other) if sp.issparse(other) else sp.coo_array(np.ones(Y.shape))
            at = held.coords
            gap = np.abs(answer[at].astype(float) - dense(other)[at].astype(float)).max(initial=0)
            expect(
                gap <= 1e-6 * max(1, np.abs(dense(other)[at]).max(initial=0)),
                name,
                f"{method} must be the same after a fit to a sparse and to a dense indicator",
                f"a difference of {gap:.3g}",
            )
            if method == "predict":
                expect(
                    (answer == dense(other)).all(),
                    name,
                    "predict must name the same labels after a sparse and a dense fit",
                    f"{(answer != dense(other)).sum()} others",
                )


def check_classes(name, estimator):
    """Check that ``predict`` holds classes in one dimension after a 1-D fit."""
    X, places = easy()
    y = np.array(["ape", "cat", "emu", "gnu"])[places]
    predicted = unfitted(estimator).fit(X, y).predict(X)
    expect(
        np.shape(predicted) == y.shape and np.isin(predicted, y).all(),
        name,
        f"predict must be an array of classes of shape {y.shape} after a 1-D fit",
        predicted,
    )


def check_dtype_of_y(name, estimator):
    """Check that ``predict`` has the dtype of y, and scores do not depend on it."""
    X, Y = awkward()
    for container in (sp.csr_array, sp.csr_array.toarray):
        expected = unfitted(estimator).fit(X, container(Y))
        for dtype in DTYPES:
            model = unfitted(estimator).fit(X, container(Y).astype(dtype))
            predicted = model.predict(X)
            kind = "sparse" if container is sp.csr_array else "dense"
            expect(
                getattr(predicted, "dtype", None) == dtype,
                name,
                f"predict must have the dtype of a {kind} y, {np.dtype(dtype)}",
                predicted,
            )
            for method in METHODS[1:]:
                if hasattr(model, method):
                    a, b = (dense(getattr(one, method)(X)) for one in (model, expected))
                    says = f"{method} must not depend on the dtype of y, {np.dtype(dtype)}"
                    expect(
                        a.dtype == b.dtype and (a == b).all(),
                        name,
                        says,
                        f"{a.dtype}, other values",
                    )
            expect_same_state(name, f"for a y of {np.dtype(dtype)}", model, expected)


def check_stored_forms_of_y(name, estimator):
    """Check that stored zeros, order, widths and formats of y change nothing."""
    X, Y = awkward()
    rng = np.random.default_rng(0)
    expected = unfitted(estimator).fit(X, Y)
    for form, store in FORMS.items():
        if form in NO_INDICATORS:
            continue
        model = unfitted(estimator).fit(X, store(Y, rng))
        expect_same(name, f"after a fit to y in another form ({form})", model, expected, X)
    of_dense = unfitted(estimator).fit(X, Y.toarray())
    model = unfitted(estimator).fit(X, OF_DENSE["Fortran"](Y, rng))
    expect_same(name, "after a fit to a dense y in Fortran order", model, of_dense, X)


def check_repeated_entries_of_y(name, estimator):
    """Check that a label that is stored twice in a row is refused, or counts once."""
    X, Y = awkward()
    try:
        model = unfitted(estimator).fit(X, repeated(Y))
    except (ValueError, TypeError):
        return
    expected = unfitted(estimator).fit(X, Y)
    expect_same(name, "where a label is stored twice in a row of y", model, expected, X)


def check_indices_of_y(name, estimator):
    """Check that a column index outside the shape of y is refused."""
    X, Y = made()
    expect_refused(
        name,
        f"a column index {Y.shape[1]} in a y of shape {Y.shape}",
        unfitted(estimator).fit,
        X,
        beyond(Y),
    )


def check_length_of_y(name, estimator):
    """Check that a sparse y with fewer rows than X is refused."""
    X, Y = made()
    expect_refused(name, "a y of 50 rows with an X of 60", unfitted(estimator).fit, X, Y[:50])


def check_two_label_columns(name, estimator):
    """Check that two columns are two labels, and no binary problem."""
    X, Y = made()
    for y in (Y[:, [0, 1]], Y[:, [0, 1]].toarray()):
        model = unfitted(estimator).fit(X, y)
        for method, answer in ((m, ask(X)) for m, ask in asks(model).items() if m in METHODS):
            expect(
                getattr(answer, "shape", ()) == (60, 2),
                name,
                f"{method} must have shape (60, 2) after a fit to two label columns",
                answer,
            )


def check_single_label_column(name, estimator):
    """Check that a y of one column is refused, or answered by one column."""
    X, Y = made()
    try:
        model = unfitted(estimator).fit(X, Y[:, [1]])
    except (ValueError, TypeError):
        return
    predicted = model.predict(X)
    expect(
        sp.issparse(predicted) and predicted.shape == (60, 1),
        name,
        "one sparse label column must be refused, or predict must be a CSR of shape (60, 1)",
        predicted,
    )


def check_rows_without_labels(name, estimator):
    """Check that rows of y without a label are taken, and answers are finite."""
    X, Y = made()
    y = Y.toarray()
    y[:6] = 0
    expect_sound(name, "y has rows without a label", unfitted(estimator).fit(X, sp.csr_array(y)), X)


def check_labels_without_positives(name, estimator):
    """Check that a label that no row has keeps its column and is not predicted."""
    X, Y = made()
    unseen = [0, 3, 6]
    y = np.zeros((60, 8))
    y[:, [1, 2, 4, 5, 7]] = Y.toarray()
    model = unfitted(estimator).fit(X, sp.csr_array(y))
    expect_sound(name, "y has columns without a label", model, X)
    predicted = dense(model.predict(X))
    expect(predicted.shape == y.shape, name, f"predict must have shape {y.shape}", predicted)
    expect(
        not predicted[:, unseen].any(),
        name,
        "a label without positives must not be predicted",
        f"{predicted[:, unseen].sum():g} predictions",
    )


def check_labels_on_every_row(name, estimator):
    """Check that a label that all rows have is taken, beside others."""
    X, places = easy()
    y = np.c_[indicator_of(places).toarray(), np.ones(60)]
    model = unfitted(estimator).fit(X, sp.csr_array(y))
    expect_sound(name, "a label is on every row", model, X)


def expect_sound(name: str, when: str, model: Any, X: Any) -> None:
    """Raise unless all answers have a row for each instance, and none holds NaN or +inf."""
    n = X.shape[0]
    for method, answer in ((m, part) for m, ask in asks(model).items() for part in _parts(ask(X))):
        values = dense(answer)
        expect(values.shape[0] == n, name, f"{method} must have {n} rows where {when}", answer)
        if values.dtype.kind == "f":
            expect(
                not np.isnan(values).any() and not (values == np.inf).any(),
                name,
                f"{method} must be finite where {when}",
                f"NaN or inf in a {described(answer)}",
            )


def _parts(answer: Any) -> tuple:
    return answer if isinstance(answer, tuple) else (answer,)

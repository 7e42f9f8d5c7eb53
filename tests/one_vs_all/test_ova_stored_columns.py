"""Stored zeros do not move a bit of explanations, nor of scores added from columns and lists."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc import OvALinearXC

REPORT = ("n_iter", "n_products", "objective", "gradient_norm", "pruning_increase")


def stored_otherwise(matrix, form, rng):
    """Return a sparse matrix of the same values, stored in another form."""
    matrix = sp.csr_array(matrix)
    n, d = matrix.shape
    if form in ("zeros", "zeros and repetitions"):
        rows, columns = np.nonzero(matrix.toarray() == 0)
        chosen = rng.random(len(rows)) < 0.3
        coo = matrix.tocoo()
        data = np.concatenate([coo.data, np.zeros(chosen.sum(), matrix.dtype)])
        data[len(coo.data) :: 2] *= -1  # -0.0 too
        where = [
            np.concatenate([c, more[chosen]])
            for c, more in zip(coo.coords, (rows, columns), strict=True)
        ]
        other = sp.coo_array((data, tuple(where)), shape=(n, d)).tocsr()
        if form == "zeros":
            return other
        matrix = other
    if form.endswith("repetitions"):  # in halves, which sum to the same bits
        lengths = np.diff(matrix.indptr)
        order = np.concatenate(
            [
                matrix.indptr[i] + rng.permutation(np.repeat(np.arange(lengths[i]), 2))
                for i in range(n)
            ]
            or [np.empty(0)]
        ).astype(int)
        return sp.csr_array(
            (matrix.data[order] / 2, matrix.indices[order], 2 * matrix.indptr), shape=(n, d)
        )
    if form == "order":
        order = np.concatenate(
            [
                rng.permutation(np.arange(*pair))
                for pair in zip(matrix.indptr, matrix.indptr[1:], strict=False)
            ]
        )
        return sp.csr_array(
            (matrix.data[order], matrix.indices[order], matrix.indptr), shape=(n, d)
        )
    if form == "int64":
        matrix.indices, matrix.indptr = (
            matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        )  # fmt: skip
        return matrix
    return matrix.asformat(form)


def assert_same_bytes(a, b):
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(a.coef_, name), getattr(b.coef_, name))
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    for name in REPORT:
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name], name)


def assert_same_answers(model, X, other):
    for a, b in zip(model.predict_topk(X, 7), model.predict_topk(other, 7), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        model.decision_function(X).toarray(), model.decision_function(other).toarray()
    )


@pytest.mark.parametrize("form", ["zeros", "repetitions", "order", "int64", "csc"])
@pytest.mark.parametrize("n_labels", [30, 400])
def test_prediction_with_posting_lists_and_columns(n_labels, form, make_xy):
    """Columns are added in fours: a stored zero would regroup them."""
    X, Y = make_xy(n=200, d=60, n_labels=n_labels)
    model = OvALinearXC(prune=0).fit(X, Y)
    assert (len(model._weights.by_feature.columns) > 20) == (n_labels == 400)
    assert_same_answers(model, X, stored_otherwise(X, form, np.random.default_rng(0)))

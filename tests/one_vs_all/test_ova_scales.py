"""Huge and tiny X, weights and C: a right fit, a warning, or an error that names them."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc import OvALinearXC
from sklearn_xc.exceptions import ConvergenceWarning, UnseenLabelWarning
from sklearn_xc.one_vs_all.starts import INITIALISERS, Initialiser

RANGE_ERROR = re.compile(
    r"OvALinearXC: X, C, sample_weight and weights of labels or pairs make numbers too "
    r"(large|small) for float(32|64): X has entries up to \S+ in magnitude, and C times the "
    r"weights is .* Scale X to rows of about unit length, or (lower|raise) C or the weights\."
)

#: Of loss, dtype and container: each pair of loss and dtype is compiled for seconds.
VARIANTS = [
    *(("squared_hinge", np.float32, sp.csr_array), ("squared_hinge", np.float64, np.asarray)),
    *(("huber_hinge", np.float64, sp.csr_array), ("logistic", np.float64, sp.csr_array)),
    ("logistic", np.float64, np.asarray),
]


class Wild(Initialiser):
    """Starts at what it is given."""

    def __init__(self, vector):
        self.vector = vector

    def start(self, prepared, problem, label, positive_sum):
        return self.vector


def small_set(seed=0):
    """Return 30 rows of 8 features, and 4 labels: of a few rows, of one, of all and of none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 8)) * (rng.random((30, 8)) < 0.5)
    Y = np.zeros((30, 4), np.int8)
    Y[:, 0] = X[:, 0] + 0.5 * rng.normal(size=30) > 0.3
    Y[7, 1] = 1
    Y[:, 2] = 1
    return X, Y


def certificate(model, X, Y, weight, label, cost):
    """Return the norm of the gradient of a label's objective, in extended precision."""
    rows = np.hstack([X, np.full((len(X), 1), float(model.fit_intercept))]).astype(np.longdouble)
    w = np.append(model.coef_[[label]].toarray()[0], model.intercept_[label]).astype(np.longdouble)
    sign = np.where(Y[:, label] > 0, 1, -1).astype(np.longdouble)
    margin = sign * (rows @ w)
    if model.loss == "logistic":
        slope = -1 / (1 + np.exp(np.clip(margin, -1000, 1000)))
    else:
        slope = -2 * np.maximum(0, 1 - margin)
        if model.loss == "huber_hinge":
            slope = np.maximum(slope, -2)
    loss = rows.T @ (np.longdouble(cost) * weight.astype(np.longdouble) * sign * slope)
    return np.sqrt(((w + loss) ** 2).sum())


def check_fit(X, Y, weight=None, **parameters):
    """Fit, and assert that nothing went wrong in silence; return the model, or None if refused."""
    model = OvALinearXC(prune=0, max_iter=30, **parameters)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(X, Y, weight)
        except ValueError as error:
            if RANGE_ERROR.match(str(error)):
                return None
            raise
        kinds = {warning.category for warning in caught}
        assert kinds <= {ConvergenceWarning, UnseenLabelWarning}, [str(w.message) for w in caught]
        assert np.isfinite(model.coef_.data).all()
        assert np.isfinite(model.intercept_).all()
        is_solved = model.fit_report_["status"] == "converged"
        assert (ConvergenceWarning in kinds) == (not is_solved[:3].all())  # 3 has no instance
        norms = model.fit_report_["gradient_norm"]
        assert (norms <= model.fit_report_["gradient_tolerance"])[is_solved].all()
        assert np.isfinite(model.fit_report_["gradient_tolerance"]).all()
        dense = X.toarray() if sp.issparse(X) else X
        weight = np.ones(len(dense)) if weight is None else np.asarray(weight, float)
        cost = model._fitted_cost * (model.class_weight or 1.0)
        for label in np.flatnonzero(is_solved):
            norm = certificate(model, dense, Y, weight, label, cost)
            # The sum of rounded terms of either sign.
            rounding = 1e-7 if dense.dtype == np.float32 else 1e-12
            size = (weight * np.sqrt((dense.astype(float) ** 2).sum(axis=1) + 1)).sum()
            assert norm <= model.fit_report_["gradient_tolerance"][label] * 1.001 + (
                rounding * cost * size
            )
        labels, scores = model.predict_topk(X, 4)
        assert np.isfinite(scores).all()
        assert (np.sort(labels, axis=1) == np.arange(4)).all()
    return model


@given(
    exponent=st.integers(-300, 300),
    what=st.sampled_from(["X", "sample_weight", "C", "X and C"]),
    init=st.sampled_from(sorted(INITIALISERS)),
    variant=st.sampled_from(VARIANTS),
    seed=st.integers(0, 5),
)
@settings(max_examples=120)
def test_any_scale_is_fitted_or_warned_of_or_refused(exponent, what, init, variant, seed):
    (X, Y), (loss, dtype, make) = small_set(seed), variant
    scale, parameters, weight = float(f"1e{exponent}"), {"init": init, "loss": loss}, None
    with np.errstate(over="ignore", under="ignore"):
        X = (X * scale if what.startswith("X") else X).astype(dtype)
    if not np.isfinite(X).all():
        return
    if what == "sample_weight":
        weight = np.linspace(1, 3, 30) * scale
    elif what == "C":
        parameters["C"] = scale
    elif what == "X and C":
        parameters["C"] = float(f"1e{min(300, max(-300, -2 * exponent))}")
    check_fit(make(X), Y, weight, **parameters)


def test_a_start_of_another_shape_is_refused():
    X, Y = small_set()
    with pytest.raises(
        ValueError, match=r"init: Wild\(.*must start at vectors of shape \(9,\). Got shape \(8,\)"
    ):
        OvALinearXC(init=Wild(np.zeros(8))).fit(X, Y)


class TestZeroIsOptimal:
    """A label whose gradient at zero is zero is solved, whatever the start."""

    @pytest.mark.parametrize(("init", "loss"), [("msi", "logistic"), ("ovap", "squared_hinge")])
    def test_every_row_is_a_positive_and_a_negative(self, loss, init):
        X = np.tile(small_set()[0], (2, 1))
        Y = np.zeros((60, 2), np.int8)
        Y[:30, 0] = 1
        Y[:20, 1] = 1
        model = OvALinearXC(prune=0, init=init, loss=loss).fit(X, Y)
        assert model.fit_report_["status"][0] == "converged"
        assert model.n_iter_[0] == 0
        assert not model.coef_[[0]].nnz
        assert model.intercept_[0] == 0
        assert model.n_iter_[1] > 0

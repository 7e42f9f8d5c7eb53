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
from sklearn_xc.initialisers import INITIALISERS, Bias, Initialiser, MeanSeparating
from sklearn_xc.losses import LOSSES

RANGE_ERROR = re.compile(
    r"OvALinearXC: X, C, sample_weight and the weights of labels make numbers too (large|small) "
    r"for float(32|64): X has entries up to \S+ in magnitude, and C times the weights is .* "
    r"Scale X to rows of about unit length, or (lower|raise) C or the weights\."
)


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
    what=st.sampled_from(["X", "sample_weight", "C", "both weights", "X and C"]),
    init=st.sampled_from(sorted(INITIALISERS)),
    loss=st.sampled_from(sorted(LOSSES)),
    dtype=st.sampled_from([np.float32, np.float64]),
    make=st.sampled_from([np.asarray, sp.csr_array]),
    seed=st.integers(0, 5),
)
@settings(max_examples=150)
def test_any_scale_is_fitted_or_warned_of_or_refused(exponent, what, init, loss, dtype, make, seed):
    X, Y = small_set(seed)
    scale, parameters, weight = float(f"1e{exponent}"), {"init": init, "loss": loss}, None
    with np.errstate(over="ignore", under="ignore"):
        X = (X * scale if what.startswith("X") else X).astype(dtype)
    if not np.isfinite(X).all():
        return
    if what == "sample_weight":
        weight = np.linspace(1, 3, 30) * scale
    elif what == "C":
        parameters["C"] = scale
    elif what == "both weights":
        parameters |= {"class_weight": scale, "negative_weight": scale}
    elif what == "X and C":
        parameters["C"] = float(f"1e{min(300, max(-300, -2 * exponent))}")
    check_fit(make(X), Y, weight, **parameters)


@pytest.mark.parametrize("init", INITIALISERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-300, -100, -10, 10, 100, 300])
def test_the_unit_of_the_weights_does_not_matter(exponent, dtype, init):
    X, Y = small_set()
    X, Y, unit = X.astype(dtype), Y[:, :2], float(f"1e{exponent}")
    parameters = {"prune": 0, "init": init, "tol": 1e-5}
    expected = OvALinearXC(C=1.0, **parameters).fit(X, Y)
    model = OvALinearXC(C=1 / unit, **parameters).fit(X, Y, np.full(30, unit))
    np.testing.assert_allclose(model.coef_.toarray(), expected.coef_.toarray(), atol=2e-3)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=2e-3)


@pytest.mark.parametrize("power", [3, 60, 1000])
def test_weights_that_are_powers_of_two_do_not_change_a_bit(power):
    X, Y = small_set()
    weight = np.linspace(0.5, 3, 30)
    parameters = {"prune": 0, "tol": 1e-3}
    expected = OvALinearXC(C=1.0, **parameters).fit(X, Y[:, :2], weight * 2)
    model = OvALinearXC(C=2.0**-power, **parameters).fit(X, Y[:, :2], weight * 2.0 ** (power + 1))
    np.testing.assert_array_equal(model.coef_.toarray(), expected.coef_.toarray())
    np.testing.assert_array_equal(model.intercept_, expected.intercept_)


@pytest.mark.parametrize(
    ("scale", "parameters"),
    [
        (1e200, {}),
        (1e160, {"fit_intercept": False}),
        (1e-200, {"fit_intercept": False}),
        (1.0, {"C": 1e308}),
        (1.0, {"C": 1e-308}),
        (1.0, {"class_weight": 1e300, "C": 1e300}),
        (1.0, {"negative_weight": 1e-200, "class_weight": 1e-200, "C": 1e-200}),
    ],
)
def test_what_no_arithmetic_can_hold_is_refused(scale, parameters):
    X, Y = small_set()
    with pytest.raises(ValueError, match=RANGE_ERROR.pattern):
        OvALinearXC(prune=0, **parameters).fit(X * scale, Y)


def test_the_arithmetic_counts():
    X, Y = small_set()
    with pytest.raises(ValueError, match="too large for float32"):
        OvALinearXC(prune=0).fit((1e20 * X).astype(np.float32), Y)
    with pytest.raises(ValueError, match="too small for float32"):
        OvALinearXC(prune=0, C=1e-40).fit(X.astype(np.float32), Y)
    assert check_fit(X, Y, C=1e-40) is not None


@pytest.mark.parametrize("exponent", [-25, -12, 8])
def test_costs_whose_squares_leave_float32(exponent):
    """Squares of the gradient leave its range."""
    X, Y = small_set()
    C = float(f"1e{exponent}") if exponent < 0 else 1e8
    model = OvALinearXC(prune=0, C=C, fit_intercept=exponent < 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if exponent > 0 else "error")
        warnings.simplefilter("ignore", UnseenLabelWarning)
        model.fit(X.astype(np.float32), Y)
    if exponent < 0:  # so near to zero the loss is a line
        expected = 2 * C * (np.where(Y > 0, 1, -1).T @ X)
        np.testing.assert_allclose(model.coef_.toarray(), expected, rtol=1e-3, atol=1e-5 * C)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-30])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_features_that_are_nearly_zero_leave_the_intercepts(make, scale):
    X, Y = small_set()
    model = check_fit(make(X * scale), Y, tol=1e-3)
    assert (model.fit_report_["status"] == "converged").all()
    n_positive = Y.sum(axis=0)
    np.testing.assert_allclose(model.intercept_, (2 * n_positive - 30) / 31, atol=1e-3)


class Wild(Initialiser):
    """Starts at what it is given."""

    def __init__(self, vector):
        self.vector = vector

    def start(self, prepared, problem, label, positive_sum):
        return self.vector


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 1e160, 1e40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")
def test_a_start_without_a_finite_objective_is_replaced_by_zero(loss, make, dtype, value):
    X, Y = small_set()
    X = X.astype(dtype)
    start = np.full(9, value)
    start[::2] *= -1
    model = OvALinearXC(prune=0, init=Wild(start), loss=loss).fit(make(X), Y)
    from_zero = OvALinearXC(prune=0, init="zero", loss=loss).fit(make(X), Y)
    if value != 1e40 and not (value == 1e160 and loss != "squared_hinge"):
        np.testing.assert_array_equal(model.coef_.toarray(), from_zero.coef_.toarray())
        np.testing.assert_array_equal(model.n_iter_, from_zero.n_iter_)
    assert np.isfinite(model.coef_.data).all()


def test_a_start_of_another_shape_is_refused():
    X, Y = small_set()
    with pytest.raises(
        ValueError, match=r"init: Wild\(.*must start at vectors of shape \(9,\). Got shape \(8,\)"
    ):
        OvALinearXC(init=Wild(np.zeros(8))).fit(X, Y)


@pytest.mark.parametrize(
    "init", [Bias(np.nan), Bias("a"), MeanSeparating(np.inf), MeanSeparating(1.0, np.nan)]
)
def test_parameters_of_a_start_that_are_no_numbers_are_refused(init):
    X, Y = small_set()
    with pytest.raises(ValueError, match=r"init: .* must be finite numbers"):
        OvALinearXC(init=init).fit(X, Y)


class TestZeroIsOptimal:
    """A label whose gradient at zero is zero is solved, whatever the start."""

    @pytest.mark.parametrize("init", INITIALISERS)
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_every_row_is_a_positive_and_a_negative(self, dtype, loss, init):
        X = np.tile(small_set()[0].astype(dtype), (2, 1))
        Y = np.zeros((60, 2), np.int8)
        Y[:30, 0] = 1
        Y[:20, 1] = 1
        model = OvALinearXC(prune=0, init=init, loss=loss).fit(X, Y)
        assert model.fit_report_["status"][0] == "converged"
        assert model.n_iter_[0] == 0
        assert not model.coef_[[0]].nnz
        assert model.intercept_[0] == 0
        assert model.n_iter_[1] > 0

    @pytest.mark.parametrize("init", ["msi", "zero", "ovap", np.ones((3, 4))])
    def test_no_features_and_no_intercept(self, init):
        model = OvALinearXC(prune=0, fit_intercept=False, init=init)
        model.fit(np.zeros((5, 4)), np.eye(5, 3, dtype=int))
        assert (model.fit_report_["status"] == "converged").all()
        assert not model.coef_.nnz
        assert (model.fit_report_["gradient_norm"] == 0).all()

    def test_a_gradient_that_is_only_small_is_followed(self):
        X, Y = small_set()
        X = np.tile(X, (2, 1))
        X[30:, 1] *= 1 + 1e-9
        Y = np.repeat([1, 0], 30)
        model = OvALinearXC(prune=0, tol=1e-3).fit(X, Y)
        assert model.n_iter_[0] > 0
        assert model.coef_.nnz


@pytest.mark.parametrize("unit", [0.01, 1e-300])
def test_instances_of_little_weight_do_not_loosen_the_stopping_rule(unit):
    """Below a total weight of 1 it would hold at the start."""
    X, Y = small_set()
    model = OvALinearXC(prune=0, tol=1e-4, C=1 / unit).fit(X, Y, np.full(30, unit))
    expected = OvALinearXC(C=1.0, prune=0, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(model.coef_.toarray(), expected.coef_.toarray(), atol=1e-3)
    report = model.fit_report_
    assert (report["gradient_norm"] <= report["gradient_tolerance"]).all()


@pytest.mark.parametrize("weight", [1e-300, 0.01, 1e305, 1e307])
def test_propensities_need_a_number_of_instances(weight):
    X, Y = small_set()
    model = OvALinearXC(prune=0, class_weight="propensity")
    if weight == 1e305:
        with pytest.raises(ValueError, match=RANGE_ERROR.pattern):
            OvALinearXC(class_weight="propensity").fit(X, Y, np.full(30, weight))
        return
    with pytest.raises(ValueError, match=r"sums to a number of instances, at least 3. Got"):
        model.fit(X, Y, np.full(30, min(weight * 1e2, 1.7e308) if weight > 1 else weight))


class TestPrediction:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
    def test_rows_too_large_to_score_are_refused(self, make, dtype):
        X, Y = small_set()
        model = OvALinearXC(prune=0).fit(make(X.astype(dtype)), Y)
        few, largest = np.eye(2, 8, dtype=dtype), 1e38 if dtype == np.float32 else 1e308
        for method in (model.predict, model.predict_topk, model.decision_function):
            with pytest.raises(
                ValueError, match=r"^OvALinearXC: X has entries up to .* Scale X as"
            ):
                method(make(few * dtype(largest)))
            method(make(few * dtype(largest * 1e-8)))

    def test_float64_rows_beyond_a_float32_model(self):
        X, Y = small_set()
        model = OvALinearXC(prune=0).fit(X.astype(np.float32), Y)
        with pytest.raises(ValueError, match=r"^OvALinearXC: X has entries up to .*e\+60"):
            model.predict_topk(X * 1e60)
        assert np.isfinite(model.predict_topk(X * 1e-60, 4)[1]).all()

    def test_one_row_of_many_is_found(self):
        X, Y = small_set()
        model = OvALinearXC(prune=0).fit(X, Y)
        X[17, 3] = 1e308
        with pytest.raises(ValueError, match=r"up to 1e\+308"):
            model.predict_topk(sp.csr_array(X))


@pytest.mark.parametrize(
    "parameters",
    [{"max_iter": 2**61}, {"tol": 1e-320}, {"tol": 1e308}, {"prune": 1e308}, {"C": 1e-10}],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
def test_absurd_parameters_give_a_finite_model(parameters):
    X, Y = small_set()
    model = OvALinearXC(**parameters).fit(X, Y)
    assert np.isfinite(model.coef_.data).all()
    assert np.isfinite(model.predict_topk(X)[1][:, :4]).all()
    is_solved = model.fit_report_["status"] == "converged"
    norms = model.fit_report_["gradient_norm"]
    assert (norms <= model.fit_report_["gradient_tolerance"])[is_solved].all()


@pytest.mark.parametrize("parameters", [{"max_iter": 2**63}, {"prune": np.inf}, {"C": np.inf}])
def test_absurd_parameters_that_are_refused(parameters):
    X, Y = small_set()
    (name,) = parameters
    with pytest.raises(ValueError, match=name):
        OvALinearXC(**parameters).fit(X, Y)

"""Limits: weights of instances, memory, divergence and overflow."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._state.fitted import sharing
from sklearn_xc.exceptions import MemoryBudgetError

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling|the last rate):sklearn.exceptions.ConvergenceWarning"
)

ANSWERS = ("predict", "predict_topk", "decision_function", "predict_proba", "predict_log_proba")


@pytest.fixture(params=[SoftmaxUMax, ImplicitSoftmaxSGD])
def make(request):
    def make(**parameters):
        return request.param(
            **{"learning_rate": 0.3, "max_iter": 3, "random_state": 0, **parameters}
        )

    return make


class TestTargets:
    def test_one_class_has_all_weight(self, make, xy):
        """It works: the others are still classes."""
        X, _ = xy
        y = np.arange(120) % 3
        model = make(max_iter=30).fit(X, y, (y == 1).astype(float))
        assert model.classes_.tolist() == [0, 1, 2]
        trained = (y == 1) & (np.diff(X.indptr) > 0)
        assert (model.predict(X)[trained] == 1).mean() > 0.8


class TestWeights:
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones(119), r"sample_weight has shape \(119,\), expected \(120,\)"),
            (np.ones((120, 1)), r"sample_weight has shape \(120, 1\), expected \(120,\)"),
            (-np.ones(120), r"sample_weight must not be negative, row 0 holds -1.0"),
            (np.zeros(120), "all entries of sample_weight are zero"),
            (np.full(120, 1e306), r"sample_weight must sum to less than 1e\+304 over all"),
            (np.full(120, 1e307), "sample_weight must sum to less than .* Got inf"),
            (np.full(120, np.nan), "sample_weight contains NaN"),
            (np.full(120, np.inf), "sample_weight contains infinity"),
        ],
        ids=range(8),
    )
    def test_bad_weights(self, weight, message, make, xy):
        with pytest.raises(ValueError, match=message):
            make().fit(*xy, sample_weight=weight)

    @pytest.mark.parametrize("factor", [1e-300, 1e300])
    def test_tiny_and_huge_weights(self, factor, make, xy):
        expected = make().fit(*xy).coef_
        np.testing.assert_allclose(
            make().fit(*xy, np.full(120, factor)).coef_, expected, atol=1e-10
        )


class TestParameters:
    def test_hard_negatives_of_batches(self, xy):
        model = ImplicitSoftmaxSGD(n_hard_negatives=3, batch_size=8, learning_rate=1.0)
        message = "n_hard_negatives=3 needs batch_size=1, as .* share their classes. Got 8."
        with pytest.raises(ValueError, match=message):
            model.fit(*xy)
        assert not [name for name in vars(model) if name.endswith("_")]


class TestMemory:
    def test_too_small_is_refused_before_anything_is_allocated(self, make, xy):
        with pytest.raises(
            MemoryBudgetError,
            match=r"\d\d\.\d KiB are needed and max_memory allows 1.0 KiB.* largest array is the "
            r"weights, 15 classes x 40 features x 8 bytes. Hash the features into fewer",
        ):
            make(max_memory="1KB").fit(*xy)

    def test_copies_count(self, make, xy):
        def needed(**parameters):
            with pytest.raises(MemoryBudgetError) as refused:
                make(max_memory=1, **parameters).fit(*xy)
            return float(re.search(r"([\d.]+) KiB are needed", str(refused.value))[1]), refused

        of_one, _ = needed()
        make(max_memory=f"{of_one + 0.1} KiB").fit(*xy)
        for parameters in ({"early_stopping": True}, {"learning_rate": "auto"}):
            of_two, refused = needed(**parameters)
            assert refused.match(r"2 times \(trials\)")
            assert of_two > of_one + 4.6  # 15 x 40 x 8 bytes
        make(max_memory=f"{of_two + 0.1} KiB", early_stopping=True).fit(*xy)


class TestDivergence:
    def test_float32_weights_that_overflow(self, xy):
        """The error itself, which the test before may never have met."""
        X, Y = xy
        model = SoftmaxUMax(learning_rate=0.1, max_iter=3, random_state=0)
        coef = model.fit(X.astype(np.float32), Y).coef_.copy()
        model.set_params(learning_rate=1e36)
        with pytest.raises(ValueError, match=r"training diverged at learning_rate=1e\+36. Lower"):
            model.fit((X * 1e6).astype(np.float32), Y)
        np.testing.assert_array_equal(model.coef_, coef)

    @pytest.mark.parametrize(("dtype", "factor"), [(np.float32, 1.0), (np.float64, 1000.0)])
    @pytest.mark.parametrize("rate", [1e3, 1e15])
    @pytest.mark.parametrize("batch_size", [1, 8])
    def test_implicit_steps_never_diverge(self, batch_size, rate, factor, dtype, xy):
        X, Y = (xy[0] * factor).astype(dtype), xy[1]
        model = ImplicitSoftmaxSGD(learning_rate=rate, batch_size=batch_size, n_negatives=3,
                                   max_iter=10, random_state=0).fit(X, Y)  # fmt: skip
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_log_proba(X).data).all()


#: Steps that go through code of their own.
STEPS = {
    "U-max": (SoftmaxUMax, {}),
    "U-max, ridge": (SoftmaxUMax, {"alpha": 0.1}),
    "U-max, hard": (SoftmaxUMax, {"n_hard_negatives": 2}),
    "implicit": (ImplicitSoftmaxSGD, {}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_hard_negatives": 2}),
    "batches": (ImplicitSoftmaxSGD, {"batch_size": 4}),
    "batches, ridge": (ImplicitSoftmaxSGD, {"batch_size": 4, "alpha": 0.1}),
}


class TestOverflow:
    """Numbers whose squares, sums or products no float holds: an error, and nothing has changed."""

    @staticmethod
    def make(step, **parameters):
        estimator, own = STEPS[step]
        return estimator(
            **{"learning_rate": 1.0, "max_iter": 3, "random_state": 0, **own, **parameters}
        )

    @staticmethod
    def assert_finite(model, X):
        for values in (model.coef_, model.intercept_, model.fit_report_["loss"]):
            assert np.isfinite(values).all()
        assert np.isfinite(model.predict_proba(X).data).all()

    @pytest.mark.parametrize(("rate", "size"), [(1.0, 1e160), ("auto", 1e307)])
    @pytest.mark.parametrize("step", ["U-max", "implicit", "batches"])
    def test_squares(self, step, rate, size, xy):
        X, Y = xy
        big = X * (size / np.abs(X.data).max())
        message = f"squares of X are beyond the range of float64; X holds values as large as {size}"
        with pytest.raises(ValueError, match=re.escape(message)):
            self.make(step, learning_rate=rate).fit(big, Y)

    @pytest.mark.parametrize(
        ("dtype", "size"),
        [(np.float32, 1e17), (np.float32, 1e30), (np.float64, 1e140), (np.float64, 1e307)],
    )
    @pytest.mark.parametrize("step", STEPS)
    def test_every_call_ends_in_numbers_or_leaves_the_model(self, step, size, dtype, xy):
        X, Y = xy[0].astype(dtype), xy[1]
        big = X.copy()
        big.data *= dtype(size / np.abs(X.data).max())
        assert np.isfinite(big.data).all()
        refused = r"training diverged at .*scale X|beyond the range of float.*Scale X"
        calls = [
            lambda model: model.fit(big, Y),
            lambda model: model.set_params(init="zero").fit(big, Y),
            lambda model: model.set_params(warm_start=True).fit(big, Y),
            lambda model: model.set_params(learning_rate="auto").fit(big, Y),
        ]
        fitted = self.make(step).fit(X, Y)
        fitted_bytes = {k: np.array(v).tobytes() for k, v in vars(fitted).items() if k[-1] == "_"}
        for call in calls:
            model = sharing(fitted, dict(vars(fitted)))  # all arrays are the same
            try:
                call(model)
            except ValueError as error:
                assert re.search(refused, str(error))  # noqa: PT017
                for name in ("coef_", "intercept_", "n_iter_"):
                    assert getattr(model, name) is getattr(fitted, name)
            else:
                self.assert_finite(model, big)
            for name, value in fitted_bytes.items():
                assert np.array(getattr(fitted, name)).tobytes() == value, name

    def test_a_sum_of_squares(self):
        """The square of each row is a float64, their sum is not."""
        X, y = 1.3e154 * np.eye(6)[np.arange(60) % 6], np.arange(60) % 3
        model = SoftmaxUMax(learning_rate=1e-300, init="zero", max_iter=1, random_state=0)
        model.fit(X, y)
        assert np.isfinite(model.intercept_).all()
        assert (model.intercept_ != np.log(1 / 3)).all()

    @pytest.mark.parametrize("container", [sp.csr_array, sp.csr_array.toarray])
    @pytest.mark.parametrize(("dtype", "size"), [(np.float32, 3e38), (np.float64, 1e308)])
    def test_answers(self, container, dtype, size, make, xy):
        """Sums of numbers of both signs: NaN would be among the scores."""
        X, Y = xy[0].astype(dtype), xy[1]
        model = make().fit(X, container(Y))
        top = model.predict_topk(X, 3)
        huge = X.copy()
        huge.data = np.sign(huge.data) * dtype(size)
        message = f"scores are beyond the range of {np.dtype(dtype).name}; X holds values as large"
        for method in ANSWERS:
            with pytest.raises(ValueError, match=message):
                getattr(model, method)(huge)
        np.testing.assert_array_equal(model.predict_topk(X, 3)[0], top[0])

    def test_weights_that_float32_does_not_hold(self, make, xy):
        X, Y = xy
        model = make(warm_start=True).fit(X, Y)
        model.coef_ = model.coef_ * 1e300
        with pytest.raises(ValueError, match="weights are no longer finite; X holds values"):
            model.fit(X.astype(np.float32), Y)


@pytest.mark.parametrize("what", ["targets", "weights", "memory", "hold-out"])
def test_a_failed_fit_leaves_an_earlier_one_intact(what, make, xy):
    """The new X had another width, and names, before something else turned out to be wrong."""
    X, Y = xy
    model = make().fit(X, Y)
    before, top = dict(vars(model)), model.predict_topk(X, 3)
    other = pd.DataFrame(X.toarray()[:, :3], columns=list("abc"))
    y, weight = (2 * Y if what == "targets" else Y), (-np.ones(120) if what == "weights" else None)
    if what == "memory":
        model.set_params(max_memory=10)
    if what == "hold-out":
        model.set_params(early_stopping=True, validation_fraction=0.999)
    with pytest.raises((ValueError, MemoryBudgetError), match=r"must|needed|holds out"):
        model.fit(other, y, sample_weight=weight)
    for name in set(before) - {"max_memory", "early_stopping", "validation_fraction"}:
        assert vars(model)[name] is before[name], name
    for a, b in zip(top, model.set_params(max_memory=None).predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(a, b)

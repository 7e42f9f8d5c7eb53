"""Where training ends: weights of instances, hold-outs, memory, divergence and overflow."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._state import sharing
from sklearn_xc.exceptions import ConvergenceWarning, MemoryBudgetError

#: Rates at which a few epochs end worse than they began are of interest here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(is too high|was still falling|the last rate):sklearn.exceptions.ConvergenceWarning"
)

ANSWERS = ("predict", "predict_topk", "decision_function", "predict_proba", "predict_log_proba")


def learned(model, name):
    """Return an attribute of a fitted model, or a column of its report."""
    return model.fit_report_[name] if name in model.fit_report_ else getattr(model, name)


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

    def test_a_label_on_every_row(self, make, xy):
        X, Y = xy
        model = make(max_iter=20).fit(X, Y)
        assert model.label_counts_[7] == 120
        # It is 0.43 of all labels. There is no intercept: an empty row cannot tell.
        assert model.predict_proba(X).toarray().mean(axis=0).argmax() == 7


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
        for call in (make().fit, make().partial_fit):
            with pytest.raises(ValueError, match=message):
                call(*xy, sample_weight=weight)

    @pytest.mark.parametrize("factor", [1e-300, 1e300])
    def test_tiny_and_huge_weights(self, factor, make, xy):
        expected = make().fit(*xy).coef_
        np.testing.assert_allclose(
            make().fit(*xy, np.full(120, factor)).coef_, expected, atol=1e-10
        )


class TestParameters:
    def test_more_negatives_than_classes_take_all(self, make, xy):
        X, Y = xy
        a, b = (make(n_negatives=m).fit(X, Y) for m in (14, 1000))
        np.testing.assert_array_equal(a.coef_, b.coef_)

    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_hard_negatives_of_batches(self, method, xy):
        model = ImplicitSoftmaxSGD(n_hard_negatives=3, batch_size=8, learning_rate=1.0)
        message = "n_hard_negatives=3 needs batch_size=1, as .* share their classes. Got 8."
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(*xy)
        assert not [name for name in vars(model) if name.endswith("_")]
        model.set_params(batch_size=1, max_iter=2, random_state=0)
        assert np.isfinite(getattr(model, method)(*xy).coef_).all()

    def test_a_batch_larger_than_the_data(self, xy):
        model = ImplicitSoftmaxSGD(batch_size=10_000, n_negatives=5, learning_rate=100.0,
                                   max_iter=30, random_state=0).fit(*xy)  # fmt: skip
        assert model.fit_report_["log_loss"][-1] < 0.9 * np.log(15)

    def test_nothing_left_beside_what_is_held_out(self, make):
        X = np.array([[1.0, 0.0], [1.0, 0.0]])
        with pytest.raises(ValueError, match="early_stopping holds out 1 of 1 distinct instances"):
            make(early_stopping=True).fit(X, sp.csr_array([[1, 0], [1, 0]]))

    def test_early_stopping_that_comes_too_late_warns(self, make, xy, monkeypatch):
        """By log-loss: ranks are perfect sooner."""
        monkeypatch.setattr("sklearn_xc.softmax.judge._MOST_CLASSES", 0)
        model = make(early_stopping=True, learning_rate=1e-3, tol=0.0, init="zero")
        with pytest.warns(ConvergenceWarning, match=r"still falling by over tol=0 after .* Raise"):
            model.fit(*xy)

    def test_a_model_far_worse_than_guessing_warns(self, xy):
        model = SoftmaxUMax(learning_rate=1e3, max_iter=3, random_state=0)
        with pytest.warns(ConvergenceWarning, match=r"has 2.71: learning_rate=1000 is too"):
            model.fit(*xy)


class TestMemory:
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_too_small_is_refused_before_anything_is_allocated(self, method, make, xy):
        with pytest.raises(
            MemoryBudgetError,
            match=r"\d\d\.\d KiB are needed and max_memory allows 1.0 KiB.* largest array is the "
            r"weights, 15 classes x 40 features x 8 bytes. Hash the features into fewer",
        ):
            getattr(make(max_memory="1KB"), method)(*xy)

    def test_copies_count(self, make, xy):
        def needed(**parameters):
            with pytest.raises(MemoryBudgetError) as refused:
                make(max_memory=1, **parameters).fit(*xy)
            return float(re.search(r"([\d.]+) KiB are needed", str(refused.value))[1]), refused

        of_one, _ = needed()
        make(max_memory=f"{of_one + 0.1} KiB").fit(*xy)
        for parameters in ({"average": True}, {"early_stopping": True}, {"learning_rate": "auto"}):
            of_two, refused = needed(**parameters)
            assert refused.match(r"2 times \(average, trials\)")
            assert of_two > of_one + 4.6  # 15 x 40 x 8 bytes
        of_two, _ = needed(average=True)
        make(max_memory=f"{of_two + 0.1} KiB", average=True).fit(*xy)


class TestDivergence:
    @pytest.mark.parametrize("rate", [1e3, 1e6, 1e30])
    @pytest.mark.parametrize("parameters", [{}, {"alpha": 0.1}, {"early_stopping": True}], ids=str)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning")
    def test_weights_stay_finite_or_the_rate_is_named(self, dtype, parameters, rate, make, xy):
        X, Y = xy
        model = make(learning_rate=0.1).fit(X.astype(dtype), Y)
        coef, before = model.coef_.copy(), dict(vars(model))
        model.set_params(learning_rate=rate, max_iter=10, **parameters)
        try:
            model.fit((X * 1000).astype(dtype), Y)
        except ValueError as error:
            assert f"training diverged at learning_rate={rate:g}" in str(error)  # noqa: PT017
            assert "Lower learning_rate, or scale X" in str(error)  # noqa: PT017
            np.testing.assert_array_equal(model.coef_, coef)
            assert model.u_.tobytes() == before["_normalisers"].u.tobytes()
        else:
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(model.u_).all()
            assert np.isfinite(model.fit_report_["log_loss"]).all()
            assert (model.coef_ != coef).any()

    def test_float32_weights_that_overflow(self, xy):
        """The error itself, which the test before may never have met."""
        X, Y = xy
        model = SoftmaxUMax(learning_rate=0.1, max_iter=3, random_state=0)
        coef = model.fit(X.astype(np.float32), Y).coef_.copy()
        model.set_params(learning_rate=1e36)
        with pytest.raises(ValueError, match=r"training diverged at learning_rate=1e\+36. Lower"):
            model.fit((X * 1e6).astype(np.float32), Y)
        np.testing.assert_array_equal(model.coef_, coef)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("factor", [1.0, 1000.0])
    @pytest.mark.parametrize("rate", [1e3, 1e6, 1e9, 1e15])
    @pytest.mark.parametrize("batch_size", [1, 8])
    def test_implicit_steps_never_diverge(self, batch_size, rate, factor, dtype, xy):
        X, Y = (xy[0] * factor).astype(dtype), xy[1]
        model = ImplicitSoftmaxSGD(learning_rate=rate, batch_size=batch_size, n_negatives=3,
                                   max_iter=10, random_state=0).fit(X, Y)  # fmt: skip
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_log_proba(X).data).all()

    def test_auto_survives_the_rates_that_diverge(self, make, xy):
        X, Y = xy
        model = make(learning_rate="auto", max_iter=20).fit(X * 5, Y)
        assert np.isfinite(model.coef_).all()
        assert model.fit_report_["log_loss"][-1] < np.log(15)


#: Steps that go through code of their own.
STEPS = {
    "U-max": (SoftmaxUMax, {}),
    "U-max, ridge": (SoftmaxUMax, {"alpha": 0.1}),
    "U-max, hard": (SoftmaxUMax, {"n_hard_negatives": 2}),
    "implicit": (ImplicitSoftmaxSGD, {}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_hard_negatives": 2}),
    "average": (ImplicitSoftmaxSGD, {"average": True}),
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
        for name in ("coef_", "intercept_", "u_", "loss"):
            assert np.isfinite(learned(model, name)).all(), name
        assert np.isfinite(model.predict_proba(X).data).all()

    @pytest.mark.parametrize("size", [1e160, 1e200, 1e307])
    @pytest.mark.parametrize("rate", [1.0, "auto"])
    @pytest.mark.parametrize("step", STEPS)
    def test_squares(self, step, rate, size, xy):
        X, Y = xy
        big = X * (size / np.abs(X.data).max())
        message = f"squares of X are beyond the range of float64; X holds values as large as {size}"
        with pytest.raises(ValueError, match=re.escape(message)):
            self.make(step, learning_rate=rate).fit(big, Y)
        with pytest.raises(ValueError, match=re.escape(message)):
            self.make(step, learning_rate=rate).partial_fit(big, Y)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("size", [1e17, 1e30, 1e140, 1e160, 1e307])
    @pytest.mark.parametrize("step", STEPS)
    def test_every_call_ends_in_numbers_or_leaves_the_model(self, step, size, dtype, xy):
        if dtype == np.float32 and size > 1e38:
            pytest.skip("float32 has no such numbers")
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
            lambda model: model.partial_fit(big, Y),
            lambda model: model.partial_fit(big, Y, sample_ids=np.arange(120)),
        ]
        fitted = self.make(step).fit(X, Y)
        fitted_bytes = {k: np.array(v).tobytes() for k, v in vars(fitted).items() if k[-1] == "_"}
        u = fitted.u_.copy()
        for call in calls:
            model = sharing(fitted, dict(vars(fitted)))  # all arrays are the same
            try:
                call(model)
            except ValueError as error:
                assert re.search(refused, str(error))  # noqa: PT017
                for name in (
                    "coef_",
                    "intercept_",
                    "_normalisers",
                    "_average",
                    "_population",
                    "n_iter_",
                ):
                    assert getattr(model, name) is getattr(fitted, name)
            else:
                self.assert_finite(model, big)
            for name, value in fitted_bytes.items():
                assert np.array(getattr(fitted, name)).tobytes() == value, name
            np.testing.assert_array_equal(fitted.u_, u)
        first = self.make(step)
        try:
            first.partial_fit(big, Y)
        except ValueError as error:
            assert re.search(refused, str(error))  # noqa: PT017
            assert not [name for name in vars(first) if name.endswith("_")]
        else:
            self.assert_finite(first, big)

    @pytest.mark.parametrize(
        ("step", "dtype", "size"),
        [
            ("U-max", np.float32, 1e25),
            ("U-max, hard", np.float32, 1e25),
            ("batches", np.float32, 1e25),
            ("batches", np.float32, 1e37),
            ("implicit", np.float64, 1e200),
        ],
    )
    @pytest.mark.parametrize("is_first", [False, True])
    def test_partial_fit_raises(self, is_first, step, dtype, size, xy):
        """The error itself, which the test before may never have met."""
        X, Y = xy[0].astype(dtype), xy[1]
        model = self.make(step, init="zero")
        if not is_first:
            model.partial_fit(X, Y)
        with pytest.raises(
            ValueError, match=r"diverged at learning_rate=1\. Lower|range of float64"
        ):
            model.partial_fit(X * dtype(size), Y)

    @pytest.mark.parametrize("way", ["fit", "partial_fit"])
    def test_a_sum_of_squares(self, way):
        """The square of each row is a float64, their sum is not."""
        X, y = 1.3e154 * np.eye(6)[np.arange(60) % 6], np.arange(60) % 3
        model = SoftmaxUMax(learning_rate=1e-300, init="zero", max_iter=1, random_state=0)
        getattr(model, way)(X, y)
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


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("what", ["targets", "weights", "memory", "hold-out", "sample_ids"])
def test_a_failed_fit_leaves_an_earlier_one_intact(what, warm_start, make, xy):
    """The new X had another width, and names, before something else turned out to be wrong."""
    X, Y = xy
    model = make(warm_start=warm_start).fit(X, Y)
    before = dict(vars(model))
    top, u, coef = model.predict_topk(X, 3), model.u_.copy(), model.coef_.copy()
    other = X if warm_start else pd.DataFrame(X.toarray()[:, :3], columns=list("abc"))
    y, weight = (2 * Y if what == "targets" else Y), (-np.ones(120) if what == "weights" else None)
    arguments = {"sample_ids": np.zeros(120, int)} if what == "sample_ids" else {}
    if what == "memory":
        model.set_params(max_memory=10)
    if what == "hold-out":
        model.set_params(early_stopping=True, validation_fraction=0.999)
    other = X if what == "sample_ids" else other
    with pytest.raises(
        (ValueError, MemoryBudgetError), match=r"must|needed|holds out|numbers of their own"
    ):
        (model.partial_fit if what == "sample_ids" else model.fit)(
            other, y, sample_weight=weight, **arguments
        )
    for name in set(before) - {"max_memory", "early_stopping", "validation_fraction"}:
        assert vars(model)[name] is before[name], name
    assert model.n_features_in_ == 40
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.coef_, coef)
    np.testing.assert_array_equal(model.u_, u)
    for a, b in zip(top, model.set_params(max_memory=None).predict_topk(X, 3), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "sample_ids", [0, "a", True, {}, [1.5] * 120, sp.csr_array((1, 120)), [[1]]]
)
def test_numbers_of_instances_that_are_none(sample_ids, xy):
    with pytest.raises(ValueError, match="SoftmaxUMax: sample_ids must hold 120 integers"):
        SoftmaxUMax(learning_rate=1.0).partial_fit(*xy, sample_ids=sample_ids)

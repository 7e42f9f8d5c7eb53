"""Where training ends: parameters, weights of instances, memory, divergence, overflow."""

import itertools
import pickle
import re
import types
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc.decomposition import training
from sklearn_xc.exceptions import MemoryBudgetError, RecallWarning
from sklearn_xc.gradients import MessagePassing
from sklearn_xc.losses import MaxMargin
from sklearn_xc.mips import ProductIndex

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")

ANSWERS = ("predict", "predict_topk", "decision_function", "embed")


class TestTargets:
    def test_one_class_has_all_weight(self, make, xy):
        """It works: the others are still classes."""
        X, _ = xy
        y = np.arange(120) % 3
        model = make(max_iter=20, decay=0.94).fit(X, y, (y == 1).astype(float))
        assert model.classes_.tolist() == [0, 1, 2]
        trained = (y == 1) & (np.diff(X.indptr) > 0)
        assert (model.predict(X)[trained] == 1).mean() > 0.8

    @pytest.mark.parametrize("loss", ["margin", "softmax", "triplet"])
    def test_a_label_on_every_row(self, loss, make, xy):
        X, Y = xy
        model = make(loss, max_iter=10, learning_rate=0.3).fit(X, Y)
        assert model.label_counts_[7] == 120
        assert model.decision_function(X).toarray().mean(axis=0).argmax() == 7

    @pytest.mark.parametrize("loss", ["margin", "softmax", "triplet"])
    @pytest.mark.parametrize("gradient", ["exact", "sampled", "mips", "decomp_mips"])
    def test_instances_with_all_labels(self, gradient, loss, make, xy):
        """They have no negatives, and others do."""
        X, Y = xy
        Y = Y[:, :5].tolil()
        Y[:30] = 1
        model = make(loss, gradient=gradient, learning_rate=0.1, sampled_epochs=0.5)
        model.fit(X, Y.tocsr())
        assert np.isfinite(model.coef_).all()
        assert model.coef_.any()


class TestWeights:
    def test_a_tiny_weight_is_a_tiny_step(self, make, xy):
        X, Y = xy[0].toarray(), xy[1]
        small, tiny = (
            make(embedding_dim=None, max_iter=1).fit(X, Y, np.full(120, w)) for w in (1e-6, 1e-12)
        )
        np.testing.assert_allclose(tiny.coef_, 1e-6 * small.coef_, atol=1e-15)
        assert small.fit_report_["loss"][0] == pytest.approx(tiny.fit_report_["loss"][0], rel=1e-4)

    def test_a_huge_weight_is_64_visits(self, make, xy):
        """And weighs what it weighs: the step of a visit is a 64th of it."""
        X, Y = xy[0].toarray()[:2], sp.csr_array([[1, 0, 0], [0, 1, 0]])
        parameters = {
            "embedding_dim": None, "max_iter": 1, "loss": "triplet", "batch_size": 1,
            "average": False,
        }  # fmt: skip
        model = make(learning_rate=1e-9, **parameters).fit(X, Y, [1000.0, 1.0])
        # All scores are 0: the gradient of each visit is the same, with a rate that falls.
        rates = 1e-9 / (1 + np.arange(65) / 65)
        moved = np.linalg.norm(model.coef_[2])
        longest = 1000 / 64 * rates[:64].sum() * np.linalg.norm(X[0])
        assert moved == pytest.approx(longest, rel=0.02)


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"gradient": MessagePassing(n_blocks=0)}, "n_blocks must be a positive .* Got 0"),
            ({"gradient": MessagePassing(n_rounds=-1)}, "n_rounds must be .* Got -1"),
            ({"gradient": MessagePassing(n_rounds=1.0)}, r"n_rounds must be .* Got 1\.0"),
            ({"gradient": MessagePassing(n_rounds=10**12)}, "n_rounds must be .* Got 10{12}"),
            ({"gradient": MessagePassing(n_blocks=7)}, "at most the 6 columns .* Got 7"),
            (
                {"gradient": MessagePassing(), "index": "product"},
                "index must have exact scores.* Got ProductIndex",
            ),
            ({"gradient": MessagePassing}, "must be one of 'decomp_mips', .* Got the class M"),
            ({"index": ProductIndex}, "index must be one of 'exact', .* Got the class P"),
            ({"loss": MaxMargin}, "loss must be one of 'margin', .* Got the class M"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_clashes(self, method, parameters, message, make, xy):
        model = make(**parameters)
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(*xy)
        assert not [name for name in vars(model) if name.endswith("_")]

    def test_more_candidates_than_labels_take_all(self, make, xy):
        a, b = (make(gradient="mips", index="exact", n_candidates=m).fit(*xy) for m in (15, 999))
        np.testing.assert_array_equal(a.coef_, b.coef_)
        assert b.n_candidates_ == 15

    def test_no_more_blocks_than_columns(self, make, xy):
        model = make(gradient=MessagePassing(), embedding_dim=2, sampled_epochs=0).fit(*xy)
        assert np.isfinite(model.coef_).all()

    def test_a_batch_larger_than_the_data(self, make, xy):
        model = make(batch_size=10_000, learning_rate=0.1, max_iter=40).fit(*xy)
        assert model.fit_report_["loss"][-1] < 0.95 * model.fit_report_["loss"][0]

    def test_an_index_that_finds_too_little_warns(self, make):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 16)), np.arange(200)
        model = make(embedding_dim=None, gradient="mips", n_candidates=10, min_recall=0.99)
        message = (
            r"^DecompMIPSClassifier finds 0\.\d+ of the 10 best labels among n_candidates=10, "
            r"expected at least 0.99. Raise n_candidates, or set gradient='exact'"
        )
        with pytest.warns(RecallWarning, match=message):
            model.fit(X, y)
        assert 0 < model.index_recall_ < 0.99
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.set_params(n_candidates=200).fit(X, y)
        assert model.index_recall_ == 1.0

    @pytest.mark.parametrize("k", [0, -1, 1.0, True, None])
    @pytest.mark.parametrize("exact", [True, False])
    def test_k(self, exact, k, make, xy):
        model = make().fit(*xy)
        with pytest.raises(ValueError, match=f"k must be an integer of at least 1. Got {k!r}"):
            model.predict_topk(xy[0], k, exact=exact)


class TestMemory:
    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    def test_too_small_is_refused_before_anything_is_allocated(self, method, make, xy):
        with pytest.raises(
            MemoryBudgetError,
            match=r"\d\d\.\d KiB are needed and max_memory allows 1.0 KiB.* weights, 15 labels "
            "x 6 x 8 bytes and 40 features x 6 x 8 bytes, as much again for their averages.*embed",
        ):
            getattr(make(max_memory="1KB"), method)(*xy)

    @staticmethod
    def needed(make, X, Y, **parameters):
        """Return the KiB that a fit says it needs, and the error."""
        with pytest.raises(MemoryBudgetError) as refused:
            make(max_memory=1, **parameters).fit(X, Y)
        return float(re.search(r"([\d.]+) KiB are needed", str(refused.value))[1]), refused

    def test_sums_of_squares_count(self, make, xy):
        X, Y = xy
        (plain, _), (with_them, refused) = (
            self.needed(make, X, Y, optimizer=kind) for kind in ("sgd", "adagrad")
        )
        assert refused.match(r".*6 x 8 bytes, .*, as much again for adagrad")
        assert with_them - plain == pytest.approx((15 + 40) * 6 * 8 / 1024, abs=0.1)
        make(max_memory=f"{with_them + 0.1} KiB", optimizer="adagrad").fit(X, Y)
        make(max_memory=f"{plain + 0.1} KiB").fit(X, Y)
        assert self.needed(make, X.astype(np.float32), Y)[0] < plain

    def test_without_a_hidden_layer_labels_count(self, make, xy):
        X, Y = xy[0].toarray(), xy[1]
        how = {"embedding_dim": None, "average": False}
        needed, refused = self.needed(make, X, Y, **how)
        assert refused.match(r".*the weights, 15 labels x 40 x 8 bytes\.")
        make(max_memory=f"{needed + 0.1} KiB", **how).fit(X, Y)


class TestDivergence:
    """Gradients are bounded: it takes rates at which float32 overflows."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        return 10 * rng.normal(size=(60, 6)).astype(np.float32), rng.integers(0, 4, 60)

    @pytest.mark.parametrize("loss", ["margin", "softmax", "triplet"])
    @pytest.mark.parametrize("gradient", ["exact", "sampled", "mips"])
    @pytest.mark.parametrize("embedding_dim", [None, 4])
    @pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
    def test_the_rate_is_named(self, embedding_dim, gradient, loss, make, data):
        model = make(loss, gradient=gradient, embedding_dim=embedding_dim, sampled_epochs=0.1)
        coef = model.fit(*data).coef_.copy()
        model.set_params(learning_rate=2e38)
        message = r"training diverged at learning_rate=2e\+38. Lower it, or scale X"
        with pytest.raises(ValueError, match=message):
            model.fit(*data)
        np.testing.assert_array_equal(model.coef_, coef)

    @pytest.mark.parametrize("gradient", ["exact", "sampled"])
    def test_numpy_does_not_warn_before(self, gradient, make, data):
        model = make(gradient=gradient, embedding_dim=None, learning_rate=1e39, sampled_epochs=0.1)
        with pytest.raises(ValueError, match="training diverged"):
            model.fit(*data)

    @pytest.mark.parametrize("method", ["fit", "partial_fit"])
    @pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
    def test_in_the_last_step(self, method, make, data):
        """Of which no loss is seen."""
        model = make(embedding_dim=None, learning_rate=1e39, max_iter=1, batch_size=1000)
        with pytest.raises(ValueError, match="training diverged"):
            getattr(model, method)(*data)

    def test_epochs_at_rates_that_are_too_high_stay_finite(self, make, xy):
        for loss in ("margin", "softmax", "triplet"):
            for scale in (1.0, 1000.0):
                model = make(loss, learning_rate=100.0, max_iter=5).fit(xy[0] * scale, xy[1])
                assert np.isfinite(model.coef_).all()
                assert np.isfinite(model.feature_embedding_).all()


class TestAnEarlierFit:
    """A call that fails changes nothing, in no array that training goes on from either."""

    @pytest.fixture(params=["cold", "warm", "partial"])
    def fitted(self, request, make, xy):
        """Return a model, a call that trains it, and a function that asserts that it is as it was.

        Its last training was a partial fit: it has kept an index.
        """
        model = make(
            gradient="decomp_mips", n_candidates=4, optimizer="adagrad", sampled_epochs=0.1,
            warm_start=request.param == "warm",
        ).partial_fit(*xy)  # fmt: skip
        before, course = dict(vars(model)), dict(vars(model._course))
        arrays = [v for v in [*before.values(), *course.values()] if isinstance(v, np.ndarray)]
        arrays += vars(course["guide"]._asked.watched.index).values()
        arrays = [(a, a.copy()) for a in arrays if isinstance(a, np.ndarray)]
        assert len(arrays) > 12
        top = model.predict_topk(xy[0], 3)
        after = pickle.loads(pickle.dumps(model)).partial_fit(*xy).coef_

        def check(changed=()):
            for name in set(before) - set(changed):
                assert vars(model)[name] is before[name], name
            assert set(vars(model)) == set(before)
            assert vars(model._course) == course
            for array, copy in arrays:
                np.testing.assert_array_equal(array, copy)
            for a, b in zip(top, model.predict_topk(xy[0], 3), strict=True):
                np.testing.assert_array_equal(a, b)
            assert after.shape == model.coef_.shape

        return model, model.partial_fit if request.param == "partial" else model.fit, check

    def test_a_fit_that_diverged_leaves_it_intact(self, fitted, xy, monkeypatch):
        _, call, check = fitted
        plain, calls = training.take_steps, []

        def diverge(*arguments):
            for step in plain(*arguments):
                calls.append(1)
                yield step._replace(loss=np.nan) if len(calls) == 8 else step

        monkeypatch.setattr(training, "take_steps", diverge)
        with pytest.raises(ValueError, match=r"training diverged at learning_rate=1\. Lower"):
            call(*xy)
        assert len(calls) == 8  # it stops at once
        check()

    def test_training_goes_on_as_if_nothing_had_been(self, make, xy, monkeypatch):
        """Also where an index was told of moves that are taken back."""
        own = {"gradient": "decomp_mips", "n_candidates": 4, "sampled_epochs": 0.1}
        models = [make(**own).partial_fit(*xy) for _ in range(2)]
        with monkeypatch.context() as patch:
            plain = training.take_steps
            patch.setattr(
                training, "take_steps",
                lambda *a: (step._replace(loss=np.nan) for step in plain(*a)),
            )  # fmt: skip
            with pytest.raises(ValueError, match="training diverged"):
                models[0].partial_fit(*xy)
        for model in models:
            model.partial_fit(*xy)
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


class TestLargeNumbers:
    """Overflow is an error that names what was large, wherever it happens."""

    PLACES = types.MappingProxyType(
        {"X": (1e200, 1.0, 1.0), "weight": (1.0, 1e300, 1.0), "rate": (1.0, 1.0, 1e307)}
    )

    @pytest.mark.parametrize("embedding_dim", [None, 4])
    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("kind", ["classes", "indicator"])
    @pytest.mark.parametrize("gradient", ["exact", "sampled", "mips", "decomp_mips"])
    def test_training(self, gradient, kind, place, embedding_dim, make, xy):
        """Of one mini-batch, whose losses are still finite: the weights, or their scores, are not.

        A step of 1e307 may end in finite weights and scores. That is a model, of no use.
        """
        X, Y = xy
        y = Y if kind == "indicator" else X.toarray()[:, :4].argmax(axis=1)
        x_scale, weight, rate = self.PLACES[place]
        own = {
            "batch_size": 1000,
            "max_iter": 1,
            "embedding_dim": embedding_dim,
            "gradient": gradient,
        }
        for dtype, method in itertools.product((np.float64, np.float32), ("fit", "partial_fit")):
            big = (X * (x_scale if dtype == np.float64 else min(x_scale, 1e36))).astype(dtype)
            model = make(sampled_epochs=0.0, **own).fit(X.astype(dtype), y)
            before = vars(model).copy()
            model.set_params(learning_rate=rate)
            try:
                getattr(model, method)(big.toarray(), y[::-1], sample_weight=np.full(120, weight))
            except ValueError as error:
                found = str(error)
                assert "training diverged at learning_rate=" in found
                assert f"whose largest is {weight:g}." in found
                assert f"learning_rate={rate:g}. " in found
                del before["learning_rate"]
                assert all(vars(model)[name] is value for name, value in before.items())
            else:
                assert place != "X"
                assert np.isfinite(model.coef_).all()
                assert np.isfinite(model.threshold_)
                assert np.isfinite(model.predict_topk(big, 3)[1]).all()

    def test_the_sum_of_weights(self, make, xy):
        for call in (make().fit, make().partial_fit):
            with pytest.raises(
                ValueError, match=r"sum of sample_weight must be finite, .* 1e\+308"
            ):
                call(*xy, sample_weight=np.full(120, 1e308))

    @pytest.mark.parametrize("weight", [1e-300, 5e-324])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_weights_that_vanish(self, weight, dtype, make, xy):
        """The same model as of a step that vanishes."""
        X, Y = xy[0].astype(dtype), xy[1]
        model = make(max_iter=1).fit(X, Y, np.full(120, weight))
        assert float(np.abs(model.coef_).max()) < 1e-290
        assert np.isfinite(model.fit_report_["loss"]).all()
        assert np.isfinite(model.predict_topk(X, 3)[1]).all()

    @pytest.mark.parametrize("embedding_dim", [None, 6])
    @pytest.mark.parametrize("kind", ["classes", "two classes", "sparse", "dense"])
    def test_answers(self, kind, embedding_dim, make, xy):
        X, Y = xy
        places = X.toarray()[:, :4].argmax(axis=1)
        y = {"classes": places, "two classes": places > 1, "sparse": Y, "dense": Y.toarray()}[kind]
        for dtype, big in ((np.float32, 1e30), (np.float64, 1e300)):
            model = make(embedding_dim=embedding_dim).fit(X.astype(dtype), y)
            model.coef_ = model.coef_ * dtype(big)
            for answer in (*ANSWERS[:3], "search"):
                ask = getattr(model, answer, None) or (lambda x: model.predict_topk(x, exact=False))  # noqa: B023
                message = rf"X has entries that are too large, scores overflow in {np.dtype(dtype)}"
                with pytest.raises(ValueError, match=message):
                    ask(X.astype(dtype) * dtype(1e30 if dtype == np.float32 else 1e300))

    def test_numbers_that_the_type_of_the_model_cannot_hold(self, make, xy):
        for embedding_dim in (None, 6):
            model = make(embedding_dim=embedding_dim).fit(xy[0].astype(np.float32), xy[1])
            for answer in ANSWERS:
                with pytest.raises(ValueError, match=r"entries that are too large, .* in float32"):
                    getattr(model, answer)(xy[0] * 1e60)

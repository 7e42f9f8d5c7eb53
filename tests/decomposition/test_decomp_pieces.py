"""Epochs, rates, squares of gradients and the index, over pieces and warm starts."""

import pickle

import joblib
import numpy as np
import pytest

from sklearn_xc.gradients import MessagePassing
from sklearn_xc.losses import MaxMargin
from sklearn_xc.solvers.moving_rows import MovingRows

# A label of the common data has no instance.
pytestmark = pytest.mark.filterwarnings("ignore:.*have no training instance")


@pytest.fixture
def data(xy):
    """Return X and one class per row, "a" to "d"."""
    X, _ = xy
    return X, np.array(list("dbac"))[X.toarray()[:, :4].argmax(axis=1)]


def assert_same_weights(a, b):
    np.testing.assert_array_equal(a.coef_, b.coef_)
    np.testing.assert_array_equal(a.feature_embedding_, b.feature_embedding_)


STEPS = {
    "exact": {"gradient": "exact"},
    "softmax": {"gradient": "exact", "loss": "softmax"},
    "adagrad": {"gradient": "exact", "optimizer": "adagrad", "sampled_epochs": 0.5},
    "sampled": {"gradient": "sampled", "n_candidates": 4},
    "mips": {"gradient": "mips", "index": "exact", "n_candidates": 4, "sampled_epochs": 1.5},
    "dense": {"gradient": "exact", "embedding_dim": None},
}


@pytest.fixture(params=STEPS)
def of_step(request, make):
    return lambda **parameters: make(**{**STEPS[request.param], **parameters})


class TestEpochs:
    def test_a_pass_over_all_is_an_epoch(self, of_step, xy):
        """Also after the first: rates, sampled labels and their order go on."""
        X, Y = xy[0].toarray(), xy[1]
        model = of_step()
        for k in (1, 2, 3):
            model.partial_fit(X, Y)
            fitted = of_step(max_iter=k).fit(X, Y)
            assert_same_weights(model, fitted)
            np.testing.assert_array_equal(model.fit_report_["loss"], fitted.fit_report_["loss"])
            assert model.threshold_ == fitted.threshold_
            assert model.n_iter_ == fitted.n_iter_ == k
        assert len(set(model.fit_report_["loss"])) == 3

    @pytest.mark.parametrize(
        "parameters",
        [
            {"n_candidates": 4, "sampled_epochs": 0.5},
            {"gradient": MessagePassing(), "sampled_epochs": 1.5},
        ],
    )
    def test_an_index_goes_on_from_call_to_call(self, parameters, make, xy):
        X, Y = xy[0].toarray(), xy[1]
        model = make(**{"gradient": "decomp_mips", **parameters})
        for k in (1, 2, 3):
            model.partial_fit(X, Y)
            assert_same_weights(
                model, make(**{"gradient": "decomp_mips", **parameters}, max_iter=k).fit(X, Y)
            )

    def test_the_index_is_kept_between_calls(self, make, xy, monkeypatch):
        from sklearn_xc.mips import ProductIndex

        X, Y = xy[0].toarray(), xy[1]
        built = []
        build = ProductIndex.build
        monkeypatch.setattr(
            ProductIndex, "build", lambda *args: (built.append(args), build(*args))[1]
        )
        model = make(gradient="decomp_mips", sampled_epochs=0, learning_rate=1e-6)
        for _ in range(3):
            model.partial_fit(X[:4], Y[:4])
        assert len(built) < 3
        n_built = len(built)
        model.set_params(n_candidates=3).partial_fit(X[:4], Y[:4])  # another search
        assert len(built) == n_built + 1
        again = pickle.loads(pickle.dumps(model))
        again.partial_fit(X[:4], Y[:4])
        assert len(built) == n_built + 2

    def test_a_fit_is_gone_on_with(self, of_step, xy):
        X, Y = xy[0].toarray(), xy[1]
        model = of_step(max_iter=2).fit(X, Y).partial_fit(X, Y)
        assert_same_weights(model, of_step(max_iter=3).fit(X, Y))
        assert model.n_iter_ == len(model.fit_report_["loss"]) == 3
        assert model.n_samples_fit_ == 240

    def test_a_warm_start_is_gone_on_with(self, of_step, xy):
        X, Y = xy[0].toarray(), xy[1]
        model = of_step(max_iter=2, warm_start=True).fit(X, Y).set_params(max_iter=1).fit(X, Y)
        whole = of_step(max_iter=3).fit(X, Y)
        assert_same_weights(model, whole)
        np.testing.assert_array_equal(model.fit_report_["loss"], whole.fit_report_["loss"][2:])
        assert model.n_iter_ == 1
        assert model.n_samples_fit_ == 120
        np.testing.assert_array_equal(model.label_counts_, whole.label_counts_)
        cold = of_step(max_iter=2).fit(X, Y).set_params(max_iter=1).fit(X, Y)
        assert_same_weights(cold, of_step(max_iter=1).fit(X, Y))

    def test_few_instances_at_a_time_meet_all_labels(self, make, data):
        """With an integer as random_state, labels are not the same in each call."""
        X, y = data
        X = np.hstack([X.toarray(), np.ones((120, 1))])
        model = make(gradient="sampled", n_candidates=1, embedding_dim=None, loss="triplet",
                     learning_rate=1e-3)  # fmt: skip
        rows = np.flatnonzero(y == "a")[:5]
        for _ in range(20):
            model.partial_fit(X[rows], y[rows], classes=list("abcd"))
        assert model.coef_.any(axis=1).all()


class TestFurtherCalls:
    def test_an_epoch_of_the_rate_has_as_many_instances_as_the_first_call_had(self, make):
        """One instance, whose gradient is the same as long as weights are tiny."""
        X, y = np.array([[1.0, 2.0]] * 5), np.array([1, 0, 0, 0, 0])
        for decay in ("auto", 0.5):
            parameters = {"learning_rate": 1e-6, "decay": decay, "average": False}
            model = make("triplet", embedding_dim=None, **parameters)
            model.partial_fit(X[1:], y[1:], classes=[0, 1])
            for visits in range(4, 9):
                before = model.coef_.copy()
                model.partial_fit(X[:1], y[:1])
                step = np.linalg.norm(model.coef_ - before) / np.linalg.norm([[1, 2], [1, 2]])
                share = 1 / (1 + visits / 4) if decay == "auto" else 0.5 ** (visits // 4)
                assert step == pytest.approx(1e-6 * share, rel=1e-6)

    def test_labels_are_drawn_in_epochs_as_long_as_the_first_call(self, make, data):
        """Of 60 instances in batches of ten; then labels are searched for."""
        X, y = data
        own = {"gradient": "mips", "index": "exact", "n_candidates": 2, "batch_size": 10}
        model = make(sampled_epochs=1.5, **own)
        for n, n_drawn in ((40, 4), (80, 6)):
            model.partial_fit(X[10 : 10 + n], y[10 : 10 + n], classes=list("abcd"))
            assert model._course.n_drawn == n_drawn

    def test_squares_of_gradients_are_kept(self, make):
        X, y = np.array([[1.0, -2.0]]), np.array([1])
        parameters = {"learning_rate": 1e-3, "optimizer": "adagrad", "average": False}
        model = make("triplet", embedding_dim=None, **parameters)
        for t in range(1, 5):
            before = np.zeros((2, 2)) if t == 1 else model.coef_.copy()
            model.partial_fit(X, y, classes=[0, 1])
            np.testing.assert_allclose(np.abs(model.coef_ - before), 1e-3 / np.sqrt(t), rtol=1e-6)
        model.set_params(warm_start=True, max_iter=1)
        before = model.coef_.copy()
        model.fit(np.repeat(X, 2, axis=0), [1, 0], [1.0, 0.0])
        np.testing.assert_allclose(np.abs(model.coef_ - before), 1e-3 / np.sqrt(5), rtol=1e-6)

    def test_chunks_come_to_where_fit_comes(self, make, data):
        X, y = data
        parameters = {"loss": "softmax", "decay": 0.97, "learning_rate": 0.2}
        fitted = make(max_iter=60, **parameters).fit(X, y)
        model = make(**parameters)
        order = np.random.default_rng(0).permutation(120)
        for _ in range(60):
            for rows in np.array_split(order, 5):
                model.partial_fit(X[rows], y[rows], classes=list("abcd"))
        assert model.fit_report_["loss"][-5:].mean() < 0.5 * model.fit_report_["loss"][:5].mean()
        assert model.fit_report_["loss"][-5:].mean() == pytest.approx(
            fitted.fit_report_["loss"][-1], rel=0.2
        )

    @pytest.mark.parametrize("copy", ["pickle", "joblib", "memory map"])
    @pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
    @pytest.mark.parametrize("way", ["partial_fit", "warm start"])
    def test_a_stored_model_goes_on(self, way, optimizer, copy, make, xy, tmp_path):
        X, Y = xy
        model = make(optimizer=optimizer, dropout=0.3, warm_start=True).fit(X, Y)
        if copy == "pickle":
            again = pickle.loads(pickle.dumps(model))
        else:
            joblib.dump(model, tmp_path / "model.joblib")
            mode = "r" if copy == "memory map" else None
            again = joblib.load(tmp_path / "model.joblib", mmap_mode=mode)
            assert isinstance(again.coef_, np.memmap) == (mode == "r")
        for m in (model, again):
            m.partial_fit(X, Y) if way == "partial_fit" else m.fit(X, Y)
        assert_same_weights(again, model)


class TestOtherParameters:
    """Set between calls: each takes effect, or is refused by name."""

    @pytest.fixture(params=["partial_fit", "warm start"])
    def go_on(self, request, make, xy):
        """Return a function that trains, goes on with other parameters, and returns the model."""
        X, Y = xy[0].toarray(), xy[1]

        def train(first, then, is_fork=True):
            model = make(warm_start=True, max_iter=1, **first).fit(X, Y)
            if request.param == "warm start":
                return model.set_params(**then).fit(X, Y)
            return model.set_params(**then).partial_fit(X, Y)

        return train

    @pytest.mark.parametrize(
        ("first", "then", "message"),
        [
            (
                {},
                {"embedding_dim": 7},
                r"embedding_dim=7 does not .* embedding_dim=6\. Set it",
            ),
            (
                {},
                {"embedding_dim": None},
                r"embedding_dim=None does not .* embedding_dim=6\.",
            ),
            (
                {"embedding_dim": 0},
                {"embedding_dim": 6},
                r"embedding_dim=6 does .* embedding_dim=0\.",
            ),
            ({}, {"optimizer": "adagrad"}, r"optimizer='adagrad' does .* with optimizer='sgd'\."),
            ({"optimizer": "adagrad"}, {"optimizer": "sgd"}, "optimizer='sgd' does not go with"),
        ],
        ids=str,
    )
    def test_refused(self, first, then, message, go_on):
        with pytest.raises(ValueError, match=message):
            go_on(first, then)

    @pytest.mark.parametrize("then", [{"embedding_dim": "auto"}, {"embedding_dim": 6}], ids=str)
    def test_the_same_in_other_words(self, then, go_on):
        np.testing.assert_array_equal(go_on({}, then).coef_, go_on({}, {}).coef_)
        assert go_on({"embedding_dim": 0}, {"embedding_dim": None}).embedding_dim_ == 0

    @pytest.mark.parametrize(
        "then",
        [
            {"decay": 0.1}, {"learning_rate": 0.1}, {"loss": "softmax"}, {"alpha": 3.0},
            {"loss": MaxMargin(smoothing=3.0)}, {"dropout": 0.5}, {"average": False},
            {"batch_size": 3},
            {"gradient": "sampled", "n_candidates": 3}, {"sampled_epochs": 3, "n_candidates": 3},
        ],
        ids=str,
    )  # fmt: skip
    def test_taken_up(self, then, go_on):
        assert (go_on({"sampled_epochs": 0.1}, then).coef_ != go_on({}, {}).coef_).any()

    @pytest.mark.parametrize("then", [{"decay": 0.1}, {"sampled_epochs": 0.5}], ids=str)
    def test_as_if_they_had_been_so(self, then, make, xy):
        """What is counted in visits is counted from the beginning."""
        X, Y = xy[0].toarray(), xy[1]
        own = {"learning_rate": 1e-7, "gradient": "sampled", "average": False}
        model = make(sampled_epochs=9.0, **own).partial_fit(X, Y)
        rates, plain = [], MovingRows.step

        def step(self, entries, V, rate):
            rates.append(rate)
            return plain(self, entries, V, rate)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(MovingRows, "step", step)
            model.set_params(**then).partial_fit(X, Y)
        assert rates[0] == pytest.approx(1e-7 * then.get("decay", 0.5))

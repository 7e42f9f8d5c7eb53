"""Models that further instances change: which labels are solved again, and how far others are."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_xc import OvALinearXC, OvALinearXCCV, load
from sklearn_xc._data import DenseRows, as_csr_rows
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.linear.drift import losses_as_negatives
from sklearn_xc.losses import LOSSES
from sklearn_xc.losses.margin import compiled
from sklearn_xc.weights.label_weights import LabelWeights

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
]
X, Y = make_xc_classification(
    n_samples=240, n_features=60, n_labels=30, random_state=0, return_X_y=True
)
X = X.astype(np.float64)
K = 200
OLD, NEW = (X[:K], Y[:K]), (X[K:], Y[K:])
WEIGHT = np.random.default_rng(0).choice([0.5, 1.0, 3.0], X.shape[0])
PRECISE = {"tol": 1e-9, "prune": 0.0}
#: What changes the objectives.
PROBLEMS = [
    {},
    {"loss": "logistic"},
    {"loss": "huber_hinge", "C": 3.0},
    {"C": 0.02, "negative_weight": 0.3},
    {"fit_intercept": False},
    {"prune": 0.1},
]


def updated(old=OLD, new=NEW, weights=(None, None), **parameters):
    model = OvALinearXC(**parameters).fit(*old, weights[0])
    return model.update(*new, weights[1], X_old=old[0], y_old=old[1], sample_weight_old=weights[0])


def distances(model, other):
    difference = sp.csr_array(model.coef_).toarray() - sp.csr_array(other.coef_).toarray()
    return np.sqrt((difference**2).sum(axis=1) + (model.intercept_ - other.intercept_) ** 2)


def row_bytes(model, label):
    own = slice(*model.coef_.indptr[label : label + 2])
    coef = model.coef_
    return coef.indices[own].tobytes(), coef.data[own].tobytes(), model.intercept_[label].tobytes()


def assert_same(a, b, but=("seconds",)):
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a.coef_, part), getattr(b.coef_, part))
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    np.testing.assert_array_equal(a._weights.prior, b._weights.prior)
    for name in a.fit_report_.keys() - set(but):
        np.testing.assert_array_equal(a.fit_report_[name], b.fit_report_[name], err_msg=name)
    np.testing.assert_array_equal(a.label_counts_, b.label_counts_)
    assert a.n_samples_fit_ == b.n_samples_fit_


class TestDrift:
    """What new negatives add to objectives, and the bound that follows."""

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("dense", [False, True])
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_losses_are_those_of_all_scores(self, loss, dense, n_jobs, monkeypatch):
        monkeypatch.setattr("sklearn_xc.linear.drift._TOGETHER", 7)
        model = OvALinearXC(loss=loss).fit(X.toarray() - 0.1 if dense else X, Y)
        values = X.toarray() - 0.1 if dense else X.toarray()
        values[3] = 0
        rows = DenseRows(values) if dense else as_csr_rows(sp.csr_array(values))
        labels, costs = np.array([0, 3, 4, *range(9, 30)]), np.linspace(0.1, 2, 30)
        found = losses_as_negatives(
            rows, WEIGHT, model._weights, costs, labels, compiled(LOSSES[loss]()), n_jobs
        )
        scores = values @ model.coef_.toarray().T.astype(float) + model.intercept_
        value = compiled(LOSSES[loss]()).value
        loss_of = [[value(-score) for score in row] for row in scores]
        expected = costs * (WEIGHT[:, None] * loss_of).sum(axis=0)
        np.testing.assert_allclose(found, expected[labels], rtol=1e-9, atol=1e-12)

    def test_scores_that_come_back_to_zero(self):
        """A row is counted once, however often the sum of its first weights is 0."""
        coef = sp.csr_array(np.tile([1.0, -1.0], 500)[None, :].astype(np.float64))
        rows, weights = (
            as_csr_rows(sp.csr_array(np.ones((3, 1000)))),
            LabelWeights(coef, np.zeros(1)),
        )
        loss = compiled(LOSSES["squared_hinge"]())
        found = losses_as_negatives(rows, np.ones(3), weights, np.ones(1), np.array([0]), loss, 1)
        assert found.tolist() == [3.0]

    @pytest.mark.parametrize("parameters", PROBLEMS, ids=str)
    @pytest.mark.parametrize("max_drift", [0.0, 0.5, 1e9])
    def test_no_label_is_farther_than_its_bound(self, parameters, max_drift):
        optimum = OvALinearXC(**{**parameters, **PRECISE}).fit(X, Y)
        model = updated(max_drift=max_drift, **parameters)
        bound = model.fit_report_["distance"]
        assert (distances(model, optimum) <= bound * (1 + 1e-6) + 1e-7).all()
        assert set(model.fit_report_["reason"]) <= {"new positives", "drift", "kept"}

    @settings(max_examples=25)
    @given(st.data())
    def test_bounds_hold_after_any_calls(self, data):
        ends = sorted(data.draw(st.sets(st.integers(20, 230), min_size=1, max_size=4)))
        C = data.draw(st.sampled_from([0.05, 0.5, 4.0]))
        weight = WEIGHT if data.draw(st.booleans()) else np.ones(len(WEIGHT))
        first = ends[0]
        drift = data.draw(st.sampled_from([0.1, 0.5, 1e9]))
        model = OvALinearXC(C, max_drift=drift).fit(X[:first], Y[:first], weight[:first])
        for begin, end in zip(ends, [*ends[1:], 240], strict=True):
            model.update(
                X[begin:end], Y[begin:end], weight[begin:end], X_old=X[:begin], y_old=Y[:begin],
                sample_weight_old=weight[:begin],
            )  # fmt: skip
        optimum = OvALinearXC(C, **PRECISE).fit(X, Y, weight)
        bound = model.fit_report_["distance"]
        assert (distances(model, optimum) <= bound * (1 + 1e-6) + 1e-7).all()
        assert model.n_samples_fit_ == 240
        np.testing.assert_array_equal(model.label_counts_, Y.sum(axis=0))

    def test_a_fit_has_bounds(self):
        optimum = OvALinearXC(**PRECISE).fit(X, Y)
        model = OvALinearXC(prune=0.05).fit(X, Y)
        bound = model.fit_report_["distance"]
        assert (distances(model, optimum) <= bound * (1 + 1e-9)).all()
        assert (model.fit_report_["reason"] == "fit").all()
        free = OvALinearXC(regularize_intercept=False).fit(X, Y)
        assert np.isinf(free.fit_report_["distance"]).all()


class TestWhichLabels:
    def test_those_with_new_positives_and_those_too_far(self):
        has_new = np.asarray(NEW[1].sum(axis=0)) > 0
        assert 0 < has_new.sum() < 30
        far, near = updated(max_drift=1e9), updated(max_drift=0.0)
        for model in (far, near):
            np.testing.assert_array_equal(model.fit_report_["reason"] == "new positives", has_new)
        assert set(far.fit_report_["reason"][~has_new]) == {"kept"}
        assert set(near.fit_report_["reason"][~has_new]) >= {"drift"}
        between = updated(max_drift=0.3).fit_report_
        norm = np.sqrt(near.coef_.multiply(near.coef_).sum(axis=1) + near.intercept_**2)
        kept = between["reason"] == "kept"
        solved = np.sqrt(2 * (between["suboptimality"] + between["pruning_increase"]))
        allowed = np.maximum(0.3 * norm, 2**0.5 * solved)
        assert (between["distance"][kept] <= 1.01 * allowed[kept]).all()

    def test_labels_that_are_kept_keep_their_bytes(self):
        before, after = OvALinearXC().fit(*OLD), updated(max_drift=1e9)
        for label, reason in enumerate(after.fit_report_["reason"]):
            same = row_bytes(before, label) == row_bytes(after, label)
            assert same == (reason == "kept")
            for name in ("objective", "n_iter", "suboptimality", "pruning_increase"):
                if reason == "kept":
                    column = [model.fit_report_[name][label] for model in (before, after)]
                    assert column[0] == column[1]

    @pytest.mark.parametrize("parameters", PROBLEMS, ids=str)
    @pytest.mark.parametrize("dense", [False, True])
    def test_those_solved_again_are_as_in_a_full_fit(self, parameters, dense):
        x = X.toarray() + 0.1 if dense else X
        own = {**parameters, **PRECISE, "max_drift": 0.0}
        model, full = updated((x[:K], OLD[1]), (x[K:], NEW[1]), **own), OvALinearXC(**own).fit(x, Y)
        again = model.fit_report_["reason"] != "kept"
        assert again.sum() > 10
        assert distances(model, full)[again].max() < 1e-6
        np.testing.assert_array_equal(model._weights.prior, full._weights.prior)

    def test_weights_that_follow_from_all_instances(self):
        for own in ({"class_weight": "propensity"}, {"class_weight": "balanced"}):
            model = updated(**own, **PRECISE)
            full = OvALinearXC(**own, **PRECISE).fit(X, Y)
            again = model.fit_report_["reason"] != "kept"
            assert again[full.label_counts_ > 0].all()
            assert distances(model, full)[again].max() < 1e-6

    @pytest.mark.parametrize(
        "change",
        [
            {"C": 2.0}, {"loss": "logistic"}, {"negative_weight": 2.0}, {"class_weight": {3: 2.0}},
            {"fit_intercept": False},
        ],
        ids=str,
    )  # fmt: skip
    def test_parameters_that_changed_meanwhile(self, change):
        model = OvALinearXC(max_drift=1e9, **PRECISE).fit(*OLD).set_params(**change)
        model.update(*NEW, X_old=OLD[0], y_old=OLD[1])
        full = OvALinearXC(**change, **PRECISE).fit(X, Y)
        again = model.fit_report_["reason"] != "kept"
        assert distances(model, full)[again].max() < 1e-6
        assert model.fit_report_["reason"][3] == "parameters"
        if "class_weight" not in change:
            assert again.all()

    @pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
    @pytest.mark.parametrize("init", ["msi", "ovap++", np.ones((30, 60))])
    def test_from_wherever_labels_start(self, share, init, monkeypatch):
        monkeypatch.setattr("sklearn_xc.linear.updating.MOSTLY_NEW", share)
        model, full = updated(init=init, **PRECISE), OvALinearXC(**PRECISE).fit(X, Y)
        again = model.fit_report_["reason"] != "kept"
        assert again.sum() > 10
        assert distances(model, full)[again].max() < 1e-6

    def test_a_free_intercept_has_no_bound(self):
        model = updated(regularize_intercept=False)
        assert set(model.fit_report_["reason"]) == {"new positives", "drift"}

    def test_a_model_without_bounds_is_solved_again(self):
        model = OvALinearXC(**PRECISE).fit(*OLD)
        old = ("distance", "positive_cost", "negative_cost", "reason")
        model.fit_report_ = {k: v for k, v in model.fit_report_.items() if k not in old}
        del model._terms
        model.update(*NEW, X_old=OLD[0], y_old=OLD[1])
        assert (model.fit_report_["reason"] == "parameters").all()
        assert distances(model, OvALinearXC(**PRECISE).fit(X, Y)).max() < 1e-6

    def test_nothing_to_solve(self):
        none = sp.csr_array((40, 30), dtype=np.int8)
        model = updated(new=(X[K:], none), max_drift=1e9)
        assert set(model.fit_report_["reason"]) == {"kept"}
        before = OvALinearXC().fit(*OLD)
        np.testing.assert_array_equal(model.coef_.data, before.coef_.data)
        assert (model.fit_report_["distance"] >= before.fit_report_["distance"]).all()
        assert model.n_samples_fit_ == 240
        assert model.predict_topk(X[:5], 3)[0].shape == (5, 3)

    @pytest.mark.parametrize("weights", [(WEIGHT[:K], WEIGHT[K:]), (None, WEIGHT[K:]),
                                         (WEIGHT[:K], None)])  # fmt: skip
    def test_weights_of_instances(self, weights):
        model = updated(weights=weights, max_drift=0.0, **PRECISE)
        whole = [np.ones(n) if w is None else w for w, n in zip(weights, (K, 40), strict=True)]
        full = OvALinearXC(**PRECISE).fit(X, Y, np.concatenate(whole))
        again = model.fit_report_["reason"] != "kept"
        assert distances(model, full)[again].max() < 1e-6

    def test_instances_of_weight_zero_are_missing(self):
        zero = np.r_[np.ones(20), np.zeros(20)]
        a, b = updated(weights=(None, zero)), updated(new=(X[K : K + 20], Y[K : K + 20]))
        assert_same(a, b)

    def test_classes(self):
        y = np.random.default_rng(0).choice(list("abcde"), 240)
        for names in (y, np.where(y == "a", "a", "b")):
            own = {**PRECISE, "max_drift": 0.0}
            model = OvALinearXC(**own).fit(X[:K], names[:K])
            model.update(X[K:], names[K:], X_old=X[:K], y_old=names[:K])
            full = OvALinearXC(**own).fit(X, names)
            assert distances(model, full).max() < 1e-6
            np.testing.assert_array_equal(model.label_counts_, full.label_counts_)
            np.testing.assert_array_equal(model.predict(X), full.predict(X))

    def test_any_n_jobs(self, monkeypatch):
        monkeypatch.setattr("sklearn_xc.parallel.blocks.MAX_LANES", 2)
        monkeypatch.setattr("sklearn_xc.linear.drift._TOGETHER", 2)
        assert_same(updated(n_jobs=1), updated(n_jobs=3))

    def test_a_copy_made_before_does_not_change(self):
        model = OvALinearXC().fit(*OLD)
        other = copy.copy(model)
        model.update(*NEW, X_old=OLD[0], y_old=OLD[1])
        assert_same(other, OvALinearXC().fit(*OLD))

    def test_an_error_changes_nothing(self, monkeypatch):
        model = OvALinearXC().fit(*OLD)

        def fail(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr("sklearn_xc.linear.updating.assemble_weights", fail)
        with pytest.raises(KeyboardInterrupt):
            model.update(*NEW, X_old=OLD[0], y_old=OLD[1])
        assert_same(model, OvALinearXC().fit(*OLD))

    def test_the_chosen_cost_is_kept(self):
        model = OvALinearXCCV(Cs=[0.1, 1.0], cv=2, **PRECISE).fit(*OLD)
        C = model.C_
        model.update(*NEW, X_old=OLD[0], y_old=OLD[1])
        again = model.fit_report_["reason"] != "kept"
        full = OvALinearXC(C, **PRECISE).fit(X, Y)
        assert model.C_ == C
        assert distances(model, full)[again].max() < 1e-6

    def test_a_saved_model_goes_on(self, tmp_path):
        model = OvALinearXC().fit(*OLD)
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model").update(*NEW, X_old=OLD[0], y_old=OLD[1])
        assert_same(loaded, updated())
        loaded.save(tmp_path / "model")
        assert_same(load(tmp_path / "model"), updated())

    def test_after_labels_changed(self):
        model = OvALinearXC(**PRECISE, max_drift=0.0).fit(X[:K], Y[:K, :20])
        model.add_labels(X[:K], Y[:K, 20:]).drop_labels([3, 7])
        kept = [label for label in range(30) if label not in (3, 7)]
        model.update(X[K:], Y[K:][:, kept], X_old=X[:K], y_old=Y[:K][:, kept])
        full = OvALinearXC(**PRECISE).fit(X, Y[:, kept])
        again = model.fit_report_["reason"] != "kept"
        assert distances(model, full)[again].max() < 1e-6


class TestRefusals:
    def refuses(self, match, *args, model=None, **kwargs):
        model = OvALinearXC().fit(*OLD) if model is None else model
        with pytest.raises(ValueError, match=match):
            model.update(*(args or NEW), **kwargs)

    def test_old_instances(self):
        self.refuses("X_old and y_old must be all instances of before, or history_dir")
        self.refuses("X_old and y_old must be", X_old=OLD[0])
        self.refuses(
            r"update: X_old and y_old must be all instances that the model was fitted to, 200 of "
            r"weight above 0. Got 199", X_old=OLD[0][1:], y_old=OLD[1][1:],
        )  # fmt: skip
        other = OLD[1].copy().tolil()
        label = int(np.flatnonzero(OLD[1][[0]].toarray()[0])[0])
        other[0, label] = 0
        n = int(OLD[1].sum(axis=0)[label])
        self.refuses(
            rf"{n} of label (np.int64\()?{label}\)?. Got {n - 1}", X_old=OLD[0],
            y_old=other.tocsr(),
        )  # fmt: skip
        self.refuses("59 features", X_old=OLD[0][:, :59], y_old=OLD[1])

    def test_new_instances(self):
        given = {"X_old": OLD[0], "y_old": OLD[1]}
        self.refuses("y has 29 label columns, before it had 30", X[K:], Y[K:, :29], **given)
        self.refuses("y has 39 rows and X has 40", X[K:], Y[K + 1 :], **given)
        self.refuses("sample_weight must not be negative", X[K:], Y[K:], np.full(40, -1.0), **given)

    def test_models(self):
        given = {"X_old": OLD[0], "y_old": OLD[1]}
        self.refuses("compact", model=OvALinearXC().fit(*OLD).compact(), **given)
        part = OvALinearXC(label_range=(0, 5)).fit(*OLD)
        self.refuses("Merge first", X[K:], Y[K:, :5], model=part, X_old=X[:K], y_old=Y[:K, :5])
        y = np.random.default_rng(0).choice(list("abcd"), 240)
        model = OvALinearXC().fit(X[:K], y[:K]).drop_labels(["d"])
        kept = y != "d"
        self.refuses("classes were dropped", X[kept], y[kept], model=model)
        with pytest.raises(NotFittedError):
            OvALinearXC().update(*NEW, **given)


class TestPartialFit:
    def test_only_with_a_folder(self, tmp_path):
        assert not hasattr(OvALinearXC(), "partial_fit")
        assert hasattr(OvALinearXC(history_dir=tmp_path / "rows"), "partial_fit")
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as error:
            OvALinearXC().partial_fit(*OLD)
        assert "partial_fit needs history_dir, a folder" in str(error.value.__cause__)

    @pytest.mark.parametrize("dense", [False, True])
    @pytest.mark.parametrize("weights", [(None, None), (None, WEIGHT[K:]), (WEIGHT[:K], None)])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_it_is_fit_and_update(self, dense, weights, dtype, tmp_path):
        x = (X.toarray() + 0.1 if dense else X).astype(dtype)
        old, new = (x[:K], OLD[1]), (x[K:], NEW[1])
        model = OvALinearXC(history_dir=tmp_path / "rows")
        model.partial_fit(*old, sample_weight=weights[0])
        model.partial_fit(*new, sample_weight=weights[1])
        assert_same(model, updated(old, new, weights))
        first = OvALinearXC(history_dir=tmp_path / "other").fit(*old, weights[0])
        assert_same(first.update(*new, weights[1]), model)

    def test_the_other_kind_of_matrix_later(self, tmp_path):
        model = OvALinearXC(history_dir=tmp_path / "rows").partial_fit(*OLD)
        model.partial_fit(X[K:].toarray(), NEW[1].toarray().tolist() and NEW[1])
        assert_same(model, updated())

    def test_classes(self, tmp_path):
        y = np.random.default_rng(0).choice(list("abcde"), 240)
        for n, names in enumerate((y, np.where(y == "a", "a", "b"))):
            model = OvALinearXC(history_dir=tmp_path / str(n), max_drift=0.0, **PRECISE)
            first = names[:K] != "b" if n == 0 else np.ones(K, bool)
            model.partial_fit(X[:K][first], names[:K][first], classes=np.unique(names))
            model.partial_fit(X[:K][~first], names[:K][~first]) if n == 0 else None
            model.partial_fit(X[K:], names[K:])
            order = np.r_[np.flatnonzero(first), np.flatnonzero(~first), np.arange(K, 240)]
            full = OvALinearXC(**PRECISE).fit(X[order], names[order])
            again = model.fit_report_["reason"] != "kept"
            assert distances(model, full)[again].max() < 1e-6
            np.testing.assert_array_equal(model.label_counts_, full.label_counts_)

    def test_a_saved_model_goes_on(self, tmp_path):
        model = OvALinearXC(history_dir=tmp_path / "rows").partial_fit(*OLD)
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model").partial_fit(*NEW)
        assert_same(loaded, updated())

    def test_an_older_model_may_take_the_same_call_again_and_no_other(self, tmp_path):
        """It was killed after its rows were kept, before it was saved."""
        model = OvALinearXC(history_dir=tmp_path / "rows").partial_fit(*OLD)
        model.save(tmp_path / "model")
        model.partial_fit(*NEW)
        before = {p.name: p.read_bytes() for p in (tmp_path / "rows").iterdir()}
        with pytest.raises(ValueError, match="must hold the rows that the model has seen"):
            load(tmp_path / "model").partial_fit(X[K:-1], Y[K:-1])
        assert_same(load(tmp_path / "model").partial_fit(*NEW), updated())
        assert {p.name: p.read_bytes() for p in (tmp_path / "rows").iterdir()} == before

    def test_a_call_that_fails_leaves_nothing(self, tmp_path, monkeypatch):
        model = OvALinearXC(history_dir=tmp_path / "rows")

        def fail(*args, **kwargs):
            raise KeyboardInterrupt

        with monkeypatch.context() as m:
            m.setattr("sklearn_xc.linear.ova.assemble_weights", fail)
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(X[5:K], Y[5:K])
        assert not (tmp_path / "rows").exists()
        model.partial_fit(*OLD)
        with monkeypatch.context() as m:
            m.setattr("sklearn_xc.linear.updating.assemble_weights", fail)
            with pytest.raises(KeyboardInterrupt):
                model.partial_fit(X[K + 3 :], Y[K + 3 :])
        assert_same(model, OvALinearXC().fit(*OLD))
        assert_same(model.partial_fit(*NEW), updated())

    @pytest.mark.parametrize("is_first", [True, False])
    def test_an_error_for_a_warning_keeps_no_rows(self, is_first, tmp_path):
        hasty = {"max_iter": 1, "tol": 1e-12}
        model = OvALinearXC(history_dir=tmp_path / "rows")
        if not is_first:
            model.partial_fit(*OLD)
        model.set_params(**hasty)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            with pytest.raises(ConvergenceWarning):
                model.partial_fit(X[K:-3], Y[K:-3])
        model.set_params(max_iter=100, tol=None)
        if is_first:
            model.partial_fit(*OLD)
        assert_same(model.partial_fit(*NEW), updated())

    def test_rows_of_another_model(self, tmp_path):
        folder = tmp_path / "rows"
        OvALinearXC(history_dir=folder).fit(*OLD)
        OvALinearXC(history_dir=folder).fit(*OLD)  # the same call again
        for call in ("fit", "partial_fit"):
            with pytest.raises(ValueError, match="holds the rows of another model"):
                getattr(OvALinearXC(history_dir=folder), call)(*NEW)
        with pytest.raises(ValueError, match="n_features was 60, is 59"):
            OvALinearXC(history_dir=folder).fit(X[:, :59], Y)
        with pytest.raises(ValueError, match="must hold the rows that the model has seen"):
            OvALinearXC().fit(*OLD).set_params(history_dir=folder).partial_fit(*NEW)
        model = OvALinearXC(history_dir=folder).fit(*OLD).reorder_labels(np.arange(30)[::-1])
        with pytest.raises(ValueError, match="labels of the model"):
            model.partial_fit(*NEW)

    def test_damaged_rows(self, tmp_path):
        folder = tmp_path / "rows"
        model = OvALinearXC(history_dir=folder).fit(*OLD)
        for name in ("x.values", "y.labels", "x.lengths"):
            path = folder / f"{name}.bin"
            content = path.read_bytes()
            path.write_bytes(content[:9] + bytes([content[9] ^ 4]) + content[10:])
            with pytest.raises(ValueError, match=r"batch 0 is damaged"):
                model.partial_fit(*NEW)
            path.write_bytes(content[: len(content) // 3])
            with pytest.raises(ValueError, match=rf"{name}.bin is missing, or cut off"):
                model.partial_fit(*NEW)
            path.write_bytes(content)
        assert_same(model.partial_fit(*NEW), updated())

    def test_other_files_are_left_alone(self, tmp_path):
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(OSError, match=r"letter\.txt"):
            OvALinearXC(history_dir=tmp_path).fit(*OLD)
        assert (tmp_path / "letter.txt").read_text() == "dear"

    def test_what_a_killed_process_left_is_written_over(self, tmp_path):
        model = OvALinearXC(history_dir=tmp_path / "rows").partial_fit(*OLD)
        for path in (tmp_path / "rows").glob("*.bin"):
            with open(path, "ab") as stream:
                stream.write(b"left")
        assert_same(model.partial_fit(*NEW), updated())

    def test_no_range_of_labels(self, tmp_path):
        with pytest.raises(ValueError, match="history_dir must be None with a label_range"):
            OvALinearXC(history_dir=tmp_path / "rows", label_range=(0, 5)).fit(*OLD)
        assert not (tmp_path / "rows").exists()

    def test_clones_do_not_share_a_folder(self, tmp_path):
        model = OvALinearXCCV(Cs=[0.1, 1.0], cv=2, history_dir=tmp_path / "rows").fit(*OLD)
        model.partial_fit(*NEW)
        assert model.n_samples_fit_ == 240
        assert len(list((tmp_path / "rows").iterdir())) == 7

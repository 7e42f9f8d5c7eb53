"""The softmax experiment, at a small size."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.special
from sklearn.base import clone
from sklearn.metrics import log_loss

from asv_bench.common.data import SplitSet
from asv_bench.common.report import Report
from asv_bench.common.sized_sets import SizedSet
from asv_bench.softmax import methods as softmax
from asv_bench.softmax import paper, probabilities, table
from asv_bench.softmax.biased_softmax import METHODS, SampledSoftmax
from asv_bench.softmax.curves import choose_rate, draw_curves, measure_curves
from asv_bench.softmax.numpy_softmax import implicit_steps, umax_steps
from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._checks import check_instances
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.kernels.softmax.rules import RULES
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState, run_epoch
from sklearn_xc.weights.class_weights import ClassWeights


@pytest.fixture(scope="module")
def split():
    # Of float64, for which other tests have kernels compiled too.
    X, Y = make_xc_classification(300, 80, 12, random_state=0, dtype=np.float64, return_X_y=True)
    return SplitSet("made", X[:200], Y[:200], X[200:], Y[200:])


def small_problem(n_classes):
    rng = np.random.default_rng(0)
    X = sp.random_array((40, 15), density=0.4, format="csr", random_state=rng)
    y = rng.integers(0, n_classes, 40).astype(np.int32)
    instances = check_instances(SoftmaxUMax(), X, reset=True)
    problem = SoftmaxProblem(
        instances, np.arange(40, dtype=np.int32), y, np.ones(40), n_classes, 0.0
    )
    order = np.arange(40)
    np.random.default_rng((7, 0)).shuffle(order)
    return X, y, problem, order


def start(n_classes):
    return SoftmaxState.at(np.zeros((n_classes, 15)), np.full(40, np.log(n_classes)))


@pytest.mark.parametrize("rate", [0.1, 0.8])
def test_numpy_makes_the_steps_of_umax(rate):
    X, y, problem, order = small_problem(5)
    ours, twin = start(5), start(5)
    run_epoch(problem, ours, SgdSettings(RULES["umax"], 4, 1, 7), 0, rate, 0.0)  # all other classes
    umax_steps(X, y, twin.V, twin.u, order, rate, 4, 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(ours.V, twin.V, atol=1e-12)
    np.testing.assert_allclose(ours.u, np.maximum(twin.u, 0), atol=1e-12)


@pytest.mark.parametrize("rate", [0.1, 5.0])
def test_numpy_makes_the_implicit_steps(rate):
    X, y, problem, order = small_problem(2)
    kept = np.diff(X.indptr)[order] > 0  # Brent's method needs features
    ours, twin = start(2), start(2)
    run_epoch(problem, ours, SgdSettings(RULES["implicit"], 1, 1, 7), 0, rate, 0.0)
    implicit_steps(X, y, twin.V, twin.u, order[kept], rate, np.random.default_rng(0))
    np.testing.assert_allclose(ours.V, twin.V, atol=1e-8)


@pytest.mark.parametrize(("method", "batch_size"), [*((m, 1) for m in METHODS), ("is", 20)])
def test_a_method_learns(split, method, batch_size):
    rate = (0.05 if method == "vanilla" else 0.3) * batch_size
    model = SampledSoftmax(
        method, batch_size=batch_size, learning_rate=rate, max_iter=30, random_state=0
    )
    model = clone(model).fit(split.X_train, split.Y_train)
    assert model.fit_report_["log_loss"][-1] < model.fit_report_["log_loss"][0]
    assert model.score(split.X_train, split.Y_train) > 0.4


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_parameterisation_of_umax_is_umax(fit_intercept, split):
    common = {"learning_rate": 0.2, "random_state": 0, "max_iter": 5}
    common["fit_intercept"] = fit_intercept
    shifted = SampledSoftmax("raman", shift=0.0, **common).fit(split.X_train, split.Y_train)
    umax = SoftmaxUMax(init="zero", sampling="uniform", n_hard_negatives=0, **common)
    umax.fit(split.X_train, split.Y_train)
    np.testing.assert_allclose(shifted.coef_, umax.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(shifted.intercept_, umax.intercept_, rtol=1e-4, atol=1e-5)


def test_the_table(split, monkeypatch):
    monkeypatch.setattr(table, "GRID", (0.1, 1.0))
    monkeypatch.setattr(table, "LOWER", (0.01,))
    monkeypatch.setattr(table, "RATES", {"bibtex": {"umax": 0.1}})
    X, y = softmax.first_labels(split)
    rows = table.reproduce("bibtex", X, y, 1, 3, Report())
    assert [row["key"] for row in rows][:3] == ["ove", "nce", "is"]
    unit = next(row for row in rows if row["key"] == "implicit")
    assert unit["relative"] == unit["paper"] == 1
    for row in rows:
        assert row["relative"] == pytest.approx(row["reported"] / unit["reported"])
        assert row["best"] <= row["log_loss"]
        if row["key"] in table.TWICE:
            n_classes = len(np.unique(y))
            assert row["reported"] >= np.log(n_classes - 1 + np.e) - 1
        else:
            assert row["reported"] == row["log_loss"]
        assert row["key"] != "umax" or row["rate"] == 0.1
        assert row["by_rate"][row["best_rate"]] == row["best"]
    of_umax = table.by_rate(rows)[4]
    assert of_umax == {
        "method": "U-max (1, 5)",
        "0.1": rows[4]["by_rate"][0.1],
        "1": pytest.approx(rows[4]["by_rate"][1.0]),
    }
    model = table.methods_of_table(3, 1)["implicit"][1].set_params(learning_rate=unit["rate"])
    proba = model.fit(X, y).predict_proba(X)
    assert unit["log_loss"] == pytest.approx(log_loss(y, proba), rel=1e-5)


@pytest.fixture
def first(split):
    X, y = softmax.first_labels(split)
    return X, y


def test_a_method_is_followed_as_it_is_fitted(first):
    """Other orders of the instances, but about the same log-loss."""
    X, y = first
    model = table.methods_of_table(20, 1)["implicit"][1].set_params(learning_rate=1.0)
    points = paper.follow(model, X, paper._positions(y), 20, (1, 20), True)
    assert [point["epochs"] for point in points] == [1, 20]
    assert points[1]["cpu_s"] > points[0]["cpu_s"] > 0
    assert points[1]["log_loss"] < points[0]["log_loss"]
    assert points[1]["reported"] > np.log(points[1]["log_loss"])  # a softmax of a softmax
    fitted = log_loss(y, model.fit(X, y).predict_proba(X))
    assert points[1]["log_loss"] == pytest.approx(fitted, rel=0.1)


def test_what_diverges_has_no_point(first):
    X, y = first
    model = SampledSoftmax("vanilla", learning_rate=1e6, decay=0.9)
    assert paper.follow(model, X, paper._positions(y), 5, (5,), False) == []


def test_rates_by_a_tenth(first, monkeypatch):
    monkeypatch.setattr(paper, "GRID", (0.01, 1.0))
    monkeypatch.setattr(paper, "LOWER", (0.001,))
    rows = paper.choose_rates("bibtex", *first, 5)
    assert [row["key"] for row in rows] == list(paper.METHODS)
    for row in rows:
        assert row["paper"] == table.RATES["bibtex"][row["key"]]
        assert row["rate"] in (0.001, 0.01, 1.0)
        assert row["log_loss"] <= row["reported"] or row["key"] in table.TWICE


def test_epochs_of_the_paper(first):
    rows = paper.follow_epochs("bibtex", *first, 20)
    of_implicit = [row for row in rows if row["key"] == "implicit"]
    assert [row["epochs"] for row in of_implicit] == [1, *range(2, 21, 2)]
    assert {row["rate"] for row in of_implicit} == {10.0}
    assert of_implicit[-1]["reported"] == of_implicit[-1]["log_loss"]
    axes = paper.draw_epochs(rows).axes
    assert [len(ax.lines) for ax in axes] == 2 * [len({row["key"] for row in rows})]


def test_both_double_sums(first, monkeypatch, capsys):
    monkeypatch.setattr(paper, "FORMULATION_RATES", (0.1, 1e8))
    rows = paper.compare_formulations("bibtex", *first, 5)
    assert rows[0]["times"] == rows[0]["raman"] / rows[0]["ours"]
    assert rows[0]["raman"] != rows[0]["ours"]
    paper.report_formulations(rows, Report())
    assert "the paper on Eurlex 3.08" in capsys.readouterr().out


def test_runtimes(first):
    row = paper.time_epochs("bibtex", *first, 2)
    assert row["paper_ratio"] == pytest.approx(1.37, abs=0.005)
    assert row["ratio"] == row["umax"] / row["implicit"]
    assert row["numpy_ratio"] > 0
    assert all(row[method] > 0 for method in paper.METHODS)


def test_parts_of_the_paper(split, monkeypatch, capsys):
    monkeypatch.setattr(softmax, "load_set", lambda *args, **kwargs: split)
    monkeypatch.setattr(paper, "GRID", (1.0,))
    monkeypatch.setattr(paper, "LOWER", ())
    monkeypatch.setattr(paper, "FORMULATION_RATES", (0.1,))
    parts = ("rates", "epochs", "formulations", "runtimes")
    softmax.main(parts=parts, sets=("bibtex",), epochs=2)
    printed = capsys.readouterr().out
    for title in ("Rates by 2 epochs", "by epoch", "by its double sum", "2 epochs, one instance"):
        assert title in printed


def test_log_losses_of_the_table(split):
    """Of the softmax, and of the softmax of probabilities."""
    X, y = softmax.first_labels(split)
    model = SoftmaxUMax(learning_rate=0.1, max_iter=2, fit_intercept=False).fit(X, y)
    weights, instances = ClassWeights(model.coef_), check_instances(model, X, reset=False)
    places = np.searchsorted(model.classes_, y)
    proba = scipy.special.softmax(X @ model.coef_.T, axis=1)
    twice = scipy.special.softmax(proba, axis=1)
    rows = np.arange(len(y))
    for expected, found in (
        (proba, table.mean_log_loss(weights, instances, places)),
        (twice, table.mean_log_loss(weights, instances, places, twice=True)),
    ):
        assert found == pytest.approx(-np.log(expected[rows, places]).mean(), rel=1e-5)


def test_probabilities(split, monkeypatch):
    """Some test instances are of a class that no training instance has, and one has no features."""
    monkeypatch.setattr(probabilities, "_ROWS", 70)
    X, y = softmax.first_labels(split)
    X = X.tolil()
    X[np.flatnonzero(y != 3)[0]] = 0
    X = X.tocsr()
    known = y != 3
    labels = sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)))
    parts = X[known], labels[known], X, labels
    made = SizedSet("made", *parts, None, True, None, None, None)
    monkeypatch.setattr(probabilities, "CLASS_SETS", ("made",))
    monkeypatch.setattr(probabilities, "load_sized_set", lambda *args, **kwargs: made)
    rows = probabilities.measure_probabilities(None, ("1/4",), Report())
    assert [row["estimator"] for row in rows] == ["SoftmaxUMax", "ImplicitSoftmaxSGD"]
    for row, estimator in zip(rows, (SoftmaxUMax, ImplicitSoftmaxSGD), strict=True):
        model = estimator(n_jobs=1, random_state=0).fit(X[known], y[known])
        proba, counts = model.predict_proba(X), np.bincount(y[known])[model.classes_]
        assert row["n_classes"] == len(counts) < len(np.unique(y))
        assert row["log_loss"] == pytest.approx(log_loss(y[known], proba[known]), rel=1e-5)
        assert row["guessing"] == pytest.approx(np.log(len(counts)))
        shares = (counts / counts.sum())[np.searchsorted(model.classes_, y[known])]
        assert row["frequencies"] == pytest.approx(-np.log(shares).mean())
        is_right = model.predict(X) == y
        error = 100 * probabilities.calibration_error(proba.max(axis=1), is_right)
        assert row["error"] == pytest.approx(error, rel=1e-4)
        assert row["bands"]


def test_bands():
    claimed = np.repeat([0.6, 0.7, 0.97, 0.9999], [30, 40, 60, 10])
    is_right = np.append(np.repeat([True, False], 35), np.ones(70, bool))
    first, second = probabilities.bands_of(claimed, is_right)
    assert first == {
        "band": "0.5 to 0.8", "n": 70, "claimed": pytest.approx(46 / 70), "right": 0.5
    }  # fmt: skip
    assert second == {"band": "0.95 to 0.999", "n": 60, "claimed": pytest.approx(0.97), "right": 1}


def test_calibration_error():
    """Of probabilities of .6 and .9 that are right in half of the cases and in all."""
    claimed = np.repeat([0.6, 0.9], [70, 80])
    is_right = np.append(np.tile([True, False], 35), np.ones(80, bool))
    assert probabilities.calibration_error(claimed, is_right) == pytest.approx(0.1)
    assert probabilities.calibration_error(np.ones(3), np.ones(3, bool)) == 0.0


def test_first_labels(split):
    X, y = softmax.first_labels(split)
    Y = split.Y_train.toarray()
    kept = np.flatnonzero(Y.any(axis=1) & (np.diff(sp.csr_array(split.X_train).indptr) > 0))
    np.testing.assert_array_equal(y, Y[kept].argmax(axis=1))
    assert X.shape[0] == len(kept)


def test_steps_per_second(split):
    rows = softmax.time_steps(*softmax.first_labels(split))
    assert [row["method"] for row in rows] == ["U-max", "implicit"]
    assert all(row["ratio"] == pytest.approx(row["ours"] / row["numpy"]) for row in rows)


def test_curves(split, capsys):
    rows = measure_curves(split, 1, 0.2, Report("softmax"), epochs=3)
    by_key = {row["key"]: row for row in rows}
    others = {"ove", "lbfgs", "saga", "sgd"}
    assert {"hard", "implicit", "umax-paper", *others} <= set(by_key)
    assert [row["epochs"] for row in rows if row["key"] == "hard"] == [0, 1, 2, 3]
    assert [row["epochs"] for row in rows if row["key"] == "ove"] == [1, 2, 3]
    assert all(np.isfinite(row["log_loss"]) for row in rows)
    assert len(draw_curves(rows).axes[0].lines) == len(by_key)
    assert "held-out log-loss" in capsys.readouterr().out
    some = measure_curves(split, 1, 0.2, Report(), epochs=2, curves=("hard", "lbfgs"))
    assert list(dict.fromkeys(row["key"] for row in some)) == ["hard", "lbfgs"]


def test_a_rate_is_chosen_from_the_grid(split):
    rate = choose_rate(SoftmaxUMax(random_state=0), split.X_train, sp.csr_array(split.Y_train))
    assert rate in np.outer([1.0, 3.0], 10.0 ** np.arange(-3, 1))

"""The softmax experiment, at a small size."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import log_loss

from asv_bench.common.sets import DataSet
from asv_bench.softmax import paper
from asv_bench.softmax.biased_softmax import METHODS, SampledSoftmax
from asv_bench.softmax.numpy_softmax import implicit_steps, umax_steps
from sklearn_xc import SoftmaxUMax
from sklearn_xc._input.checks import check_instances
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.softmax.kernels.rules import RULES
from sklearn_xc.softmax.problem import SoftmaxProblem
from sklearn_xc.softmax.sgd import SgdSettings, run_epoch
from sklearn_xc.softmax.state import SoftmaxState


@pytest.fixture(scope="module")
def split():
    # Of float64, for which other tests have kernels compiled too.
    X, Y = make_xc_classification(300, 80, 12, random_state=0, dtype=np.float64, return_X_y=True)
    return DataSet("made", X[:200], Y[:200], X[200:], Y[200:])


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
    run_epoch(problem, ours, SgdSettings(RULES["umax"], 4, 7), 0, rate, 0.0)  # all other classes
    umax_steps(X, y, twin.V, twin.u, order, rate, 4, 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(ours.V, twin.V, atol=1e-12)
    np.testing.assert_allclose(ours.u, np.maximum(twin.u, 0), atol=1e-12)


@pytest.mark.parametrize("rate", [0.1, 5.0])
def test_numpy_makes_the_implicit_steps(rate):
    X, y, problem, order = small_problem(2)
    kept = np.diff(X.indptr)[order] > 0  # Brent's method needs features
    ours, twin = start(2), start(2)
    run_epoch(problem, ours, SgdSettings(RULES["implicit"], 1, 7), 0, rate, 0.0)
    implicit_steps(X, y, twin.V, twin.u, order[kept], rate, np.random.default_rng(0))
    np.testing.assert_allclose(ours.V, twin.V, atol=1e-8)


@pytest.mark.parametrize(
    ("method", "batch_size"), [*((m, 1) for m in METHODS), ("is", 20), ("scent", 1)]
)
def test_a_method_learns(split, method, batch_size):
    rate = (0.05 if method == "vanilla" else 0.3) * batch_size
    model = SampledSoftmax(
        method, batch_size=batch_size, learning_rate=rate, max_iter=30, random_state=0
    )
    model = clone(model).fit(split.X_train, split.Y_train)
    assert model.fit_report_["log_loss"][-1] < model.fit_report_["log_loss"][0]
    assert model.score(split.X_train, split.Y_train) > 0.4


# The paper's tables


def test_rates_are_tried_and_log_losses_are_those_of_the_probabilities(split, monkeypatch):
    monkeypatch.setattr(paper, "GRID", (0.1, 1.0))
    monkeypatch.setattr(paper, "LOWER", (0.01,))
    monkeypatch.setattr(paper, "RATES", {"bibtex": {"umax": 0.1}})
    X, y = paper.first_classes(split)
    rows = paper.PARTS["table"]("bibtex", X, y, 3)
    assert [row["_key"] for row in rows][:3] == ["ove", "nce", "is"]
    unit = next(row for row in rows if row["_key"] == "implicit")
    assert unit["relative"] == 1
    for row in rows:
        reported = row["log-loss, as reported"]
        assert row["relative"] == pytest.approx(reported / unit["log-loss, as reported"])
        assert row["best log-loss"] <= row["log-loss"]
        if row["_key"] in paper.TWICE:
            assert reported >= np.log(row["classes"] - 1 + np.e) - 1
        else:
            assert reported == row["log-loss"]
        assert row["_key"] != "umax" or row["rate"] == 0.1
    model = paper.methods_of_table(3)["implicit"][1].set_params(learning_rate=unit["rate"])
    proba = model.fit(X, y).predict_proba(X)
    assert unit["log-loss"] == pytest.approx(log_loss(y, proba), rel=1e-5)

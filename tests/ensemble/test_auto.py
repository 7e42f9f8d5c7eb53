"""The choice of an estimator: trials, the rule, stacks, and the time budget."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

import sklearn_xc
from sklearn_xc import (
    AutoXC,
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    StackingXC,
    TextClassifierXC,
)
from sklearn_xc._compile import numba_private
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.ensemble.auto import Trial
from sklearn_xc.metrics import ndcg_at_k, precision_at_k, propensity, psp_at_k

N = 300


@pytest.fixture(scope="module")
def data():
    return make_xc_classification(
        n_samples=N, n_features=120, n_labels=25, random_state=0, return_X_y=True
    )


@pytest.fixture(scope="module")
def fold():
    order = np.random.default_rng(0).permutation(N)
    return np.sort(order[90:]), np.sort(order[:90])


def strong(**parameters):
    return OvALinearXC(tol=1e-4, prune=0, **parameters)


def weak():
    """Return a classifier that knows next to nothing."""
    return OvALinearXC(C=1e-9, tol=1e-4, prune=0)


def test_trials_are_fits_without_the_held_out_rows(data, fold):
    X, Y = data
    train, test = fold
    auto = AutoXC([("weak", weak()), ("strong", strong())], cv=[fold], random_state=0).fit(X, Y)
    report = auto.fit_report_
    p = propensity(np.asarray(Y.sum(axis=0)).ravel(), N)
    for row, candidate in enumerate((weak(), strong())):
        labels, _ = candidate.fit(X[train], Y[train]).predict_topk(X[test], 1)
        assert report["P@1"][row] == pytest.approx(precision_at_k(Y[test], labels, k=1))
        assert report["PSP@1"][row] == pytest.approx(psp_at_k(Y[test], labels, propensities=p, k=1))
        labels, _ = candidate.predict_topk(X[test], 5)
        assert report["nDCG@5"][row] == pytest.approx(ndcg_at_k(Y[test], labels, k=5))
    assert report["outcome"].tolist() == ["", "chosen"]
    np.testing.assert_array_equal(auto.estimator_.coef_.data, strong().fit(X, Y).coef_.data)


def test_the_first_is_kept_unless_another_is_clearly_ahead(data, fold):
    """0.5 and 0.6 differ in a few rows: less than a standard error."""
    X, Y = data
    found = AutoXC([("a", strong(C=0.5)), ("b", strong(C=0.6))], cv=[fold]).fit(X, Y)
    assert found.fit_report_["outcome"].tolist() == ["chosen", ""]


@pytest.mark.parametrize(
    ("gain", "precision", "is_ahead"), [(0.1, 0.5, True), (0.1, 0.4, False), (0.01, 0.5, False)]
)
def test_ahead_is_clearly_in_ndcg_and_not_behind_in_precision(gain, precision, is_ahead):
    """Gains have the standard deviation 0.2, and their mean the standard error 0.02."""
    noise = np.tile([0.2, -0.2], 50)
    one = SimpleNamespace(ndcg=noise + gain, precision=precision, weight=np.ones(100))
    assert Trial.is_ahead(one, SimpleNamespace(ndcg=np.zeros(100), precision=0.5)) == is_ahead


def test_seconds_are_without_compilation(data, monkeypatch):
    timer = SimpleNamespace(done=True, duration=1000.0)
    monkeypatch.setattr(numba_private, "compilation_timer", lambda: nullcontext(timer))
    report = AutoXC([("ova", strong())], cv=0.3).fit(*data).fit_report_
    assert report["seconds"][0] < 0
    assert report["cpu_seconds"][0] < 0


@pytest.mark.parametrize("top_k", [1, 100])
def test_a_stack_that_is_ahead_is_that_of_stackingxc(data, fold, monkeypatch, top_k):
    monkeypatch.setattr(Trial, "is_ahead", lambda one, _: " + " in one.name)
    X, Y = data
    members = [("ova", strong()), ("softmax", ImplicitSoftmaxSGD(max_iter=2, random_state=0))]
    auto = AutoXC(members, cv=[fold], top_k=top_k, random_state=0).fit(X, Y)
    assert auto.fit_report_["name"].tolist() == ["ova", "softmax", "ova + softmax"]
    assert auto.fit_report_["outcome"][2] == "chosen"
    seed = auto.estimator_.random_state
    stack = StackingXC(members, cv=[fold], top_k=top_k, random_state=seed).fit(X, Y)
    assert auto.fit_report_["P@1"][2] == stack.fit_report_["P@1"][2]
    for ours, theirs in zip(auto.predict_topk(X, 5), stack.predict_topk(X, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_class_a_row_brings_likelihoods(data):
    X, Y = data
    one = AutoXC(cv=0.3, random_state=0).fit(X, np.asarray(Y.argmax(axis=1)).ravel()).fit_report_
    several = AutoXC(cv=0.3, random_state=0).fit(X, Y).fit_report_
    assert several["outcome"].tolist()[3:5] == ["rows have several labels"] * 2
    assert np.isfinite(one["P@1"][:4]).all()
    is_behind = one["P@1"][3] < one["P@1"][0]
    assert one["outcome"][4] == ("the logistic loss is behind" if is_behind else "")


def test_the_logistic_loss_is_for_few_pairs(data, monkeypatch):
    monkeypatch.setattr("sklearn_xc.ensemble.auto._MOST_PAIRS", 1)
    y = np.asarray(data[1].argmax(axis=1)).ravel()
    report = AutoXC(cv=0.3, random_state=0).fit(data[0], y).fit_report_
    assert report["outcome"][3] == "it looks at every row for every class"
    assert np.isfinite(report["P@1"][4])


def test_a_candidate_that_fails_is_left_out(data):
    X, Y = data
    bad = NGAMEEmbeddingXC(label_features=np.ones((3, 2)))
    with pytest.warns(FitFailedWarning, match="without bad: .*label_features"):
        auto = AutoXC([("ova", strong()), ("bad", bad)], cv=0.3).fit(X, Y)
    assert "label_features" in auto.fit_report_["outcome"][1]


def test_time_that_is_too_short_gives_a_model_of_some_rows(data):
    X, Y = data
    with pytest.warns(UserWarning, match=r"time_budget=0.0 s is too short for one-vs-all, .*twice"):
        auto = AutoXC(time_budget=1e-6, cv=0.3, random_state=0).fit(X, Y)
    chosen, other, *_ = auto.fit_report_["outcome"].tolist()
    assert (chosen, other) == ("chosen, of 100 of 210 rows", "no time left")
    assert 0 < auto.estimator_.n_samples_fit_ < N
    assert auto.predict(X).nnz


def test_a_fit_that_is_over_time_ends_at_its_next_part(data, monkeypatch):
    """Time passes while the second candidate is fitted, so that there is none for the third."""
    X, Y = data
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    class Slow(ImplicitSoftmaxSGD):
        def fit(self, X, y):
            now[0] += 60.0
            return super().fit(X, y)

    members = [("a", strong()), ("slow", Slow(max_iter=3)), ("b", strong())]
    auto = AutoXC(members, time_budget=50.0, cv=0.3).fit(X, Y)
    assert auto.fit_report_["outcome"].tolist() == ["chosen", "no time left", "no time left"]


def test_a_fit_of_fewer_rows_may_be_stopped_too(data, monkeypatch):
    """A fit takes five minutes, and with at most 200 rows no time."""
    X, Y = (np.tile(one.toarray(), (20, 1)) for one in data)
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    class Slow(ImplicitSoftmaxSGD):
        def fit(self, X, y):
            now[0] += 300.0 * (len(X) > 200)
            return super().fit(X, y)

    slow = Slow(max_iter=3, early_stopping=False)
    with pytest.warns(UserWarning, match="fitted to 10[0-9] of"):
        AutoXC([("slow", slow)], time_budget=600.0, cv=0.3).fit(X, Y)


def test_names_are_label_texts(tmp_path):
    """Only its name tells what the last label is, in rows where one-vs-all has seen it once."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(80)]
    tags = rng.integers(0, 80, 160)
    texts = [f"{words[tag]} {words[rng.integers(80)]} filler" for tag in tags]
    auto = AutoXC(cv=0.3, random_state=0)
    tagger = TextClassifierXC(classifier=auto).fit(texts, [[words[tag]] for tag in tags])
    report = tagger.classifier_.fit_report_
    by_name = dict(zip(report["name"].tolist(), report["P@1"].tolist(), strict=True))
    assert by_name["label means"] > by_name["one-vs-all"]
    assert isinstance(tagger.classifier_.label_features, LabelFeatures)
    tagger.save(tmp_path / "model")
    loaded = sklearn_xc.load(tmp_path / "model")
    assert loaded.predict(texts) == tagger.predict(texts)

    chosen = list(loaded.classifier_.named_estimators_)
    loaded.set_params(warm_start=True).fit(
        [*texts, "w0 new"], [*([words[tag]] for tag in tags), ["new"]]
    )
    assert loaded.classifier_.fit_report_["name"].tolist()[: len(chosen)] == chosen
    assert "new" in loaded.classes_

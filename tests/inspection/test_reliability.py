"""Reliability of probabilities: beside plain loops and scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.calibration import calibration_curve
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import OvALinearXC, SoftmaxUMax
from sklearn_xc.inspection import ReliabilityDisplay, _ranked_pairs

draw = ReliabilityDisplay.from_predictions


def made(seed=0, n=60, n_labels=8):
    rng = np.random.default_rng(seed)
    P = rng.random((n, n_labels))
    return (rng.random(P.shape) < P**2).astype(int), P


def ranked(P, k):
    best = np.argsort(-P, axis=1, kind="stable")[:, :k]
    return best, np.take_along_axis(P, best, axis=1)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_as_in_scikit_learn_and_plain_loops(strategy, k):
    Y, P = made()
    best, p = ranked(P, k)
    display = draw(Y, (best, p), k=k, n_bins=5, strategy=strategy)
    flat, truth = p.ravel(), np.take_along_axis(Y, best, axis=1).ravel()
    share, mean = calibration_curve(truth, flat, n_bins=5, strategy=strategy)
    np.testing.assert_allclose(display.mean_probability, mean)
    np.testing.assert_allclose(display.observed_share, share)
    edges = np.quantile(flat, np.linspace(0, 1, 6)) if strategy == "quantile" else None
    edges = np.linspace(0, 1, 6) if edges is None else edges
    bins = [[] for _ in range(5)]
    for value, true in zip(flat, truth, strict=True):
        bins[sum(value > edge for edge in edges[1:-1])].append((value, true))
    bins = [np.array(one) for one in bins if one]
    assert display.n_pairs.tolist() == [len(one) for one in bins]
    ece = sum(len(one) * abs(one[:, 0].mean() - one[:, 1].mean()) for one in bins) / len(flat)
    assert display.ece == pytest.approx(ece)
    assert display.line_.get_label() == f"ECE = {ece:.3f}"
    np.testing.assert_array_equal(display.line_.get_xdata(), display.mean_probability)
    np.testing.assert_array_equal(display.line_.get_ydata(), display.observed_share)


def test_sparse_probabilities_are_the_same():
    Y, P = made(1)
    P[P < 0.5] = 0
    best, p = ranked(P, 4)
    a = draw(Y, sp.csr_array(P), k=4)
    b = draw(sp.csr_array(Y), (np.where(p > 0, best, -1), np.where(p > 0, p, -np.inf)), k=4)
    for name in ("mean_probability", "observed_share", "n_pairs", "ece"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.n_pairs.sum() == (np.sort(P, axis=1)[:, -4:] > 0).sum()


def test_equal_probabilities_make_one_bin():
    Y, P = made(2)
    display = draw(Y, ranked(np.full_like(P, 0.25), 8), k=8)
    assert display.n_pairs.tolist() == [Y.size]
    assert display.ece == pytest.approx(abs(Y.mean() - 0.25))


@pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
def test_of_an_estimator(xy, container):
    X, Y = xy
    Y = container(Y.toarray())
    model = make_pipeline(
        MaxAbsScaler(), SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0, top_k=15)
    ).fit(X, Y)
    display = ReliabilityDisplay.from_estimator(model, X, Y, k=3, n_bins=4)
    P = model.predict_proba(X)
    P = P.toarray() if sp.issparse(P) else P
    best, p = ranked(P, 3)
    expected = draw(Y, (best, p.astype(np.float64)), k=3, n_bins=4)
    np.testing.assert_allclose(display.mean_probability, expected.mean_probability)
    np.testing.assert_allclose(display.observed_share, expected.observed_share)
    assert display.name == "SoftmaxUMax"


def test_of_classes_and_of_a_forest(xy):
    X = xy[0]
    at = X.toarray()[:, :3].argmax(axis=1)
    y = np.array(["bee", "ant", "cat"])[at]
    model = LogisticRegression().fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, X, y, k=3, n_bins=4)
    truth = (y[:, None] == model.classes_).astype(int)
    expected = draw(truth, ranked(model.predict_proba(X), 3), k=3, n_bins=4)
    assert display.ece == pytest.approx(expected.ece)
    Y = xy[1].toarray()[:, :4].astype(int)
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    display = ReliabilityDisplay.from_estimator(forest, X, Y, k=4, n_bins=3)
    P = [
        p[:, list(classes).index(1)] if 1 in classes else np.zeros(len(p))
        for p, classes in zip(forest.predict_proba(X), forest.classes_, strict=True)
    ]
    assert display.ece == pytest.approx(draw(Y, ranked(np.column_stack(P), 4), k=4, n_bins=3).ece)


@pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
def test_pieces_of_rows_change_nothing(xy, container, monkeypatch):
    X, Y = xy[0], container(xy[1].toarray())
    model = SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0).fit(X, Y)
    whole = ReliabilityDisplay.from_estimator(model, X, Y, k=3)
    monkeypatch.setattr(_ranked_pairs, "_PIECE", 100)
    parts = ReliabilityDisplay.from_estimator(model, X, Y, k=3)
    np.testing.assert_array_equal(parts.n_pairs, whole.n_pairs)
    np.testing.assert_allclose(parts.mean_probability, whole.mean_probability, 1e-6)


class Chances(OvALinearXC):
    """Scores that are probabilities."""

    def predict_topk(self, X, k=5):
        labels, scores = super().predict_topk(X, k)
        return labels, 1 / (1 + np.exp(-scores))


def test_scores_that_are_probabilities(xy):
    model = Chances(prune=0).fit(*xy)
    with pytest.raises(ValueError, match=r"must have predict_proba. Got Chances .*predict_topk"):
        ReliabilityDisplay.from_estimator(model, *xy)
    for method in ("predict_topk", "auto"):
        display = ReliabilityDisplay.from_estimator(model, *xy, k=3, response_method=method)
        assert display.ece == draw(xy[1], model.predict_topk(xy[0], 3), k=3).ece


def test_margins_are_refused(fitted_models, xy):
    with pytest.raises(ValueError, match=r"topk must hold probabilities from 0 to 1. Got "):
        ReliabilityDisplay.from_estimator(fitted_models["ova"], *xy, response_method="auto")


def test_the_diagonal_is_drawn_once_or_not():
    Y, P = made()
    first = draw(Y, ranked(P, 2), k=2, name="a")
    draw(Y, ranked(P, 2), k=2, name="b", ax=first.ax_)
    assert len(first.ax_.lines) == 3
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts[0].startswith("a (ECE = 0.")
    assert texts[2] == "perfectly calibrated"
    assert len(first.plot(ref_line=False).ax_.lines) == 1


GOOD = {"y_true": np.eye(3, dtype=int), "k": 2, "topk": ranked(np.full((3, 3), 0.5), 2)}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_bins": 0}, "ReliabilityDisplay: n_bins must be an integer from 1 .* Got 0"),
        ({"n_bins": 2.0}, "n_bins must be an integer"),
        (
            {"strategy": "kmeans"},
            r"strategy must be one of \('quantile', 'uniform'\). Got 'kmeans'",
        ),
        ({"strategy": ["uniform"]}, "strategy must be one of"),
        ({"k": 0}, "ReliabilityDisplay: k must be an integer of at least 1. Got 0"),
        ({"k": 3}, "k must be at most 2"),
        ({"topk": GOOD["topk"][0]}, r"topk must be a tuple \(indices, .* Got ndarray"),
        ({"topk": (GOOD["topk"][0], GOOD["topk"][1] + 1)}, "from 0 to 1. Got 1.5"),
        ({"topk": (GOOD["topk"][0], GOOD["topk"][1] - 1)}, "from 0 to 1. Got -0.5"),
        ({"topk": (GOOD["topk"][0], GOOD["topk"][1] * np.nan)}, "topk: expected scores. Got NaN"),
        ({"topk": (np.full((3, 2), -1), np.full((3, 2), -np.inf))}, "must name some label. Got n"),
        ({"topk": sp.csr_array((3, 3))}, "must name some label. Got none"),
        ({"topk": sp.csr_array((4, 3))}, "topk: Y_true has 3 rows, topk has 4"),
        ({"y_true": 2 * np.eye(3)}, "Y_true: an indicator holds only 0 and 1"),
    ],
)
def test_errors_name_argument_and_value(changed, message):
    with pytest.raises(ValueError, match=message):
        draw(**(GOOD | changed))


def test_errors_of_estimators(fitted_models, xy):
    model = fitted_models["softmax"]
    with pytest.raises(ValueError, match=r"response_method must be one of \('auto'.*Got 'decis"):
        ReliabilityDisplay.from_estimator(model, *xy, response_method="decision_function")
    with pytest.raises(ValueError, match="ReliabilityDisplay: k must be an integer"):
        ReliabilityDisplay.from_estimator(model, *xy, k=0.5)
    with pytest.raises(TypeError, match="X is a masked array"):
        ReliabilityDisplay.from_estimator(model, np.ma.array(xy[0].toarray()), xy[1])


def test_index_arrays_that_lie(malformed, fitted_models, xy):
    Y, P = made()
    with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
        draw(malformed(sp.csr_array(Y)), ranked(P, 2), k=2)
    with pytest.raises(ValueError, match=r"topk: this .* is malformed"):
        draw(Y, malformed(sp.csr_array(P)), k=2)
    with pytest.raises(ValueError, match=r"X: this .* is malformed"):
        ReliabilityDisplay.from_estimator(fitted_models["softmax"], malformed(xy[0]), xy[1])


def test_the_axis_of_one_label():
    Y, P = made()
    for k, says in ((1, "of the best label"), (3, "of the 3 best labels")):
        display = draw(Y, ranked(P, k), k=k)
        assert display.ax_.get_xlabel() == f"mean predicted probability {says}"

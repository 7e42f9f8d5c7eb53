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
from sklearn_xc.inspection import ReliabilityDisplay

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


def test_the_diagonal_is_drawn_once():
    Y, P = made()
    first = draw(Y, ranked(P, 2), k=2, name="a")
    draw(Y, ranked(P, 2), k=2, name="b", ax=first.ax_)
    assert len(first.ax_.lines) == 3
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts[0] == "perfectly calibrated"
    assert texts[1].startswith("a (ECE = 0.")


BEST, HALF = ranked(np.full((3, 3), 0.5), 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_bins": 0}, "n_bins must be an integer from 1 .* Got 0"),
        ({"strategy": "kmeans"}, "strategy: expected one of .* Got 'kmeans'"),
        ({"k": 3}, "k must be at most 2"),
        ({"Y_prob": BEST}, "Y_prob: expected a matrix of probabilities, .*, or a tuple"),
        ({"Y_prob": (BEST, HALF + 1)}, r"Y_prob: .* in \[0, 1\]. Got 1.5"),
    ],
)
def test_errors_name_argument_and_value(changed, message):
    with pytest.raises(ValueError, match=message):
        draw(**{"y_true": np.eye(3, dtype=int), "Y_prob": (BEST, HALF), "k": 2} | changed)


def test_margins_are_refused(xy):
    with pytest.raises(ValueError, match=r"must have predict_proba. Got OvALinearXC"):
        ReliabilityDisplay.from_estimator(OvALinearXC(prune=0).fit(*xy), *xy)

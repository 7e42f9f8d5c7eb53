"""Lines of a metric by frequency: beside plain loops, the bars, and the metric of all labels."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from sklearn_xc import topk
from sklearn_xc.inspection import LabelFrequencyDisplay, MetricByFrequencyDisplay
from sklearn_xc.metrics import propensity, psp_at_k

draw = MetricByFrequencyDisplay.from_predictions
Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]])
TOPK = np.array([[2, 3, 0], [1, 3, -1], [1, 0, 2]])
COUNTS = np.array([1, 9, 1, 0])


def made(seed, n=30, n_labels=12, k=3):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.25).astype(int)
    best = np.argsort(rng.random((n, n_labels)) - 0.5 * Y, axis=1)[:, :k]
    best[rng.random(n) < 0.2, k - 1] = -1
    return Y, best, rng.integers(0, 9, n_labels) + (np.arange(n_labels) == 0)


@pytest.mark.parametrize("metric", ["precision", "recall", "psp"])
@pytest.mark.parametrize("seed", range(3))
def test_as_in_plain_loops(metric, seed):
    Y, best, counts = made(seed)
    p = np.random.default_rng(seed).uniform(0.1, 1, len(counts))
    display = draw(Y, best, counts, metric=metric, k=3, n_groups=4, propensities=p)
    attainable = sum(sum(sorted((1 / p[row == 1]), reverse=True)[:3]) for row in Y)
    for group, (low, high) in enumerate(zip(display.lower, display.upper, strict=True)):
        labels = [label for label, count in enumerate(counts) if low <= count <= high]
        assert display.n_labels[group] == len(labels)
        assert display.frequency[group] == pytest.approx(
            np.prod([float(counts[label]) for label in labels]) ** (1 / len(labels))
        )
        right = [(i, j) for i in range(len(Y)) for j in best[i] if j in labels and Y[i, j]]
        predicted = sum(label in labels for row in best for label in row)
        true = Y[:, labels].sum()
        expected = {
            "precision": len(right) / predicted if predicted else np.nan,
            "recall": len(right) / true if true else np.nan,
            "psp": sum(1 / p[label] for _, label in right) / attainable,
        }[metric]
        np.testing.assert_allclose(display.values[group], expected)
    np.testing.assert_allclose(display.line_.get_ydata(), 100 * display.values)
    np.testing.assert_allclose(display.line_.get_xdata(), display.frequency)


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_contributions_add_up_to_psp(seed, n_groups):
    import matplotlib.pyplot as plt

    Y, best, counts = made(seed)
    counts = counts + 1  # all labels are in a group
    p = propensity(counts, 100)
    display = draw(Y, best, counts, metric="psp", k=2, n_groups=n_groups, propensities=p)
    plt.close(display.figure_)
    assert display.values.sum() == pytest.approx(psp_at_k(Y, best, k=2, propensities=p))


def test_the_same_as_the_bars(fitted_models, xy):
    X, Y = xy
    for model in fitted_models.values():
        bars = LabelFrequencyDisplay.from_estimator(model, X, Y, k=3)
        for metric in ("precision", "recall"):
            line = MetricByFrequencyDisplay.from_estimator(model, X, Y, k=3, metric=metric)
            np.testing.assert_array_equal(line.values, getattr(bars, metric))
            assert line.name == type(model).__name__


def test_propensities_of_an_estimator(fitted_models, xy):
    X, Y = xy
    model = fitted_models["ova"]
    display = MetricByFrequencyDisplay.from_estimator(model, X, Y, k=3, metric="psp")
    p = propensity(model.label_counts_, model.n_samples_fit_)
    expected = psp_at_k(Y, topk(model, X, 3), k=3, propensities=p)
    assert display.values.sum() == pytest.approx(expected)


def test_sparse_scores_and_positions_are_the_same():
    scores = sp.csr_array(np.array([[1, 0, 3, 2], [0, 2, 0, 1], [2, 3, 1, 0]]) / 4)
    a = draw(sp.csr_array(Y), scores, COUNTS, k=2, n_groups=2)
    b = draw(Y, TOPK, COUNTS, k=2, n_groups=2)
    np.testing.assert_array_equal(a.values, b.values)
    assert b.values.tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metric": "ndcg"}, r"metric must be one of \('precision', .* Got 'ndcg'"),
        ({"metric": None}, "metric must be one of .* Got None"),
        ({"metric": "psp"}, "needs propensities. Got None"),
        ({"metric": "psp", "propensities": [0.5]}, r"propensities has shape \(1,\)"),
        ({"metric": "psp", "propensities": [0.5, 0.5, 2, 0.5]}, "probabilities in .* Got 2.0"),
        ({"k": 0}, "MetricByFrequencyDisplay: k must be an integer of at least 1. Got 0"),
        ({"k": 4}, "k must be at most 3"),
        ({"n_groups": 0}, "MetricByFrequencyDisplay: n_groups must be an integer"),
        ({"label_counts": [1, 2]}, "MetricByFrequencyDisplay: label_counts must have one .* Got 2"),
        ({"label_counts": [1, -2, 1, 1]}, "label_counts must be whole .* Got -2 for label 1"),
        ({"y_true": 2 * Y}, "Y_true: an indicator holds only 0 and 1"),
        ({"topk": TOPK / 2}, "topk: expected integer label positions"),
    ],
)
def test_errors_name_argument_and_value(changed, message):
    arguments = {"y_true": Y, "topk": TOPK, "label_counts": COUNTS, "k": 2} | changed
    with pytest.raises(ValueError, match=message):
        draw(**arguments)


def test_estimators_without_counts(xy):
    y = xy[1].toarray()[:, 0]
    with pytest.raises(ValueError, match=r"LogisticRegression has no label_counts_"):
        MetricByFrequencyDisplay.from_estimator(LogisticRegression().fit(xy[0], y), xy[0], y)


def test_index_arrays_that_lie(malformed, fitted_models, xy):
    with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
        draw(malformed(sp.csr_array(Y)), TOPK, COUNTS, k=2)
    with pytest.raises(ValueError, match=r"X: this .* is malformed"):
        MetricByFrequencyDisplay.from_estimator(fitted_models["ova"], malformed(xy[0]), xy[1])


@pytest.mark.parametrize("metric", ["precision", "recall", "psp"])
def test_the_axis_of_shares_starts_at_zero(metric):
    p = np.full(4, 0.5)
    display = draw(Y, TOPK, COUNTS, metric=metric, k=2, n_groups=2, propensities=p)
    assert display.ax_.get_ylim()[0] == 0
    good = MetricByFrequencyDisplay(
        frequency=np.array([1.0, 9]), lower=np.array([1, 9]), upper=np.array([1, 9]),
        n_labels=np.array([2, 1]), values=np.array([0.46, 0.9]), metric=metric, k=2,
    )  # fmt: skip
    first = good.plot()
    assert first.ax_.get_ylim()[0] == 0
    top = first.ax_.get_ylim()[1]
    assert top > 90
    good.values = np.array([0.7, 1.0])
    assert good.plot(ax=first.ax_).ax_.get_ylim()[0] == 0
    assert first.ax_.get_ylim()[1] > 100


def test_a_limit_of_the_user_stays():
    _, ax = plt.subplots()
    ax.set_ylim(20, 80)
    draw(Y, TOPK, COUNTS, k=2, ax=ax)
    assert ax.get_ylim() == (20, 80)

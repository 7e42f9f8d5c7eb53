"""The display by label frequency against plain loops, and the errors and style of all displays."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import OvALinearXC, topk
from sklearn_xc.inspection import MetricByFrequencyDisplay, ReliabilityDisplay
from sklearn_xc.metrics import psp_at_k

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]])
TOPK = np.array([[2, 3, 0], [1, 3, -1], [1, 0, 2]])
SCORES = np.array([[0.9, 0.5, 0.2], [0.8, 0.3, -np.inf], [0.7, 0.7, 0.1]])
COUNTS = np.array([1, 9, 1, 0])
DRAW = {
    "lines": lambda **o: MetricByFrequencyDisplay.from_predictions(Y, TOPK, COUNTS, k=2, **o),
    "reliability": lambda **o: ReliabilityDisplay.from_predictions(Y, (TOPK, SCORES), k=2, **o),
}
everyone = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)


def made(seed, n=30, n_labels=12, k=3):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.25).astype(int)
    best = np.argsort(rng.random((n, n_labels)) - 0.5 * Y, axis=1)[:, :k]
    best[rng.random(n) < 0.2, k - 1] = -1
    return Y, best, rng.integers(0, 9, n_labels) + (np.arange(n_labels) == 0)


@pytest.mark.parametrize("metric", ["precision", "recall", "psp"])
@pytest.mark.parametrize("seed", range(2))
def test_values_of_plain_loops(metric, seed):
    Y, best, counts = made(seed)
    p = np.random.default_rng(seed).uniform(0.1, 1, len(counts))
    arguments = {"k": 3, "n_groups": 4}
    display = MetricByFrequencyDisplay.from_predictions(
        Y, best, counts, metric=metric, propensities=p, **arguments
    )
    attainable = sum(sum(sorted((1 / p[row == 1]), reverse=True)[:3]) for row in Y)
    for group, (low, high) in enumerate(zip(display.lower, display.upper, strict=True)):
        labels = [label for label, count in enumerate(counts) if low <= count <= high]
        assert display.n_labels[group] == len(labels)
        mean = np.prod([float(counts[label]) for label in labels]) ** (1 / len(labels))
        assert display.frequency[group] == pytest.approx(mean)
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
    if metric == "psp" and counts.all():
        assert display.values.sum() == pytest.approx(psp_at_k(Y, best, 3, propensities=p))


def test_values_by_hand():
    found = MetricByFrequencyDisplay.from_predictions(Y, TOPK, COUNTS, k=2, n_groups=2)
    # Labels 0 and 2 occur once, label 1 nine times, label 3 never.
    assert found.lower.tolist() == found.upper.tolist() == [1, 9]
    assert found.n_labels.tolist() == [2, 1]
    assert found.values.tolist() == [0.5, 1.0]


def test_estimators(make_xy):
    X, Y = make_xy()
    model = make_pipeline(MaxAbsScaler(), OvALinearXC(prune=0)).fit(X, Y)
    counts, best = model[-1].label_counts_, topk(model, X, 3)
    found = MetricByFrequencyDisplay.from_estimator(model, X, Y, k=3)
    expected = MetricByFrequencyDisplay.from_predictions(Y, best, counts, k=3, name="a")
    for name in ("lower", "values"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    with pytest.raises(ValueError, match=r"LogisticRegression has no label_counts_"):
        MetricByFrequencyDisplay.from_estimator(LogisticRegression(), X, Y)
    display = MetricByFrequencyDisplay.from_estimator(model, X, Y, metric="psp")
    assert display.line_.get_label() == "OvALinearXC"


@pytest.mark.parametrize("name", ["lines", "reliability"])
def test_several_models_on_the_axes_of_the_first(name):
    first = DRAW[name](name="first")
    second = DRAW[name](name="second", ax=first.ax_, ls=":", c="red")
    third = DRAW[name](name="third", ax=first.ax_)
    assert first.figure_.axes == [second.ax_] == [third.ax_]
    assert second.line_.get_color() == "red"
    assert second.line_.get_linestyle() == ":"
    assert first.line_.get_color() != third.line_.get_color()
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    for model in ("first", "second", "third"):
        assert sum(text.startswith(model) for text in texts) == 1


@everyone
def test_axes(draw):
    ax = draw().ax_
    assert not ax.spines["top"].get_visible()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    with pytest.raises(TypeError, match=r"Display: ax must be matplotlib axes or None. Got 'axes'"):
        draw(ax="axes")


@everyone
def test_without_matplotlib(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Display.* needs matplotlib: pip install .*\[plot\]"):
        draw()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "Display: k must be an integer of at least 1. Got 0"),
        ({"n_groups": 0}, "Display: n_groups must be an integer of at least 1"),
        ({"label_counts": [1, 9, 1]}, "label_counts must have one count for each of 4 labels"),
        ({"label_counts": [1, -9, 1, 0]}, "label_counts must be whole numbers .* Got -9"),
        ({"y_true": sp.csr_array(2 * Y)}, "Y_true: an indicator holds only 0 and 1"),
        ({"metric": "f1"}, "metric must be one of .* Got 'f1'"),
        ({"metric": "psp"}, 'metric="psp" needs propensities. Got None'),
    ],
)
def test_errors(changed, message):
    arguments = {"y_true": Y, "topk": TOPK, "label_counts": COUNTS, "k": 2} | changed
    with pytest.raises(ValueError, match=message):
        MetricByFrequencyDisplay.from_predictions(**arguments)

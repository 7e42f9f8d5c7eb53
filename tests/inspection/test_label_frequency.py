"""The figure of precision and recall by training frequency: its numbers, and its errors."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import OvALinearXC, topk
from sklearn_xc._frequency_groups import frequency_groups
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.inspection import LabelFrequencyDisplay

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]])
TOPK = np.array([[2, 3, 0], [1, 3, -1], [1, 0, 2]])
COUNTS = np.array([1, 9, 1, 0])

draw = LabelFrequencyDisplay.from_predictions


def test_numbers_by_hand():
    display = draw(Y, TOPK, COUNTS, k=2, n_groups=2)
    # Labels 0 and 2 occur once, label 1 nine times, label 3 never.
    assert display.lower.tolist() == [1, 9]
    assert display.upper.tolist() == [1, 9]
    assert display.n_labels.tolist() == [2, 1]
    assert display.precision.tolist() == [0.5, 1.0]  # 2 of row 0 is right, 0 of row 2 is not
    assert display.recall.tolist() == [0.5, 1.0]  # 2 of row 0 is found, 0 is not
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert heights == [50, 100, 50, 100]
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["1\n(2)", "9\n(1)"]


def test_a_second_model_stands_beside_the_first():
    first = draw(Y, TOPK, COUNTS, k=2, n_groups=2, name="A")
    second = draw(Y, TOPK[:, ::-1], COUNTS, k=2, n_groups=2, name="never seen")
    again = second.plot(ax=first.ax_, name="B")
    assert again is second
    assert second.name == "never seen"
    assert second.ax_ is first.ax_
    (legend,) = [c for c in first.ax_.get_children() if type(c).__name__ == "Legend"]
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["A: precision@2", "A: recall@2", "B: precision@2", "B: recall@2"]
    colours = [bars[0].get_facecolor() for bars in (*first.bars_, *second.bars_)]
    assert len(set(colours)) == 4
    # In each group: precision of A and B, then recall of both, without an overlap.
    for group in range(2):
        bars = [first.bars_[0], second.bars_[0], first.bars_[1], second.bars_[1]]
        spans = [(b[group].get_x(), b[group].get_x() + b[group].get_width()) for b in bars]
        assert spans == sorted(spans)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(spans))
        assert spans[0][0] > group - 0.5
        assert spans[-1][1] < group + 0.5


@pytest.mark.parametrize("n_models", [1, 2, 3, 4])
def test_the_legend_stands_above_the_bars(n_models):
    ax = None
    for number in range(n_models):
        display = draw(Y, TOPK, COUNTS, k=2, n_groups=2, name=f"model {number}", ax=ax)
        ax = display.ax_
    display.figure_.canvas.draw()
    bottom = ax.get_legend().get_window_extent().y0
    assert max(bar.get_window_extent().y1 for bar in ax.patches) <= bottom
    assert max(ax.get_yticks()) == 100


def test_other_groups_have_no_place_on_the_axes():
    first = draw(Y, TOPK, COUNTS, k=2)
    with pytest.raises(ValueError, match=r"ax must have the same groups .*MetricByFrequency"):
        draw(Y, TOPK, [1, 9, 2, 0], k=2, ax=first.ax_)


def test_a_colour_of_ones_own():
    display = draw(Y, TOPK, COUNTS, k=1, color="#ff0000", hatch="/")
    assert display.bars_[0][0].get_facecolor() == (1, 0, 0, 1)
    assert display.bars_[1][0].get_facecolor()[:3] == pytest.approx((1, 0.55, 0.55))
    assert display.bars_[1][0].get_hatch() == "/"


def test_into_given_axes():
    _, ax = plt.subplots()
    assert draw(Y, TOPK, COUNTS, k=1, ax=ax).ax_ is ax


@pytest.mark.parametrize("n_groups", [1, 2, 3, 10, 10**12])
def test_groups_cover_the_labels_that_occur(n_groups):
    counts = np.array([5, 1, 1, 0, 7, 2, 1, 0, 100])
    group, lower, upper = frequency_groups(counts, n_groups, "who")
    for label, count in enumerate(counts):
        if count:
            assert lower[group[label]] <= count <= upper[group[label]]
        else:
            assert group[label] == len(upper)
    assert (lower[1:] > upper[:-1]).all()
    assert len(upper) == {1: 1, 2: 2, 3: 3}.get(n_groups, 5)


@pytest.mark.parametrize("kind", ["texts", "ints"])
def test_classes_of_an_estimator(xy, kind):
    X = xy[0]
    at = X.toarray()[:, :3].argmax(axis=1)
    y = np.array(["bee", "ant", "cat"] if kind == "texts" else [30, 10, 20])[at]
    model = make_pipeline(MaxAbsScaler(), OvALinearXC(prune=0)).fit(X, y)
    by_label = LabelFrequencyDisplay.from_estimator(model, X, y, k=1)
    at = np.searchsorted(model[-1].classes_, y)
    counts = np.bincount(at)
    by_position = draw(at, topk(model, X, 1)[0], counts, k=1)
    by_hand = draw(y, topk(model, X, 1)[0], counts, k=1, classes=model[-1].classes_)
    for other in (by_position, by_hand):
        np.testing.assert_array_equal(by_label.precision, other.precision)
        np.testing.assert_array_equal(by_label.recall, other.recall)
    assert by_label.precision.min() > 0.3


def test_an_indicator_of_an_estimator(xy):
    model = OvALinearXC(prune=0).fit(*xy)
    display = LabelFrequencyDisplay.from_estimator(model, *xy, k=2)
    expected = draw(xy[1], topk(model, xy[0], 2), model.label_counts_, k=2)
    np.testing.assert_array_equal(display.recall, expected.recall)


SPANS = np.array([1, 2, 3, 4], "timedelta64[s]")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "LabelFrequencyDisplay: k must be an integer of at least 1. Got 0"),
        ({"k": True}, "k must be an integer"),
        ({"k": [1, 2]}, r"k must be an integer of at least 1. Got \[1, 2\]"),
        ({"k": 4}, "k must be at most 3, the columns of topk. Got 4"),
        ({"n_groups": 0}, "n_groups must be an integer of at least 1. Got 0"),
        ({"n_groups": 2.5}, "n_groups must be an integer"),
        ({"label_counts": COUNTS[:3]}, "label_counts must have one .* of 4 labels. Got 3"),
        ({"label_counts": [1, 9, 1, 0, 5]}, "label_counts must have one .* of 4 labels. Got 5"),
        ({"label_counts": [1, 9, -1, 0]}, "label_counts must be whole .* Got -1 for label 2"),
        ({"label_counts": [1, 9.5, 1, 0]}, "label_counts must be whole .* Got 9.5 for label 1"),
        ({"label_counts": [1e30, 9, 1, 0]}, r"whole .* Got 1e\+30 for label 0"),
        ({"label_counts": [True, True, True, False]}, "whole .* Got True for label 0"),
        ({"label_counts": [1, 9, np.nan, 0]}, "label_counts contains NaN at entry 2"),
        ({"label_counts": [0, 0, 0, 0]}, "label_counts must be above 0 .* Got 4 zeros"),
        ({"label_counts": []}, "label_counts must be above 0 .* Got 0 zeros"),
        ({"label_counts": COUNTS[None]}, r"label_counts has shape \(1, 4\)"),
        ({"label_counts": ["1", "2", "3", "4"]}, "label_counts holds .*'1'"),
        ({"label_counts": SPANS}, "label_counts holds dates or times"),
        ({"label_counts": None}, "label_counts holds None"),
        ({"Y_true": 2 * Y}, "Y_true: an indicator holds only 0 and 1"),
        ({"Y_true": ["a", "b", "c"]}, r"Y_true: .* pass classes=clf\.classes_"),
        ({"Y_true": [0, 1, 4]}, "label_counts must have one count for each of 5 labels. Got 4"),
        ({"Y_true": [0, 1, 2], "indices": TOPK + 1}, "each of 5 labels. Got 4"),
        ({"indices": TOPK / 2}, "topk: expected integer label positions"),
        ({"classes": ["a", "b", "c"]}, "classes: Y_true has 4 label columns. Got 3 classes"),
    ],
)
def test_errors_name_argument_and_value(changed, message):
    arguments = {"Y_true": Y, "indices": TOPK, "label_counts": COUNTS, "k": 2} | changed
    with pytest.raises(ValueError, match=message):
        draw(**arguments)


def test_masks():
    for name, value in (("label_counts", COUNTS), ("Y_true", Y), ("indices", TOPK)):
        arguments = {"Y_true": Y, "indices": TOPK, "label_counts": COUNTS, "k": 2}
        with pytest.raises(TypeError, match="is a masked array"):
            draw(**{**arguments, name: np.ma.array(value)})


def test_index_arrays_that_lie(malformed, xy):
    with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
        draw(malformed(sp.csr_array(Y)), TOPK, COUNTS, k=2)
    model = OvALinearXC(prune=0).fit(*xy)
    with pytest.raises(ValueError, match=r"X: this .* is malformed"):
        LabelFrequencyDisplay.from_estimator(model, malformed(xy[0]), xy[1])
    with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
        LabelFrequencyDisplay.from_estimator(model, xy[0], malformed(xy[1]))


def test_estimators_that_lack_something(xy):
    y = xy[1].toarray()[:, 0]
    model = LogisticRegression().fit(xy[0], y)
    with pytest.raises(ValueError, match=r"LogisticRegression has no label_counts_.*from_predicti"):
        LabelFrequencyDisplay.from_estimator(model, xy[0], y)
    model = OvALinearXC(prune=0).fit(*xy)
    with pytest.raises(MemoryBudgetError, match="k=1000000000000"):
        LabelFrequencyDisplay.from_estimator(model, *xy, k=10**12)

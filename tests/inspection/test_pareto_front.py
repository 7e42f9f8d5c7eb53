"""The Pareto front beside all pairs of models, and names that do not overlap."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc.inspection import ParetoFrontDisplay
from sklearn_xc.inspection.pareto_front import _front

draw = ParetoFrontDisplay.from_results


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=20))
def test_the_front_beside_all_pairs(models):
    quality, cost = np.array(models, np.float64).T
    expected = [
        not any(q >= quality[i] and c <= cost[i] and (q > quality[i] or c < cost[i])
                for q, c in zip(quality, cost, strict=True))
        for i in range(len(models))
    ]  # fmt: skip
    assert _front(quality, cost).tolist() == expected


def test_what_is_drawn():
    display = draw(
        ["a", "b", "c", "d"], [3, 1, 2, 2], [30, 1, 2, 2.5],
        quality_label="P@1 (%)", cost_label="training (s)", name="one thread",
    )  # fmt: skip
    assert display.on_front.tolist() == [True, True, True, False]
    assert display.line_.get_xdata().tolist() == [1, 2, 30]  # cheapest first
    assert display.line_.get_ydata().tolist() == [1, 2, 3]
    assert display.points_.get_ydata().tolist() == [3, 1, 2, 2]
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == "training (s)"
    assert display.ax_.get_ylabel() == "P@1 (%)"
    assert [text.get_text() for text in display.texts_] == ["a", "b", "c", "d"]
    assert [text.xy for text in display.texts_] == [(30, 3), (1, 1), (2, 2), (2.5, 2)]


def test_which_points_have_names():
    display = draw(["a", "b", "c"], [3, 1, 2], [1, 2, 3], label_points="front")
    assert [text.get_text() for text in display.texts_] == ["a"]
    assert display.plot(label_points=None).texts_ == []
    many = draw([str(i) for i in range(31)], np.arange(31) % 7, np.arange(31) + 1.0)
    assert len(many.texts_) == many.on_front.sum() == 7
    assert len(many.plot(label_points="all").texts_) == 31


def overlap(one, other):
    return max(0, min(one.x1, other.x1) - max(one.x0, other.x0)) * max(
        0, min(one.y1, other.y1) - max(one.y0, other.y0)
    )


@pytest.mark.parametrize("seed", range(4))
def test_names_overlap_neither_each_other_nor_the_points(seed):
    rng = np.random.default_rng(seed)
    cost = 10 ** rng.uniform(0, 3, 14)
    quality = 40 + 8 * np.log10(cost) + rng.normal(0, 3, 14)
    first = draw([f"model {i}" for i in range(14)], quality, cost, name="a")
    second = draw([f"other {i}" for i in range(4)], quality[:4] + 3, cost[:4] / 3, ax=first.ax_)
    second.figure_.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in (*first.texts_, *second.texts_)]
    for at, box in enumerate(boxes):
        assert sum(overlap(box, other) for other in boxes[:at]) < 1
        whole = first.ax_.get_window_extent()
        assert min(box.x0 - whole.x0, whole.x1 - box.x1, box.y0 - whole.y0, whole.y1 - box.y1) > -3
    for display in (first, second):
        points = display.ax_.transData.transform(display.points_.get_xydata())
        for x, y in points:
            inside = [b for b in boxes if b.x0 < x < b.x1 and b.y0 < y < b.y1]
            assert not inside


def test_of_a_search(xy):
    X, y = xy[0], xy[1].toarray()[:, 0]
    model = make_pipeline(MaxAbsScaler(), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1.0], "logisticregression__tol": [1e-3]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    display = ParetoFrontDisplay.from_cv_results(search.cv_results_)
    np.testing.assert_array_equal(display.quality, search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(display.cost, search.cv_results_["mean_fit_time"])
    assert display.names == ["C=0.1", "C=1.0"]
    assert display.ax_.get_xlabel() == "mean time to fit (s)"
    assert display.ax_.get_ylabel() == "mean test score"
    other = ParetoFrontDisplay.from_cv_results(search.cv_results_, cost="mean_score_time")
    np.testing.assert_array_equal(other.cost, search.cv_results_["mean_score_time"])


RESULTS = {
    "params": [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 3, "b": "x"}],
    "mean_test_P@1": np.array([0.5, np.nan, 0.7]),
    "mean_fit_time": np.array([1.0, 2.0, 3.0]),
}


def test_candidates_that_failed_are_left_out():
    display = ParetoFrontDisplay.from_cv_results(RESULTS, quality="mean_test_P@1")
    assert display.names == ["a=1", "a=3"]
    assert display.quality.tolist() == [0.5, 0.7]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"names": "ab"}, "names must be a sequence of str, at least one. Got 'ab'"),
        ({"names": []}, r"names must be a sequence of str, at least one. Got \[\]"),
        ({"names": ["a", 2]}, r"names must be a sequence of str.* Got \['a', 2\]"),
        ({"names": None}, "names must be a sequence of str, at least one. Got None"),
        ({"quality": [1]}, r"ParetoFrontDisplay: quality has shape \(1,\), expected \(2,\)"),
        ({"quality": [1, np.nan]}, "quality contains NaN at entry 1"),
        ({"quality": ["1", "2"]}, "quality holds '1'"),
        ({"cost": [1, 0]}, "cost must be above 0, .* Got 0 for 'b'"),
        ({"cost": [-1, 0]}, "cost must be above 0, .* Got -1 for 'a'"),
        ({"cost": [1, np.inf]}, "cost contains infinity at entry 1"),
        ({"label_points": "some"}, "label_points must be one of .* Got 'some'"),
        ({"label_points": ["all"]}, r"label_points must be one of .* Got \['all'\]"),
        ({"quality_label": 3}, "quality_label must be a str. Got 3"),
        ({"cost_label": None}, "cost_label must be a str. Got None"),
    ],
)
def test_errors_name_argument_and_value(changed, message):
    with pytest.raises(ValueError, match=message):
        draw(**({"names": ["a", "b"], "quality": [1, 2], "cost": [1, 2]} | changed))
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("results", "options", "message"),
    [
        ([1, 2], {}, "cv_results must be cv_results_ of a fitted search.* Got list"),
        ({"a": 1}, {}, "a dict with 'params'. Got dict"),
        (
            RESULTS,
            {},
            r"quality must be one of mean_test_P@1, mean_fit_time. Got 'mean_test_score'",
        ),
        (RESULTS, {"quality": "mean_test_P@1", "cost": 3}, "cost must be one of .* Got 3"),
        (
            RESULTS | {"mean_test_P@1": np.full(3, np.nan)},
            {"quality": "mean_test_P@1"},
            "cv_results must have a candidate that did not fail. Got 3 that failed",
        ),
    ],
)
def test_errors_of_results(results, options, message):
    with pytest.raises(ValueError, match=message):
        ParetoFrontDisplay.from_cv_results(results, **options)


def test_masks():
    with pytest.raises(TypeError, match="cost is a masked array"):
        draw(["a", "b"], [1, 2], np.ma.array([1, 2]))

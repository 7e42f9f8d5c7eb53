"""The course of a training, beside the reports of the estimators."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from sklearn_xc import OvALinearXC, SoftmaxUMax, TextClassifierXC
from sklearn_xc.inspection import ConvergenceDisplay

draw = ConvergenceDisplay.from_estimator


class Fitted:
    """An estimator of which only the report counts."""

    def __init__(self, report, scores=None):
        self.fit_report_, self.validation_scores_ = report, scores


def epochs(loss=(3.0, 2.0, 1.5), **columns):
    return {"loss": np.array(loss), "seconds": np.array([1.0, 2.0, 4.0][: len(loss)]), **columns}


MODULES = epochs(module=np.array(["encoder", "encoder", "classifier"]), epoch=np.array([1, 2, 1]))


@pytest.mark.parametrize("kind", ["softmax", "decomposition"])
@pytest.mark.parametrize("over", ["epoch", "seconds"])
def test_the_loss_of_epochs(fitted_models, kind, over):
    model = fitted_models[kind]
    display = draw(model, over=over)
    report = model.fit_report_
    np.testing.assert_array_equal(display.y, report["loss"])
    expected = np.cumsum(report["seconds"]) if over == "seconds" else np.arange(1, 4)
    np.testing.assert_array_equal(display.x, expected)
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_ydata(), report["loss"])
    np.testing.assert_array_equal(line.get_xdata(), expected)
    assert display.name == type(model).__name__
    assert display.ax_.get_xlabel() == ("epoch" if over == "epoch" else "training time (s)")


def test_another_column(fitted_models):
    display = draw(fitted_models["softmax"], quantity="log_loss")
    np.testing.assert_array_equal(display.y, fitted_models["softmax"].fit_report_["log_loss"])
    assert display.ax_.get_ylabel() == "log-loss (mean of the monitored pairs)"


@pytest.mark.parametrize("quantity", [None, "suboptimality", "gradient_norm", "n_products"])
def test_shares_of_labels(fitted_models, quantity):
    model = fitted_models["ova"]
    display = draw(model, quantity=quantity)
    values = model.fit_report_[quantity or "n_iter"]
    assert display.over == "label"
    assert display.x.tolist() == sorted(set(values.tolist()))
    for x, y in zip(display.x, display.y, strict=True):
        assert y == pytest.approx(np.mean(values <= x))
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_ydata(), [0, *(100 * display.y)])


def test_held_out_scores_have_an_axis_to_the_right():
    scores = np.array([0.2, 0.5, 0.4, 0.45])
    first = draw(Fitted(epochs(), scores), name="A")
    np.testing.assert_array_equal(first.validation_line_.get_ydata(), 100 * scores)
    np.testing.assert_array_equal(first.validation_line_.get_xdata(), [1, 2, 3, 4])
    second = draw(Fitted(epochs(), scores[:2]), name="B", ax=first.ax_)
    assert second.validation_ax_ is first.validation_ax_
    assert first.figure_.axes == [first.ax_, first.validation_ax_]
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts == ["A", "B", "A: held out", "B: held out"]
    assert first.validation_ax_.get_legend() is None
    colours = [line.get_color() for line in (*first.lines_, first.validation_line_)]
    assert colours[0] == colours[1] != second.validation_line_.get_color()
    without = draw(Fitted(epochs()), name="C", ax=first.ax_)
    assert without.validation_line_ is None
    assert len(first.ax_.get_legend().get_texts()) == 5
    assert draw(Fitted(epochs(), scores), over="seconds").validation_ax_ is None


def test_modules_have_a_line_each():
    display = draw(Fitted(MODULES), name="A")
    encoder, classifier = display.lines_
    assert encoder.get_xdata().tolist() == [1, 2]
    assert encoder.get_ydata().tolist() == [3, 2]
    assert classifier.get_xdata().tolist() == [1]
    assert [line.get_label() for line in display.lines_] == ["A: encoder", "A: classifier"]
    assert encoder.get_color() == classifier.get_color()
    assert encoder.get_linestyle() != classifier.get_linestyle()
    later = draw(Fitted(MODULES), over="seconds").lines_[1]
    assert later.get_xdata().tolist() == [7]


def test_inside_of_pipelines_and_texts(xy):
    pipeline = make_pipeline(MaxAbsScaler(), OvALinearXC(prune=0)).fit(*xy)
    assert draw(pipeline).name == "OvALinearXC"
    model = TextClassifierXC(classifier=SoftmaxUMax(learning_rate=0.1, max_iter=2, random_state=0))
    model.fit(["red apple", "green pear", "red rose"], [["fruit"], ["fruit"], ["red"]])
    assert draw(model).name == "SoftmaxUMax"


@pytest.mark.parametrize(
    ("loss", "scale"),
    [((3.0, 2.0, 1.0), "linear"), ((1e6, 2.0, 1.0), "log"), ((1e6, 2.0, 0.0), "linear")],
)
def test_wide_losses_have_a_logarithmic_axis(loss, scale):
    assert draw(Fitted(epochs(loss))).ax_.get_yscale() == scale


def test_a_bound_of_zero_has_a_linear_axis():
    report = {"n_iter": np.array([1, 2]), "suboptimality": np.array([0.0, 1e-3])}
    assert draw(Fitted(report), quantity="suboptimality").ax_.get_xscale() == "linear"


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (Fitted({}), {}, "must be fitted and have a fit_report_ .* Got Fitted without one"),
        (Fitted({"name": ["a"]}), {}, "column 'loss' or 'n_iter'. Got Fitted without"),
        (OvALinearXC(), {}, "must be fitted .* Got OvALinearXC without one"),
        (LogisticRegression(), {}, "must be fitted .* Got LogisticRegression without one"),
        (None, {}, "must be fitted .* Got NoneType without one"),
        (Fitted(epochs()), {"over": "hours"}, "over must be 'epoch' or 'seconds'. Got 'hours'"),
        (Fitted(epochs()), {"over": None}, "over must be 'epoch' or 'seconds'. Got None"),
        (Fitted(epochs()), {"quantity": "los"}, "must be one of loss, seconds for F.* Got 'los'"),
        (Fitted(MODULES), {"quantity": "module"}, "must be one of loss, seconds .* Got 'module'"),
        (Fitted(epochs()), {"quantity": 3}, "quantity must be one of .* Got 3"),
        (Fitted(epochs([np.nan] * 3)), {}, "has finite values. Got 'loss' of Fitted"),
        (
            Fitted({"n_iter": np.ones(2), "suboptimality": np.full(2, np.inf)}),
            {"quantity": "suboptimality"},
            "has finite values. Got 'suboptimality'",
        ),
    ],
)
def test_errors_name_argument_and_value(model, options, message):
    with pytest.raises(ValueError, match=message):
        draw(model, **options)


def test_other_quantities_have_no_place_on_the_axes():
    first = draw(Fitted(epochs()))
    with pytest.raises(ValueError, match=r"ax must show loss by seconds.* by 'epoch'"):
        draw(Fitted(epochs()), over="seconds", ax=first.ax_)
    with pytest.raises(ValueError, match="ax must show n_iter by label"):
        draw(Fitted({"n_iter": np.array([1, 2])}), ax=first.ax_)

"""What all displays share: a second model on the axes of the first, and clear refusals."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sklearn_xc import inspection

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 1]])
TOPK = np.array([[2, 3, 0], [1, 3, -1], [1, 0, 2]])
SCORES = np.array([[0.9, 0.5, 0.2], [0.8, 0.3, -np.inf], [0.7, 0.7, 0.1]])
EPOCHS = {"x": np.arange(1.0, 4), "y": np.array([3.0, 2, 1]), "quantity": "loss", "over": "epoch"}
COUNTS = np.array([1, 9, 1, 0])

DRAW = {
    "LabelFrequencyDisplay": lambda cls, **o: cls.from_predictions(Y, TOPK, COUNTS, k=2, **o),
    "MetricByFrequencyDisplay": lambda cls, **o: cls.from_predictions(Y, TOPK, COUNTS, k=2, **o),
    "ReliabilityDisplay": lambda cls, **o: cls.from_predictions(Y, (TOPK, SCORES), k=2, **o),
    "MicroPrecisionRecallDisplay": lambda cls, **o: cls.from_predictions(
        Y, (TOPK, SCORES), k=2, threshold=0.6, **o
    ),
    "ConvergenceDisplay": lambda cls, name=None, **o: cls(**EPOCHS, name=name).plot(**o),
    "ParetoFrontDisplay": lambda cls, **o: cls.from_results(["a", "b"], [1, 2], [3, 4], **o),
}


@pytest.fixture(params=sorted(DRAW))
def draw(request):
    return lambda **options: DRAW[request.param](getattr(inspection, request.param), **options)


def test_every_display_is_here():
    assert set(DRAW) == {name for name in inspection.__all__ if name.endswith("Display")}


def colours_of(display):
    if hasattr(display, "bars_"):
        return {bars[0].get_facecolor() for bars in display.bars_}
    return {line.get_color() for line in getattr(display, "lines_", None) or [display.line_]}


def test_eight_models_share_axes_and_one_legend(draw):
    first = draw(name="first")
    displays = [first, *(draw(ax=first.ax_, name=f"model {i}") for i in range(7))]
    colours = set().union(*map(colours_of, displays))
    assert len(colours) == sum(len(colours_of(display)) for display in displays)
    assert all(display.ax_ is first.ax_ for display in displays)
    assert first.figure_.axes == [first.ax_]
    legends = [c for c in first.ax_.get_children() if type(c).__name__ == "Legend"]
    assert len(legends) == 1
    texts = [text.get_text() for text in legends[0].get_texts()]
    assert len(set(texts)) == len(texts)
    for name in ["first", *(f"model {i}" for i in range(7))]:
        assert any(text.startswith(name) for text in texts), texts
    first.figure_.canvas.draw()


def test_the_look(draw):
    ax = draw().ax_
    assert not ax.spines["top"].get_visible()
    assert not ax.spines["right"].get_visible()
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_a_name_of_plot_comes_first(draw):
    display = draw(name="mine")
    assert display.name == "mine"
    again = display.plot(name="other").ax_
    texts = [text.get_text() for text in again.get_legend().get_texts()]
    assert any(text.startswith("other") for text in texts)
    assert not any("mine" in text for text in texts)


def test_options_of_matplotlib(draw):
    display = draw(alpha=0.25)
    drawn = display.bars_[0][0] if hasattr(display, "bars_") else None
    drawn = drawn or (display.lines_[0] if hasattr(display, "lines_") else display.line_)
    assert drawn.get_alpha() == 0.25


def test_short_names_of_options():
    display = DRAW["ReliabilityDisplay"](inspection.ReliabilityDisplay, c="red", ls=":")
    assert display.line_.get_color() == "red"
    assert display.line_.get_linestyle() == ":"


@pytest.mark.parametrize("ax", ["axes", 3, [1, 2]])
def test_what_is_no_axes(draw, ax):
    with pytest.raises(TypeError, match=r"Display.plot: ax must be matplotlib axes or None. Got "):
        draw(ax=ax)


def test_what_is_no_name(draw):
    with pytest.raises(TypeError, match=r"Display: name must be a str or None. Got 3"):
        draw().plot(name=3)


def test_without_matplotlib(draw, monkeypatch):
    plt.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"Display.* needs matplotlib: pip install .*\[plot\]"):
        draw()


WAYS = {
    "from_estimator": lambda cls: [None] * (1 if cls is inspection.ConvergenceDisplay else 3),
    "from_predictions": lambda cls: [None] * (3 if "Frequency" in cls.__name__ else 2),
    "from_results": lambda cls: [None] * 3,
    "from_cv_results": lambda cls: [None],
}


@pytest.mark.parametrize("name", DRAW)
def test_without_matplotlib_before_anything_is_predicted(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    cls = getattr(inspection, name)
    ways = [way for way in WAYS if hasattr(cls, way)]
    assert ways
    for way in ways:
        with pytest.raises(ImportError, match=f"{name}.{way} needs matplotlib"):
            getattr(cls, way)(*WAYS[way](cls))

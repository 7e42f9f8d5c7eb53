"""Shared by all displays: colours, markers, axes and legend, and the reading of labels."""

from typing import Any

import numpy as np

from sklearn_xc._labels.names import refuse_other_columns
from sklearn_xc._topk import unwrap

#: Colours for all kinds of colour vision. Source: M. Okabe and K. Ito, "Color Universal Design",
#: 2008; yellow and black come last, being too light or like the axes.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000")
MARKERS = "osD^vP<>"
#: Identifies the lines of models.
_MODEL = "sklearn_xc model"


def axes_for(ax: Any, caller: str, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """Return the axes to draw on; for None those of a new figure of `size` inches.

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError
        If `ax` is not axes.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib: pip install sklearn_xc[plot], or pip install matplotlib."
        ) from error
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "get_legend_handles_labels"):
        raise TypeError(f"{caller}: ax must be matplotlib axes or None. Got {ax!r}.")
    return ax


def draw_line(
    ax: Any, x: np.ndarray, y: np.ndarray, label: str | None, kwargs: dict[str, Any]
) -> Any:
    """Draw the line of one more model, in the next colour and marker, and return it."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    number = sum(line.get_gid() == _MODEL for line in ax.lines)
    options = {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5,
        "label": label,
    }
    (line,) = ax.plot(x, y, **options | normalize_kwargs(kwargs, Line2D))
    line.set_gid(_MODEL)
    return line


def finish(ax: Any, loc: str = "best", **options: Any) -> None:
    """Remove the spines without an axis, and draw the legend if it has entries."""
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc=loc, frameon=False, fontsize=9, **options)


def read_targets(caller: str, estimator: Any, y: Any) -> tuple[Any, Any]:
    """Return y as the metrics take it, and the classes; a tagger encodes names itself."""
    classifier, _ = unwrap(estimator, None)
    if hasattr(classifier, "_encode_targets"):
        y, _ = classifier._encode_targets(y)
    classes = getattr(classifier, "classes_", None)
    if isinstance(classes, list):  # one array for each label, as random forests have
        classes = np.arange(len(classes))
    if classes is not None and len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        refuse_other_columns(y, np.asarray(classes), caller)
    return y, classes

"""One look for all displays: colours, markers, spines, and one legend for several models."""

from collections.abc import Iterable
from typing import Any

import numpy as np

#: Colours that people with any kind of colour vision tell apart. Source: M. Okabe and K. Ito,
#: "Color Universal Design", 2008; yellow and black come last, being too light or like the axes.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
MARKERS = "osD^vP<>"
#: Lines that belong to no model.
GREY = "#808080"
_MODEL = "sklearn_xc model "


def require_matplotlib(who: str) -> Any:
    """Return ``matplotlib.pyplot``, or raise an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{who} needs matplotlib: pip install sklearn_xc[plot], or pip install matplotlib."
        ) from error
    return plt


def check_name(name: Any, who: str) -> str | None:
    """Return the name of a model, or raise TypeError if it is no text."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"{who}: name must be a str or None. Got {name!r}.")
    return name


def axes_for(ax: Any, who: str, size: tuple[float, float] = (6.4, 4.8)) -> Any:
    """Return the axes to draw on; a new figure of `size` inches has one for None.

    Raises
    ------
    ImportError
        Without matplotlib.
    TypeError
        If `ax` is something else than axes.
    """
    plt = require_matplotlib(who)
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "get_legend_handles_labels"):
        raise TypeError(f"{who}: ax must be matplotlib axes or None. Got {ax!r}.")
    return ax


def next_number(ax: Any) -> int:
    """Return how many models have been drawn on the axes, which is the number of the next one."""
    numbers = [number_of(artist) for artist in ax.get_children()]
    return 1 + max((number for number in numbers if number is not None), default=-1)


def number_of(artist: Any) -> int | None:
    """Return the number of the model that an artist belongs to; None if to none."""
    artist = next(iter(artist)) if isinstance(artist, tuple) else artist  # of a group of bars
    gid = artist.get_gid()
    is_ours = isinstance(gid, str) and gid.startswith(_MODEL)
    return int(gid[len(_MODEL) :].split()[0]) if is_ours else None


def mark(artists: Iterable[Any], number: int, what: str = "") -> None:
    """Note in the artists which model they belong to, and which part of it they show."""
    for artist in artists:
        artist.set_gid(f"{_MODEL}{number} {what}".rstrip())


def look(number: int) -> dict[str, Any]:
    """Return colour and marker of a model's line."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5,
    }


def tint(colour: Any, share: float) -> tuple[float, ...]:
    """Return a colour mixed with white, of which `share` is the colour."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - value) for value in to_rgb(colour))


def line_style(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a line: those that were given, under any of their names, come first."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return defaults | normalize_kwargs(given, Line2D)


def best_labels(k: int) -> str:
    """Return "the best label" for one, "the 3 best labels" for three."""
    return "the best label" if k == 1 else f"the {k} best labels"


def start_at_zero(ax: Any) -> None:
    """Have the y axis start at 0: a share that seems half as high is half as large.

    Values below 0, and a limit that the user has set, stay as they are.
    """
    low = ax.dataLim.intervaly[0]
    if ax.get_autoscaley_on() and np.isfinite(low) and low >= 0:
        ax.set_ylim(bottom=0, auto=True)


def log_ticks(ax: Any) -> None:
    """Make the x axis logarithmic, with some ticks also where it spans few powers of ten."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    ax.set_xscale("log")
    low, high = ax.dataLim.intervalx
    if high < 4 * low:
        ax.xaxis.set_major_locator(MaxNLocator(5))
    elif high < 1e3 * low:
        ax.xaxis.set_major_locator(LogLocator(subs=range(1, 10) if high < 10 * low else (1, 2, 5)))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def finish(ax: Any, loc: str = "best", *others: Any, **options: Any) -> None:
    """Remove the spines that carry no axis, and draw one legend where there is something in it.

    Parameters
    ----------
    ax : matplotlib axes
    loc : str
        Where the legend goes.
    *others : matplotlib axes
        Axes over these whose lines the legend names too.
    **options
        For ``matplotlib.axes.Axes.legend``.
    """
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    for other in others:
        more_handles, more_labels = other.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
    if handles:
        # What belongs to no model comes last.
        order = sorted(range(len(handles)), key=lambda at: number_of(handles[at]) is None)
        handles, labels = [handles[at] for at in order], [labels[at] for at in order]
        ax.legend(handles, labels, loc=loc, frameon=False, fontsize=9, **options)

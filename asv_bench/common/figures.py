"""Figures of the experiments: lines of rows, a panel for each measure."""

from collections.abc import Mapping, Sequence
from typing import Any

#: Okabe and Ito's colours, distinct with all common kinds of colour vision; with a marker each.
_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#7F7F7F")
_MARKERS = "oDs^vPX*"


def lines(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    x: str,
    measures: Sequence[str],
    *,
    log: Sequence[str] = (),
    panels: str | None = None,
) -> Any:
    """Draw measures against x, a line for each value of a key.

    Parameters
    ----------
    rows : sequence of mapping
        The points; those without a measure are left out.
    name, x : str
        Keys of the line's name and of the horizontal axis.
    measures : sequence of str
        Keys of the vertical axes, a column of panels each.
    log : sequence of str
        Keys whose axes are logarithmic.
    panels : str or None
        A key for whose values there is a row of panels each.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure  # without pyplot: no global state, no window
    from matplotlib.ticker import LogLocator

    groups = list(dict.fromkeys(row[panels] for row in rows)) if panels else [None]
    shape = (len(groups), len(measures))
    figure = Figure(figsize=(4.2 * shape[1] + 1, 3.4 * shape[0] + 0.8), layout="constrained")
    names = list(dict.fromkeys(row[name] for row in rows))
    for group, axes in zip(groups, figure.subplots(*shape, squeeze=False), strict=True):
        for ax, measure in zip(axes, measures, strict=True):
            for i, line in enumerate(names):
                own = [
                    (row[x], row[measure])
                    for row in rows
                    if row[name] == line
                    and row.get(measure) is not None
                    and (panels is None or row[panels] == group)
                ]
                style = "-" if i < len(_COLOURS) else "--"
                look = {"color": _COLOURS[i % 8], "marker": _MARKERS[i % 8], "linestyle": style}
                ax.plot(*zip(*own, strict=True), label=line, markersize=5, **look) if own else None
            ax.set(xlabel=x, ylabel=measure, title=group)
            ax.set(**{f"{a}scale": "log" for a, k in (("x", x), ("y", measure)) if k in log})
            ax.grid(alpha=0.3)
            if x in log:
                tens = {"major_locator": LogLocator(subs=(1, 2, 5)), "major_formatter": "{x:g}"}
                ax.xaxis.set(**tens, minor_formatter="")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure

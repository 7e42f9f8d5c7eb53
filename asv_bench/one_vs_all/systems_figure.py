"""The figure of the ova experiment: precision against the CPU seconds of training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.peers import SYSTEMS

# Okabe and Ito's colours, told apart by all common kinds of colour vision; with a marker each.
_LOOKS = {
    "ova": ("#000000", "o"),
    "ova-cv": ("#000000", "*"),
    "omikuji": ("#009E73", "D"),
    "napkinxc": ("#0072B2", "s"),
    "napkinxc-br": ("#0072B2", "X"),
    "pecos": ("#D55E00", "^"),
    "liblinear-primal": ("#7F7F7F", "v"),
    "liblinear-dual": ("#CC79A7", "P"),
}
#: Other losses of OvALinearXC.
_OTHER_LOOK = ("#E69F00", "h")

_METRICS = ("P@1", "PSP@1")
#: Sets side by side.
_MAX_COLUMNS = 3
#: About the width and height of a panel, in points of 1/72 inch: labels are placed in these units.
_PANEL = np.array([285.0, 185.0])
#: About the size of a letter and of a marker, in points.
_LETTER = np.array([5.3, 11.0])
_MARKER = 11.0


def draw_systems(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw P@1 and below it PSP@1, a column of two panels per set.

    Parameters
    ----------
    rows : sequence of dict
        Rows of ``ova.main``. One without CPU seconds is left out; one with CPU seconds and without
        precision (extrapolated) becomes a vertical line.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure  # without pyplot: no global state, no window

    shown = [row for row in rows if row.get("train_cpu_s") is not None]
    sets = list(dict.fromkeys(row["set"] for row in shown))
    n_columns = min(_MAX_COLUMNS, len(sets))
    n_bands = -(-len(sets) // n_columns)
    figure = Figure(figsize=(0.8 + 4.6 * n_columns, 6.4 * n_bands), layout="constrained")
    panels = figure.subplots(2 * n_bands, n_columns, squeeze=False)
    for ax in panels.flat:
        ax.set_visible(False)
    for i, name in enumerate(sets):
        band, column = divmod(i, n_columns)
        of_set = [row for row in shown if row["set"] == name]
        for metric, ax in zip(_METRICS, panels[2 * band : 2 * band + 2, column], strict=True):
            ax.set_visible(True)
            _draw_panel(ax, of_set, metric)
        panels[2 * band, column].set_title(name, fontsize=12)
        panels[2 * band + 1, column].set_xlabel("training, CPU seconds (log scale)")
    return figure


def _draw_panel(ax: Any, rows: Sequence[dict[str, Any]], metric: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    points = [row for row in rows if row.get(metric) is not None]
    seconds = [row["train_cpu_s"] for row in rows]
    low, high = np.log10(min(seconds)), np.log10(max(seconds))
    margin = max(0.12 * (high - low), 0.15)
    ax.set_xscale("log")
    ax.set_xlim(10 ** (low - margin), 10 ** (high + margin))
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high - low < 2 else (1,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    values = [row[metric] for row in points] or [0.0]
    reach = max(max(values) - min(values), 1.0)
    ax.set_ylim(min(values) - 0.3 * reach, max(values) + 0.3 * reach)
    ax.set_ylabel(f"{metric} (%)")
    ax.grid(alpha=0.3)
    to_panel = ax.transData + ax.transAxes.inverted()
    lines = [row for row in rows if row.get(metric) is None]
    lines.sort(key=lambda row: row["train_cpu_s"])
    # Names to the left of the lines, but that of the last of several to its right.
    obstacles = [
        _draw_line(ax, row, to_panel, "left" if k > 0 and row is lines[-1] else "right")
        for k, row in enumerate(lines)
    ]
    for row in points:
        colour, marker = _look(row)
        ax.plot(
            row["train_cpu_s"], row[metric], marker, color=colour, markersize=9,
            markeredgecolor="white", zorder=3,
        )  # fmt: skip
    at = [_PANEL * to_panel.transform((row["train_cpu_s"], row[metric])) for row in points]
    names = [SYSTEMS[row["system"]].label for row in points]
    for row, name, box in zip(points, names, place_labels(at, names, obstacles), strict=True):
        colour, _ = _look(row)
        ax.annotate(
            name, (row["train_cpu_s"], row[metric]), xytext=(box[:2] + box[2:]) / 2 / _PANEL,
            textcoords="axes fraction", ha="center", va="center", fontsize=9, color=colour,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkB": 4},
        )  # fmt: skip


def _draw_line(ax: Any, row: dict[str, Any], to_panel: Any, aligned: str) -> np.ndarray:
    """Draw a system without precision as a vertical line, and return the box of its name.

    `aligned` is the side of the name that the line is on: "left" or "right".
    """
    away = 3 if aligned == "left" else -3
    colour, _ = _look(row)
    name = f"{SYSTEMS[row['system']].label}, extrapolated"
    ax.axvline(row["train_cpu_s"], color=colour, linestyle="--", linewidth=1.2)
    ax.annotate(
        name, (row["train_cpu_s"], 0.02), xycoords=("data", "axes fraction"), xytext=(away, 0),
        textcoords="offset points", rotation=90, ha=aligned, va="bottom", fontsize=8, color=colour,
    )  # fmt: skip
    x = _PANEL[0] * to_panel.transform((row["train_cpu_s"], 0.0))[0]
    reach = (-2, _LETTER[1] + 3) if aligned == "left" else (-_LETTER[1] - 3, 2)
    return np.array([x + reach[0], 0, x + reach[1], _LETTER[0] * len(name)])


def place_labels(
    points: Sequence[np.ndarray], names: Sequence[str], obstacles: Sequence[np.ndarray] = ()
) -> list[np.ndarray]:
    """Return a box for the name of each point, near it and clear of the others where possible.

    Parameters
    ----------
    points : sequence of ndarray of shape (2,)
        Within a panel of ``_PANEL`` points.
    names : sequence of str
        One per point.
    obstacles : sequence of ndarray of shape (4,)
        Boxes to keep clear, as left, bottom, right and top.

    Returns
    -------
    list of ndarray of shape (4,)
        Boxes. Greedy, one point after the other: of some places around the point that which covers
        least of markers and earlier boxes, the nearest among equals.
    """
    half_marker = _MARKER / 2
    taken = [np.concatenate([point - half_marker, point + half_marker]) for point in points]
    taken += obstacles
    boxes = []
    for point, name in zip(points, names, strict=True):
        size = _LETTER * (len(name), 1)
        places = [_box(point, size, *place) for place in _places(size)]
        best = min(places, key=lambda box: _covered(box, taken))  # the first of equals: the nearest
        boxes.append(best)
        taken.append(best)
    return boxes


def _places(size: np.ndarray) -> list[tuple[float, float]]:
    """Return where a label's middle may stand from its point, the nearest first."""
    beside = _MARKER / 2 + size[0] / 2 + 3
    above = _MARKER / 2 + size[1] / 2 + 1
    near = [(beside, 0.0), (-beside, 0.0), (0.0, above), (0.0, -above)]
    return near + [
        (x, sign * up * size[1])
        for up in range(1, 8)
        for sign in (1, -1)
        for x in (beside, -beside, 0.0)
        if x or up > 1
    ]


def _box(point: np.ndarray, size: np.ndarray, x: float, y: float) -> np.ndarray:
    middle = point + np.array([x, y])
    return np.concatenate([middle - size / 2, middle + size / 2])


def _covered(box: np.ndarray, taken: Sequence[np.ndarray]) -> float:
    """Return the area of a box that covers others, or lies outside of the panel."""
    inside = _overlap(box, np.concatenate([np.zeros(2), _PANEL]))
    outside = np.prod(box[2:] - box[:2]) - inside
    return round(3 * outside + sum(_overlap(box, other) for other in taken), 6)


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    return float(np.prod(np.maximum(sides, 0.0)))


def _look(row: dict[str, Any]) -> tuple[str, str]:
    return _LOOKS.get(row["system"], _OTHER_LOOK)

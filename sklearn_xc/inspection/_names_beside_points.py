"""Names beside points that overlap neither each other nor the points."""

from typing import Any

import numpy as np

#: Points of type between a point and its name, tried from near to far.
_DISTANCES = (7, 12, 18, 26, 36, 48, 62)
_ANGLES = np.deg2rad([0, 45, -45, 90, -90, 135, -135, 180, 20, -20, 65, -65, 115, -115, 160, -160])
#: From here on a line leads from the name to its point.
_NEAR = 11
#: Half the side of the square that a point covers, in points of type.
_POINT = 4.0
_GID = "sklearn_xc name"


def write_names(ax: Any, names: Any, x: np.ndarray, y: np.ndarray, **options: Any) -> list[Any]:
    """Write names beside points, and move those that were written so before to where they fit now.

    Each stands at the first place near its point that is free, or if none is within reach, at the
    one with the fewest overlaps. Names at some distance have a thin line to their point.

    Parameters
    ----------
    ax : matplotlib axes
        With all points drawn and its scales set.
    names : sequence of n str
    x, y : ndarray of shape (n,)
        The points, in the units of the data.
    **options
        For ``matplotlib.axes.Axes.annotate``.

    Returns
    -------
    list of matplotlib annotations
    """
    arrow = {
        "arrowstyle": "-", "lw": 0.5, "alpha": 0.6, "shrinkA": 0, "shrinkB": 0,
        "color": options.get("color", "black"),
    }  # fmt: skip
    made = []
    for name, at in zip(names, np.column_stack([x, y]), strict=True):
        text = ax.annotate(
            name, at, xytext=(0, 0), textcoords="offset points", ha="center", va="center",
            arrowprops=arrow, **options,
        )  # fmt: skip
        text.set_gid(_GID)
        text.set_in_layout(False)
        made.append(text)
    _place(ax)
    return made


def _place(ax: Any) -> None:
    """Find a place for each name on the axes."""
    from matplotlib.text import Text

    ax.figure.draw_without_rendering()  # settles limits and layout
    unit = ax.figure.dpi / 72
    inside = _corners(ax.get_window_extent())
    lines = [line for line in ax.lines if line.get_marker() not in ("", "None", None)]
    points = ax.transData.transform(np.concatenate([line.get_xydata() for line in lines]))
    solid = [_box(point, 2 * _POINT * unit, 2 * _POINT * unit) for point in points]
    thin = [_box(point, unit, unit) for line in lines for point in _along(ax, line, 3 * unit)]
    if ax.get_legend() is not None:
        solid.append(_corners(ax.get_legend().get_window_extent()))
    for text in ax.texts:
        extent = Text.get_window_extent(text)  # of an annotation, its arrow would be part of it
        if text.get_gid() != _GID:
            solid.append(_corners(extent))
            continue
        size, centre = np.array([extent.width, extent.height]), ax.transData.transform(text.xy)
        box, offset = _best_place(centre, size, np.array(solid), np.array(thin), inside, unit)
        text.set_position(tuple(offset / unit))
        is_far = np.abs(offset - np.clip(offset, -size / 2, size / 2)).max() > _NEAR * unit
        text.arrow_patch.set_visible(is_far)
        if is_far:
            thin += [_box(point, unit, unit) for point in np.linspace(centre, centre + offset, 20)]
        solid.append(box)


def _best_place(
    centre: np.ndarray,
    size: np.ndarray,
    solid: np.ndarray,
    thin: np.ndarray,
    inside: np.ndarray,
    unit: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the box and the offset, in pixels, of the nearest place with the fewest overlaps.

    Parameters
    ----------
    centre, size : ndarray of shape (2,)
        The point, and width and height of the name.
    solid, thin : ndarray of shape (n_boxes, 4)
        What is taken by points and names, and by lines: left, bottom, right, top.
    inside : ndarray of shape (4,)
        The axes.
    unit : float
        Pixels in a point of type.
    """
    directions = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)]).round(6)
    distances = np.repeat(_DISTANCES, len(_ANGLES))[:, None]
    directions = np.tile(directions, (len(_DISTANCES), 1))
    offsets = directions * distances * unit + np.sign(directions) * size / 2
    half = (size + 2) / 2
    boxes = np.column_stack([centre + offsets - half, centre + offsets + half])
    cost = _overlap(boxes, solid) + (_overlap(boxes, thin) if len(thin) else 0.0)
    outside = np.maximum(inside[:2] - boxes[:, :2], 0) + np.maximum(boxes[:, 2:] - inside[2:], 0)
    cost += outside.sum(axis=1) * size.sum()
    # A line to a name that is far goes through no other name or point.
    way = centre + np.linspace(0.25, 1, 8)[:, None, None] * offsets
    for point in way:
        in_box = (point[:, None] > solid[:, :2]) & (point[:, None] < solid[:, 2:])
        cost += 5.0 * in_box.all(axis=2).sum(axis=1) * (distances[:, 0] > _NEAR)
    best = int(cost.argmin())
    return boxes[best], offsets[best]


def _overlap(boxes: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Return the area of each box that is taken."""
    width, height = (
        np.minimum(boxes[:, None, 2 + axis], taken[:, 2 + axis])
        - np.maximum(boxes[:, None, axis], taken[:, axis])
        for axis in range(2)
    )
    return (np.maximum(width, 0) * np.maximum(height, 0)).sum(axis=1)


def _along(ax: Any, line: Any, step: float) -> np.ndarray:
    """Return places along a line, about `step` pixels apart; none for points without a line."""
    if line.get_linestyle() in ("", "None", " "):
        return np.empty((0, 2))
    ends = ax.transData.transform(line.get_xydata())
    lengths = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(ends, axis=0).T))))
    at = np.arange(0.0, lengths[-1], step)
    return np.column_stack([np.interp(at, lengths, values) for values in ends.T])


def _corners(box: Any) -> np.ndarray:
    return np.array([box.x0, box.y0, box.x1, box.y1])


def _box(centre: np.ndarray, width: float, height: float) -> np.ndarray:
    half = np.array([width, height]) / 2
    return np.concatenate([centre - half, centre + half])

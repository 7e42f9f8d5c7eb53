"""Figures of the decomposition experiment."""

from collections.abc import Sequence
from typing import Any

from asv_bench.common.figures import log_axis, panels, with_legend

# Okabe and Ito's colours, told apart by all common kinds of colour vision; with a marker each.
_LOOKS = {
    "exact": ("#000000", "o", "-"),
    "exact_only": ("#7F7F7F", "o", "--"),
    "sampled": ("#CC79A7", "v", "-"),
    "random": ("#CC79A7", "v", "-"),
    "mips": ("#E69F00", "s", "-"),
    "decomp_mips": ("#0072B2", "D", "-"),
    "last": ("#0072B2", "D", ":"),
    "all_scored": ("#0072B2", "D", ":"),
    "alg2": ("#56B4E9", "^", "-"),
    "alg2_exact": ("#009E73", "^", "--"),
    "union": ("#009E73", "P", ":"),
}


def draw_searches(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw what searches retrieve, and the error of the gradient, against labels retrieved.

    Parameters
    ----------
    rows : sequence of dict
        Of ``compare_searches``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(2)
    names = {"recall": "gradient on negatives retrieved", "error": "relative error of the gradient"}
    for ax, (value, name) in zip(axes, names.items(), strict=True):
        for key in dict.fromkeys(row["key"] for row in rows):
            if value == "recall" and key in ("union", "all_scored"):  # the labels of another line
                continue
            _line(ax, [row for row in rows if row["key"] == key], "n_candidates", value)
        log_axis(ax, "x")
        ax.set_xlabel("labels retrieved by a query")
        ax.set_ylabel(name)
        ax.set_ylim(bottom=0)
    axes[0].set_ylim(top=1.02)
    return with_legend(figure, axes[1])


def draw_rounds(rows: Sequence[dict[str, Any]], few: str) -> Any:
    """Draw the error of the gradient against rounds of message passing.

    Parameters
    ----------
    rows : sequence of dict
        Of ``compare_rounds``.
    few : str
        What the line of few labels is called.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels(1)
    rounds = [row["rounds"] for row in rows]
    for key, colour, marker, label in (
        ("all", "#000000", "o", "all labels retrieved"), ("few", "#009E73", "^", few),
    ):  # fmt: skip
        ax.plot(rounds, [row[key] for row in rows], color=colour, marker=marker, label=label)
    ax.set_xscale("symlog", base=2, linthresh=1)
    ax.set_xticks(rounds, [f"{n}" for n in rounds])
    ax.set_xlabel("rounds of message passing")
    ax.set_ylabel("relative error of the gradient")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return figure


def draw_speed(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw the CPU time of an instance against the number of labels.

    Parameters
    ----------
    rows : sequence of dict
        Of ``compare_speed``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels(1)
    for key in dict.fromkeys(row["key"] for row in rows):
        of_key = [row for row in rows if row["key"] == key]
        if key == "few":
            label = f"{of_key[0]['method']}, Q / 10"
            _line(ax, of_key, "n_labels", "instance_ms", "decomp_mips", label, ":")
        else:
            _line(ax, of_key, "n_labels", "instance_ms")
    for axis in "xy":
        log_axis(ax, axis)
    ax.set_xticks(sorted({row["n_labels"] for row in rows}))
    ax.set_xlabel("labels")
    ax.set_ylabel("CPU milliseconds for an instance")
    return with_legend(figure, ax)


def draw_epochs(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw training loss and held-out accuracy against epochs.

    Parameters
    ----------
    rows : sequence of dict
        Of ``follow_epochs``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(2)
    names = {"loss": "training loss over all labels", "accuracy": "held-out accuracy"}
    for ax, (value, name) in zip(axes, names.items(), strict=True):
        for key in dict.fromkeys(row["key"] for row in rows):
            _line(ax, [row for row in rows if row["key"] == key], "epoch", value)
        ax.set_xlabel("epochs")
        ax.set_ylabel(name)
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylim(bottom=0)
    return with_legend(figure, axes[1])


def draw_time(rows: Sequence[dict[str, Any]], values: Sequence[str]) -> Any:
    """Draw held-out precision against CPU seconds of training; of each method the best curve.

    Parameters
    ----------
    rows : sequence of dict
        Of ``follow_time``, for one set.
    values : sequence of str
        "P@1" and so on: a panel each.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(len(values))
    for ax, value in zip(axes, values, strict=True):
        for key in dict.fromkeys(row["key"] for row in rows):
            of_key = best_curve([row for row in rows if row["key"] == key])
            rate, alpha = of_key[0]["learning_rate"], of_key[0]["alpha"]
            label = f"{of_key[0]['method']}, rate {rate:g}, alpha {alpha:g}"
            _line(ax, of_key, "cpu_s", value, key, label)
        log_axis(ax, "x")
        ax.set_xlabel("CPU seconds of training")
        ax.set_ylabel("held-out accuracy" if len(values) == 1 else f"held-out {value}")
    return with_legend(figure, axes[-1])


def best_curve(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points of the rate and alpha with the highest P@1 at the end."""
    curves: dict[tuple[float, float], list[dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault((row["learning_rate"], row["alpha"]), []).append(row)
    return max(curves.values(), key=lambda curve: curve[-1]["P@1"])


def _line(
    ax: Any, rows: Sequence[dict[str, Any]], x: str, y: str, look: str | None = None,
    label: str | None = None, linestyle: str | None = None,
) -> None:  # fmt: skip
    colour, marker, style = _LOOKS[look or rows[0]["key"]]
    size = 8 if rows[0]["key"] == "exact" else 5  # seen behind another one
    ax.plot(
        [row[x] for row in rows], [row[y] for row in rows], color=colour, marker=marker,
        markersize=size, linestyle=linestyle or style, label=label or rows[0]["method"],
    )  # fmt: skip

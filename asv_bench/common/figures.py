"""What figures share."""

from typing import Any


def panels(n: int) -> tuple[Any, list[Any]]:
    """Return a figure, and n axes side by side in it."""
    from matplotlib.figure import Figure  # without pyplot: no global state, no window

    figure = Figure(figsize=(6.4 if n == 1 else 4.3 * n, 3.8), layout="constrained")
    axes = list(figure.subplots(1, n, squeeze=False)[0])
    for ax in axes:
        ax.grid(alpha=0.3)
    return figure, axes


def log_axis(ax: Any, name: str) -> None:
    """Make an axis, "x" or "y", logarithmic, with plain numbers beside it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set(**{f"{name}scale": "log"})
    axis = getattr(ax, f"{name}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
    axis.set_minor_formatter(NullFormatter())


def with_legend(figure: Any, ax: Any) -> Any:
    """Return the figure with the lines of `ax` named below it."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(labels) // 2))
    return figure

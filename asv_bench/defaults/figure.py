"""P@1 against CPU seconds of training, a panel for each set at its largest size."""

from collections import defaultdict
from typing import Any

import numpy as np

from asv_bench.common.figures import log_axis


def draw_front(rows: list[dict[str, Any]]) -> Any:
    """Return a figure of all estimators with their defaults; a line joins the Pareto front.

    Parameters
    ----------
    rows : list of dict
        With ``set``, ``n_train``, ``title``, ``P@1``, ``train_cpu_s`` and ``front``.
    """
    from matplotlib.figure import Figure

    sets: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if "P@1" in row:
            sets[row["set"]].append(row)
    titles = list(dict.fromkeys(row["title"] for row in rows))
    n_columns = min(3, len(sets))
    n_rows = -(-len(sets) // n_columns)
    figure = Figure(figsize=(4.2 * n_columns, 3.1 * n_rows + 0.6), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for panel, (name, of_set) in zip(axes.flat, sets.items(), strict=False):
        largest = max(row["n_train"] for row in of_set)
        shown = [row for row in of_set if row["n_train"] == largest]
        for row in shown:
            place = titles.index(row["title"])
            panel.plot(
                row["train_cpu_s"], row["P@1"], "os^Dv<>pP*"[place % 10], color=f"C{place % 10}",
                label=row["title"], markersize=6,
            )  # fmt: skip
        front = sorted((r["train_cpu_s"], r["P@1"]) for r in shown if r.get("front"))
        panel.plot(*np.array(front).T, "-", color="0.7", zorder=0)
        log_axis(panel, "x")
        panel.grid(alpha=0.3)
        panel.set_title(f"{name}, {largest:,} rows", fontsize=9)
    for panel in axes.flat[len(sets) :]:
        panel.set_visible(False)
    for panel in axes.flat[max(0, len(sets) - n_columns) : len(sets)]:  # the last of each column
        panel.set_xlabel("CPU seconds of training")
    for panel in axes[:, 0]:
        panel.set_ylabel("P@1 in %")
    handles: dict[str, Any] = {}
    for panel in axes.flat:
        for handle, title in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(title, handle)
    where: Any = "outside lower center"
    figure.legend(list(handles.values()), list(handles), loc=where, ncols=4, fontsize=8)
    return figure

"""Newton steps, time, first loss and way to go of labels by how many positives they have.

Labels are cut into groups by their number of positives, and some of each are solved from every
start, one label after the other, by the paper's method and stopping rule (see ``inits_trace``).

* Newton steps: means, and what 95% of the labels stay within.
* CPU milliseconds a label.
* The first objective, that of the start, over the last one; means of both.
* The distance from the start to the end, intercept included, over the length of the end.

Source: figure 7 and appendix 7.3 of E. Schultheis and R. Babbar, "Speeding-up one-versus-all
training for extreme classification via mean-separating initialization", Machine Learning 111, 2022.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from asv_bench.common.data import load_set
from asv_bench.common.figures import log_axis
from asv_bench.common.measure import cpu_seconds, warm_up
from asv_bench.common.report import Column, Report
from asv_bench.one_vs_all import inits_trace
from asv_bench.one_vs_all.inits_trace import LOOKS, problem_of
from sklearn_xc import OvALinearXC
from sklearn_xc.initialisers import Initialiser
from sklearn_xc.solvers.newton_cg import NewtonStep, solve_block
from sklearn_xc.solvers.problem import OneVsAllProblem, sum_instances, sum_rows

STARTS = {name: inits_trace.STARTS[name] for name in ("msi", "ovap", "zero", "bias -2")}
#: Fewest positives of the groups.
EDGES = (1, 2, 3, 5, 10, 30, 100, 300, 1000)

#: What is told, its title, its format, and whether the figure shows it on a logarithmic axis.
MEASURES = (
    ("n_iter", "Newton steps", ".1f", False),
    ("most_iter", "Newton steps of 95% of the labels at most", ".0f", None),
    ("ms", "CPU ms a label", ".2f", True),
    ("first", "objective at the start over that at the end", ",.2f", True),
    ("distance", "distance from start to end, over the length of the end", ".2f", False),
)


def measure_by_positives(
    data: Any, sets: Sequence[str], n_labels: int, dtype: Any, report: Report
) -> list[dict[str, Any]]:
    """Solve labels of each group from each start; report tables, and a figure if there is a folder.

    Parameters
    ----------
    data, sets, dtype, report
        As in ``inits.main``.
    n_labels : int
        Labels of a group at most, drawn with a fixed seed.

    Returns
    -------
    list of dict
        One row per set, group and start.
    """
    rows = []
    for name in sets:
        split = load_set(name, data, dtype=np.dtype(dtype))
        warm_up(OvALinearXC(), split.X_train, split.Y_train)
        by_label = split.Y_train.tocsc()
        counts = np.diff(by_label.indptr)
        of_set = []
        for least, most in zip(EDGES, (*EDGES[1:], np.inf), strict=True):
            members = np.flatnonzero((counts >= least) & (counts < most))
            drawn = np.sort(np.random.default_rng(0).permutation(members)[:n_labels])
            if not len(drawn):
                continue
            problem = problem_of(split.X_train, by_label[:, drawn].tocsr())
            group = _name_of(least, most)
            for start, initialiser in STARTS.items():
                found = _solve(problem, initialiser)
                of_set.append(
                    {
                        "set": name, "group": group, "init": start, "n_labels": len(drawn),
                        "positives": float(np.exp(np.log(counts[drawn]).mean())), **found,
                    }
                )  # fmt: skip
        _report_tables(report, name, split.X_train.shape, of_set)
        if report.out is not None:
            report.figure(draw_by_positives(of_set, name), f"inits_by_positives_{name}")
        rows += of_set
    return rows


def _name_of(least: int, most: float) -> str:
    if most == np.inf:
        return f"{least:,} or more"
    return f"{least:,}" if most == least + 1 else f"{least:,} to {int(most) - 1:,}"


def _solve(problem: OneVsAllProblem, initialiser: Initialiser) -> dict[str, float]:
    """Solve all labels from a start, and return means over them."""
    sums, labels = sum_instances(problem), np.arange(problem.n_labels)
    prepared = initialiser.prepare(problem, sums)
    starts = [
        initialiser.start(prepared, problem, j, sum_rows(problem, problem.positives(j)))
        for j in range(problem.n_labels)
    ]
    ends = np.empty((len(labels), problem.n_features + 1), problem.dtype)
    first = np.empty(len(labels))

    def observe(step: NewtonStep) -> None:
        if step.n_iter == 0:
            first[step.label] = step.objective

    def solve() -> Any:
        return solve_block(
            problem, sums, initialiser, prepared, labels, 1, observe=observe, ends=ends
        )

    solution, seconds = cpu_seconds(solve)
    away = [np.linalg.norm(end - start) for start, end in zip(starts, ends, strict=True)]
    return {
        "n_iter": float(solution.n_iter.mean()),
        "most_iter": float(np.quantile(solution.n_iter, 0.95)),
        "ms": 1e3 * seconds / len(labels),
        "first": float(first.mean() / solution.objective.mean()),
        "distance": float(np.mean(np.array(away) / np.linalg.norm(ends, axis=1))),
    }


def _report_tables(
    report: Report, name: str, shape: tuple[int, int], rows: list[dict[str, Any]]
) -> None:
    groups = list(dict.fromkeys(row["group"] for row in rows))
    for key, title, spec, _ in MEASURES:
        wide = []
        for group in groups:
            of_group = [row for row in rows if row["group"] == group]
            line = {"group": group, "n_labels": of_group[0]["n_labels"]}
            wide.append(line | {row["init"]: row[key] for row in of_group})
        report.table(
            f"{name} ({shape[0]:,} x {shape[1]:,}): {title}",
            wide,
            [
                Column("group", "positives"),
                Column("n_labels", "labels"),
                *(Column(start, start, spec) for start in STARTS),
            ],
        )


def draw_by_positives(rows: list[dict[str, Any]], name: str) -> Any:
    """Draw Newton steps, time, first objective and distance by positives, a panel each.

    Parameters
    ----------
    rows : list of dict
        Of one data set.
    name : str
        The data set, for the title.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure  # without pyplot: no global state, no window
    from matplotlib.ticker import LogLocator

    shown = [measure for measure in MEASURES if measure[3] is not None]
    figure = Figure(figsize=(9.6, 8.0), layout="constrained")
    for ax, (key, title, _, is_log) in zip(figure.subplots(2, 2).flat, shown, strict=True):
        for start in STARTS:
            of_start = [row for row in rows if row["init"] == start]
            colour, marker, line = LOOKS[start]
            ax.plot(
                [row["positives"] for row in of_start], [row[key] for row in of_start],
                color=colour, marker=marker, linestyle=line, markersize=5,
                label=start if key == "n_iter" else None,
            )  # fmt: skip
        log_axis(ax, "x")
        ax.xaxis.set_major_locator(LogLocator())
        if is_log:
            log_axis(ax, "y")
        else:
            ax.set_ylim(bottom=0)
        ax.set_xlabel("positives of a label")
        ax.set_title(title[0].upper() + title[1:], fontsize=11)
        ax.grid(alpha=0.3)
    figure.suptitle(f"{name}: means over labels with about as many positives")
    figure.legend(loc="outside lower center", ncols=len(STARTS), frameon=False)
    return figure

"""Objective, line search, active instances and time, step by step, for several start vectors.

A start can be slow for two reasons: the line search takes only a small part of each Newton step,
because the quadratic model is wrong near the kink of the loss; or many instances have a loss, and
every product with the Hessian reads all of them. Instances count by their scores as if all were
negatives, which have a loss above -1; the few positives come on top. Labels are solved one after
the other, by the paper's method and stopping rule: without working sets, without a certificate and
without pruning. The time of a step is that between two steps; of step 0 it is that of the start.

Source: figures 1, 3, 4, 6, 8 and 12 of E. Schultheis and R. Babbar, "Speeding-up one-versus-all
training for extreme classification via mean-separating initialization", Machine Learning 111, 2022.
"""

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from asv_bench.common.data import SplitSet, load_set, take_labels
from asv_bench.common.figures import log_axis
from asv_bench.common.measure import warm_up
from asv_bench.common.report import Column, Report
from sklearn_xc import OvALinearXC
from sklearn_xc._checks import check_targets, check_training_instances
from sklearn_xc.initialisers import Bias, Initialiser, MeanSeparating, OneVsAllPrimal, Zero
from sklearn_xc.linear.problem import build_problem
from sklearn_xc.solvers.newton_cg import NewtonStep, solve_block
from sklearn_xc.solvers.problem import OneVsAllProblem, sum_instances

STARTS: dict[str, Initialiser] = {
    "msi": MeanSeparating(),
    "ovap": OneVsAllPrimal(),
    "zero": Zero(),
    "bias -2": Bias(-2.0),
    "bias -1": Bias(-1.0),
    "bias -0.9": Bias(-0.9),
}

#: Newton steps in the tables.
_SHOWN = 10
#: The curves end where fewer than this share of the labels are still being solved.
_LEAST_SHARE = 0.1

#: Okabe and Ito's colours, told apart by all common kinds of colour vision; with a marker each.
LOOKS = {
    "msi": ("#000000", "o", "-"),
    "ovap": ("#009E73", "D", "-"),
    "zero": ("#0072B2", "s", "-"),
    "bias -2": ("#E69F00", "^", "--"),
    "bias -1": ("#D55E00", "v", "--"),
    "bias -0.9": ("#CC79A7", "P", "--"),
}


def trace_sets(
    data: Any, sets: Sequence[str], n_labels: int, dtype: Any, report: Report
) -> list[dict[str, Any]]:
    """Trace each start on each data set; report tables, and a figure if there is a folder.

    Parameters
    ----------
    data, sets, dtype, report
        As in ``inits.main``.
    n_labels : int
        Labels to take of each set.

    Returns
    -------
    list of dict
        One row per set, start and Newton step, 0 being the start itself.
    """
    rows = []
    for name in sets:
        split = load_set(name, data, dtype=np.dtype(dtype))
        labels = take_labels(split.Y_train, n_labels)
        warm_up(OvALinearXC(), split.X_train, split.Y_train)
        of_set = []
        totals = []
        for start, initialiser in STARTS.items():
            traced, total = _trace_start(split, labels, start, initialiser)
            of_set += traced
            totals.append(total)
        _report_tables(report, name, len(labels), of_set, totals)
        if report.out is not None:
            report.figure(draw_trace(of_set, name), f"inits_trace_{name}")
        rows += of_set
    return rows


def _trace_start(
    split: SplitSet, labels: np.ndarray, start: str, initialiser: Initialiser
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a row per Newton step, and the totals."""
    problem = problem_of(split.X_train, split.Y_train[:, labels])
    sums = sum_instances(problem)
    prepared = initialiser.prepare(problem, sums)
    steps: list[tuple[NewtonStep, float]] = []

    def observe(step: NewtonStep) -> None:
        steps.append((step, process_time()))

    began = process_time()
    solution = solve_block(
        problem, sums, initialiser, prepared, np.arange(problem.n_labels), 1, observe=observe
    )
    seconds = process_time() - began
    spent = np.diff([began, *(time for _, time in steps)])
    number = np.array([step.n_iter for step, _ in steps])
    measured = np.array(
        [(step.objective, step.step_length, step.active_share) for step, _ in steps]
    )
    rows = []
    for n_iter in range(1 + number.max()):
        taken = number == n_iter
        objective, multiplier, active = measured[taken].mean(axis=0)
        rows.append(
            {
                "set": split.name,
                "init": start,
                "n_iter": n_iter,
                "n_labels": int(taken.sum()),
                "objective": float(objective),
                "multiplier": float(multiplier) if n_iter else None,
                "active_share": float(active),
                "ms": 1e3 * float(spent[taken].mean()),
            }
        )
    total = {
        "init": start,
        "cpu_s": seconds,
        "n_iter": float(solution.n_iter.mean()),
        "most_iter": float(np.quantile(solution.n_iter, 0.95)),
        "n_products": float(solution.n_products.mean()),
        "objective": float(solution.objective.sum()),
    }
    return rows, total


def problem_of(X: Any, Y: Any) -> OneVsAllProblem:
    """Return labels' problems with the paper's settings.

    Parameters
    ----------
    X : sparse of shape (n, n_features)
        Instances.
    Y : sparse of shape (n, n_labels)
        Labels.
    """
    model = OvALinearXC(C=1.0, tol=0.01, prune=0)
    instances = check_training_instances(model, X)
    targets = check_targets(model, Y, instances.shape[0])
    return build_problem(model, model._fitted_cost, instances, targets, None)


def _report_tables(
    report: Report,
    name: str,
    n_labels: int,
    rows: list[dict[str, Any]],
    totals: list[dict[str, Any]],
) -> None:
    base = next(total["cpu_s"] for total in totals if total["init"] == "msi")
    for total in totals:
        total["ratio"] = total["cpu_s"] / base
    report.table(
        f"{name}, {n_labels} labels: totals",
        totals,
        [
            Column("init", "init"),
            Column("cpu_s", "CPU s", ".2f"),
            Column("ratio", "ratio to msi", ".2f"),
            Column("n_iter", "Newton steps", ".2f"),
            Column("most_iter", "of 95% at most", ".0f"),
            Column("n_products", "Hessian products", ".1f"),
            Column("objective", "objective sum", ",.1f"),
        ],
    )
    for key, title, spec, first in (
        ("n_labels", "labels after Newton step", "", 0),
        ("objective", "mean objective after Newton step", ",.1f", 0),
        ("multiplier", "mean multiplier of the line search in Newton step", ".3f", 1),
        ("active_share", "mean share of instances scored above -1 after Newton step", ".4f", 0),
        ("ms", "CPU ms of Newton step (0: start)", ".2f", 0),
    ):
        wide = [
            {"init": start} | {str(row["n_iter"]): row[key] for row in rows if row["init"] == start}
            for start in STARTS
        ]
        steps = [Column(str(step), str(step), spec) for step in range(first, _SHOWN + 1)]
        report.table(f"{name}: {title}", wide, [Column("init", "init"), *steps])


def draw_trace(rows: list[dict[str, Any]], name: str) -> Any:
    """Draw objective, multiplier, active share and time by Newton step, a panel each.

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
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(9.6, 8.0), layout="constrained")
    (top, left), (right, time) = figure.subplots(2, 2)
    all_labels = max(row["n_labels"] for row in rows)
    for start, (colour, marker, line) in LOOKS.items():
        curve = [
            row
            for row in rows
            if row["init"] == start and row["n_labels"] >= _LEAST_SHARE * all_labels
        ]
        look: dict[str, Any] = dict(color=colour, marker=marker, linestyle=line, markersize=5)
        at = [row["n_iter"] for row in curve]
        top.plot(at, [row["objective"] for row in curve], label=start, **look)
        left.plot(at[1:], [row["multiplier"] for row in curve[1:]], **look)
        right.plot(at, [row["active_share"] for row in curve], **look)
        time.plot(at[1:], [row["ms"] for row in curve[1:]], **look)
    top.set_yscale("log")
    top.set_xlabel("Newton steps taken (0: start vector)")
    top.set_ylabel("objective (mean)")
    top.set_title("Objective (figure 1)", fontsize=11)
    left.set_ylim(-0.03, 1.03)
    left.set_xlabel("Newton step")
    left.set_ylabel("multiplier of the line search (mean)")
    left.set_title("How much of the Newton step is taken (3, 8)", fontsize=11)
    # Linear up to 1%: the bias starts without a single active negative.
    right.set_yscale("symlog", linthresh=0.01, linscale=0.7)
    right.set_yticks([0, 0.01, 0.1, 1], ["0%", "1%", "10%", "100%"])
    right.set_ylim(-0.0006, 1.3)
    right.set_xlabel("Newton steps taken (0: start vector)")
    right.set_ylabel("instances scored above -1 (mean share)")
    right.set_title("How many instances a Hessian product reads (4, 6)", fontsize=11)
    log_axis(time, "y")
    time.set_xlabel("Newton step")
    time.set_ylabel("CPU ms (mean)")
    time.set_title("Time of a Newton step (4, 8)", fontsize=11)
    for ax in (top, left, right, time):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(alpha=0.3)
    figure.suptitle(
        f"{name}, {all_labels} labels: means over those not yet solved, until a tenth is left"
    )
    figure.legend(loc="outside lower center", ncols=len(LOOKS), frameon=False)
    return figure

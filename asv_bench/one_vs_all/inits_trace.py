"""Start vectors of one-vs-all step by step, and by the number of positives of a label.

A start can be slow for two reasons: the line search takes only a small part of each Newton step,
because the quadratic model is wrong near the kink of the loss; or many instances have a loss, and
every product with the Hessian reads all of them. Instances count by their scores as if all were
negatives, which have a loss above -1. Labels are solved one after the other, by the paper's method
and stopping rule: without working sets, certificate and pruning. Step 0 is the start.
"""

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from asv_bench.common.figures import lines
from asv_bench.common.measure import warm_up
from asv_bench.common.report import Report
from asv_bench.common.sets import DataSet, take_labels
from sklearn_xc import OvALinearXC
from sklearn_xc._input.checks import check_targets, check_training_instances
from sklearn_xc.one_vs_all.problem import build_problem, sum_instances, sum_rows
from sklearn_xc.one_vs_all.solver.newton_cg import NewtonStep, solve_block
from sklearn_xc.one_vs_all.starts import Bias, Initialiser, MeanSeparating, OneVsAllPrimal, Zero

STARTS: dict[str, Initialiser] = {
    "msi": MeanSeparating(),
    "ovap": OneVsAllPrimal(),
    "zero": Zero(),
    "bias -2": Bias(-2.0),
    "bias -1": Bias(-1.0),
    "bias -0.9": Bias(-0.9),
}
#: Fewest positives of the groups, and their starts.
EDGES = (1, 2, 3, 5, 10, 30, 100, 300, 1000)
_GROUP_STARTS = ("msi", "ovap", "zero", "bias -2")
#: Newton steps in the tables; curves end where fewer than this share of the labels is left.
_SHOWN, _LEAST_SHARE = 10, 0.1
_TRACED = ("labels", "objective", "multiplier", "active share", "CPU ms")
_GROUPED = (
    "Newton steps",
    "of 95% at most",
    "CPU ms a label",
    "first over last objective",
    "distance over length of the end",
)


def trace(found: DataSet, n_labels: int, report: Report) -> list[dict[str, Any]]:
    """Follow labels through their Newton steps from each start; return a row per start and step."""
    warm_up(OvALinearXC(), found.X_train, found.Y_train)
    labels = take_labels(found.Y_train, n_labels)
    rows, totals = [], []
    for name, start in STARTS.items():
        steps, _, solution, seconds = _solve(found.X_train, found.Y_train[:, labels], start)
        number = np.array([step[0] for step in steps])
        measured = np.array([step[1:] for step in steps])
        for n_iter in range(1 + number.max()):
            taken = number == n_iter
            means = measured[taken].mean(axis=0)
            row = {"init": name, "step": n_iter, "labels": int(taken.sum())}
            rows.append(row | dict(zip(_TRACED[1:], map(float, means), strict=True)))
        total = {"init": name, "CPU s": seconds, "Newton steps": float(solution.n_iter.mean())}
        totals.append(total | {"Hessian products": float(solution.n_products.mean())})
    report.table(f"{found.name}, {len(labels)} labels: totals", totals)
    for key in _TRACED:
        wide = [
            {"init": name}
            | {
                f"step {r['step']}": r[key]
                for r in rows
                if r["init"] == name and r["step"] <= _SHOWN
            }
            for name in STARTS
        ]
        report.table(f"{found.name}: {key} by Newton step", wide)
    curves = [row for row in rows if row["labels"] >= _LEAST_SHARE * len(labels)]
    figure = lines(curves, "init", "step", _TRACED[1:], log=("objective", "CPU ms"))
    report.figure(figure, f"inits_trace_{found.name}")
    return [{"set": found.name, **row} for row in rows]


def by_positives(found: DataSet, n_labels: int, report: Report) -> list[dict[str, Any]]:
    """Solve labels of each frequency from each start; return a row per group and start."""
    warm_up(OvALinearXC(), found.X_train, found.Y_train)
    by_label = found.Y_train.tocsc()
    counts = np.diff(by_label.indptr)
    rows = []
    for least, most in zip(EDGES, (*EDGES[1:], np.inf), strict=True):
        members = np.flatnonzero((counts >= least) & (counts < most))
        drawn = np.sort(np.random.default_rng(0).permutation(members)[:n_labels])
        for name in _GROUP_STARTS if len(drawn) else ():
            solved = _solve(found.X_train, by_label[:, drawn].tocsr(), STARTS[name])
            steps, distance, solution, seconds = solved
            first = np.mean([step[1] for step in steps if step[0] == 0])
            values = (
                float(solution.n_iter.mean()),
                float(np.quantile(solution.n_iter, 0.95)),
                1e3 * seconds / len(drawn),
                float(first / solution.objective.mean()),
                distance,
            )
            rows.append(
                {
                    "set": found.name,
                    "positives": float(np.exp(np.log(counts[drawn]).mean())),
                    "labels": len(drawn),
                    "init": name,
                    **dict(zip(_GROUPED, values, strict=True)),
                }
            )
    report.table(f"{found.name}: labels by their number of positives", rows)
    shown = [key for key in _GROUPED if key != "of 95% at most"]
    figure = lines(rows, "init", "positives", shown, log=("positives", *shown[1:3]))
    report.figure(figure, f"inits_by_positives_{found.name}")
    return rows


def _solve(
    X: Any, Y: Any, initialiser: Initialiser
) -> tuple[Sequence[tuple[float, ...]], float, Any, float]:
    """Solve all labels from a start.

    Returns
    -------
    steps : list of tuple
        Number of the step, objective, step length, active share, CPU milliseconds.
    distance : float
        Mean distance from the start to the end, over the length of the end.
    solution : Solution
    seconds : float
        CPU seconds.
    """
    model = OvALinearXC(C=1.0, tol=0.01, prune=0)
    instances = check_training_instances(model, X)
    targets = check_targets(model, Y, instances.shape[0])
    problem = build_problem(model, model._fitted_cost, instances, targets, None)
    sums, labels = sum_instances(problem), np.arange(problem.n_labels)
    prepared = initialiser.prepare(problem, sums)
    starts = [
        initialiser.start(prepared, problem, j, sum_rows(problem, problem.positives(j)))
        for j in labels
    ]
    ends = np.empty((len(labels), problem.n_features + 1), problem.dtype)
    steps: list[tuple[float, ...]] = []
    began = last = process_time()

    def observe(step: NewtonStep) -> None:
        nonlocal last
        now = process_time()
        measured = (step.objective, step.step_length, step.active_share, 1e3 * (now - last))
        steps.append((step.n_iter, *measured))
        last = now

    solution = solve_block(
        problem, sums, initialiser, prepared, labels, 1, observe=observe, ends=ends
    )
    seconds = process_time() - began
    apart = [np.linalg.norm(end - start) for start, end in zip(starts, ends, strict=True)]
    distance = float(np.mean(np.array(apart) / np.linalg.norm(ends, axis=1)))
    return steps, distance, solution, seconds

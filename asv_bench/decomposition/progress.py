"""DecompMIPSClassifier: gradients from a search beside exact ones; time, and progress of training.

On dense instances of classes that form a hierarchy, with 128 features, whose nearest centre is
right for 90 % of them unless told otherwise; in the last part also on yso_finna_en. All with the
margin loss, mini-batches of 10 and one thread, the protocol of [1]_.

* error: how much of the exact gradient a search retrieves, and the error of the gradient that is
  made of it, for held-out instances, by the number of labels retrieved; by rounds of message
  passing.
* speed: CPU time of training steps in the same state, and its parts.
* epochs: training loss and held-out accuracy after each epoch, at one learning rate.
* accuracy: held-out accuracy, or precision, against the CPU seconds of training.

[1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
decomposition for fast learning in large output spaces", ICML 2018.
"""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from asv_bench.common.data import load_set
from asv_bench.common.report import Column, Report
from asv_bench.decomposition.curves import (
    METHODS,
    accuracies,
    compare_speed,
    follow_epochs,
    follow_time,
)
from asv_bench.decomposition.figures import (
    best_curve,
    draw_epochs,
    draw_rounds,
    draw_searches,
    draw_speed,
    draw_time,
)
from asv_bench.decomposition.gradients import compare_rounds, compare_searches, gradients_of
from asv_bench.decomposition.training import Training, held_out, train_state
from sklearn_xc.datasets import make_hierarchical_classes
from sklearn_xc.gradients.exact import Exact

PARTS = ("error", "speed", "epochs", "accuracy")
SETS = ("hierarchy", "yso_finna_en")
#: Where no levels are asked for: 10 ** 5 classes, and so on.
_LEVELS = {"error": (5,), "speed": (4, 5, 6), "epochs": (4,), "accuracy": (5,)}
#: Labels retrieved, as shares of all.
_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
_ROUNDS = (0, 1, 2, 4, 8, 16, 32)
#: Most instances that rounds are counted with: those with all labels take long.
_ROUNDS_INSTANCES = 32

_ERROR_COLUMNS = [
    Column("n_candidates", "Q", ","),
    Column("method", "method"),
    Column("retrieved", "retrieved", ",.0f"),
    Column("scored", "products", ",.0f"),
    Column("recall", "mass", ".3f"),
    Column("error", "error", ".3f"),
    Column("error_negatives", "on negatives", ".3f"),
]
_ROUNDS_COLUMNS = [
    Column("rounds", "rounds"),
    Column("all", "all retrieved", ".4f"),
    Column("few", "K/100 of each block", ".4f"),
]
_SPEED_COLUMNS = [
    Column("method", "gradient"),
    Column("n_candidates", "Q", ","),
    Column("error", "error", ".3f"),
    Column("step_ms", "ms/batch", ",.3f"),
    Column("search_ms", "gradient", ",.3f"),
    Column("update_ms", "re-index", ",.3f"),
    Column("build_ms", "builds", ".3f"),
    Column("average_ms", "averages", ".3f"),
    Column("build_s", "s/build", ".3f"),
    Column("builds", "builds/epoch"),
    Column("moved", "rows moved", ",.0f"),
    Column("instance_ms", "ms/instance", ",.4f"),
    Column("ratio", "of exact", ".4f"),
    Column("speed", "times as fast as exact", ".3g"),
]
_EPOCH_COLUMNS = [
    Column("epoch", "epochs"),
    Column("method", "gradient"),
    Column("loss", "training loss", ".4f"),
    Column("accuracy", "held-out accuracy", ".4f"),
    Column("cpu_s", "CPU s", ",.1f"),
]
_TIME_COLUMNS = [
    Column("method", "gradient"),
    Column("learning_rate", "rate", "g"),
    Column("alpha", "alpha", "g"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("epochs", "epochs", ".3g"),
]


class Setting(NamedTuple):
    """What the parts have in common; see ``main``."""

    branching: int
    ratio: float
    per_class: int
    nearest: float
    rate: float
    sampled_epochs: float
    state_gradient: str
    state_epochs: float
    state_s: float
    instances: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--levels", nargs="+", type=int,
        help="of the hierarchy: 10 ** LEVEL classes (error, accuracy 5; speed 4 5 6; epochs 4)",
    )  # fmt: skip
    parser.add_argument("--branching", type=int, default=10, help="of the hierarchy (10)")
    parser.add_argument(
        "--ratio", type=float, default=0.5,
        help="of the hierarchy's levels, each to that above; 1 has the farthest siblings (0.5)",
    )  # fmt: skip
    parser.add_argument("--per-class", type=int, default=7, help="training instances (7)")
    parser.add_argument(
        "--nearest", type=float, default=0.9,
        help="share of the hierarchy's instances whose nearest centre is right (0.9)",
    )  # fmt: skip
    parser.add_argument("--rate", type=float, default=0.3, help="of all but accuracy (0.3)")
    parser.add_argument("--sampled-epochs", type=float, default=0.2, help="at first (0.2)")
    parser.add_argument(
        "--state-gradient", choices=("exact", "decomp_mips", "mips"), default="exact",
        help="of the steps after the sampled ones, before error and speed are measured (exact)",
    )  # fmt: skip
    parser.add_argument("--state-epochs", type=float, default=0.1, help="of them (0.1)")
    parser.add_argument(
        "--state-seconds", type=float, default=300.0, dest="state_s",
        help="CPU seconds after which the sampled steps end, and those others (300)",
    )  # fmt: skip
    parser.add_argument("--instances", type=int, default=200, help="held out, for errors (200)")
    parser.add_argument("--batches", type=int, default=300, help="timed, of each method (300)")
    parser.add_argument(
        "--batches-seconds", type=float, default=30.0, dest="batches_s",
        help="CPU seconds after which no more are timed (30)",
    )  # fmt: skip
    parser.add_argument("--epochs", type=int, default=6, help="of the part epochs (6)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="of accuracy")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=tuple(METHODS))
    parser.add_argument(
        "--rates", nargs="+", type=float, default=(1.0, 0.3, 0.1), help="of accuracy (1 0.3 0.1)"
    )
    parser.add_argument(
        "--alphas",
        nargs="+",
        type=float,
        default=(0.0,),
        help="ridges of accuracy, each with all rates (0)",
    )
    parser.add_argument(
        "--dropout", type=float, default=0.2, help="of accuracy, yso_finna_en (0.2)"
    )
    parser.add_argument(
        "--budget", type=float, default=900.0, help="CPU seconds of each curve of accuracy (900)"
    )
    parser.add_argument("--cache", help="folder that keeps loaded sets")


def main(
    data: Any = None,
    *,
    parts: Sequence[str] = PARTS,
    levels: Sequence[int] | None = None,
    branching: int = 10,
    ratio: float = 0.5,
    per_class: int = 7,
    nearest: float = 0.9,
    rate: float = 0.3,
    sampled_epochs: float = 0.2,
    state_gradient: str = "exact",
    state_epochs: float = 0.1,
    state_s: float = 300.0,
    instances: int = 200,
    batches: int = 300,
    batches_s: float = 30.0,
    epochs: int = 6,
    sets: Sequence[str] = SETS,
    methods: Sequence[str] = tuple(METHODS),
    rates: Sequence[float] = (1.0, 0.3, 0.1),
    alphas: Sequence[float] = (0.0,),
    dropout: float = 0.2,
    budget: float = 900.0,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure and report the parts asked for.

    Parameters
    ----------
    data : path-like, default=None
        Folder of the data sets; only yso_finna_en is read from it.
    parts : sequence of {"error", "speed", "epochs", "accuracy"}
        What to measure.
    levels : sequence of int, default=None
        Of the hierarchy of classes, ``branching ** level`` of them; None is for each part its own.
    branching : int
        Children of each node.
    ratio : float
        See ``make_hierarchical_classes``.
    per_class : int
        Training instances of each class.
    nearest : float
        The share of instances whose nearest centre is that of their class.
    rate : float
        Learning rate of all parts but accuracy.
    sampled_epochs : float
        Epochs of sampled steps at the beginning.
    state_gradient : {"exact", "decomp_mips", "mips"}
        Of the steps that follow, before error and speed are measured.
    state_epochs : float
        How many of them.
    state_s : float
        CPU seconds after which the sampled steps end, and also those that follow.
    instances : int
        Held-out instances that gradients are compared on; losses of training take ten times as
        many.
    batches : int
        Mini-batches that are timed.
    batches_s : float
        CPU seconds after which no more are timed.
    epochs : int
        Of the part epochs.
    sets : sequence of {"hierarchy", "yso_finna_en"}
        Of the part accuracy.
    methods : sequence of {"exact", "sampled", "mips", "decomp_mips"}
        Of the part accuracy.
    rates : sequence of float
        Learning rates of the part accuracy.
    alphas : sequence of float
        And its ridges: a curve for each pair.
    dropout : float
        Of its set with a hidden layer.
    budget : float
        CPU seconds at the end of each curve of accuracy.
    cache : path-like, default=None
        See ``load_set``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        Rows of all parts, with the part in "part".
    """
    report = report or Report("decomposition")
    setting = Setting(
        branching, ratio, per_class, nearest, rate, sampled_epochs, state_gradient, state_epochs,
        state_s, instances,
    )  # fmt: skip
    choices = [
        {"learning_rate": rate, "alpha": alpha, "dropout": dropout}
        for rate in rates
        for alpha in alphas
    ]
    rows: list[dict[str, Any]] = []
    for part in parts:
        chosen = _LEVELS[part] if levels is None else levels
        if part == "error":
            for level in chosen:
                rows += measure_error(level, setting, report)
        elif part == "speed":
            speed = []
            for level in chosen:
                speed += measure_speed(level, setting, batches, batches_s, report)
            report.figure(draw_speed(speed), "decomposition_speed")
            rows += speed
        elif part == "epochs":
            for level in chosen:
                rows += measure_epochs(level, setting, epochs, report)
        else:
            for name in sets:
                for level in chosen if name == "hierarchy" else (0,):
                    rows += measure_accuracy(
                        name, level, setting, data, cache, methods, choices, budget, report
                    )
    return rows


def measure_error(level: int, setting: Setting, report: Report) -> list[dict[str, Any]]:
    """Compare gradients from searches, and rounds of message passing, with exact gradients."""
    training, made = _state(level, setting, report)
    W, loss, n_labels = training.label_vectors, training.loss, training.n_labels
    batch = held_out(made.X_test, made.y_test, setting.instances, W)
    rows = compare_searches(W, batch, loss, _SHARES)
    report.table(f"Gradients from Q labels a query, {n_labels:,} labels", rows, _ERROR_COLUMNS)
    report.line()
    report.line(
        "retrieved: labels, of all blocks together; products: inner products of all columns that "
        "are taken for an instance, or as many in parts (those with centroids of the clusters too; "
        "table lookups of the decomposed search not, which scores candidates until none of the "
        "others seems to have a gradient); mass: share of the exact gradient on "
        "negatives that was retrieved; error: |g' - g| / |g|, also of the negatives alone. Means "
        f"over {len(batch.V)} instances."
    )
    report.figure(draw_searches(rows), f"decomposition_error_{n_labels}")
    few = batch.part(0, min(len(batch.V), _ROUNDS_INSTANCES))
    n_few = max(1, round(n_labels / 100))
    rounds = compare_rounds(W, few, loss, n_few, _ROUNDS)
    report.table(
        f"Error of algorithm 2 by rounds, {n_labels:,} labels, {len(few.V)} instances", rounds,
        _ROUNDS_COLUMNS,
    )  # fmt: skip
    report.figure(
        draw_rounds(rounds, f"the {n_few:,} best labels of each block"),
        f"decomposition_rounds_{n_labels}",
    )
    return [
        {"part": part, "n_labels": n_labels, **row}
        for part, of_part in (("error", rows), ("rounds", rounds))
        for row in of_part
    ]


def measure_speed(
    level: int, setting: Setting, batches: int, batches_s: float, report: Report
) -> list[dict[str, Any]]:
    """Time the steps of all methods from one state."""
    training, made = _state(level, setting, report)
    rows = compare_speed(training, made.X_test, made.y_test, setting.instances, batches, batches_s)
    report.table(
        f"CPU time of mini-batches of {training.model.batch_size}, {training.n_labels:,} labels",
        rows, _SPEED_COLUMNS,
    )  # fmt: skip
    report.line()
    report.line(
        "ms/batch: whole steps, of which gradient: by the scores, with the search, and re-index: "
        "of the rows that moved; medians, but means of re-index, which seldom takes long; builds: "
        "of the index, and averages of the weights, ms for a mini-batch as spread over an epoch; "
        "ms/instance: all of it."
    )
    return [{"part": "speed", **row} for row in rows]


def measure_epochs(
    level: int, setting: Setting, epochs: int, report: Report
) -> list[dict[str, Any]]:
    """Follow loss and accuracy epoch by epoch."""
    made = _made(level, setting)
    n_labels = len(made.centers)
    rows = follow_epochs(
        made.X_train, made.y_train, made.X_test, made.y_test, rate=setting.rate, epochs=epochs,
        sampled=setting.sampled_epochs, n_instances=10 * setting.instances, report=report,
    )  # fmt: skip
    ends = [row for row in rows if row["epoch"] == epochs]
    report.table(f"After the last epoch, {n_labels:,} labels", ends, _EPOCH_COLUMNS)
    by_epoch = [
        {"epoch": n} | {row["key"]: row["accuracy"] for row in rows if row["epoch"] == n}
        for n in range(1, epochs + 1)
    ]
    names = {row["key"]: row["method"] for row in ends}
    columns = [Column("epoch", "epochs"), *(Column(k, name, ".3f") for k, name in names.items())]
    report.table(f"Held-out accuracy by epoch, {n_labels:,} labels", by_epoch, columns)
    report.figure(draw_epochs(rows), f"decomposition_epochs_{n_labels}")
    return [{"part": "epochs", "n_labels": n_labels, **row} for row in rows]


def measure_accuracy(
    name: str, level: int, setting: Setting, data: Any, cache: Any, methods: Sequence[str],
    choices: Sequence[dict[str, float]], budget: float, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Follow held-out accuracy through the CPU seconds of training."""
    if name == "hierarchy":
        made = _made(level, setting)
        sets = made.X_train, made.y_train, made.X_test, made.y_test
        title, values = f"{name} of {len(made.centers):,} classes", ["P@1"]
    else:
        split = load_set(name, data, cache=cache)
        sets = split.X_train, split.Y_train, split.X_test, split.Y_test
        title, values = f"{name}, {split.Y_train.shape[1]:,} labels", ["P@1", "P@3", "P@5"]
    rows = follow_time(
        title, *sets, methods=methods, choices=choices, budget=budget,
        sampled=setting.sampled_epochs, report=report,
    )  # fmt: skip
    if rows:
        best = [
            row
            for key in dict.fromkeys(row["key"] for row in rows)
            for row in best_curve([row for row in rows if row["key"] == key])
        ]
        columns = [*_TIME_COLUMNS, *(Column(value, value, ".4f") for value in values)]
        report.table(f"{title}: the best of each method", best, columns)
        suffix = name if level == 0 else f"{name}_{setting.branching**level}"
        report.figure(draw_time(rows, values), f"decomposition_accuracy_{suffix}")
    return [{"part": "accuracy", **row} for row in rows]


def _made(level: int, setting: Setting) -> Any:
    return make_hierarchical_classes(
        level,
        setting.branching,
        n_per_class=setting.per_class,
        ratio=setting.ratio,
        accuracy=setting.nearest,
        random_state=0,
    )


def _state(level: int, setting: Setting, report: Report) -> tuple[Training, Any]:
    """Return a trained model and its data, and say how it stands."""
    made = _made(level, setting)
    training, words = train_state(
        made.X_train, made.y_train, rate=setting.rate, sampled=setting.sampled_epochs,
        gradient=setting.state_gradient, further=setting.state_epochs, most_s=setting.state_s,
    )  # fmt: skip
    W = training.label_vectors
    batch = held_out(made.X_test, made.y_test, setting.instances, W)
    exact = gradients_of(Exact(training.loss), W, batch)
    n_negatives = np.mean([np.count_nonzero(gradient.values > 0) for gradient in exact])
    n_right = accuracies(training.answer(), made.X_test[:1000], made.y_test[:1000])["P@1"]
    report.line()
    report.line(
        f"{len(W):,} labels: {words}; held-out accuracy {n_right:.3f}, {n_negatives:,.0f} "
        "negatives in an exact gradient"
    )
    return training, made

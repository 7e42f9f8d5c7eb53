"""The figures and theorems of loss decomposition, beside the package's own search.

Section 5 of [1]_ at a size for one thread. What the paper compares: the softmax with exact and with
sampled gradients, the smoothed max-margin loss with exact ones, with those of a plain search and of
algorithm 2 as it is printed; and ``DecompMIPSClassifier``'s own decomposed search. Q = K / 100
candidates a query, 100 spherical clusters, mini-batches of 10, blocks of columns and mu as there.
Rates are the best of short trials, or of ``--rates``: then each method is shown at the one that
ends highest on held-out instances. Otherwise all are trained alike, with the schedule and the
averages of the package.

* multiclass: dense instances of classes that form a hierarchy, for MegaFace of section 5.1.
* multilabel: a hidden layer over titles, yso_finna_en, for WikiLSHTC of section 5.2.
* theorems: what theorems 1 and 2 promise of one gradient, beside what comes out.

[1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
decomposition for fast learning in large output spaces", ICML 2018.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from asv_bench.common.data import load_set, note_size
from asv_bench.common.figures import log_axis, panels, with_legend
from asv_bench.common.report import Column, Report
from asv_bench.decomposition.curves import accuracies
from asv_bench.decomposition.theorems import measure_theorems
from asv_bench.decomposition.training import Training, warm_up
from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.datasets import make_hierarchical_classes
from sklearn_xc.gradients import MessagePassing
from sklearn_xc.losses import MaxMargin
from sklearn_xc.mips import SphericalIndex

PARTS = ("multiclass", "multilabel", "theorems")
#: What is compared: the name, and colour, marker and line: Okabe and Ito's colours.
METHODS: dict[str, tuple[str, tuple[str, str, str]]] = {
    "softmax": ("Softmax", ("#7F7F7F", "o", "--")),
    "sampled": ("Sampled-Softmax", ("#CC79A7", "v", "-")),
    "margin": ("Margin", ("#000000", "o", "-")),
    "mips": ("MIPS", ("#E69F00", "s", "-")),
    "printed": ("Decomp-MIPS, as printed", ("#56B4E9", "^", "-")),
    "ours": ("the package's search", ("#0072B2", "D", "-")),
}
#: mu and blocks of columns, by part. Source: section 5 of the paper.
_PAPER = {"multiclass": (1.0, 8), "multilabel": (5.0, 4)}
#: Learning rates by part: of the softmax, exact and sampled, and of the margin loss, times mu.
_RATES: dict[str, dict[str, float]] = {
    "multiclass": {"softmax": 10.0, "sampled": 3.0, "margin": 0.3},
    "multilabel": {"softmax": 1.0, "sampled": 1.0, "margin": 1.0},
}
#: Centroids of a spherical index, and the share of the labels that a query retrieves; likewise.
_CLUSTERS, _SHARE = 100, 0.01
#: Of a budget, where curves have their points.
_POINTS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
#: Instances visited between looks at the clock.
_VISITS_A_LOOK = 400
#: Instances that accuracy is measured on.
_JUDGED = 5000

_SET_COLUMNS = [
    Column("set", "set"),
    Column("labels", "labels", ","),
    Column("instances", "instances", ","),
    Column("dim", "dimension"),
    Column("features", "vocabulary", ","),
    Column("per_instance", "labels an instance", ".2f"),
    Column("per_label", "instances a label", ",.1f"),
]
_END_COLUMNS = [
    Column("method", "method"),
    Column("learning_rate", "rate", "g"),
    Column("cpu_s", "CPU s", ",.0f"),
    Column("epochs", "epochs", ".3g"),
    Column("instance_us", "us an instance", ",.0f"),
    Column("speed", "times as fast as Margin", ".3g"),
    Column("train", "training P@1", ".3f"),
    Column("test", "held-out P@1", ".3f"),
]
_POINT_COLUMNS = [
    Column("method", "method"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("epochs", "epochs", ".3g"),
    Column("train", "training P@1", ".3f"),
    Column("test", "held-out P@1", ".3f"),
]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=tuple(METHODS))
    parser.add_argument("--levels", type=int, default=4, help="10 ** LEVELS classes (4)")
    parser.add_argument("--per-class", type=int, default=7, help="training instances (7)")
    parser.add_argument(
        "--rates", nargs="+", type=float, help="learning rates (for each method its own)"
    )
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of a curve (60)")
    parser.add_argument("--sampled-epochs", type=float, default=0.2, help="at first (0.2)")
    parser.add_argument("--instances", type=int, default=32, help="of theorems (32)")
    parser.add_argument("--cache", help="folder that keeps loaded sets")


def main(
    data: Any = None,
    *,
    parts: Sequence[str] = PARTS,
    methods: Sequence[str] = tuple(METHODS),
    levels: int = 4,
    per_class: int = 7,
    rates: Sequence[float] | None = None,
    budget: float = 60.0,
    sampled_epochs: float = 0.2,
    instances: int = 32,
    cache: Any = None,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure and report the parts asked for.

    Parameters
    ----------
    data : path-like, default=None
        Folder of the data sets; only yso_finna_en is read from it.
    parts : sequence of {"multiclass", "multilabel", "theorems"}
    methods : sequence of str
        Keys of ``METHODS``.
    levels, per_class : int
        Of the hierarchy: ``10 ** levels`` classes, and training instances of each.
    rates : sequence of float or None
        A curve for each; those with the margin loss are multiplied by mu, which mostly divides
        steps. None is a rate for each method.
    budget : float
        CPU seconds at the end of a curve.
    sampled_epochs : float
        Epochs of sampled steps at the beginning.
    instances : int
        Of the part theorems.
    cache : path-like, default=None
        See ``load_set``.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        Rows of all parts, with the part in "part".
    """
    report, rows = report or Report("loss_decomposition"), []
    made = None
    if {"multiclass", "theorems"} & set(parts):
        made = make_hierarchical_classes(levels, n_per_class=per_class, random_state=0)
    for part in parts:
        if part == "theorems":
            rows += measure_theorems(made, instances, report)
            continue
        if part == "multiclass":
            name = f"hierarchy of {len(made.centers):,} classes"
            sets = made.X_train, made.y_train, made.X_test, made.y_test
            indptr = np.arange(len(made.y_train) + 1)
            ones = np.ones(len(made.y_train), np.int8)
            Y = sp.csr_array((ones, made.y_train, indptr), (len(ones), len(made.centers)))
            note_size(name, made.X_train, Y, made.X_test)
        else:
            name, *sets = load_set("yso_finna_en", data, cache=cache)
        rows += measure_progress(
            part, name, tuple(sets), methods, rates, budget, sampled_epochs, report
        )
    return rows


def parameters_of(key: str, part: str, n_labels: int, rate: float) -> dict[str, Any]:
    """Return the parameters of a method.

    Parameters
    ----------
    key : str
        Of ``METHODS``.
    part : {"multiclass", "multilabel"}
    n_labels : int
    rate : float
        The learning rate, times mu for the margin loss.

    Returns
    -------
    dict
        Of ``DecompMIPSClassifier``.
    """
    smoothing, n_blocks = _PAPER[part]
    common = {"n_candidates": max(1, round(_SHARE * n_labels)), "learning_rate": rate}
    if key in ("softmax", "sampled"):
        gradient = "exact" if key == "softmax" else "sampled"
        return common | {"loss": "softmax", "gradient": gradient}
    common |= {"loss": MaxMargin(smoothing), "learning_rate": smoothing * rate}
    if key == "ours":
        return common | {"gradient": "decomp_mips"}
    if key == "margin":
        return common | {"gradient": "exact"}
    gradient = "mips" if key == "mips" else MessagePassing(1, n_blocks)
    index = SphericalIndex(min(_CLUSTERS, n_labels))
    return common | {"gradient": gradient, "index": index}


def measure_progress(
    part: str, name: str, sets: tuple[Any, ...], methods: Sequence[str],
    rates: Sequence[float] | None, budget: float, sampled: float, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Follow accuracy on training and held-out instances through CPU seconds and epochs.

    Parameters
    ----------
    part : {"multiclass", "multilabel"}
    name : str
        Of the set.
    sets : tuple
        X and y of the training and the held-out instances.
    methods : sequence of str
        Keys of ``METHODS``.
    rates : sequence of float or None
    budget, sampled : float
        See ``main``.
    report : Report

    Returns
    -------
    list of dict
        A row per point of the best rate of each method: part, key, method, learning_rate, cpu_s,
        epochs, train, test.
    """
    X, y, X_test, y_test = sets
    n_labels = y.shape[1] if getattr(y, "ndim", 1) == 2 else int(y.max()) + 1
    n_pairs = y.nnz if hasattr(y, "nnz") else len(y)
    of_set = {
        "set": name, "labels": n_labels, "instances": X.shape[0],
        "dim": X.shape[1] if part == "multiclass" else 100,
        "features": X.shape[1] if part == "multilabel" else None,
        "per_instance": n_pairs / X.shape[0], "per_label": n_pairs / n_labels,
    }  # fmt: skip
    report.table("Table 1" if part == "multiclass" else "Table 2", [of_set], _SET_COLUMNS)
    rows: list[dict[str, Any]] = []
    for key in methods:
        curves = []
        of_part = _RATES[part]
        for rate in rates or [of_part.get(key, of_part["margin"])]:
            parameters = parameters_of(key, part, n_labels, rate)
            if part == "multilabel":
                parameters |= {"embedding_dim": 100, "dropout": 0.0}
            model = DecompMIPSClassifier(
                **parameters, sampled_epochs=sampled, n_jobs=1, random_state=0
            )
            curve = follow(model, X, y, X_test, y_test, budget)
            method = METHODS[key][0]
            if not curve:
                report.line(f"{name}, {method}, rate {rate:g}: diverged")
                continue
            end = curve[-1]
            report.line(
                f"{name}, {method}, rate {rate:g}: {end['cpu_s']:,.0f} s, {end['epochs']:.3g} "
                f"epochs, training {end['train']:.3f}, held out {end['test']:.3f}"
            )
            known = {"part": part, "key": key, "method": method, "learning_rate": rate}
            curves.append([known | point for point in curve])
        if curves:
            rows += max(curves, key=lambda curve: curve[-1]["test"])
    ends = [
        [row for row in rows if row["key"] == key][-1]
        for key in dict.fromkeys(row["key"] for row in rows)
    ]
    margin = [row["instance_us"] for row in ends if row["key"] == "margin"]
    for row in ends:
        known = margin and margin[0] and row["instance_us"]
        row["speed"] = margin[0] / row["instance_us"] if known else None
    report.table(f"{name}: the end of each curve", ends, _END_COLUMNS)
    report.line()
    report.line(
        "us an instance: CPU time of the steps after the sampled ones. P@1 of "
        f"{min(_JUDGED, X_test.shape[0]):,} instances."
    )
    report.table(f"{name}: all points", rows, _POINT_COLUMNS)
    report.figure(draw(rows), f"decomposition_{part}")
    return rows


def follow(
    model: DecompMIPSClassifier, X: Any, y: Any, X_test: Any, y_test: Any, budget: float
) -> list[dict[str, Any]]:
    """Train, and return a row at each share of the budget; none after training has diverged.

    Parameters
    ----------
    model : DecompMIPSClassifier
        Not fitted.
    X, y, X_test, y_test : array-like or sparse
        Training and held-out instances.
    budget : float
        CPU seconds.

    Returns
    -------
    list of dict
        ``cpu_s``, ``epochs``, ``instance_us`` (CPU microseconds of an instance since the sampled
        steps), ``train`` and ``test`` (P@1).
    """
    warm_up(model, X, y)
    training = Training(model, X, y)
    seen = _with_features(X, training.some_rows(_JUDGED))
    held_out = _with_features(X_test, np.arange(min(_JUDGED, X_test.shape[0])))
    n_sampled = int(np.ceil(model.sampled_epochs * training.n_visits))
    first: tuple[float, int] | None = None
    rows = []
    for share in _POINTS:
        while training.cpu_s < share * budget:
            training.advance(_VISITS_A_LOOK)
            if training.diverged:
                return []
            if first is None and training.visits >= n_sampled + _VISITS_A_LOOK:
                first = training.cpu_s, training.visits  # an index was built by now
        start_s, start = first or (0.0, 0)
        visits = training.visits
        us = 1e6 * (training.cpu_s - start_s) / (visits - start) if visits > start else None
        answer = training.answer()
        rows.append(
            {
                "cpu_s": training.cpu_s, "epochs": visits / training.n_visits,
                "instance_us": us,
                "train": accuracies(answer, X[seen], y[seen])["P@1"],
                "test": accuracies(answer, X_test[held_out], y_test[held_out])["P@1"],
            }
        )  # fmt: skip
    return rows


def _with_features(X: Any, rows: np.ndarray) -> np.ndarray:
    """Return those rows of X that have a feature; others are answered by label frequencies."""
    if not sp.issparse(X):
        return rows
    kept: np.ndarray = rows[np.diff(sp.csr_array(X).indptr)[rows] > 0]
    return kept


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw the panels of figures 1 and 2.

    Parameters
    ----------
    rows : sequence of dict
        Of ``measure_progress``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(3)
    for ax, x, y in zip(
        axes, ("cpu_s", "cpu_s", "epochs"), ("test", "train", "train"), strict=True
    ):
        for key in dict.fromkeys(row["key"] for row in rows):
            own = [row for row in rows if row["key"] == key]
            name, (colour, marker, style) = METHODS[key]
            ax.plot(
                [row[x] for row in own], [row[y] for row in own], style, color=colour,
                marker=marker, markersize=7 if key == "margin" else 5, label=name,
            )  # fmt: skip
        log_axis(ax, "x")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("CPU seconds of training" if x == "cpu_s" else "epochs")
        ax.set_ylabel("held-out P@1" if y == "test" else "training P@1")
    return with_legend(figure, axes[-1])

"""Loss decomposition: progress of training by gradient, theorems 1 and 2, errors of gradients.

Section 5 of the paper at a size for one thread: the softmax with exact and with sampled gradients,
the smoothed max-margin loss with exact ones, with those of a plain search and of algorithm 2 as
printed; and the decomposed search of ``DecompMIPSClassifier``. Q = K / 100 candidates a query, 100
spherical clusters, mini-batches of 10, blocks of columns and mu as in the paper. Each method is
fitted anew with more and more epochs until its budget of CPU seconds is spent, and shown at the
rate of --rates that ends highest on held-out instances.

* multiclass: dense instances of 10 ** LEVELS classes that form a hierarchy, for MegaFace (figure 1)
* multilabel: a hidden layer over titles, yso_finna_en, for WikiLSHTC (figure 2)
* theorems: what theorems 1 and 2 promise of one gradient, beside what comes out
* error: gradients over the labels that a search retrieves beside exact ones (section 3.2)

Source: I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
decomposition for fast learning in large output spaces", ICML 2018.
"""

import argparse
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from asv_bench.common.figures import lines
from asv_bench.common.measure import cpu_seconds, quietly
from asv_bench.common.report import Report
from asv_bench.common.sets import SIZES, load, note_size
from asv_bench.decomposition.theorems import measure_errors, measure_theorems
from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.datasets import make_hierarchical_classes
from sklearn_xc.decomposition.gradients import MessagePassing
from sklearn_xc.decomposition.losses import MaxMargin
from sklearn_xc.metrics import precision_at_k
from sklearn_xc.search import SphericalIndex

PARTS = ("multiclass", "multilabel", "theorems", "error")
METHODS = {
    "softmax": "Softmax",
    "sampled": "Sampled-Softmax",
    "margin": "Margin",
    "mips": "MIPS",
    "printed": "Decomp-MIPS, as printed",
    "left_out": "Decomp-MIPS, absent labels left out",
    "ours": "the package's search",
}
#: mu and blocks of columns, by part. Source: section 5 of the paper.
_PAPER = {"multiclass": (1.0, 8), "multilabel": (5.0, 4)}
#: Learning rates by part: of the softmax, exact and sampled, and of the margin loss, times mu.
_RATES: dict[str, dict[str, float]] = {
    "multiclass": {"softmax": 10.0, "sampled": 3.0, "margin": 0.3},
    "multilabel": {"softmax": 1.0, "sampled": 1.0, "margin": 1.0},
}
_CLUSTERS, _SHARE = 100, 0.01
#: Numbers of epochs, instances that precision is measured on, and those of a warm-up.
_EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_EVALUATED, _WARM_UP = 5000, 200


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=tuple(METHODS))
    parser.add_argument("--levels", type=int, default=4, help="10 ** LEVELS classes (4)")
    parser.add_argument("--per-class", type=int, default=7, help="training instances (7)")
    parser.add_argument("--ratio", type=float, default=0.5, help="1: the farthest siblings (0.5)")
    parser.add_argument("--size", choices=tuple(SIZES), default="all", help="of multilabel (all)")
    parser.add_argument("--rates", nargs="+", type=float, help="(for each method its own)")
    parser.add_argument("--dropout", type=float, default=0.0, help="of multilabel (0)")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of a fit (60)")
    parser.add_argument("--epochs", type=int, default=32, help="of a fit at most (32)")
    parser.add_argument("--instances", type=int, default=32, help="of theorems and error (32)")


def main(options: argparse.Namespace, report: Report) -> list[dict[str, Any]]:
    """Measure and report the parts; return the rows of all."""
    rows, made = [], None
    if set(options.parts) != {"multilabel"}:
        made = make_hierarchical_classes(
            options.levels, n_per_class=options.per_class, ratio=options.ratio, random_state=0
        )
    for part in options.parts:
        if part in ("theorems", "error"):
            measure = measure_theorems if part == "theorems" else measure_errors
            found = measure(made, options.instances, report)
        else:
            found = _progress(part, made, options, report)
        rows += [{"part": part, **row} for row in found]
    return rows


def parameters_of(key: str, part: str, n_labels: int, rate: float) -> dict[str, Any]:
    """Return the parameters of a method; `rate` is multiplied by mu for the margin loss."""
    smoothing, n_blocks = _PAPER[part]
    common = {"n_candidates": max(1, round(_SHARE * n_labels)), "learning_rate": rate}
    if key in ("softmax", "sampled"):
        gradient = "exact" if key == "softmax" else "sampled"
        return common | {"loss": "softmax", "gradient": gradient}
    common |= {"loss": MaxMargin(smoothing), "learning_rate": smoothing * rate}
    if key in ("ours", "margin"):
        return common | {"gradient": "exact" if key == "margin" else "decomp_mips"}
    absent = "zero" if key == "printed" else "left_out"
    gradient = "mips" if key == "mips" else MessagePassing(1, n_blocks, absent)
    return common | {"gradient": gradient, "index": SphericalIndex(min(_CLUSTERS, n_labels))}


def _progress(
    part: str, made: Any, options: argparse.Namespace, report: Report
) -> list[dict[str, Any]]:
    """Follow precision on training and held-out instances through epochs and CPU seconds."""
    if part == "multiclass":
        name, n_labels = f"hierarchy of {len(made.centers):,} classes", len(made.centers)
        X, y, X_test, y_test = made.X_train, made.y_train, made.X_test, made.y_test
        ones = np.ones(len(y), np.int8)
        note_size(name, X, sp.csr_array((ones, (np.arange(len(y)), y)), (len(y), n_labels)))
    else:
        found = load("yso_finna_en", options.data, options.size, cache=options.cache)
        X, y, X_test, y_test = found.X_train, found.Y_train, found.X_test, found.Y_test
        name, n_labels = found.name, y.shape[1]
    some = np.random.default_rng(0).permutation(X.shape[0])[:_EVALUATED]
    evaluated = (X[some], y[some], X_test[:_EVALUATED], y_test[:_EVALUATED])
    rows: list[dict[str, Any]] = []
    for key in options.methods:
        own = _RATES[part]
        curves = []
        for rate in options.rates or [own.get(key, own["margin"])]:
            parameters = parameters_of(key, part, n_labels, rate)
            if part == "multilabel":
                parameters |= {"embedding_dim": 100, "dropout": options.dropout}
            model = DecompMIPSClassifier(**parameters, n_jobs=1, random_state=0)
            known = {"set": name, "method": METHODS[key], "rate": rate}
            curve = _follow(model, X, y, evaluated, options)
            curves += [[known | point for point in curve]] if curve else []
        rows += max(curves, key=lambda curve: curve[-1]["held-out P@1"], default=[])
        print(f"{name}, {METHODS[key]}: measured", flush=True)
    margin = [row["us an instance"] for row in rows if row["method"] == METHODS["margin"]]
    for row in rows:
        row["times as fast as Margin"] = margin[-1] / row["us an instance"] if margin else None
    report.table(f"{name}: progress of training", rows)
    for x in ("CPU s", "epochs"):
        figure = lines(rows, "method", x, ("held-out P@1", "training P@1"), log=("CPU s", "epochs"))
        report.figure(figure, f"decomposition_{part}_{x}".replace(" ", "_"))
    return rows


def _follow(
    model: DecompMIPSClassifier, X: Any, y: Any, evaluated: tuple[Any, ...], options: Any
) -> list[dict[str, Any]]:
    """Return a row for each number of epochs; none after a fit has diverged."""
    few = slice(_WARM_UP)
    quietly(clone(model).set_params(max_iter=1).fit, X[few], y[few])
    rows = []
    for epochs in (n for n in _EPOCHS if n <= options.epochs):
        model = clone(model).set_params(max_iter=epochs)
        try:
            _, seconds = cpu_seconds(quietly, model.fit, X, y)
        except ValueError as error:
            if "diverged" not in str(error):
                raise
            return []
        shown, y_shown, held_out, y_held_out = evaluated
        rows.append(
            {
                "epochs": epochs,
                "CPU s": seconds,
                "us an instance": 1e6 * seconds / (epochs * X.shape[0]),
                "training P@1": _precision(model, shown, y_shown),
                "held-out P@1": _precision(model, held_out, y_held_out),
            }
        )
        if seconds >= options.budget:
            break
    return rows


def _precision(model: DecompMIPSClassifier, X: Any, y: Any) -> float:
    labels, _ = model.predict_topk(X, 1)
    if getattr(y, "ndim", 2) == 1:
        return float((model.classes_[labels[:, 0]] == y).mean())
    return float(precision_at_k(y, labels, k=1))

"""DecompMIPSClassifier on made faces: inner products and learned distances, against CPU seconds.

Section 5.1 of [1]_ has 672,000 faces, each of a few pictures that a network has embedded. Here such
data are made: a class is a direction, its instances spread around it, and a quarter of the columns
tells nothing of the class, as light and pose do; but there instances differ most. All columns are
turned, so that no single one is of that kind.

* progress: held-out accuracy, and the softmax loss over all classes, against the CPU seconds of
  training in one thread. With inner products by gradient (exact, sampled, plain and decomposed
  search), and with Euclidean and Mahalanobis distances. A held-out instance is right if its class
  is the first of all. What comes before the first step, checks and where proxies start, is told
  apart. Steps with exact gradients take long; ``--exact-budget`` ends them earlier,
  and the table says how far they came.
* defaults: accuracy by loss and metric, with all other parameters as they are, on digits, on 2,000
  of these classes, and on bags of words.

With ``--out``, a figure beside the tables, and each curve is kept in faces.jsonl as soon as it is
there; the same command goes on from these. The figure of docs/decomposition.md::

    python -m asv_bench faces --parts progress --classes 100000 1000000 --dim 64 32 \
        --per-class 5 3 --spread 0.13 0.1 --budget 80 100 --held-out 2000 1000 --out reports

[1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
decomposition for fast learning in large output spaces", ICML 2018.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from asv_bench.common.figures import log_axis, panels, with_legend
from asv_bench.common.measure import cpu_seconds, quietly
from asv_bench.common.report import Column, Report
from asv_bench.common.runs import RowLog
from asv_bench.decomposition.training import Training, warm_up
from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.metrics import precision_at_k

PARTS = ("progress", "defaults")
#: Parameters of each method, the name of its line, its colour, marker and line: Okabe and Ito's
#: colours. Rates and scales, of X, are the best of some trials of about 25 CPU seconds with 100,000
#: classes, and of triplet_far with a million; for inner products a scale is only another rate.
METHODS: dict[str, tuple[dict[str, Any], str, tuple[str, str, str]]] = {
    "exact": (
        {"gradient": "exact", "learning_rate": 10.0},
        "inner product, exact", ("#000000", "o", "-"),
    ),
    "sampled": (
        {"gradient": "sampled", "learning_rate": 30.0},
        "inner product, sampled", ("#CC79A7", "v", "-"),
    ),
    "mips": (
        {"gradient": "mips", "learning_rate": 10.0},
        "inner product, mips", ("#E69F00", "s", "-"),
    ),
    "decomp_mips": (
        {"learning_rate": 10.0},
        "inner product, decomp_mips", ("#0072B2", "D", "-"),
    ),
    "euclidean": (
        {"metric": "euclidean", "learning_rate": 0.03, "scale": 5.0},
        "euclidean, softmax", ("#56B4E9", "<", "--"),
    ),
    "mahalanobis": (
        {"metric": "mahalanobis", "learning_rate": 0.03, "scale": 5.0},
        "mahalanobis, softmax", ("#009E73", "^", "--"),
    ),
    "triplet_euclidean": (
        {"loss": "triplet", "metric": "euclidean", "learning_rate": 0.001},
        "euclidean, triplet", ("#7F7F7F", ">", ":"),
    ),
    "triplet_mahalanobis": (
        {"loss": "triplet", "metric": "mahalanobis", "learning_rate": 0.001},
        "mahalanobis, triplet", ("#D55E00", "P", ":"),
    ),
    "triplet_far": (
        {"loss": "triplet", "metric": "mahalanobis", "learning_rate": 0.003, "scale": 5.0},
        "mahalanobis, triplet, 5 X", ("#D55E00", "X", "-."),
    ),
}  # fmt: skip
#: Those of more than `_MANY` classes, unless others are asked for.
LARGE = ("exact", "sampled", "decomp_mips", "mahalanobis", "triplet_mahalanobis", "triplet_far")
_MANY = 300_000
#: Of a budget, where curves have their points.
_POINTS = (1 / 8, 1 / 4, 1 / 2, 1.0)
#: Instances visited between looks at the clock.
_VISITS_A_LOOK = 400
#: Scores that are held at a time.
_TOGETHER = 2**26
#: Of all columns, those that tell nothing of the class; and how far instances differ there.
_NUISANCE, _NUISANCE_SPREAD = 0.25, 0.3
LOSSES, METRICS = ("softmax", "triplet"), ("inner_product", "euclidean", "mahalanobis")

_PROGRESS = [
    Column("method", "method"),
    Column("start_s", "CPU s before", ",.1f"),
    Column("cpu_s", "CPU s", ",.0f"),
    Column("epochs", "epochs", ".3g"),
    Column("epoch_s", "CPU s an epoch", ",.0f"),
    Column("accuracy", "held-out accuracy", ".3f"),
    Column("loss", "held-out softmax loss", ".2f"),
]
_DEFAULTS = [
    Column("set", "set"),
    Column("loss", "loss"),
    Column("nearest_mean", "nearest mean", ".2f"),
    *(Column(metric, metric, ".2f") for metric in METRICS),
]


class Faces(NamedTuple):
    """Instances and their classes, as float32 rows of norm 1 and as numbers.

    Attributes
    ----------
    X_train, X_test : ndarray of float32 of shape (n, dim)
    y_train, y_test : ndarray of int64 of shape (n,)
        Classes are numbered from 0; each has as many training instances.
    own : ndarray of float32 of shape (dim, n_own)
        An orthonormal basis of the directions in which classes differ.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    own: np.ndarray


def make_faces(
    n_classes: int, dim: int, per_class: int, spread: float, n_test: int = 2000, seed: int = 0
) -> Faces:
    """Return made embeddings of faces.

    Parameters
    ----------
    n_classes : int
    dim : int
        Columns; a quarter of all directions does not tell classes apart.
    per_class : int
        Training instances of each class.
    spread : float
        Standard deviation within a class, in each direction in which classes differ; their centres
        have norm 1.
    n_test : int, default=2000
        Held-out instances, of classes drawn evenly.
    seed : int, default=0

    Returns
    -------
    Faces
    """
    rng = np.random.default_rng(seed)
    n_own = dim - round(_NUISANCE * dim)
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32)
    centres = normalize(rng.standard_normal((n_classes, n_own), np.float32))
    spreads = np.full(dim, _NUISANCE_SPREAD, np.float32)
    spreads[:n_own] = spread

    def draw(y: np.ndarray) -> np.ndarray:
        X = rng.standard_normal((len(y), dim), np.float32)
        X *= spreads
        X[:, :n_own] += centres[y]
        return normalize(X @ turn, copy=False)

    y_train = np.repeat(np.arange(n_classes), per_class)
    y_test = rng.integers(0, n_classes, n_test)
    return Faces(draw(y_train), y_train, draw(y_test), y_test, turn[:n_own].T)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to a command line."""
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    for name, kind, default, what in (
        ("--classes", int, 100_000, "of progress (100,000)"),
        ("--dim", int, 64, "columns (64)"),
        ("--per-class", int, 5, "training instances (5)"),
        ("--spread", float, 0.13, "standard deviation within a class (0.13)"),
        ("--budget", float, 120.0, "CPU seconds of each curve (120)"),
        ("--held-out", int, 2000, "instances (2,000)"),
    ):
        more = "" if name == "--classes" else ", one for all or for each of --classes"
        parser.add_argument(name, nargs="+", type=kind, default=(default,), help=what + more)
    parser.add_argument("--exact-budget", type=float, default=60.0,
                        help="CPU seconds of that with exact gradients, at most (60)")  # fmt: skip
    parser.add_argument("--methods", nargs="+", default=tuple(METHODS), choices=tuple(METHODS))
    parser.add_argument("--large-methods", nargs="+", default=LARGE, choices=tuple(METHODS),
                        help="of --methods, those of more than 300,000 classes")  # fmt: skip
    parser.add_argument("--candidates", type=int, default=200,
                        help="n_candidates, also of drawn ones (200)")  # fmt: skip
    parser.add_argument("--sampled-epochs", type=float, default=0.2, help="at first (0.2)")
    parser.add_argument("--rate-factor", type=float, default=1.0,
                        help="what all learning rates are multiplied by (1)")  # fmt: skip


def main(
    data: Any = None,
    *,
    parts: Sequence[str] = PARTS,
    classes: Sequence[int] = (100_000,),
    dim: Sequence[int] = (64,),
    per_class: Sequence[int] = (5,),
    spread: Sequence[float] = (0.13,),
    budget: Sequence[float] = (120.0,),
    held_out: Sequence[int] = (2000,),
    exact_budget: float = 60.0,
    methods: Sequence[str] = tuple(METHODS),
    large_methods: Sequence[str] = LARGE,
    candidates: int = 200,
    sampled_epochs: float = 0.2,
    rate_factor: float = 1.0,
    report: Report | None = None,
) -> list[dict[str, Any]]:
    """Measure and report the parts asked for.

    Parameters
    ----------
    data : path-like, default=None
        Not used: all sets are made, or part of scikit-learn.
    parts : sequence of {"progress", "defaults"}
    classes : sequence of int
        Of progress: a panel of the figure for each.
    dim, per_class, spread
        See ``make_faces``: one for all, or one for each of `classes`.
    budget : sequence of float
        CPU seconds of each curve, likewise.
    held_out : sequence of int
        Instances that curves are measured on, likewise.
    exact_budget : float
        CPU seconds of that with exact gradients, if it is less.
    methods : sequence of str
        Keys of ``METHODS``.
    large_methods : sequence of str
        Of these, those of more than 300,000 classes.
    candidates : int
        ``n_candidates``, if there are more classes.
    sampled_epochs : float
        As of the estimator.
    rate_factor : float
        What all learning rates of ``METHODS`` are multiplied by.
    report : Report, default=None
        Where to show the results; None prints them.

    Returns
    -------
    list of dict
        Rows of all parts, with the part in "part".
    """
    report, rows = report or Report("faces"), []
    log = RowLog(None if report.out is None else report.out / "faces.jsonl")
    if "progress" in parts:
        given = dim, per_class, spread, held_out, budget
        each = [_for_each(values, len(classes)) for values in given]
        for n_classes, *how, n_seconds in zip(classes, *each, strict=True):
            names = "dim", "per_class", "spread", "n_test"
            of_data = {"n_classes": n_classes, **dict(zip(names, how, strict=True))}
            of_fit = {"sampled_epochs": sampled_epochs, "candidates": candidates}
            tasks = {
                key: of_data | of_fit | {
                    "key": key, "rate_factor": rate_factor,
                    "budget": min(exact_budget, n_seconds) if key == "exact" else n_seconds,
                }
                for key in methods
                if n_classes <= _MANY or key in large_methods
            }  # fmt: skip
            rows += measure_progress(of_data, tasks, log, report)
        report.figure(draw([row for row in rows if row["part"] == "progress"]), "faces")
    if "defaults" in parts:
        rows += measure_defaults(report)
    return rows


def _for_each(values: Sequence[Any], n: int) -> Sequence[Any]:
    return list(values) * n if len(values) == 1 else values


def measure_progress(
    of_data: dict[str, Any], tasks: dict[str, dict[str, Any]], log: RowLog, report: Report
) -> list[dict[str, Any]]:
    """Follow held-out accuracy through the CPU seconds of training.

    Parameters
    ----------
    of_data : dict
        Parameters of ``make_faces``.
    tasks : dict of str to dict
        By method, what ``follow`` is given; that of a curve which `log` has is not run.
    log : RowLog
    report : Report

    Returns
    -------
    list of dict
        A row for each method and point, and one for each kind of nearest mean.
    """
    faces = make_faces(**of_data)
    name = f"{of_data['n_classes']:,} classes"
    report.line()
    report.line(
        f"{name} of {of_data['per_class']} instances in {of_data['dim']} dimensions, spread "
        f"{of_data['spread']:g}, {len(faces.X_test):,} held out"
    )
    rows = list(nearest_means(faces))
    for key, task in tasks.items():
        found = log.find(task)
        if found is None:
            found = {"points": list(follow(faces, task))}
            log.add(task, found)
        rows += with_speed(key, found["points"])
        if found["points"]:
            report.line(f"  {key}: accuracy {rows[-1]['accuracy']:.3f}, {rows[-1]['cpu_s']:.0f} s")
        else:
            report.line(f"  {key}: diverged")
    ends = [
        [row for row in rows if row["key"] == key][-1]
        for key in dict.fromkeys(row["key"] for row in rows)
    ]
    report.table(f"At the end of each curve, {name}", ends, _PROGRESS)
    report.table(f"All points, {name}", rows, _PROGRESS)
    return [{"part": "progress", "n_classes": of_data["n_classes"], **row} for row in rows]


def with_speed(key: str, points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of a curve, with the CPU seconds of an epoch at the speed since the point before.

    The first one has none: steps with drawn classes come before those of the method.
    """
    rows: list[dict[str, Any]] = []
    for point in points:
        rows.append({"key": key, "method": METHODS[key][1], **point, "epoch_s": None})
        if len(rows) > 1:
            seconds, epochs = (point[name] - rows[-2][name] for name in ("cpu_s", "epochs"))
            rows[-1]["epoch_s"] = seconds / epochs if epochs > 0 else None
    return rows


def nearest_means(faces: Faces) -> Iterator[dict[str, Any]]:
    """Yield the accuracy of the nearest mean, and of that with only the directions of classes."""
    n_classes = int(faces.y_train[-1]) + 1
    means = faces.X_train.reshape(n_classes, -1, faces.X_train.shape[1]).mean(axis=1)
    every = np.eye(means.shape[1], dtype=means.dtype)
    for key, method, basis in (
        ("nearest_mean", "nearest mean", every),
        ("best_mean", "nearest mean, where classes differ", faces.own),
    ):
        accuracy = nearest(means @ basis, faces.X_test @ basis, faces.y_test)
        yield {"key": key, "method": method, "accuracy": accuracy}


def nearest(points: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Return how often the nearest point, (n_classes, dim), is that of the class."""
    return judge(X, 2 * points, -np.einsum("kj,kj->k", points, points), y)[0]


def follow(faces: Faces, task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Train, and yield a row at each share of the budget.

    Parameters
    ----------
    faces : Faces
    task : dict
        ``key`` of the method, ``budget`` in CPU seconds, ``rate_factor``, ``candidates`` and
        ``sampled_epochs``.

    Yields
    ------
    dict
        ``cpu_s`` and ``epochs`` so far, ``start_s`` before them, ``accuracy``, and ``loss``, over
        all classes, for the softmax loss, else None. There are none after training has diverged.
    """
    parameters = {"loss": "softmax", **METHODS[task["key"]][0]}
    scale = np.float32(parameters.pop("scale", 1.0))
    parameters["learning_rate"] *= task["rate_factor"]
    model = DecompMIPSClassifier(
        **parameters, n_candidates=min(task["candidates"], task["n_classes"]),
        sampled_epochs=task["sampled_epochs"], n_jobs=1, random_state=0,
    )  # fmt: skip
    X, y = faces.X_train * scale, faces.y_train
    warm_up(model, X, y)
    training, start_s = cpu_seconds(Training, model, X, y)
    is_softmax = parameters["loss"] == "softmax"
    for share in _POINTS:
        while training.cpu_s < share * task["budget"]:
            training.advance(_VISITS_A_LOOK)
            if training.diverged:
                return
        fitted, epochs = training.answer(), training.visits / training.n_visits
        scored = fitted.embed(scale * faces.X_test), fitted.coef_, fitted.intercept_
        accuracy, loss = judge(*scored, faces.y_test, with_loss=is_softmax)
        yield {
            "cpu_s": training.cpu_s, "epochs": epochs, "start_s": start_s,
            "accuracy": accuracy, "loss": loss,
        }  # fmt: skip


def judge(
    V: np.ndarray, W: np.ndarray, b: np.ndarray, y: np.ndarray, *, with_loss: bool = False
) -> tuple[float, float | None]:
    """Return accuracy and mean softmax loss of the scores ``V W' + b``, some rows at a time.

    Parameters
    ----------
    V : ndarray of float of shape (n, dim)
    W : ndarray of float of shape (n_classes, dim)
    b : ndarray of float of shape (n_classes,)
    y : ndarray of int of shape (n,)
    with_loss : bool, default=False
        Whether the loss is wanted; else it is None.
    """
    n_right, loss, size = 0, 0.0, max(1, _TOGETHER // len(W))
    for first in range(0, len(V), size):
        scores, own = V[first : first + size] @ W.T, y[first : first + size]
        scores += b
        n_right += int((scores.argmax(axis=1) == own).sum())
        if with_loss:
            scores -= scores[np.arange(len(own)), own][:, None]
            top = scores.max(axis=1, keepdims=True)
            np.exp(scores - top, out=scores)
            loss += float((np.log(scores.sum(axis=1)) + top[:, 0]).sum())
    return n_right / len(V), loss / len(V) if with_loss else None


def measure_defaults(report: Report) -> list[dict[str, Any]]:
    """Return accuracy, or precision at 1, by loss and metric, other parameters as they are."""
    rows = []
    for name, (X_train, X_test, y_train, y_test) in small_sets():
        mean = None
        if getattr(y_train, "ndim", 2) == 1:
            means = [X_train[y_train == k].mean(axis=0) for k in np.unique(y_train)]
            mean = nearest(np.array(means), X_test, y_test)
        for loss in LOSSES:
            rows.append({"part": "defaults", "set": name, "loss": loss, "nearest_mean": mean})
            for metric in METRICS:
                model = DecompMIPSClassifier(loss, metric=metric, random_state=0)
                quietly(model.fit, X_train, y_train)
                if mean is not None:
                    rows[-1][metric] = float(model.score(X_test, y_test))
                else:
                    labels, _ = model.predict_topk(X_test, 1)
                    rows[-1][metric] = float(precision_at_k(y_test, labels, k=1))
    report.table("Held-out accuracy with default parameters, by metric", rows, _DEFAULTS)
    return rows


def small_sets() -> Iterator[tuple[str, list[Any]]]:
    """Yield names of sets, and X and y of their training and held-out parts."""
    X, y = load_digits(return_X_y=True)
    yield "digits", train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)
    faces = make_faces(2000, 64, 8, 0.2, n_test=8000)
    yield "2,000 faces", [faces.X_train, faces.X_test, faces.y_train, faces.y_test]
    X, Y = make_xc_classification(4000, n_features=2000, n_labels=300, random_state=0)
    yield "bags of words, P@1", train_test_split(X, Y, test_size=0.25, random_state=0)


def draw(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw accuracy against CPU seconds, a panel for each number of classes.

    Parameters
    ----------
    rows : sequence of dict
        Of ``measure_progress``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    sizes = list(dict.fromkeys(row["n_classes"] for row in rows))
    found = {row["key"] for row in rows}
    figure, axes = panels(len(sizes))
    for ax, n_classes in zip(axes, sizes, strict=True):
        of_size = [row for row in rows if row["n_classes"] == n_classes]
        for key in (key for key in METHODS if key in found):
            own = [row for row in of_size if row["key"] == key]
            colour, marker, style = METHODS[key][2]
            ax.plot(
                [row["cpu_s"] for row in own], [row["accuracy"] for row in own], style,
                color=colour, marker=marker, markersize=5, label=METHODS[key][1],
            )  # fmt: skip
        mean = next(row["accuracy"] for row in of_size if row["key"] == "nearest_mean")
        ax.axhline(mean, color="#000000", linewidth=0.8, linestyle=":", label="nearest mean")
        log_axis(ax, "x")
        ax.set_ylim(bottom=0)
        ax.set_title(f"{n_classes:,} classes", fontsize=10)
        ax.set_xlabel("CPU seconds of training")
        ax.set_ylabel("held-out accuracy")
    return with_legend(figure, axes[-1])

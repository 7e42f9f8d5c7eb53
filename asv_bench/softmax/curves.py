"""Held-out log-loss against CPU seconds, for the softmax experiment."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Column, Report
from asv_bench.softmax.biased_softmax import METHODS, SampledSoftmax
from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._checks import check_instances, check_targets
from sklearn_xc.exceptions import UnseenLabelWarning
from sklearn_xc.softmax.pairs import pairs_of
from sklearn_xc.softmax.start import start_at_means
from sklearn_xc.softmax.training import train_epoch
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SoftmaxState
from sklearn_xc.weights.class_weights import ClassWeights

#: C of scikit-learn's solvers: the best of 1, 3, 10 and 30 for the held-out log-loss.
_C = 10.0
_EPOCHS = 50
#: Epochs whose log-loss is shown.
_SHOWN = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 50}
#: Epochs of the trials of a learning rate.
_TRIAL_EPOCHS = 6
_COLUMNS = [
    Column("method", "method"),
    Column("rate", "rate x n", "g"),
    Column("epochs", "epochs"),
    Column("cpu_s", "CPU s", ",.1f"),
    Column("log_loss", "held-out log-loss", ".3f"),
    Column("best", "best", ".3f"),
]
# Okabe and Ito's colours, told apart by all common kinds of colour vision; with a marker each.
_LOOKS = {
    "implicit": ("#000000", "o"),
    "hard": ("#000000", "*"),
    "umax-hard": ("#0072B2", "*"),
    "batches": ("#D55E00", "o"),
    "implicit-paper": ("#000000", "s"),
    "umax-paper": ("#0072B2", "s"),
    "ove": ("#009E73", "^"),
    "nce": ("#CC79A7", "v"),
    "is": ("#E69F00", "D"),
    "lbfgs": ("#7F7F7F", "P"),
    "saga": ("#7F7F7F", "X"),
    "sgd": ("#56B4E9", "h"),
}
#: The curves, in the order of the legend.
CURVES = tuple(_LOOKS)


def measure_curves(
    split: Any,
    jobs: int,
    budget: float,
    report: Report,
    *,
    epochs: int = _EPOCHS,
    curves: Sequence[str] = CURVES,
) -> list[dict[str, Any]]:
    """Return points of curves.

    Parameters
    ----------
    split : SplitSet
        Training and test data; each label of an instance is an observation.
    jobs : int
        Threads for what is not measured.
    budget : float
        CPU seconds of training after which a curve gets no further point.
    report : Report
        Where to show the ends of the curves.
    epochs : int
        Most epochs of the package's methods.
    curves : sequence of str
        Which ones, of ``CURVES``.

    Returns
    -------
    list of dict
        A row per point: key, method, epochs, cpu_s, log_loss.
    """
    X, Y = sp.csr_array(split.X_train), sp.csr_array(split.Y_train)
    X_test, Y_test = sp.csr_array(split.X_test), sp.csr_array(split.Y_test).tocoo()
    seen = np.diff(sp.csc_array(Y).indptr) > 0
    kept = seen[Y_test.coords[1]]
    held_out = _HeldOut(X_test, Y_test.coords[0][kept], Y_test.coords[1][kept], jobs)
    common: dict[str, Any] = {"max_iter": epochs, "n_jobs": jobs, "random_state": 0}
    common["fit_intercept"] = False  # as in the paper
    paper = {"init": "zero", "sampling": "uniform", "n_hard_negatives": 0}
    models: dict[str, tuple[str, Any]] = {
        "implicit": (
            "implicit, 2 sampled",
            ImplicitSoftmaxSGD(n_negatives=2, n_hard_negatives=0, **common),
        ),
        "hard": (
            "implicit, 2 sampled + 5 hard",
            ImplicitSoftmaxSGD(n_negatives=2, n_hard_negatives=5, **common),
        ),
        "umax-hard": (
            "U-max, 5 sampled + 5 hard", SoftmaxUMax(n_negatives=5, n_hard_negatives=5, **common),
        ),
        "batches": (
            "implicit, batches of 32, 64 sampled",
            ImplicitSoftmaxSGD(batch_size=32, n_negatives=64, **common),
        ),
        "implicit-paper": (
            "implicit as in the paper", ImplicitSoftmaxSGD(n_negatives=1, **paper, **common),
        ),
        "umax-paper": ("U-max as in the paper", SoftmaxUMax(**paper, **common)),
        **{
            method: (f"{METHODS[method]}, 5 sampled", SampledSoftmax(method, **common))
            for method in ("ove", "nce", "is")
        },
    }  # fmt: skip
    rows = []
    for key, (name, model) in models.items():
        if key not in curves:
            continue
        rate = choose_rate(model, X, Y)
        points = _epochs_of(model.set_params(learning_rate=rate), X, Y, held_out, budget)
        report.line(f"{name}, rate {rate:g}: " + "; ".join(map(_in_words, points)))
        rows += [{"key": key, "method": name, "rate": rate, **point} for point in points]
    for key, name, curve in (
        ("lbfgs", "LogisticRegression(lbfgs)", _logistic_regression("lbfgs")),
        ("saga", "LogisticRegression(saga)", _logistic_regression("saga")),
        ("sgd", "SGDClassifier(log_loss)", _sgd_classifier),
    ):
        if key not in curves:
            continue
        pairs = Y.tocoo().coords
        for point in curve(X[pairs[0]], pairs[1], held_out, budget):
            report.line(f"{name}: {_in_words(point)}")
            rows.append({"key": key, "method": name, **point})
    ends = []
    for key in dict.fromkeys(row["key"] for row in rows):
        of_key = [row for row in rows if row["key"] == key]
        ends.append({**of_key[-1], "best": min(row["log_loss"] for row in of_key)})
    report.table(
        f"Held-out log-loss, {X.shape[0]:,} x {X.shape[1]:,}, {Y.nnz:,} pairs, {Y.shape[1]:,} "
        f"classes; C = {_C:g} for LogisticRegression",
        ends,
        _COLUMNS,
    )
    return rows


def _in_words(point: dict[str, Any]) -> str:
    return f"{point['epochs']} epochs, {point['cpu_s']:.1f} s, {point['log_loss']:.3f}"


class _HeldOut:
    """Log-loss of held-out pairs."""

    def __init__(self, X: Any, rows: np.ndarray, classes: np.ndarray, jobs: int) -> None:
        self.X, self.rows, self.classes, self.jobs = X, rows, classes, jobs

    def of_weights(self, weights: ClassWeights, model: Any) -> float:
        """Return the log-loss of softmax weights."""
        X = check_instances(model, self.X, reset=False)
        return float(weights.log_losses(X, self.rows, self.classes, self.jobs).mean())

    def of_probabilities(
        self, predict_proba: Callable[[Any], np.ndarray], step: int = 512
    ) -> float:
        """Return the log-loss of a model's probabilities, which it clips at 1e-15."""
        losses = np.empty(len(self.rows))
        for first in range(0, self.X.shape[0], step):
            chosen = np.flatnonzero((self.rows >= first) & (self.rows < first + step))
            proba = predict_proba(self.X[first : first + step])
            found = proba[self.rows[chosen] - first, self.classes[chosen]]
            losses[chosen] = -np.log(np.maximum(found, 1e-15))
        return float(losses.mean())


def choose_rate(model: Any, X: Any, Y: Any) -> float:
    """Return the learning rate with the lowest log-loss of a tenth of the data, held out.

    The rest is trained on for some epochs, at the powers of ten from 0.001 to 1 and their
    threefolds.
    """
    order = np.random.default_rng(0).permutation(X.shape[0])
    tenth = max(1, X.shape[0] // 10)
    train, test = order[tenth:], order[:tenth]
    pairs = Y[test].tocoo().coords
    rows, classes = pairs[0].astype(np.int64), pairs[1]
    batch = getattr(model, "batch_size", 1)
    best, best_loss = np.nan, np.inf
    for rate in np.sort(np.outer([1.0, 3.0], 10.0 ** np.arange(-3, 1)).ravel()) * batch:
        changed = {"learning_rate": rate, "max_iter": _TRIAL_EPOCHS}
        trial = type(model)(**{**model.get_params(), **changed})
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # a rate too high
                warnings.simplefilter("ignore", UnseenLabelWarning)  # all their pairs are held out
                trial.fit(X[train], Y[train])
        except ValueError as error:
            if "diverged" not in str(error):
                raise
            continue
        loss = _HeldOut(X[test], rows, classes, 1).of_weights(ClassWeights(trial.coef_), trial)
        if loss < best_loss:
            best, best_loss = rate, loss
    return float(best)


def _epochs_of(model: Any, X: Any, Y: Any, held_out: _HeldOut, budget: float) -> list[dict]:
    """Train one of the package's methods; return the points of some epochs.

    Reading and checking X and y is left out, and so is the measuring itself.
    """
    instances = check_instances(model, X, reset=True)
    pairs = pairs_of(check_targets(model, Y, X.shape[0]), np.ones(X.shape[0]))
    n_classes = Y.shape[1]
    problem = SoftmaxProblem(
        instances, pairs.rows, pairs.classes, pairs.weight, n_classes, float(model.alpha)
    )
    W = np.zeros((n_classes, X.shape[1]), instances.dtype)
    state = SoftmaxState.at(W, np.full(problem.n_pairs, np.log(n_classes)))
    points: list[dict] = []
    measuring, began = 0.0, process_time()
    if model.init == "means":
        start_at_means(problem, state, 0, model.n_jobs)
        spent = process_time() - began
        loss = held_out.of_weights(ClassWeights(state.V, state.scale), model)
        points.append({"epochs": 0, "cpu_s": spent, "log_loss": loss})
        measuring = process_time() - began - spent

    settings, schedule = model._settings(problem, 0), Schedule(model.learning_rate, model.decay)
    for epoch in range(model.max_iter):
        train_epoch(problem, state, settings, schedule, epoch, None)
        now = process_time()
        spent = now - began - measuring
        if epoch + 1 in _SHOWN or spent > budget:
            loss = held_out.of_weights(state.weights, model)
            points.append({"epochs": epoch + 1, "cpu_s": spent, "log_loss": loss})
        if spent > budget:
            break
        measuring += process_time() - now
    return points


def _logistic_regression(solver: str) -> Callable[..., Iterator[dict]]:
    def points(X: Any, y: np.ndarray, held_out: _HeldOut, budget: float) -> Iterator[dict]:
        """Fit anew with more and more iterations: their state cannot be kept."""
        for n_iter in (1, 2, 4, 8, 16, 32, 64, 128):
            model = LogisticRegression(
                C=_C, solver=solver, max_iter=n_iter, tol=1e-9, fit_intercept=False
            )
            began = process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
            seconds = process_time() - began
            yield {
                "epochs": n_iter,
                "cpu_s": seconds,
                "log_loss": held_out.of_probabilities(_all_classes(model, held_out)),
            }
            if 1.5 * seconds > budget:
                return

    return points


def _sgd_classifier(X: Any, y: np.ndarray, held_out: _HeldOut, budget: float) -> Iterator[dict]:
    model, spent, classes = SGDClassifier(loss="log_loss", random_state=0), 0.0, np.unique(y)
    for epoch in range(128):
        _, seconds = cpu_seconds(lambda: model.partial_fit(X, y, classes=classes))
        spent += seconds
        loss = held_out.of_probabilities(_all_classes(model, held_out))
        yield {"epochs": epoch + 1, "cpu_s": spent, "log_loss": loss}
        if spent + seconds > budget:
            return


def _all_classes(model: Any, held_out: _HeldOut) -> Callable[[Any], np.ndarray]:
    """Return probabilities with a column for every number of a class."""
    n_classes = 1 + max(int(model.classes_.max()), int(held_out.classes.max()))

    def predict_proba(X: Any) -> np.ndarray:
        proba = np.zeros((X.shape[0], n_classes))
        proba[:, model.classes_] = model.predict_proba(X)
        return proba

    return predict_proba


def draw_curves(rows: list[dict[str, Any]]) -> Any:
    """Draw log-loss against CPU seconds, a line per method.

    Parameters
    ----------
    rows : list of dict
        Points of ``measure_curves``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure  # without pyplot: no global state, no window

    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    ax = figure.subplots()
    for key, (colour, marker) in _LOOKS.items():
        of_key = [row for row in rows if row["key"] == key]
        if not of_key:
            continue
        ax.plot(
            [row["cpu_s"] for row in of_key], [row["log_loss"] for row in of_key],
            color=colour, marker=marker, markersize=5, markevery=max(1, len(of_key) // 8),
            linestyle="--" if key in ("saga", "umax-paper", "implicit-paper") else "-",
            label=of_key[0]["method"],
        )  # fmt: skip
    losses = np.array([row["log_loss"] for row in rows])
    ax.set_ylim(losses.min() - 0.1, min(losses.max(), losses.min() + 4.0))
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("CPU seconds of training")
    ax.set_ylabel("held-out log-loss")
    ax.grid(alpha=0.3)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return figure

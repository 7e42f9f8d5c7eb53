"""Tables 2 and 4 and figures 1 to 4 of the paper on softmax sampling [1]_, on two of its sets.

Table 3, and the log-losses of figure 2, are those of ``table``, whose protocol is the same: u from
0, gradients of a mini-batch summed, and for the biased methods the log-loss that the authors
report, of the softmax of probabilities. Sets: the first label of each row of bibtex and delicious,
which the paper has too; its other five are not at hand.

* rates: the rate with the lowest training log-loss on a tenth of the rows (table 2).
* epochs: log-loss at ten epochs, at the paper's rates, and CPU seconds so far (figures 1 and 4).
* formulations: U-max with the double sum of the paper and with that of Raman et al. (figure 3).
* runtimes: CPU seconds of 50 epochs, and of the same steps in numpy (table 4).

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

import contextlib
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from asv_bench.common.report import Column, Report
from asv_bench.softmax.biased_softmax import SampledSoftmax
from asv_bench.softmax.numpy_softmax import implicit_steps, umax_steps
from asv_bench.softmax.table import (
    GRID,
    LOWER,
    RATES,
    TWICE,
    mean_log_loss,
    methods_of_table,
)
from sklearn_xc import SoftmaxUMax
from sklearn_xc._checks import check_instances
from sklearn_xc.softmax.training import train_epoch
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SoftmaxState

#: Table 4 of the paper: seconds of 50 epochs, of implicit steps with one class, of the others with
#: five.
PAPER_SECONDS = {"bibtex": (144, 197), "delicious": (287, 325)}
#: The paper's methods, in its order.
METHODS = ("ove", "nce", "is", "vanilla", "umax", "implicit")
#: Rates of figure 3.
FORMULATION_RATES = tuple(10.0 ** np.arange(-4, 5))
_NUMPY_STEPS = 1000

# Okabe and Ito's colours, told apart by all common kinds of colour vision; with a marker each.
_LOOKS = {
    "ove": ("#009E73", "^"),
    "nce": ("#CC79A7", "v"),
    "is": ("#E69F00", "D"),
    "vanilla": ("#56B4E9", "P"),
    "umax": ("#0072B2", "s"),
    "implicit": ("#000000", "o"),
}

RATES_COLUMNS = [
    Column("set", "set"),
    Column("method", "method"),
    Column("paper", "paper: rate x n", "g"),
    Column("rate", "rate x n", "g"),
    Column("reported", "log-loss of the tenth, as reported", ".3f"),
    Column("true_rate", "rate x n by true log-loss", "g"),
    Column("log_loss", "true log-loss", ".3f"),
]
EPOCHS_COLUMNS = [
    Column("set", "set"),
    Column("method", "method"),
    Column("rate", "rate x n", "g"),
    Column("epochs", "epochs"),
    Column("cpu_s", "CPU s", ".2f"),
    Column("reported", "log-loss, as reported", ".3f"),
    Column("log_loss", "true log-loss", ".3f"),
]
FORMULATIONS_COLUMNS = [
    Column("set", "set"),
    Column("rate", "rate x n", "g"),
    Column("ours", "the paper's double sum", ".3f"),
    Column("raman", "that of Raman et al.", ".3f"),
    Column("times", "second over first", ".2f"),
]
RUNTIMES_COLUMNS = [
    Column("set", "set"),
    Column("paper_implicit", "paper: implicit, s", "g"),
    Column("paper_others", "paper: others, s", "g"),
    Column("paper_ratio", "paper: ratio", ".2f"),
    *(Column(method, f"{method}, CPU s", ".2f") for method in reversed(METHODS)),
    Column("ratio", "umax / implicit", ".2f"),
    Column("numpy_ratio", "the same in numpy", ".2f"),
]


def follow(
    model: Any, X: Any, positions: np.ndarray, epochs: int, shown: Sequence[int], twice: bool
) -> list[dict[str, Any]]:
    """Train from 0 and return the training log-loss after some epochs.

    Parameters
    ----------
    model : SoftmaxUMax, ImplicitSoftmaxSGD or SampledSoftmax
        Its parameters are taken, its `fit` is not called.
    X : csr_array of shape (n, n_features)
        Instances.
    positions : ndarray of int32 of shape (n,)
        Class of each.
    epochs : int
        How many to train.
    shown : sequence of int
        Epochs after which the log-loss is measured.
    twice : bool
        Whether the authors report that of the softmax of probabilities.

    Returns
    -------
    list of dict
        ``epochs``, CPU seconds of training so far, the log-loss as the authors would report it, and
        the true one; up to where a method diverges.
    """
    instances = check_instances(model, X, reset=True)
    n, n_classes = len(positions), 1 + int(positions.max())
    problem = SoftmaxProblem(
        instances, np.arange(n, dtype=np.int32), positions, np.ones(n), n_classes, 0.0
    )
    state = SoftmaxState.at(np.zeros((n_classes, X.shape[1]), instances.dtype), np.zeros(n))
    points: list[dict[str, Any]] = []
    measuring, began = 0.0, process_time()

    settings, schedule = model._settings(problem, 0), Schedule(model.learning_rate, model.decay)
    with contextlib.suppress(FloatingPointError):  # a rate too high
        for epoch in range(1, epochs + 1):
            train_epoch(problem, state, settings, schedule, epoch - 1, None)
            now, weights = process_time(), state.weights
            if epoch not in shown:
                continue
            true = mean_log_loss(weights, instances, positions)
            if not np.isfinite(true):
                break
            seen = mean_log_loss(weights, instances, positions, twice=True) if twice else true
            spent = now - began - measuring
            points.append({"epochs": epoch, "cpu_s": spent, "reported": seen, "log_loss": true})
            measuring += process_time() - now
    return points


def _positions(y: np.ndarray) -> np.ndarray:
    return np.unique(y, return_inverse=True)[1].astype(np.int32)


def _models(epochs: int) -> dict[str, tuple[str, Any]]:
    """Return the paper's methods by key."""
    return {key: one for key, one in methods_of_table(epochs, 1).items() if key in METHODS}


def _at(model: Any, rate: float) -> Any:
    return model.set_params(learning_rate=rate * getattr(model, "batch_size", 1))


def choose_rates(name: str, X: Any, y: np.ndarray, epochs: int) -> list[dict[str, Any]]:
    """Return the rate that each method would take by a tenth of the rows: table 2.

    Parameters
    ----------
    name : str
        Of the set.
    X : csr_array of shape (n, n_features)
        Instances.
    y : ndarray of shape (n,)
        Classes.
    epochs : int
        Of each trial.

    Returns
    -------
    list of dict
        A row per method; see ``RATES_COLUMNS``.
    """
    tenth = np.random.default_rng(0).permutation(len(y))[: max(1, len(y) // 10)]
    X, positions = X[tenth], _positions(y[tenth])
    rows = []
    for key, (label, model) in _models(epochs).items():
        tried = []
        for rate in (LOWER if key == "vanilla" else ()) + GRID:
            points = follow(_at(model, rate), X, positions, epochs, (epochs,), key in TWICE)
            tried += [(point["reported"], point["log_loss"], rate) for point in points]
        row = {"set": name, "method": label, "key": key, "paper": RATES.get(name, {}).get(key)}
        if tried:
            row["reported"], _, row["rate"] = min(tried)
            row["log_loss"], row["true_rate"] = min((true, rate) for _, true, rate in tried)
        rows.append(row)
    return rows


def follow_epochs(name: str, X: Any, y: np.ndarray, epochs: int) -> list[dict[str, Any]]:
    """Return the log-loss of each method at ten epochs, at the paper's rates: figures 1 and 4.

    Parameters
    ----------
    name, X, y, epochs
        As of ``choose_rates``; other sets than the paper's take a rate of 1.

    Returns
    -------
    list of dict
        A row per method and epoch; see ``EPOCHS_COLUMNS``.
    """
    positions = _positions(y)
    shown = sorted({1, *np.linspace(0, epochs, 11).astype(int)[1:].tolist()})
    rows = []
    for key, (label, model) in _models(epochs).items():
        rate = RATES.get(name, {}).get(key, 1.0)
        follow(_at(model, rate), X, positions, 1, (), False)  # compiled, or loaded
        rows += [
            {"set": name, "method": label, "key": key, "rate": rate, **point}
            for point in follow(model, X, positions, epochs, shown, key in TWICE)
        ]
    return rows


def compare_formulations(name: str, X: Any, y: np.ndarray, epochs: int) -> list[dict[str, Any]]:
    """Return the log-loss of U-max by rate, with both double sums: figure 3.

    Parameters
    ----------
    name, X, y, epochs
        As of ``choose_rates``.

    Returns
    -------
    list of dict
        A row per rate; see ``FORMULATIONS_COLUMNS``. None where it diverges.
    """
    positions, rows = _positions(y), []
    common: dict[str, Any] = {"init": "zero", "fit_intercept": False, "max_iter": epochs}
    for rate in FORMULATION_RATES:
        row: dict[str, Any] = {"set": name, "rate": rate}
        for key, model in (
            ("ours", SoftmaxUMax(sampling="uniform", n_hard_negatives=0, n_negatives=5, **common)),
            ("raman", SampledSoftmax("raman", **common)),
        ):
            points = follow(_at(model, rate), X, positions, epochs, (epochs,), False)
            row[key] = points[-1]["log_loss"] if points else None
        if row["ours"] is not None and row["raman"] is not None:
            row["times"] = row["raman"] / row["ours"]
        rows.append(row)
    return rows


def time_epochs(name: str, X: Any, y: np.ndarray, epochs: int) -> dict[str, Any]:
    """Return CPU seconds of some epochs by method, with one instance a step: table 4.

    Parameters
    ----------
    name, X, y, epochs
        As of ``choose_rates``.

    Returns
    -------
    dict
        See ``RUNTIMES_COLUMNS``; the ratio in numpy is of 1,000 steps.
    """
    positions = _positions(y)
    row: dict[str, Any] = {"set": name}
    if name in PAPER_SECONDS:
        implicit, others = PAPER_SECONDS[name]
        row |= {
            "paper_implicit": implicit, "paper_others": others, "paper_ratio": others / implicit,
        }  # fmt: skip
    for key, (_, model) in _models(epochs).items():
        if hasattr(model, "batch_size") and key in TWICE:
            model.set_params(batch_size=1)
        _at(model, RATES.get(name, {}).get(key, 1.0))
        follow(model, X, positions, 1, (), False)  # compiled, or loaded
        began = process_time()
        follow(model, X, positions, epochs, (), False)
        row[key] = process_time() - began
    row["ratio"] = row["umax"] / row["implicit"]
    order = np.random.default_rng(0).permutation(len(positions))[:_NUMPY_STEPS]
    W, u = np.zeros((1 + int(positions.max()), X.shape[1])), np.zeros(len(positions))
    rng, began = np.random.default_rng(0), process_time()
    umax_steps(X, positions, W.copy(), u.copy(), order, 0.1, 5, 1.0, rng)
    middle = process_time()
    implicit_steps(X, positions, W, u, order, 1.0, rng)
    row["numpy_ratio"] = (middle - began) / (process_time() - middle)
    return row


def report_formulations(rows: Sequence[dict[str, Any]], report: Report) -> None:
    """Show figure 3 as a table, with the mean ratio that the paper has."""
    report.table("U-max by its double sum: training log-loss", rows, FORMULATIONS_COLUMNS)
    for name in dict.fromkeys(row["set"] for row in rows):
        times = [row["times"] for row in rows if row["set"] == name and "times" in row]
        if times:
            report.line(
                f"{name}: mean of {len(times)} rates {np.mean(times):.2f}, the paper on Eurlex 3.08"
            )


def draw_epochs(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw the log-loss as reported by epochs and by CPU seconds, a row of panels per set.

    Parameters
    ----------
    rows : sequence of dict
        Of ``follow_epochs``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure  # without pyplot: no global state, no window

    names = list(dict.fromkeys(row["set"] for row in rows))
    figure = Figure(figsize=(9.6, 3.6 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 2, squeeze=False)
    for name, pair in zip(names, axes, strict=True):
        for ax, key, label in zip(
            pair, ("epochs", "cpu_s"), ("epochs", "CPU seconds of training"), strict=True
        ):
            for method, (colour, marker) in _LOOKS.items():
                of_method = [r for r in rows if (r["set"], r["key"]) == (name, method)]
                if of_method:
                    ax.plot(
                        [r[key] for r in of_method], [r["reported"] for r in of_method],
                        color=colour, marker=marker, markersize=5, label=of_method[0]["method"],
                    )  # fmt: skip
            ax.set_xlabel(label)
            ax.set_ylabel("log-loss, as reported")
            ax.set_title(name, fontsize=11)
            ax.grid(alpha=0.3)
            if key == "cpu_s":
                ax.set_xscale("log")
                ax.xaxis.set_major_formatter("{x:g}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure

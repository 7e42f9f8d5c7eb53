"""Speed and progress of training by gradient, for the decomposition experiment."""

from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np

from asv_bench.common.measure import cpu_seconds
from asv_bench.common.report import Report
from asv_bench.decomposition.gradients import gradients_of, relative_errors
from asv_bench.decomposition.training import Training, held_out, mean_loss, warm_up
from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.decomposition.training import Trainer
from sklearn_xc.gradients import Batch, GradientMethod, LabelGradient, MessagePassing
from sklearn_xc.gradients.exact import Exact
from sklearn_xc.metrics import precision_at_k
from sklearn_xc.mips.protocol import Candidates
from sklearn_xc.parallel.row_ranges import one_blas_thread
from sklearn_xc.parallel.team import Team

#: What is compared, by key.
METHODS = {
    "exact": "exact",
    "sampled": "sampled",
    "mips": "MIPS, spherical clusters",
    "decomp_mips": "decomposed search",
}
#: How often some mini-batches are timed together before it counts, and at least after that.
_WARM_UP, _LEAST = 1, 2
#: Of a budget, where curves have their points.
_POINTS = (1 / 30, 1 / 15, 2 / 15, 1 / 3, 2 / 3, 1.0)
#: Mini-batches between looks at the clock.
_BATCHES_A_LOOK = 20


class _Timed(GradientMethod):
    """A way to the gradient, with a clock for what it does."""

    def __init__(self, method: GradientMethod) -> None:
        self._method = method
        self.search_s, self.update_s = 0.0, 0.0

    @property
    def looks_ahead(self) -> bool:  # type: ignore[override]
        """As of the method."""
        return self._method.looks_ahead

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates | None:
        """Return labels that may matter."""
        found, seconds = cpu_seconds(self._method.search, W, V, team)
        self.search_s += seconds
        return found

    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        gradient, seconds = cpu_seconds(self._method.of, W, batch, found, team)
        self.search_s += seconds
        return gradient

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Take notice that some rows of W have moved so far."""
        _, seconds = cpu_seconds(self._method.moved, rows, lengths)
        self.update_s += seconds


def compare_speed(
    state: Training, X_test: np.ndarray, y_test: np.ndarray, n_instances: int, n_batches: int,
    most_s: float,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return CPU times of steps from one state, and gradient errors in it.

    Parameters
    ----------
    state : Training
        Every method goes on from here, with the same instances.
    X_test, y_test : ndarray
        Held-out instances, one class each.
    n_instances : int
        By how many of them errors are measured.
    n_batches : int
        Mini-batches that are timed.
    most_s : float
        CPU seconds after which no further one is.

    Returns
    -------
    list of dict
        A row per method, times in milliseconds: key, method, n_labels, n_candidates, error,
        step_ms (a mini-batch), search_ms and update_ms (parts of it: the gradient by the scores,
        re-indexing), moved (rows of W), build_s (of the index), builds (in an epoch), build_ms and
        average_ms (builds, averages of the weights, for a mini-batch, over an epoch), instance_ms
        (all, for an instance), ratio, speed.
    """
    n_labels = state.n_labels
    usual, few = max(1, round(n_labels / 100)), max(1, round(n_labels / 1000))
    ways: list[tuple[str, str, dict[str, Any]]] = [
        (key, method, {"gradient": key, "n_candidates": usual}) for key, method in METHODS.items()
    ]
    ways.append(("few", METHODS["decomp_mips"], {"gradient": "decomp_mips", "n_candidates": few}))
    ways.append(
        (
            "alg2", "algorithm 2, T = 1, spherical blocks",
            {"gradient": MessagePassing(n_rounds=1), "n_candidates": usual},
        )
    )  # fmt: skip
    batch = held_out(X_test, y_test, n_instances, state.label_vectors)
    exact = gradients_of(Exact(state.loss), state.label_vectors, batch)
    rows: list[dict[str, Any]] = []
    for key, method, parameters in ways:
        training = state.fork(**parameters)
        row: dict[str, Any] = {"key": key, "method": method, "n_labels": n_labels}
        if key != "exact":
            row["n_candidates"] = parameters["n_candidates"]
        row |= time_steps(training, n_batches, most_s, batch, exact)
        row["ratio"] = row["instance_ms"] / (rows[0] if rows else row)["instance_ms"]
        row["speed"] = 1 / row["ratio"]
        rows.append(row)
    return rows


def time_steps(
    training: Training, n_batches: int, most_s: float, batch: Batch, exact: Sequence[Any]
) -> dict[str, Any]:
    """Return the times of one method; see ``compare_speed``."""
    moving, guide = training.trainer, training.trainer.guide
    W, size = moving.weights.values, moving.batch_size
    times, counts = [], []
    build_s = 0.0
    with one_blas_thread(), Team(1) as team:
        method = guide.method(moving.weights, False)  # compiled, and its index built
        if guide.recall is not None:
            _, build_s = cpu_seconds(method.build, W)
        error = float(relative_errors(exact, gradients_of(method, W, batch)).mean())
        began = process_time()
        for number in range(_WARM_UP + -(-n_batches * size // moving.n_ahead)):
            timed, seconds, n_moved = _Timed(method), 0.0, 0
            rows = training.next_rows(moving.n_ahead)
            n_together = len(rows) if method.looks_ahead else size
            for first in range(0, len(rows), n_together):
                steps, spent = cpu_seconds(
                    list, moving.steps(timed, rows[first : first + n_together], team)
                )
                seconds += spent
                n_moved += sum(step.n_moved for step in steps)
            if number >= _WARM_UP:
                n = len(rows) / size
                times.append((seconds / n, timed.search_s / n, timed.update_s / n))
                counts.append(n_moved / n)
            if process_time() - began > most_s and len(times) >= _LEAST:
                break
    step, search, update = 1e3 * np.array(times).T
    # Once in a while an index is arranged anew, which a median would not see.
    update_ms, search_ms = update.mean(), np.median(search)
    step_ms = np.median(step - update) + update_ms
    moved = float(np.mean(counts))
    batches = training.n_visits / size
    builds = builds_of(moved * batches, len(W)) if build_s else 0
    build_ms = 1e3 * builds * build_s / batches
    look_s = _time_of_look(moving)
    average_ms = 1e3 * look_s * size / moving.averages.interval
    return {
        "error": error, "step_ms": step_ms, "search_ms": search_ms, "update_ms": update_ms,
        "moved": moved, "build_s": build_s or None, "builds": builds or None,
        "build_ms": build_ms, "average_ms": average_ms,
        "instance_ms": (step_ms + build_ms + average_ms) / size,
    }  # fmt: skip


def _time_of_look(trainer: Trainer) -> float:
    """Return the CPU seconds of bringing averages up to date, the second time."""
    seconds = 0.0
    for further in (1, 2):
        _, seconds = cpu_seconds(trainer.averages.look, trainer.visits + further)
    return seconds


def builds_of(n_moved: float, n_labels: int) -> int:
    """Return how often an index is built while so many rows move, by the rule of ``Guide``."""
    builds, at = 1, float(n_labels)
    while at < n_moved:
        builds, at = builds + 1, 1.3 * at + n_labels
    return builds


def follow_epochs(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, *, rate: float,
    epochs: int, sampled: float, n_instances: int, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return training loss and held-out accuracy after each epoch.

    Parameters
    ----------
    X, y, X_test, y_test : ndarray
        Dense instances, one class each.
    rate : float
        The learning rate of all methods, which visit instances in one order.
    epochs : int
    sampled : float
        Epochs of sampled steps at the beginning, of all methods; exact steps are also followed
        without them, and those of the decomposed search without an average of the weights.
    n_instances : int
        Training instances by which the loss over all labels is measured.
    report : Report
        Where to show the points as they come.

    Returns
    -------
    list of dict
        A row per point: key, method, epoch, loss, accuracy, cpu_s.
    """
    ways = [(key, method, key, sampled, True) for key, method in METHODS.items()]
    ways.append(("exact_only", "exact from the start", "exact", 0.0, True))
    ways.append(("last", "decomposed search, last step", "decomp_mips", sampled, False))
    rows = []
    for key, method, gradient, n_sampled, average in ways:
        model = DecompMIPSClassifier(
            gradient=gradient, learning_rate=rate, sampled_epochs=n_sampled, average=average,
            random_state=0,
        )  # fmt: skip
        warm_up(model, X, y)
        training = Training(model, X, y)
        seen = training.batch(training.some_rows(n_instances))
        for epoch in range(1, epochs + 1):
            training.advance(training.n_visits)
            model = training.answer()
            with Team(1) as team:
                loss = mean_loss(training.averages, seen, training.loss, team)
            accuracy = accuracies(model, X_test, y_test)["P@1"]
            rows.append(
                {
                    "key": key, "method": method, "epoch": epoch, "loss": loss,
                    "accuracy": accuracy, "cpu_s": training.cpu_s,
                }
            )  # fmt: skip
            report.line(
                f"{method}, epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.4f}, "
                f"{training.cpu_s:,.1f} s"
            )
    return rows


def follow_time(
    name: str, X: Any, y: Any, X_test: Any, y_test: Any, *, methods: Sequence[str],
    choices: Sequence[dict[str, float]], budget: float, sampled: float, report: Report,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return held-out accuracy against CPU seconds of training.

    Parameters
    ----------
    name : str
        Of the set.
    X, y, X_test, y_test : array-like or sparse
        Training and held-out instances; y are classes or a sparse indicator.
    methods : sequence of str
        Keys of ``METHODS``.
    choices : sequence of dict
        Parameters of the model, "learning_rate" and "alpha" among them: a curve for each.
    budget : float
        CPU seconds of the last point.
    sampled : float
        Epochs of sampled steps at the beginning.
    report : Report
        Where to show the points as they come.

    Returns
    -------
    list of dict
        A row per point: set, key, method, the parameters, cpu_s, epochs, and P@1 (and P@3, P@5
        for an indicator); a curve that diverges ends.
    """
    rows = []
    for key in methods:
        for choice in choices:
            model = DecompMIPSClassifier(
                gradient=key, sampled_epochs=sampled, random_state=0, **choice
            )
            warm_up(model, X, y)
            training = Training(model, X, y)
            words = f"rate {choice['learning_rate']:g}, alpha {choice['alpha']:g}"
            for _ in _moments(training, budget):
                point = {
                    "set": name, "key": key, "method": METHODS[key], **choice,
                    "cpu_s": training.cpu_s, "epochs": training.visits / training.n_visits,
                    **accuracies(training.answer(), X_test, y_test),
                }  # fmt: skip
                rows.append(point)
                found = ", ".join(f"{k} {v:.4f}" for k, v in point.items() if k.startswith("P@"))
                report.line(
                    f"{name}, {METHODS[key]}, {words}, {point['cpu_s']:,.0f} s, "
                    f"{point['epochs']:.3g} epochs: {found}"
                )
            if training.diverged:
                report.line(f"{name}, {METHODS[key]}, {words}: diverged")
    return rows


def _moments(training: Training, budget: float) -> Iterator[float]:
    """Train, and stop where a point of the curve is due."""
    for share in _POINTS:
        while training.cpu_s < share * budget:
            training.advance(_BATCHES_A_LOOK * training.trainer.batch_size)
            if training.diverged:
                return
        yield share


def accuracies(model: DecompMIPSClassifier, X_test: Any, y_test: Any) -> dict[str, float]:
    """Return P@1 for classes, and P@1, P@3 and P@5 for an indicator."""
    ks = (1,) if getattr(y_test, "ndim", 2) == 1 else (1, 3, 5)
    labels, _ = model.predict_topk(X_test, max(ks))
    if ks == (1,):
        return {"P@1": float((model.classes_[labels[:, 0]] == y_test).mean())}
    precision: Callable[..., Any] = precision_at_k
    return {f"P@{k}": float(precision(y_test, labels, k=k)) for k in ks}

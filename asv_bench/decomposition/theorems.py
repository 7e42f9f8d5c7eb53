"""What theorems 1 and 2 of loss decomposition promise, beside what comes out."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np

from asv_bench.common.report import Column, Report
from asv_bench.decomposition.training import train_state
from sklearn_xc.losses import MaxMargin

#: Blocks of columns, mu, and the gradients up to which labels are left alone.
N_BLOCKS, SMOOTHING, TAUS = 8, 1.0, (0.0, 1e-3)
ROUNDS = (1, 2, 4, 8, 16, 32, 64)
#: Messages drawn at random for each instance.
_DRAWN = 20

_FIRST = [
    Column("what", "theorem 1, over all instances"),
    Column("value", "value", ".2e"),
]
_SECOND = [
    Column("tau", "tau_2", "g"),
    Column("rounds", "rounds"),
    Column("gap", "mean gap", ".2e"),
    Column("bound", "mean bound", ".2e"),
    Column("worst", "largest gap / bound", ".1e"),
    Column("left", "|M* - M| / |M*|", ".4f"),
    Column("left_all", "2 / ((t + 1) (t + 2))", ".4f"),
    Column("error", "error of the gradient", ".3f"),
]


class Blocks(NamedTuple):
    """An instance's scores by block of columns, its own label first.

    Attributes
    ----------
    scores : ndarray of float64 of shape (n_blocks, n_labels)
    """

    scores: np.ndarray

    @property
    def targets(self) -> np.ndarray:
        """The messages of the optimum, (n_blocks, n_labels)."""
        return self.scores.mean(axis=0) - self.scores

    def objective(self, messages: np.ndarray) -> tuple[float, np.ndarray]:
        """Return G, equation 12, and the gradient of each block's loss, (n_blocks, n_labels)."""
        n_blocks = len(self.scores)
        found = [loss_of(n_blocks * row) for row in self.scores + messages]
        return float(np.mean([loss for loss, _ in found])), np.array([g for _, g in found])


_gradient = numba.njit(MaxMargin(SMOOTHING).gradient)


def loss_of(scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the smoothed max-margin loss of scores, the positive first, and its gradient."""
    n = len(scores)
    out = np.empty(n)
    loss, _ = _gradient(scores, 1, n, (SMOOTHING,), out, np.empty(2 * n))
    return float(loss), out


def pass_messages(blocks: Blocks, tau: float, rounds: Sequence[int]) -> list[np.ndarray]:
    """Return the messages of algorithm 2, all labels retrieved, after some numbers of rounds."""
    targets, messages = blocks.targets, np.zeros_like(blocks.scores)
    found = []
    for t in range(1, max(rounds) + 1):
        gradients = np.abs(blocks.objective(messages)[1])
        active = (gradients > tau).any(axis=0) if tau else np.ones(messages.shape[1], bool)
        step = 2 / (t + 2)
        messages[:, active] += step * (targets - messages)[:, active]
        if t in rounds:
            found.append(messages.copy())
    return found


def measure_theorems(made: Any, n_instances: int, report: Report) -> list[dict[str, Any]]:
    """Compare the objective of messages with its optimum, and its gap with the bound.

    Parameters
    ----------
    made : Bunch
        Of ``make_hierarchical_classes``.
    n_instances : int
        Held-out instances.
    report : Report

    Returns
    -------
    list of dict
        A row for each number of theorem 1, and one for each threshold and number of rounds: tau,
        rounds, gap, bound (means over instances), worst (ratio), left, left_all, error.

    Notes
    -----
    The bound is that of the recursion (13), ``2 B |M*|^2 / (mu (t + 2)) + tau_2 |M*|_1``, with the
    messages M; the printed one has ``2 ln t`` before tau_2, which is nothing for t = 1.
    """
    training, words = train_state(
        made.X_train, made.y_train, rate=0.3, sampled=0.2, gradient="decomp_mips", further=0.3,
        most_s=60.0,
    )  # fmt: skip
    W = training.label_vectors.astype(np.float64)
    report.line()
    report.line(f"{len(W):,} labels: {words}; {n_instances} held-out instances, {N_BLOCKS} blocks")
    rng = np.random.default_rng(0)
    columns = np.array_split(np.arange(made.X_test.shape[1]), N_BLOCKS)
    intercepts = W[:, made.X_test.shape[1] :].sum(axis=1)
    distance, least = 0.0, np.inf
    rows: dict[tuple[float, int], list[tuple[float, ...]]] = {}
    for x, own in zip(made.X_test[:n_instances], made.y_test[:n_instances], strict=True):
        order = np.r_[own, np.delete(np.arange(len(W)), own)]
        scores = np.array([W[:, part] @ x[part] for part in columns])
        scores += intercepts / N_BLOCKS
        blocks = Blocks(scores[:, order])
        whole, exact = loss_of(blocks.scores.sum(axis=0))
        targets = blocks.targets
        best = blocks.objective(targets)[0]
        distance = max(distance, abs(best - whole))
        for _ in range(_DRAWN):
            drawn = rng.standard_normal(targets.shape) * rng.random() * np.abs(targets).mean()
            drawn -= drawn.mean(axis=0)
            centre = targets if rng.random() < 0.5 else 0.0
            least = min(least, blocks.objective(centre + drawn)[0] - whole)
        square, absolute = float((targets**2).sum()), float(np.abs(targets).sum())
        for tau in TAUS:
            for t, messages in zip(ROUNDS, pass_messages(blocks, tau, ROUNDS), strict=True):
                value, gradients = blocks.objective(messages)
                bound = 2 * N_BLOCKS * square / (SMOOTHING * (t + 2)) + tau * absolute
                left = np.linalg.norm(targets - messages) / np.sqrt(square)
                error = np.linalg.norm(gradients.mean(axis=0) - exact)
                norm = np.linalg.norm(exact)
                rows.setdefault((tau, t), []).append(
                    (value - best, bound, left, error / norm if norm > 0 else np.nan)
                )
    first = [
        {"what": "largest |G(M*) - L(z)|", "value": distance},
        {"what": f"least G(M) - L(z), {_DRAWN * n_instances} drawn M", "value": least},
    ]
    second = []
    for (tau, t), found in rows.items():
        gap, bound, left, error = np.array(found).T
        second.append(
            {
                "tau": tau, "rounds": t, "gap": gap.mean(), "bound": bound.mean(),
                "worst": (gap / bound).max(), "left": left.mean(),
                "left_all": 2 / ((t + 1) * (t + 2)), "error": float(np.nanmean(error)),
            }
        )  # fmt: skip
    report.table("Theorem 1", first, _FIRST)
    report.table("Theorem 2", second, _SECOND)
    report.line()
    report.line(
        "M: messages, M* those of the optimum; gap: G(M) - G(M*); bound: 2 B |M*|^2 / (mu (t + 2)) "
        "+ tau_2 |M*|_1."
    )
    return [{"part": "theorems", **row} for row in [*first, *second]]

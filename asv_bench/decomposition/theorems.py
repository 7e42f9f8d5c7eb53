"""Gradients of the smoothed max-margin loss from searches and from messages, in plain numpy.

The paper's theorems 1 and 2 on one gradient, and the errors of gradients over the labels that a
search retrieves, for held-out instances of one class each.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from asv_bench.common.report import Report
from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.search import make_index

#: Blocks of columns, mu, and the gradients up to which labels are left alone.
N_BLOCKS, SMOOTHING, TAUS = 8, 1.0, (0.0, 1e-3)
ROUNDS = (1, 2, 4, 8, 16, 32, 64)
#: Labels retrieved, as shares of all.
_SHARES = (0.001, 0.005, 0.01, 0.05)
#: Messages drawn at random for each instance.
_DRAWN = 20


def loss_of(scores: np.ndarray, mu: float = SMOOTHING) -> tuple[float, np.ndarray]:
    """Return the smoothed max-margin loss of scores, the positive first, and its gradient.

    With c = z - z_0 + 1 of the negatives, the gradient a = max(c - level, 0) / mu has a sum s of at
    most 1, and the level is mu s, or above it where s = 1.
    """
    c = scores[1:] - scores[0] + 1.0
    if not len(c):
        return 0.0, np.zeros(1)
    ordered = np.sort(c)[::-1]
    sums, count = np.cumsum(ordered), np.arange(1, len(c) + 1)
    full, free = (sums - mu) / count, sums / (count + 1)
    level = full[np.flatnonzero(ordered > full)[-1]]
    if level < mu:  # the sum is below 1
        wet = np.flatnonzero(ordered > free)
        level = free[wet[-1]] if len(wet) else 0.0
    a = np.maximum(c - max(level, 0.0), 0.0) / mu
    s = a.sum()
    return float(a @ c - mu / 2 * (a @ a + s * s)), np.concatenate([[-s], a])


class Blocks(NamedTuple):
    """An instance's scores by block of columns, its own label first: (n_blocks, n_labels)."""

    scores: np.ndarray

    @property
    def targets(self) -> np.ndarray:
        """The messages of the optimum, (n_blocks, n_labels)."""
        return self.scores.mean(axis=0) - self.scores

    def objective(self, messages: np.ndarray) -> tuple[float, np.ndarray]:
        """Return G, equation 12, and the gradient of each block's loss, (n_blocks, n_labels)."""
        found = [loss_of(len(self.scores) * row) for row in self.scores + messages]
        return float(np.mean([loss for loss, _ in found])), np.array([g for _, g in found])


def pass_messages(blocks: Blocks, tau: float, rounds: Sequence[int]) -> list[np.ndarray]:
    """Return the messages of algorithm 2, all labels retrieved, after some numbers of rounds."""
    targets, messages = blocks.targets, np.zeros_like(blocks.scores)
    found = []
    for t in range(1, max(rounds) + 1):
        gradients = np.abs(blocks.objective(messages)[1])
        active = (gradients > tau).any(axis=0) if tau else np.ones(messages.shape[1], bool)
        messages[:, active] += 2 / (t + 2) * (targets - messages)[:, active]
        if t in rounds:
            found.append(messages.copy())
    return found


def _trained(made: Any) -> np.ndarray:
    """Return label vectors after an epoch, float64, without intercepts."""
    model = DecompMIPSClassifier(
        learning_rate=0.3, max_iter=1, fit_intercept=False, n_jobs=1, random_state=0
    )
    return np.asarray(model.fit(made.X_train, made.y_train).coef_, np.float64)


def measure_theorems(made: Any, n_instances: int, report: Report) -> list[dict[str, Any]]:
    """Compare the objective of messages with its optimum, and its gap with the bound.

    The bound is that of the recursion (13), ``2 B |M*|^2 / (mu (t + 2)) + tau_2 |M*|_1``, with the
    messages M; the printed one has ``2 ln t`` before tau_2, which is nothing for t = 1.
    """
    W, rng = _trained(made), np.random.default_rng(0)
    columns = np.array_split(np.arange(W.shape[1]), N_BLOCKS)
    distance, least = 0.0, np.inf
    rows: dict[tuple[float, int], list[tuple[float, ...]]] = {}
    for x, own in zip(made.X_test[:n_instances], made.y_test[:n_instances], strict=True):
        order = np.r_[own, np.delete(np.arange(len(W)), own)]
        blocks = Blocks(np.array([W[:, part] @ x[part] for part in columns])[:, order])
        whole, exact = loss_of(blocks.scores.sum(axis=0))
        targets = blocks.targets
        best = blocks.objective(targets)[0]
        distance = max(distance, abs(best - whole))
        for _ in range(_DRAWN):
            drawn = rng.standard_normal(targets.shape) * rng.random() * np.abs(targets).mean()
            centre = targets if rng.random() < 0.5 else 0.0
            moved = centre + drawn - drawn.mean(axis=0)
            least = min(least, blocks.objective(moved)[0] - whole)
        square, absolute = float((targets**2).sum()), float(np.abs(targets).sum())
        for tau in TAUS:
            for t, messages in zip(ROUNDS, pass_messages(blocks, tau, ROUNDS), strict=True):
                value, gradients = blocks.objective(messages)
                bound = 2 * N_BLOCKS * square / (SMOOTHING * (t + 2)) + tau * absolute
                left = np.linalg.norm(targets - messages) / np.sqrt(square)
                error = np.linalg.norm(gradients.mean(axis=0) - exact)
                relative = error / max(np.linalg.norm(exact), 1e-30)
                rows.setdefault((tau, t), []).append((value - best, bound, left, relative))
    first = [
        {"theorem 1, over all instances": "largest |G(M*) - L(z)|", "value": distance},
        {"theorem 1, over all instances": "least G(M) - L(z)", "value": least},
    ]
    second = []
    for (tau, t), found in rows.items():
        gap, bound, left, error = np.array(found).T
        row = {"tau_2": tau, "rounds": t, "mean gap": gap.mean(), "mean bound": bound.mean()}
        row |= {"largest gap / bound": (gap / bound).max(), "|M* - M| / |M*|": left.mean()}
        row |= {"2 / ((t + 1) (t + 2))": 2 / ((t + 1) * (t + 2))}
        second.append(row | {"error of the gradient": error.mean()})
    report.table(f"Theorem 1, {len(W):,} labels", first)
    report.table("Theorem 2", second)
    return [*first, *second]


def measure_errors(made: Any, n_instances: int, report: Report) -> list[dict[str, Any]]:
    """Compare gradients over retrieved labels with exact ones, by search and labels retrieved.

    "scored" gradients are of the exact scores of the labels that some block has found. "algorithm
    2" takes one round of messages; as printed, labels that no block has found have a score of 0,
    the other row leaves them out. tau_1 is such that Q labels exceed it, in the mean over blocks.
    """
    W = _trained(made)
    X = np.ascontiguousarray(made.X_test[:n_instances], np.float64)
    edges = np.linspace(0, W.shape[1], N_BLOCKS + 1).astype(int)
    columns = [slice(a, b) for a, b in pairwise(edges)]
    rng = np.random.default_rng(0)
    exact = [_over(W @ x, y, np.arange(len(W))) for x, y in zip(X, made.y_test, strict=False)]
    rows = []
    for kind in ("product", "spherical", "exact"):
        whole, blocks = make_index(kind), [make_index(kind) for _ in columns]
        whole.build(W)
        for block, part in zip(blocks, columns, strict=True):
            block.build(W, part.start, part.stop)
        for share in _SHARES:
            n = max(1, round(share * len(W)))
            of_whole = _labels(whole.query(X, n))
            parts = [np.ascontiguousarray(X[:, part]) for part in columns]
            of_blocks = [_labels(b.query(V, n)) for b, V in zip(blocks, parts, strict=True)]
            unions = [np.unique(np.concatenate(found)) for found in zip(*of_blocks, strict=True)]
            drawn = [rng.choice(len(W), n, replace=False) for _ in X]
            ways = {"random": drawn, "whole vectors": of_whole, "blocks, scored": unions}
            for name, retrieved in ways.items():
                found = [_over(W @ x, y, k) for x, y, k in _with(X, made.y_test, retrieved)]
                rows.append(_error_row(f"{kind}: {name}", n, exact, found, retrieved))
            data, of_each = (W, X, made.y_test, columns), list(zip(*of_blocks, strict=True))
            rows += _algorithm_2(kind, n, data, of_each, exact)
            if kind == "exact":
                scores = np.abs([V @ W[:, part].T for V, part in zip(parts, columns, strict=True)])
                tau = np.quantile(scores, 1 - share)
                above = [[np.flatnonzero(z) for z in one] for one in (scores > tau).swapaxes(0, 1)]
                rows += _algorithm_2("|z| > tau_1", n, data, above, exact)
    report.table(f"Gradients from Q labels a query, {len(W):,} labels", rows)
    return rows


def _with(X: np.ndarray, y: np.ndarray, retrieved: Sequence[np.ndarray]) -> Any:
    return zip(X, y[: len(X)], retrieved, strict=True)


def _labels(found: Any) -> list[np.ndarray]:
    return [row[:n].copy() for row, n in zip(found.labels, found.counts, strict=True)]


def _over(scores: np.ndarray, own: int, labels: np.ndarray) -> np.ndarray:
    """Return the gradient by all labels if only some labels and the own one are looked at."""
    labels = np.r_[own, labels[labels != own]]
    out = np.zeros(len(scores))
    out[labels] = loss_of(scores[labels])[1]
    return out


def _algorithm_2(kind: str, n: int, data: Any, found: Any, exact: Any) -> list[dict[str, Any]]:
    """Return the rows of algorithm 2 with one round, from the labels that blocks have found."""
    (W, X, y, columns), rows = data, []
    unions = [np.unique(np.concatenate(one)) for one in found]
    for absent, is_left_out in (("left out", True), ("as printed", False)):
        gradients = []
        for x, own, one, union in zip(X, y, found, unions, strict=False):
            labels = np.r_[own, np.setdiff1d(union if is_left_out else range(len(W)), own)]
            kept = np.array([np.isin(labels, [own, *block]) for block in one])
            blocks = Blocks(kept * np.array([W[labels, part] @ x[part] for part in columns]))
            slopes = blocks.objective(pass_messages(blocks, TAUS[1], (1,))[0])[1].mean(axis=0)
            gradients.append(np.bincount(labels, slopes, len(W)))
        rows += [_error_row(f"{kind}: algorithm 2, T = 1, {absent}", n, exact, gradients, unions)]
    return rows


def _error_row(
    name: str,
    n: int,
    exact: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    retrieved: Sequence[np.ndarray],
) -> dict[str, Any]:
    errors, masses = [], []
    for truth, other, labels in zip(exact, found, retrieved, strict=True):
        negatives = np.maximum(truth, 0)
        if negatives.any():
            errors.append(np.linalg.norm(truth - other) / np.linalg.norm(truth))
            masses.append(negatives[labels].sum() / negatives.sum())
    row = {"search": name, "Q": n, "retrieved": float(np.mean([len(k) for k in retrieved]))}
    return row | {"mass": float(np.mean(masses)), "error": float(np.mean(errors))}

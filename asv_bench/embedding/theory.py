"""Theorems 1 and 3 of NGAME where their conditions hold, for the NGAME experiment."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize

from asv_bench.common.figures import log_axis, panels, with_legend
from asv_bench.common.report import Column, Report
from asv_bench.embedding.batches import Embedded, measure_misses
from sklearn_xc.samplers import balanced_clusters
from sklearn_xc.samplers.protocol import Positives

#: Of the instances of equal degrees: topics, labels of a topic, instances of a label, labels of an
#: instance, dimension, and the norm of what tells labels of a topic and instances apart.
_TOPICS, _LABELS, _PER_LABEL, _PER_INSTANCE, _DIM, _NOISE = 100, 20, 10, 2, 64, 0.35
#: Of the training by full gradients: instances, topics, labels, features, dimension; and the
#: margin, the radius and the temperature of the surrogate.
_N, _N_TOPICS, _N_LABELS, _N_FEATURES, _N_DIM = 240, 8, 48, 40, 16
MARGIN, RADIUS, TEMPERATURE = 0.3, 1.0, 10.0
#: Steps of which a table has the norms.
_SHOWN = (1, 10, 100, 1000, 10_000)

_STEP_COLUMNS = [
    Column("clusters", "clusters of"),
    Column("steps", "steps T", ","),
    Column("objective", "objective", ".3e"),
    Column("norm", "smallest norm", ".2e"),
    Column("bias", "largest bias / norm", ".2f"),
    Column("proved", "O(1 / sqrt(T)), as proved", ".2e"),
    Column("printed", "O(1 / T), as printed", ".2e"),
    Column("missed", "hard terms missed", ".1%"),
]


def equal_degrees(seed: int) -> Embedded:
    """Return made embeddings in which all instances, and all labels, have equally many of each.

    Labels lie around the centre of their topic, and instances around the mean of their two labels.

    Parameters
    ----------
    seed : int

    Returns
    -------
    Embedded
    """
    rng = np.random.default_rng(seed)

    def noise(n: int) -> np.ndarray:
        return _NOISE * rng.standard_normal((n, _DIM)) / np.sqrt(_DIM)

    centres = normalize(rng.standard_normal((_TOPICS, _DIM)))
    W = normalize(np.repeat(centres, _LABELS, axis=0) + noise(_TOPICS * _LABELS))
    per_topic = _LABELS * _PER_LABEL // _PER_INSTANCE
    k = np.arange(per_topic)
    pairs = np.column_stack([k % _LABELS, (k + 1 + k // _LABELS) % _LABELS])
    labels = np.concatenate([pairs + topic * _LABELS for topic in range(_TOPICS)])
    labels = np.sort(labels[rng.permutation(len(labels))], axis=1).astype(np.int32)
    V = normalize(W[labels].mean(axis=1) + noise(len(labels)))
    indptr = np.arange(0, labels.size + 1, _PER_INSTANCE, dtype=np.int64)
    positives = Positives(indptr, labels.ravel())
    return Embedded("made, equal degrees", V.astype(np.float32), W.astype(np.float32), positives, 0)


def measure_equal_degrees(
    sizes: Sequence[int], radii: Sequence[float], seed: int, report: Report
) -> list[dict[str, Any]]:
    """Count missed hard negatives where theorem 1 has constants of at most 1; see Corollary 2."""
    embedded = equal_degrees(seed)
    report.line()
    report.line(
        f"{embedded.name}: {len(embedded.V):,} instances of {_PER_INSTANCE} labels each, "
        f"{len(embedded.W):,} labels of {_PER_LABEL} instances each, {_TOPICS} topics"
    )
    rows = measure_misses(embedded, sizes, radii, MARGIN, 400, seed, report)
    return [row | {"part": "equal_degrees"} for row in rows]


class Surrogate(NamedTuple):
    """The objective of theorem 3 for a linear encoder: ``x`` to ``A x / |A x|``.

    Attributes
    ----------
    X, Z : ndarray of shape (n, n_features), (n_labels, n_features)
        Instances and labels.
    Y : ndarray of float of shape (n, n_labels)
        1 where a label is true.
    """

    X: np.ndarray
    Z: np.ndarray
    Y: np.ndarray

    def embed(self, A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return embeddings of instances and labels, and the norms before."""
        V, W = self.X @ A.T, self.Z @ A.T
        v, w = (np.linalg.norm(rows, axis=1, keepdims=True) for rows in (V, W))
        return V / v, W / w, v, w

    def gradients(
        self, A: np.ndarray, cluster: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return the surrogate and its gradient, that of NGAME, and the share of terms missed.

        Parameters
        ----------
        A : ndarray of shape (dim, n_features)
        cluster : ndarray of int of shape (n,)

        Returns
        -------
        objective : float
        gradient, found : ndarray of shape (dim, n_features)
            Of the surrogate; of the terms within the radius that instances of one cluster see.
        missed : float
            Of the terms of hard negatives that push.
        """
        V, W, v, w = self.embed(A)
        n, n_labels = self.Y.shape
        S, is_negative = V @ W.T, self.Y == 0
        scale = 1 / (n * n_labels * self.Y.sum(axis=1).mean())
        excess = np.maximum(S[:, :, None] - S[:, None, :] + MARGIN, 0)  # negative, positive
        excess *= self.Y[:, None, :] * is_negative[:, :, None]
        losses, towards = (excess**2).sum(axis=2), 2 * excess
        apart = np.sqrt(np.maximum(2 - 2 * S, 1e-12))
        decay = np.minimum(np.exp(-TEMPERATURE * (apart - RADIUS)), 1)
        objective = scale * float((losses * decay).sum())
        # Of the decay: apart falls by 1 / apart with S.
        by_decay = np.where(apart > RADIUS, TEMPERATURE * decay / apart, 0) * losses
        is_hard = is_negative & (apart <= RADIUS)
        in_cluster = np.zeros((cluster.max() + 1, n_labels))
        np.maximum.at(in_cluster, cluster, self.Y)
        seen = is_hard & (in_cluster[cluster] > 0)
        gradient = self._by_encoder(A, _by_scores(towards, decay) + by_decay, V, W, v, w)
        found = self._by_encoder(A, _by_scores(towards, seen.astype(float)), V, W, v, w)
        pushes = is_hard & (losses > 0)
        missed = 1 - (seen & pushes).sum() / max(1, pushes.sum())
        return objective, scale * gradient, scale * found, float(missed)

    def _by_encoder(
        self, A: np.ndarray, dS: np.ndarray, V: np.ndarray, W: np.ndarray, v: np.ndarray,
        w: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        dV, dW = dS @ W, dS.T @ V
        dV -= (dV * V).sum(axis=1, keepdims=True) * V
        dW -= (dW * W).sum(axis=1, keepdims=True) * W
        out: np.ndarray = (dV / v).T @ self.X + (dW / w).T @ self.Z
        return out


def _by_scores(towards: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the gradient by all scores, (n, n_labels), of terms that are weighted by negative."""
    weighted = towards * weights[:, :, None]
    out: np.ndarray = weighted.sum(axis=2) - weighted.sum(axis=1)
    return out


def few_topics(seed: int) -> Surrogate:
    """Return made instances and labels, each with noise around the topic of its labels."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((_N_TOPICS, _N_FEATURES))
    of_label = np.repeat(np.arange(_N_TOPICS), _N_LABELS // _N_TOPICS)
    Z = normalize(topics[of_label] + rng.standard_normal((_N_LABELS, _N_FEATURES)))
    own = np.repeat(np.arange(_N_LABELS), _N // _N_LABELS)
    X = normalize(Z[own] + 0.1 * rng.standard_normal((_N, _N_FEATURES)))
    return Surrogate(X, Z, np.eye(_N_LABELS)[own])


def measure_convergence(
    sizes: Sequence[int], n_steps: int, seed: int, report: Report
) -> list[dict[str, Any]]:
    """Follow full gradients with a new clustering at each step, and compare with both bounds.

    Parameters
    ----------
    sizes : sequence of int
        Instances of a cluster; one cluster of all is always there.
    n_steps : int
    seed : int
    report : Report

    Returns
    -------
    list of dict
        A row for each size and some numbers of steps: clusters, steps, objective, norm (the
        smallest so far, of the surrogate's gradient), bias (the largest so far of ``|g - gradient|
        / |gradient|``), proved and printed (bounds on the norm), missed.

    Notes
    -----
    Lemma 7 holds while the bias is less than 1; `proved` is ``sqrt(2 f / (eta (1 - bias) T))`` and
    `printed` its square, with the objective f at the start, as it cannot be less than 0. Both are
    None once the bias has reached 1. Steps are short enough for the largest ratio of a change of
    the gradient to the step that made it.
    """
    problem = few_topics(seed)
    start = np.random.default_rng(seed).standard_normal((_N_DIM, _N_FEATURES))
    start /= np.sqrt(_N_FEATURES)
    step = _step_length(problem, start)
    report.line()
    report.line(
        f"made: {_N} instances, {_N_LABELS} labels, a linear encoder of {start.size} weights; "
        f"squared triplet loss, margin {MARGIN:g}, r = {RADIUS:g}, Lambda = {TEMPERATURE:g}; steps "
        f"{step:.3g} times the gradient"
    )
    shown = [t for t in _SHOWN if t < n_steps] + [n_steps]
    rows: list[dict[str, Any]] = []
    for size in [*sizes, _N]:
        A, least, bias, at_first = start.copy(), np.inf, 0.0, 0.0
        for t in range(1, n_steps + 1):
            V = problem.embed(A)[0]
            cluster = balanced_clusters(V, -(-_N // size), seed, 1)
            objective, gradient, found, missed = problem.gradients(A, cluster)
            norm = float(np.linalg.norm(gradient))
            at_first = at_first or objective
            least = min(least, norm)
            bias = max(bias, float(np.linalg.norm(found - gradient)) / norm)
            if t in shown:
                square = 2 * at_first / (step * (1 - bias) * t) if bias < 1 else None
                rows.append(
                    {
                        "clusters": size, "steps": t, "objective": objective, "norm": least,
                        "bias": bias, "missed": missed, "printed": square,
                        "proved": None if square is None else float(np.sqrt(square)),
                    }
                )  # fmt: skip
            A -= step * found
    report.table("Theorem 3: full gradients, clusters anew at each step", rows, _STEP_COLUMNS)
    report.line()
    report.line(
        "norm: of the gradient of the surrogate, the smallest of all steps so far; bias: of that "
        "of NGAME, relative to it, the largest so far; hard terms missed: at this step."
    )
    report.figure(draw_convergence(rows), "ngame_convergence")
    return [{"part": "convergence", **row} for row in rows]


def _step_length(problem: Surrogate, start: np.ndarray) -> float:
    """Return a quarter of the inverse of the largest curvature met along the first steps."""
    one = np.zeros(len(problem.X), np.int64)
    A, largest = start.copy(), 1e-12
    _, gradient, _, _ = problem.gradients(A, one)
    for _ in range(100):
        move = -gradient * 0.01 / np.linalg.norm(gradient)
        A = A + move
        _, after, _, _ = problem.gradients(A, one)
        largest = max(largest, np.linalg.norm(after - gradient) / np.linalg.norm(move))
        gradient = after
    return float(0.25 / largest)


def draw_convergence(rows: Sequence[dict[str, Any]]) -> Any:
    """Draw the smallest norm against steps, and the rate that is proved.

    Parameters
    ----------
    rows : sequence of dict
        Of ``measure_convergence``.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, (ax,) = panels(1)
    sizes = list(dict.fromkeys(row["clusters"] for row in rows))
    looks = [("#000000", "o"), ("#0072B2", "D"), ("#E69F00", "s"), ("#009E73", "^")]
    for size, (colour, marker) in zip(sizes[::-1], looks * len(sizes), strict=False):
        own = [row for row in rows if row["clusters"] == size]
        name = "one cluster" if size == sizes[-1] else f"clusters of {size}"
        norms = [row["norm"] for row in own]
        ax.plot([row["steps"] for row in own], norms, color=colour, marker=marker, label=name)
    steps = np.array(sorted({row["steps"] for row in rows}))
    first = max(row["norm"] for row in rows)
    ax.plot(steps, first / np.sqrt(steps), ":", color="#7F7F7F", label="1 / sqrt(T)")
    log_axis(ax, "x")
    ax.set_yscale("log")
    ax.set_xlabel("steps T")
    ax.set_ylabel("smallest norm of the gradient so far")
    return with_legend(figure, ax)

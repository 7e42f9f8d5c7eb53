"""Theorems 1 and 3 of NGAME where their conditions hold, for the NGAME experiment."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from asv_bench.common.figures import lines
from asv_bench.common.report import Report
from asv_bench.embedding.batches import Embedded
from sklearn_xc.embedding.samplers import balanced_clusters

#: Of the instances of equal degrees: topics, labels of a topic, instances of a label, labels of an
#: instance, dimension, and the norm of what tells labels of a topic and instances apart.
_TOPICS, _LABELS, _PER_LABEL, _PER_INSTANCE, _DIM, _NOISE = 100, 20, 10, 2, 64, 0.35
#: Of the training by full gradients: instances, topics, labels, features, dimension; and the
#: margin, the radius and the temperature of the surrogate.
_N, _N_TOPICS, _N_LABELS, _N_FEATURES, _N_DIM = 240, 8, 48, 40, 16
MARGIN, RADIUS, TEMPERATURE = 0.3, 1.0, 10.0
#: Steps of which a table has the norms.
_SHOWN = (1, 10, 100, 1000, 10_000)


def equal_degrees(seed: int) -> Embedded:
    """Return made embeddings in which all instances, and all labels, have equal degrees.

    Labels lie around the centre of their topic, and instances around the mean of their two labels.
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
    indptr = np.arange(0, labels.size + 1, _PER_INSTANCE)
    ones = np.ones(labels.size, np.float32)
    Y = sp.csr_array((ones, labels.ravel(), indptr), shape=(len(V), len(W)))
    return Embedded("made, equal degrees", V.astype(np.float32), W.astype(np.float32), Y)


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
        """Return the surrogate, its gradient, NGAME's, and the share of hard terms missed.

        NGAME's gradient has the terms within the radius that instances of one cluster see.
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
        self,
        A: np.ndarray,
        dS: np.ndarray,
        V: np.ndarray,
        W: np.ndarray,
        v: np.ndarray,
        w: np.ndarray,
    ) -> np.ndarray:
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

    Returns
    -------
    list of dict
        A row for each cluster size, one cluster of all among them, and some numbers of steps. The
        norm is the smallest so far of the surrogate's gradient, the bias the largest so far of
        ``|g - gradient| / |gradient|``.

    Notes
    -----
    Lemma 7 holds while the bias is less than 1; "proved" is ``sqrt(2 f / (eta (1 - bias) T))`` and
    "printed" its square, with the objective f at the start, as it cannot be less than 0. Both are
    None once the bias has reached 1.
    """
    problem = few_topics(seed)
    start = np.random.default_rng(seed).standard_normal((_N_DIM, _N_FEATURES))
    start /= np.sqrt(_N_FEATURES)
    step = _step_length(problem, start)
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
                row = {"clusters of": f"{size}", "steps T": t, "objective": objective}
                row |= {"smallest norm": least, "largest bias / norm": bias}
                row |= {"O(1 / sqrt(T)), as proved": None if square is None else square**0.5}
                rows.append(row | {"O(1 / T), as printed": square, "hard terms missed": missed})
            A -= step * found
    report.table("Theorem 3: full gradients, clusters anew at each step", rows)
    figure = lines(
        rows, "clusters of", "steps T", ("smallest norm",), log=("steps T", "smallest norm")
    )
    report.figure(figure, "ngame_convergence")
    return rows


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

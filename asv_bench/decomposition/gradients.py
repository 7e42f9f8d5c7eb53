"""Gradients from a search beside exact ones, for the decomposition experiment."""

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np

from asv_bench.decomposition.training import parts
from sklearn_xc._data import read_only
from sklearn_xc.gradients import Batch, GradientMethod, LabelGradient, SetLoss
from sklearn_xc.gradients.exact import Exact
from sklearn_xc.kernels.decomposition.label_gradients import DEVIATIONS, next_number
from sklearn_xc.mips import ExactIndex, ProductIndex, SphericalIndex
from sklearn_xc.mips.protocol import Candidates, MipsIndex
from sklearn_xc.parallel.team import Team

#: Blocks of message passing: the paper's for dense instances.
N_BLOCKS = 8
#: Instances whose gradients are computed at a time: exact ones have room for all labels.
_TOGETHER = 8
#: The searches compared, in this order.
METHODS = {
    "random": "random labels",
    "mips": "MIPS, spherical clusters",
    "decomp_mips": "decomposed search, product index",
    "all_scored": "decomposed search, all scored",
    "alg2": "algorithm 2, T = 1, spherical blocks",
    "alg2_exact": "algorithm 2, T = 1, exact blocks",
    "union": "labels of exact blocks, scored",
}


class SparseGradient(NamedTuple):
    """The gradient of one instance: distinct labels and what is not 0."""

    labels: np.ndarray
    values: np.ndarray


class Outcome(NamedTuple):
    """What a way to the gradient gives for n instances.

    Attributes
    ----------
    gradients : list of SparseGradient
    retrieved : list of ndarray
        The labels that a search gave for each.
    scored : float
        Mean number of inner products of all columns for an instance, or what they add up to.
    """

    gradients: list[SparseGradient]
    retrieved: list[np.ndarray]
    scored: float


def gradients_of(
    method: GradientMethod, W: np.ndarray, batch: Batch, n: int = _TOGETHER
) -> list[SparseGradient]:
    """Return the gradients that a method gives, asked for n instances at a time."""
    found: list[SparseGradient] = []
    with Team(1) as team:
        for part in parts(batch, n):
            candidates = method.search(W, part.V, team)
            found += as_list(method.of(W, part, candidates, team))
    return found


def as_list(gradient: LabelGradient) -> list[SparseGradient]:
    """Return the gradient of each instance."""
    rows = zip(gradient.labels, gradient.values, gradient.counts, strict=True)
    return [SparseGradient(a[:n].copy(), b[:n].astype(np.float64)) for a, b, n in rows]


def relative_errors(
    exact: Sequence[SparseGradient], found: Sequence[SparseGradient], *, on_negatives: bool = False
) -> np.ndarray:
    """Return ``|found - exact| / |exact|`` of each instance that has an exact gradient, (m,).

    The largest entry is that of a positive, which hardly any method gets wrong: `on_negatives`
    leaves positives out.
    """
    errors = []
    for truth, other in zip(exact, found, strict=True):
        labels, where = np.unique(np.concatenate([truth.labels, other.labels]), return_inverse=True)
        n, m = len(truth.labels), len(labels)
        a, b = np.bincount(where[:n], truth.values, m), np.bincount(where[n:], other.values, m)
        if on_negatives:
            a, b = np.maximum(a, 0), np.maximum(b, 0)
        norm = np.linalg.norm(a)
        if norm > 0:
            errors.append(np.linalg.norm(a - b) / norm)
    return np.array(errors)


def retrieved_mass(exact: Sequence[SparseGradient], retrieved: Sequence[np.ndarray]) -> np.ndarray:
    """Return the share of the exact gradient's mass on negatives that was retrieved, (m,)."""
    shares = []
    for truth, labels in zip(exact, retrieved, strict=True):
        is_negative = truth.values > 0  # with all losses: positives are pulled, negatives pushed
        total = truth.values[is_negative].sum()
        if total > 0:
            found = np.isin(truth.labels[is_negative], labels)
            shares.append(truth.values[is_negative][found].sum() / total)
    return np.array(shares)


def compare_searches(
    W: np.ndarray, batch: Batch, loss: SetLoss, shares: Sequence[float]
) -> list[dict[str, Any]]:
    """Return recall of mass and gradient error by method and number of labels retrieved.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
    batch : Batch
        Held-out instances.
    loss : SetLoss
    shares : sequence of float
        Labels retrieved, as shares of all.

    Returns
    -------
    list of dict
        A row for each share and method: n_candidates, key, method, retrieved, scored, recall,
        error, error_negatives.
    """
    exact = gradients_of(Exact(loss), W, batch)
    searches = Searches(W, loss)
    rows = []
    for share in shares:
        n_candidates = max(1, round(share * len(W)))
        for key, method in METHODS.items():
            outcome = searches.find(key, batch, n_candidates)
            rows.append(
                {
                    "key": key, "method": method, "n_candidates": n_candidates,
                    "retrieved": float(np.mean([len(labels) for labels in outcome.retrieved])),
                    "scored": outcome.scored,
                    "recall": float(retrieved_mass(exact, outcome.retrieved).mean()),
                    "error": float(relative_errors(exact, outcome.gradients).mean()),
                    "error_negatives": float(
                        relative_errors(exact, outcome.gradients, on_negatives=True).mean()
                    ),
                }
            )  # fmt: skip
    return rows


class Searches:
    """The ways to labels that are compared; their indexes are built on first use.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
    loss : SetLoss
    """

    def __init__(self, W: np.ndarray, loss: SetLoss) -> None:
        self._W, self._loss = W, loss
        bounds = np.linspace(0, W.shape[1], N_BLOCKS + 1).round().astype(int).tolist()
        self._columns = list(pairwise(bounds))
        self._rng = np.random.default_rng(0)

    def find(self, key: str, batch: Batch, n_candidates: int) -> Outcome:
        """Return what one of ``METHODS`` gives."""
        gradients: list[SparseGradient] = []
        retrieved: list[np.ndarray] = []
        n_scored = 0.0
        for part in parts(batch, _TOGETHER):
            found, out, scored = getattr(self, f"_{key}")(part, n_candidates)
            gradients += as_list(out)
            retrieved += found
            n_scored += scored
        return Outcome(gradients, retrieved, n_scored / len(batch.V))

    @functools.cached_property
    def _spherical(self) -> SphericalIndex:
        index = SphericalIndex()
        index.build(self._W)
        return index

    @functools.cached_property
    def _product(self) -> ProductIndex:
        index = ProductIndex()
        index.build(self._W)
        return index

    @functools.cached_property
    def _spherical_blocks(self) -> list[SphericalIndex]:
        return self._built(SphericalIndex)

    @functools.cached_property
    def _exact_blocks(self) -> list[ExactIndex]:
        return self._built(ExactIndex)

    def blocks(self, indexes: Sequence[MipsIndex], batch: Batch, n: int) -> list[Candidates]:
        """Return what the index of each block of columns finds."""
        columns = zip(indexes, self._columns, strict=True)
        return [index.query(_part(batch.V, a, b), n) for index, (a, b) in columns]

    def exact_blocks(self, batch: Batch, n: int) -> list[Candidates]:
        """Return the labels that truly score best in each block."""
        return self.blocks(self._exact_blocks, batch, n)

    def all_of_blocks(self, batch: Batch) -> list[Candidates]:
        """Return all labels, with their scores within each block of columns."""
        W, n = self._W, len(batch.V)
        labels = np.tile(np.arange(len(W), dtype=np.int32), (n, 1))
        counts = np.full(n, len(W))
        return [Candidates(labels, batch.V[:, a:b] @ W[:, a:b].T, counts) for a, b in self._columns]

    def couple(self, blocks: Sequence[Candidates], batch: Batch, n_rounds: int) -> LabelGradient:
        """Return what ``MessagePassing`` gives for blocks searched before, with weights of 1."""
        room = sum(found.labels.shape[1] for found in blocks) + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(len(batch.V), room, self._W.dtype)
        V = np.repeat(batch.V, np.diff(batch.indptr), axis=0)
        products = self._W[batch.positives].astype(np.float64) * V
        scores = np.stack([products[:, a:b].sum(axis=1) for a, b in self._columns])
        self._loss.by_messages(blocks, batch, scores, n_rounds, out)
        return out

    def _built(self, kind: type[Any]) -> list[Any]:
        indexes = [kind() for _ in range(N_BLOCKS)]
        for index, (a, b) in zip(indexes, self._columns, strict=True):
            index.build(self._W, a, b)
        return indexes

    def _scored(self, batch: Batch, found: Candidates, is_exact: bool) -> LabelGradient:
        room = found.labels.shape[1] + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(len(batch.V), room, self._W.dtype)
        self._loss.over_found(self._W, batch, found, is_exact, out)
        return out

    def _random(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        drawn = self._rng.choice(len(self._W), n, replace=False).astype(np.int32)
        found = self._of_labels(batch, [drawn] * len(batch.V))
        return _lists(found), self._scored(batch, found, True), float(n * len(batch.V))

    def _mips(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        found = self._spherical.query(read_only(batch.V), n)
        scored = labels_visited(self._spherical, batch.V, n).sum()
        return _lists(found), self._scored(batch, found, True), float(scored)

    def _decomp_mips(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        found = self._product.query(read_only(batch.V), n)
        scored = labels_rescored(self._loss, self._W, batch, found).sum()
        return _lists(found), self._scored(batch, found, False), float(scored)

    def _all_scored(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        labels = _lists(self._product.query(read_only(batch.V), n))
        found = self._of_labels(batch, labels)
        return labels, self._scored(batch, found, True), float(found.counts.sum())

    def _alg2(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        blocks = self.blocks(self._spherical_blocks, batch, n)
        scored = sum(
            labels_visited(index, _part(batch.V, a, b), n).sum() * (b - a)
            for index, (a, b) in zip(self._spherical_blocks, self._columns, strict=True)
        )
        scored /= self._W.shape[1]
        return _union(blocks), self.couple(blocks, batch, 1), float(scored)

    def _alg2_exact(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        blocks = self.exact_blocks(batch, n)
        return _union(blocks), self.couple(blocks, batch, 1), float(len(self._W) * len(batch.V))

    def _union(self, batch: Batch, n: int) -> tuple[list[np.ndarray], LabelGradient, float]:
        labels = _union(self.exact_blocks(batch, n))
        found = self._of_labels(batch, labels)
        scored = len(self._W) * len(batch.V) + found.counts.sum()
        return labels, self._scored(batch, found, True), float(scored)

    def _of_labels(self, batch: Batch, labels: Sequence[np.ndarray]) -> Candidates:
        """Return these labels with their scores."""
        found = Candidates.empty(len(batch.V), max(map(len, labels)), self._W.dtype)
        for i, of_instance in enumerate(labels):
            n = len(of_instance)
            found.labels[i, :n], found.counts[i] = of_instance, n
            found.scores[i, :n] = self._W[of_instance] @ batch.V[i]
        return found


def compare_rounds(
    W: np.ndarray, batch: Batch, loss: SetLoss, n_candidates: int, rounds: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the gradient error of algorithm 2 by rounds, all labels retrieved and a few.

    Parameters
    ----------
    W : ndarray of shape (n_labels, dim)
    batch : Batch
        Held-out instances.
    loss : SetLoss
    n_candidates : int
        Labels that a block retrieves, those that truly score best in it.
    rounds : sequence of int

    Returns
    -------
    list of dict
        A row for each number of rounds: rounds, all, few.
    """
    exact = gradients_of(Exact(loss), W, batch)
    searches = Searches(W, loss)
    ways: dict[str, Callable[[Batch], list[Candidates]]] = {
        "all": lambda part: searches.all_of_blocks(part),
        "few": lambda part: searches.exact_blocks(part, n_candidates),
    }
    rows: list[dict[str, Any]] = [{"rounds": n_rounds} for n_rounds in rounds]
    for key, retrieve in ways.items():
        found: list[list[SparseGradient]] = [[] for _ in rounds]
        for part in parts(batch, _TOGETHER):
            blocks = retrieve(part)
            for gradients, n_rounds in zip(found, rounds, strict=True):
                gradients += as_list(searches.couple(blocks, part, n_rounds))
        for row, gradients in zip(rows, found, strict=True):
            row[key] = float(relative_errors(exact, gradients).mean())
    return rows


def labels_visited(index: SphericalIndex, V: np.ndarray, n_candidates: int) -> np.ndarray:
    """Return how many inner products a spherical index takes for each query: centroids, rows."""
    centroids, size = index.centroids_, index._layout.size
    affinity = V @ centroids[:, :-1].T
    order = np.argsort(-affinity, axis=1, kind="stable")
    seen = np.cumsum(size[order], axis=1)
    last = (seen < n_candidates).sum(axis=1)
    visited = seen[np.arange(len(V)), np.minimum(last, len(size) - 1)]
    return len(centroids) + visited


def labels_rescored(loss: SetLoss, W: np.ndarray, batch: Batch, found: Candidates) -> np.ndarray:
    """Return how many candidates are scored before none of the others seems to have a gradient.

    It follows the kernel, which does not tell, in ``kernels/decomposition/label_gradients.py``.
    """
    gradient = _compiled(loss.gradient)
    numbers = np.empty(len(batch.V), np.int64)
    for i, v in enumerate(batch.V):
        positives = batch.positives[batch.indptr[i] : batch.indptr[i + 1]]
        n_found, n = int(found.counts[i]), int(next_number(0))
        scores = W[found.labels[i, :n_found]] @ v
        errors = scores.astype(np.float64) - found.scores[i, :n_found]
        is_negative = ~np.isin(found.labels[i, :n_found], positives)
        while n < n_found:
            among = is_negative[:n]
            z = np.concatenate([W[positives] @ v, scores[:n][among]]).astype(np.float64)
            _, floor = gradient(
                z, len(positives), len(z), loss.parameters, np.empty(len(z)), np.empty(2 * len(z))
            )
            slack = 0.0
            if among.any():
                seen = errors[:n][among]
                slack = seen.mean() + DEVIATIONS * seen.std()
            if found.scores[i, n] + slack <= floor:
                break
            n = int(next_number(n))
        numbers[i] = min(n, n_found)
    return numbers


@functools.cache
def _compiled(gradient: Callable[..., Any]) -> Callable[..., Any]:
    compiled: Callable[..., Any] = numba.njit(gradient)
    return compiled


def _part(V: np.ndarray, first: int, last: int) -> np.ndarray:
    return read_only(np.ascontiguousarray(V[:, first:last]))


def _lists(found: Candidates) -> list[np.ndarray]:
    rows = zip(found.labels, found.counts, strict=True)
    return [labels[:n].copy() for labels, n in rows]


def _union(blocks: Sequence[Candidates]) -> list[np.ndarray]:
    """Return the labels that some block has found, for each instance."""
    of_blocks = [_lists(found) for found in blocks]
    return [np.unique(np.concatenate(lists)) for lists in zip(*of_blocks, strict=True)]

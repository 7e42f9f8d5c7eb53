"""Ways to the gradient of a loss over label sets, by the scores of a mini-batch.

::

    Exact       all labels
    Sampled     labels drawn at random
    Searched    labels that one index finds: plain search, or one whose blocks are coupled
    Coupled     labels that an index of each block of columns finds; messages couple the blocks
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.mips.protocol import Candidates, MipsIndex
from sklearn_xc.parallel.team import Team

#: Labels whose scores are computed in one product.
_LABELS_PER_PRODUCT = 16_384
#: Gradients by the scores up to this do not make a label active in message passing. Source: section
#: 4 of the paper.
_ACTIVE_ABOVE = 1e-3
#: A row is indexed again when it has gone this share of the root mean square of rows' norms.
_DRIFT = 0.1
#: So many of the candidates are retrieved at first, as a share. It follows what scoring takes, at
#: this pace, so that this part of the instances wants all of them.
_FIRST_SHARE, _PACE, _WANT_MORE = 0.4, 0.5, 0.005
#: They then get so many times as many, until it is enough.
_FURTHER = 4
#: Threads share the instances of a mini-batch if they have at least so many labels together.
_LEAST_WORK = 500_000


class Batch(NamedTuple):
    """Instances of a mini-batch.

    Attributes
    ----------
    V : ndarray of float of shape (n, dim)
        What their scores are linear in.
    indptr : ndarray of int64 of shape (n + 1,)
        Where the labels of each instance are.
    positives : ndarray of int32
        Labels of each instance, at least one.
    weight : ndarray of float64 of shape (n,)
        Of the instances.
    """

    V: np.ndarray
    indptr: np.ndarray
    positives: np.ndarray
    weight: np.ndarray

    def part(self, first: int, last: int) -> "Batch":
        """Return some of the instances."""
        indptr = self.indptr[first : last + 1]
        positives = self.positives[indptr[0] : indptr[-1]]
        return Batch(self.V[first:last], indptr - indptr[0], positives, self.weight[first:last])


class LabelGradient(NamedTuple):
    """Gradients by the scores, where they are not 0; times the weights of the instances.

    Attributes
    ----------
    labels : ndarray of int32 of shape (n, room)
        The first ``counts[i]`` of row i hold.
    values : ndarray of float of shape (n, room)
        Their gradients.
    counts : ndarray of int64 of shape (n,)
        Labels of each instance.
    losses : ndarray of float64 of shape (n,)
        Over the labels considered.
    """

    labels: np.ndarray
    values: np.ndarray
    counts: np.ndarray
    losses: np.ndarray

    @classmethod
    def empty(cls, n: int, room: int, dtype: np.dtype) -> "LabelGradient":
        """Return room for n instances."""
        return cls(
            np.empty((n, room), np.int32), np.empty((n, room), dtype),
            np.empty(n, np.int64), np.empty(n),
        )  # fmt: skip

    def part(self, first: int, last: int) -> "LabelGradient":
        """Return a view of some of the instances."""
        return LabelGradient(*(array[first:last] for array in self))


@dataclass(frozen=True)
class SetLoss:
    """A loss of ``LABEL_SET_LOSSES``, with its smoothing."""

    module: ModuleType
    smoothing: float

    def over_found(
        self, W: np.ndarray, batch: Batch, found: Candidates, is_exact: bool, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient over the positives and the labels found.

        Returns
        -------
        ndarray of bool of shape (n,)
            Where labels behind the last one found may have a gradient, by estimates.
        """
        from sklearn_xc.kernels.decomposition.label_gradients import label_gradient_kernels

        wants_more = np.empty(len(batch.V), np.bool_)
        label_gradient_kernels(self.module).searched(
            W, batch.V, batch.indptr, batch.positives, batch.weight,
            found.labels, found.scores, found.counts, is_exact, self.smoothing, *out, wants_more,
        )  # fmt: skip
        return wants_more

    def over_all(self, scores: np.ndarray, batch: Batch, out: LabelGradient) -> None:
        """Write the gradient over all labels; the scores are overwritten."""
        from sklearn_xc.kernels.decomposition.label_gradients import label_gradient_kernels

        label_gradient_kernels(self.module).dense(
            scores, batch.indptr, batch.positives, batch.weight, self.smoothing, *out
        )

    def by_messages(
        self, blocks: Sequence[Candidates], batch: Batch, scores: np.ndarray, n_rounds: int,
        out: LabelGradient,
    ) -> None:  # fmt: skip
        """Write the gradient after `n_rounds` of message passing between blocks of columns.

        Parameters
        ----------
        blocks : sequence of Candidates
            What each block found.
        batch : Batch
        scores : ndarray of float64 of shape (n_blocks, n_pairs)
            Scores of the positives within each block.
        n_rounds : int
        out : LabelGradient
        """
        from sklearn_xc.kernels.decomposition.message_passing import message_passing_kernels

        labels, found, counts = (np.stack(arrays) for arrays in zip(*blocks, strict=True))
        message_passing_kernels(self.module).couple(
            labels, found, counts, batch.indptr, batch.positives, scores, batch.weight,
            self.smoothing, _ACTIVE_ABOVE, n_rounds, *out,
        )  # fmt: skip


class GradientMethod(Protocol):
    """Gives gradients for the weights as they stand."""

    @property
    def looks_ahead(self) -> bool:
        """Whether what is found serves for some steps; if not, for the weights as they stand."""

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates | None:
        """Return labels that may matter to some instances; None if nothing is searched."""

    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Take notice that some rows of W have moved so far."""


@dataclass
class _Unsearched:
    """Ways to the gradient that search for no labels, or not before the gradient is asked for."""

    looks_ahead = False

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> None:
        """Nothing is searched."""

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Nothing depends on them."""


@dataclass
class Exact(_Unsearched):
    """All labels."""

    loss: SetLoss

    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        n, n_labels = len(batch.V), len(W)
        scores = np.empty((n, n_labels), W.dtype)
        firsts = range(0, n_labels, _LABELS_PER_PRODUCT)

        @np.errstate(over="ignore", invalid="ignore")  # training that diverges is told by its loss
        def multiply(worker: int) -> None:
            for first in firsts[worker :: team.n_workers]:
                labels = slice(first, first + _LABELS_PER_PRODUCT)
                scores[:, labels] = batch.V @ W[labels].T

        team.run(multiply)
        out = LabelGradient.empty(n, n_labels, W.dtype)
        _share(
            team, n, n_labels,
            lambda a, b: self.loss.over_all(scores[a:b], batch.part(a, b), out.part(a, b)),
        )  # fmt: skip
        return out


@dataclass
class Sampled(_Unsearched):
    """Labels drawn evenly, anew for each mini-batch and the same for its instances.

    Source: [1]_ for softmax, whose bias it has: the drawn labels stand for themselves alone.

    References
    ----------
    .. [1] S. Jean, K. Cho, R. Memisevic and Y. Bengio, "On using very large target vocabulary for
       neural machine translation", ACL 2015.
    """

    loss: SetLoss
    n_candidates: int
    seed: tuple[int, ...]
    step: int = 0

    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        rng = np.random.default_rng((*self.seed, self.step))
        self.step += 1
        drawn = rng.choice(len(W), self.n_candidates, replace=False, shuffle=False)
        n, room = len(batch.V), self.n_candidates + int(np.diff(batch.indptr).max())
        labels = np.tile(drawn.astype(np.int32), (n, 1))
        found = Candidates(labels, batch.V @ W[drawn].T, np.full(n, self.n_candidates))
        out = LabelGradient.empty(n, room, W.dtype)
        self.loss.over_found(W, batch, found, True, out)
        return out


class WatchedIndex:
    """An index that is told of moved rows when that changes what it finds.

    One with exact scores is told of each move. Estimates are off by much more than a small move
    makes, so that an index of those is told of a row once it has gone a tenth of the length of
    rows.

    Parameters
    ----------
    index : MipsIndex
    """

    def __init__(self, index: MipsIndex) -> None:
        self.index = index

    def build(self, W: np.ndarray, first: int, last: int, seed: int) -> None:
        """Index some columns of W."""
        self.index.build(W, first, last, seed)
        self._drift = np.zeros(len(W), np.float32)
        part = W[:, first:last]
        self._limit = _DRIFT * float(np.sqrt(np.einsum("ij,ij->", part, part) / len(W)))

    def following(self, W: np.ndarray) -> "WatchedIndex":
        """Return one that goes on from here with a copy of W."""
        other = WatchedIndex(self.index.following(W))
        other._drift, other._limit = self._drift.copy(), self._limit
        return other

    def update(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Take notice that some rows of W have moved so far."""
        from sklearn_xc.kernels.steps.row_moves import add_drift

        if self.index.has_exact_scores:
            self.index.update(rows)
            return
        due = np.empty_like(rows)
        n = add_drift(rows, lengths, self._drift, self._limit, due)
        self.index.update(due[:n])


@dataclass
class Searched:
    """The labels that score best, as far as an index finds them.

    Where an index estimates scores, its candidates are scored best first, and seldom all of them.
    So a share of them is retrieved at first, and all only for instances for which that is not
    enough. The share follows what earlier mini-batches took.

    And the labels of several mini-batches are searched for at once: one look at the index serves
    more queries. What rows move in the meantime is less than what estimates are off, and their
    exact scores are those of the weights as they stand.
    """

    loss: SetLoss
    n_candidates: int
    watched: WatchedIndex
    first_share: float = _FIRST_SHARE

    @property
    def looks_ahead(self) -> bool:
        """Whether what is found serves for some steps: estimates do."""
        return not self.watched.index.has_exact_scores

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates:
        """Return labels that may matter, with their scores or estimates of them."""
        index = self.watched.index
        # Of estimates, no more are retrieved than scoring takes: the best come first.
        share = 1.0 if index.has_exact_scores else self.first_share
        n_first = math.ceil(share * self.n_candidates)
        parts: dict[int, Candidates] = {}

        def query(first: int, last: int) -> None:
            parts[first] = index.query(read_only(V[first:last]), n_first)

        _share(team, len(V), len(W), query)
        return Candidates.joined([parts[first] for first in sorted(parts)])

    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        assert found is not None
        n, room = len(batch.V), self.n_candidates + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(n, room, W.dtype)
        wants_more = np.empty(n, np.bool_)

        def score(first: int, last: int) -> None:
            part, into = batch.part(first, last), out.part(first, last)
            wants_more[first:last] = self._score(W, part, found.part(first, last), into)

        _share(team, n, len(W), score)
        change = 1.0 + _PACE * (np.count_nonzero(wants_more) / n - _WANT_MORE)
        self.first_share = min(1.0, change * self.first_share)
        return out

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Tell the index."""
        self.watched.update(rows, lengths)

    def _score(
        self, W: np.ndarray, batch: Batch, found: Candidates, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient, and return where what was found is not enough."""
        index = self.watched.index
        wants_more = self.loss.over_found(W, batch, found, index.has_exact_scores, out)
        which, n_found = np.flatnonzero(wants_more), found.labels.shape[1]
        while len(which) and n_found < self.n_candidates:
            n_found = min(_FURTHER * n_found, self.n_candidates)
            found = index.query(read_only(batch.V[which]), n_found)
            is_short = np.empty(len(which), np.bool_)
            for at, i in enumerate(which.tolist()):
                own = found.part(at, at + 1), False, out.part(i, i + 1)
                is_short[at] = self.loss.over_found(W, batch.part(i, i + 1), *own)[0]
            which = which[is_short]
        return wants_more


@dataclass
class Coupled(_Unsearched):
    """The labels that score best within blocks of columns, coupled by messages.

    Source: algorithm 2 of [1]_.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.
    """

    loss: SetLoss
    n_candidates: int
    indexes: Sequence[WatchedIndex]
    bounds: np.ndarray  # of the blocks' columns
    n_rounds: int

    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        n = len(batch.V)
        room = len(self.indexes) * self.n_candidates + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(n, room, W.dtype)

        def search(first: int, last: int) -> None:
            part = batch.part(first, last)
            blocks, scores = [], []
            of_pair = np.repeat(np.arange(last - first), np.diff(part.indptr))
            for index, a, b in zip(self.indexes, self.bounds[:-1], self.bounds[1:], strict=True):
                V = np.ascontiguousarray(part.V[:, a:b])
                blocks.append(index.index.query(read_only(V), self.n_candidates))
                products = W[part.positives, a:b].astype(np.float64) * V[of_pair]
                scores.append(products.sum(axis=1))
            into = out.part(first, last)
            self.loss.by_messages(blocks, part, np.stack(scores), self.n_rounds, into)

        _share(team, n, len(W), search)
        return out

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Tell the indexes."""
        for index in self.indexes:
            index.update(rows, lengths)


def _share(team: Team, n: int, n_labels: int, work: Callable[[int, int], Any]) -> None:
    """Do the work for ranges of n instances in all threads, or in this one if it is little."""
    if team.n_workers == 1 or n * n_labels < _LEAST_WORK:
        work(0, n)
        return
    bounds = np.linspace(0, n, team.n_workers + 1).astype(int)

    def share(worker: int) -> None:
        if bounds[worker] < bounds[worker + 1]:
            work(bounds[worker], bounds[worker + 1])

    team.run(share)

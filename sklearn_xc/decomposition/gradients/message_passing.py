"""The gradient from labels that blocks of columns have found, coupled by messages."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.arguments import check_count, is_number
from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import Team
from sklearn_xc.decomposition.gradients.protocol import (
    GradientMethod,
    GradientTask,
    LabelGradient,
    RowBatch,
    SetLoss,
    share_instances,
)
from sklearn_xc.decomposition.gradients.searched import FollowingIndex
from sklearn_xc.search.exact import ExactIndex
from sklearn_xc.search.protocol import Candidates

#: n_blocks=None, with and without a hidden layer. Source: section 5 of the paper.
_HIDDEN_BLOCKS, _BLOCKS = 4, 8
_MOST_ROUNDS = 100_000


@dataclass
class MessagePassing(BaseEstimator):
    """Greedy message passing between blocks of columns, after algorithm 2 of [1]_.

    Each block has its own index. `SearchedGradient` with a `ProductIndex` couples blocks within
    the search, which is faster and closer to the exact gradient.

    The algorithm as printed is ``absent="zero"``: all labels take part, those that no block has
    found with a score of 0. They beat labels with negative scores, and an instance takes time and
    memory for all labels in all blocks.

    Parameters
    ----------
    n_rounds : int, default=1
        Number of rounds, from 0 to 100,000.
    n_blocks : int or None, default=None
        Number of blocks of columns. None is 8, or 4 with a hidden layer, but at most the number of
        columns.
    absent : {"left_out", "zero"}, default="left_out"
        Labels that no block has found: left out of the loss, or with a score of 0 as in [1]_.
    threshold : float or None, default=None
        tau_1 of [1]_: a block finds the labels whose score within it exceeds this in magnitude, by
        all its scores, without an index. None finds the best ``n_candidates`` by an index, as in
        the experiments of [1]_.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.gradients import MessagePassing
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DecompMIPSClassifier(
    ...     gradient=MessagePassing(n_rounds=2, n_blocks=4), max_iter=1, random_state=0
    ... ).fit(X[:450] / 16, y[:450])
    >>> bool(clf.score(X[450:] / 16, y[450:]) > 0.7)
    True
    """

    n_rounds: int = 1
    n_blocks: int | None = None
    absent: str = "left_out"
    threshold: float | None = None

    default_index: ClassVar[str] = "spherical"

    def start(self, task: GradientTask) -> "Coupled":
        """Return the method of a training; see `GradientTask`.

        Raises
        ------
        ValueError
            If a parameter is out of its range, there are fewer columns than blocks, or the index
            estimates scores.
        """
        n_rounds = check_count(self.n_rounds, "MessagePassing: n_rounds", 0, _MOST_ROUNDS)
        n_blocks = self.n_blocks
        if n_blocks is None:
            n_blocks = min(task.n_columns, _HIDDEN_BLOCKS if task.is_hidden else _BLOCKS)
        n_blocks = check_count(
            n_blocks, "MessagePassing: n_blocks, at most one a column,", 1, task.n_columns
        )
        if self.absent not in ("left_out", "zero"):
            raise ValueError(
                f"MessagePassing: absent must be 'left_out' or 'zero'. Got {self.absent!r}."
            )
        tau = self.threshold
        if tau is not None and not (is_number(tau) and 0 <= tau < np.inf):
            raise ValueError(
                f"MessagePassing: threshold must be None or a number of at least 0. Got {tau!r}."
            )
        make_index = task.make_index if tau is None else functools.partial(_AboveThreshold, tau)
        following = [FollowingIndex(make_index()) for _ in range(n_blocks)]
        if not following[0].index.has_exact_scores:
            raise ValueError(
                "MessagePassing: index must have exact scores. "
                f"Got {following[0].index!r}, which estimates them. Leave index=None, or set "
                "gradient='decomp_mips' without message passing."
            )
        has_zeros = self.absent == "zero"
        how = has_zeros, has_zeros or tau is not None, task.seed
        return Coupled(task.loss, task.n_candidates, following, n_rounds, *how)


@dataclass
class Coupled(GradientMethod):
    """The labels that blocks of columns have found, coupled by messages.

    With `has_zeros`, the others take part with a score of 0. With `is_wide`, an instance may have
    all labels.

    Source: algorithm 2 of [1]_.

    References
    ----------
    .. [1] I. E.-H. Yen, S. Kale, F. X. Yu, D. Holtmann-Rice, S. Kumar and P. Ravikumar, "Loss
       decomposition for fast learning in large output spaces", ICML 2018.
    """

    loss: SetLoss
    n_candidates: int
    indexes: Sequence[FollowingIndex]
    n_rounds: int
    has_zeros: bool = False
    is_wide: bool = False
    seed: int = 0
    searches = True

    def build(self, W: np.ndarray) -> None:
        """Build the indexes again; the last block has the column of intercepts."""
        bounds = np.linspace(0, W.shape[1], len(self.indexes) + 1).round().astype(np.int64)
        self._blocks = list(zip(self.indexes, bounds[:-1], bounds[1:], strict=True))
        for index, first, last in self._blocks:
            index.build(W, first, last, self.seed)

    def of(
        self, W: np.ndarray, batch: RowBatch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        n = len(batch.V)
        room = len(self.indexes) * self.n_candidates + int(np.diff(batch.indptr).max())
        if self.is_wide:
            room = len(W)
        out = LabelGradient.empty(n, room, W.dtype)

        def couple(first: int, last: int) -> None:
            part = batch.part(first, last)
            blocks, scores = [], []
            of_pair = np.repeat(np.arange(last - first), np.diff(part.indptr))
            for index, a, b in self._blocks:
                V = np.ascontiguousarray(part.V[:, a:b])
                blocks.append(index.index.query(read_only(V), self.n_candidates))
                products = W[part.positives, a:b].astype(np.float64) * V[of_pair]
                scores.append(products.sum(axis=1))
            if self.has_zeros:
                blocks = _with_zeros(blocks, len(W))
            into = out.part(first, last)
            self.loss.by_messages(blocks, part, np.stack(scores), self.n_rounds, into)

        share_instances(team, n, len(W), couple)
        return out

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Update the indexes."""
        for index in self.indexes:
            index.moved(rows, lengths)

    def recall(self, W: np.ndarray, V: np.ndarray, k: int) -> float:
        """Return the smallest recall of the indexes, each within its block."""
        return min(index.recall(W, V, k, self.n_candidates) for index in self.indexes)


class _AboveThreshold(ExactIndex):
    """The labels whose scores, all of which are computed, exceed a threshold in magnitude."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.threshold = threshold

    def query(self, V: np.ndarray, n_candidates: int) -> Candidates:
        """Return the labels of each query, ascending; `n_candidates` is not read."""
        scores = V @ self._W[:, self._first : self._last].T
        is_found = np.abs(scores) > self.threshold
        order = np.argsort(~is_found, axis=1, kind="stable")  # the labels found come first
        counts = is_found.sum(axis=1)
        is_free = np.arange(len(self._W)) >= counts[:, None]
        labels = np.where(is_free, -1, order).astype(np.int32)
        best = np.where(is_free, -np.inf, np.take_along_axis(scores, order, 1))
        return Candidates(labels, best.astype(scores.dtype), counts)


def _with_zeros(blocks: Sequence[Candidates], n_labels: int) -> list[Candidates]:
    """Return what blocks have found, as lists of all labels: 0 in blocks that did not find them."""
    whole = []
    for found in blocks:
        n = len(found.counts)
        scores = np.zeros((n, n_labels), found.scores.dtype)
        rows, places = np.nonzero(np.arange(found.labels.shape[1]) < found.counts[:, None])
        scores[rows, found.labels[rows, places]] = found.scores[rows, places]
        labels = np.tile(np.arange(n_labels, dtype=np.int32), (n, 1))
        whole.append(Candidates(labels, scores, np.full(n, n_labels)))
    return whole

"""Gradients without a search: over all labels, and over labels drawn at random."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._parallel.threads import Team
from sklearn_xc.decomposition.gradients.protocol import (
    GradientMethod,
    GradientTask,
    LabelGradient,
    RowBatch,
    SetLoss,
    share_instances,
)
from sklearn_xc.search.protocol import Candidates

#: Labels whose scores are computed in one product.
_LABELS_PER_PRODUCT = 16_384


@dataclass
class ExactGradient(BaseEstimator):
    """The gradient over all labels; takes O(n_labels dim) time per instance.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.gradients import ExactGradient
    >>> clf = DecompMIPSClassifier(gradient=ExactGradient())
    """

    default_index: ClassVar[str] = "product"

    def start(self, task: GradientTask) -> "Exact":
        """Return the method of a training; see `GradientTask`."""
        return Exact(task.loss)


@dataclass
class Exact(GradientMethod):
    """Gradient by the scores of all labels."""

    loss: SetLoss

    def of(
        self, W: np.ndarray, batch: RowBatch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        n, n_labels = len(batch.V), len(W)
        scores = np.empty((n, n_labels), W.dtype)
        firsts = range(0, n_labels, _LABELS_PER_PRODUCT)

        @np.errstate(over="ignore", invalid="ignore")  # the loss reports divergence
        def multiply(worker: int) -> None:
            for first in firsts[worker :: team.n_workers]:
                labels = slice(first, first + _LABELS_PER_PRODUCT)
                scores[:, labels] = batch.V @ W[labels].T

        team.run(multiply)
        out = LabelGradient.empty(n, n_labels, W.dtype)

        def score(first: int, last: int) -> None:
            part = batch.part(first, last)
            into = out.part(first, last)
            self.loss.over_all(scores[first:last], part, into)

        share_instances(team, n, n_labels, score)
        return out


@dataclass
class SampledGradient(BaseEstimator):
    """The gradient over `n_candidates` labels drawn uniformly for each mini-batch.

    Examples
    --------
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.gradients import SampledGradient
    >>> clf = DecompMIPSClassifier(gradient=SampledGradient(), n_candidates=100)
    """

    default_index: ClassVar[str] = "product"

    def start(self, task: GradientTask) -> "SampledLabels":
        """Return the method of a training; see `GradientTask`."""
        return SampledLabels(task.loss, task.n_candidates, (task.seed, 1))


@dataclass
class SampledLabels(GradientMethod):
    """Labels drawn uniformly for each mini-batch, the same for all of its instances.

    Source: [1]_ for softmax, with its bias: the drawn labels are not weighted.

    References
    ----------
    .. [1] S. Jean, K. Cho, R. Memisevic and Y. Bengio, "On using very large target vocabulary for
       neural machine translation", ACL 2015.
    """

    loss: SetLoss
    n_candidates: int
    seed: tuple[int, ...]
    step: int = 0  # mini-batches so far

    def of(
        self, W: np.ndarray, batch: RowBatch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        rng = np.random.default_rng((*self.seed, self.step))
        self.step += 1
        drawn = rng.choice(len(W), self.n_candidates, replace=False, shuffle=False)
        n = len(batch.V)
        room = self.n_candidates + int(np.diff(batch.indptr).max())
        labels = np.tile(drawn.astype(np.int32), (n, 1))
        found = Candidates(labels, batch.V @ W[drawn].T, np.full(n, self.n_candidates))
        out = LabelGradient.empty(n, room, W.dtype)
        self.loss.over_found(W, batch, found, True, out)
        return out

"""A loss over label sets, compiled into kernels over mini-batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc.decomposition.gradients.protocol import Batch, LabelGradient
from sklearn_xc.decomposition.kernels.label_gradients import label_gradient_kernels
from sklearn_xc.decomposition.kernels.message_passing import is_sparse, message_passing_kernels
from sklearn_xc.decomposition.losses import LabelSetLoss
from sklearn_xc.search.protocol import Candidates

#: Labels with a larger gradient are active in message passing. Source: section 4 of the paper.
_ACTIVE_ABOVE = 1e-3


@dataclass(frozen=True)
class SetLoss:
    """Losses and gradients of mini-batches.

    Attributes
    ----------
    gradient, support_floor : callable
        Functions of a `LabelSetLoss`.
    parameters : tuple of float
        Arguments that both receive.
    """

    gradient: Callable[..., Any]
    support_floor: Callable[..., Any]
    parameters: tuple[float, ...]

    @classmethod
    def of(cls, loss: LabelSetLoss) -> "SetLoss":
        """Return the set loss of a loss, with a copy of its parameters."""
        return cls(loss.gradient, loss.support_floor, tuple(map(float, loss.parameters)))

    def over_found(
        self, W: np.ndarray, batch: Batch, found: Candidates, is_exact: bool, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient over the positives and the labels found to `out`.

        `is_exact` tells whether the scores of `found` are inner products, not estimates. Returns,
        for each instance, whether labels beyond the last one found may have a gradient.
        """
        wants_more = np.empty(len(batch.V), np.bool_)
        searched = label_gradient_kernels(self.gradient, self.support_floor).searched
        how = is_exact, self.parameters
        searched(W, tuple(batch), tuple(found), *how, tuple(out), wants_more)
        return wants_more

    def over_all(self, scores: np.ndarray, batch: Batch, out: LabelGradient) -> None:
        """Write the gradient over all labels to `out`; scores (n, n_labels) are overwritten."""
        label_gradient_kernels(self.gradient, self.support_floor).dense(
            scores, batch.indptr, batch.positives, batch.weight, self.parameters, *out
        )

    def by_messages(
        self,
        blocks: Sequence[Candidates],
        batch: Batch,
        scores: np.ndarray,
        n_rounds: int,
        out: LabelGradient,
    ) -> None:
        """Write the gradient after `n_rounds` of message passing between blocks of columns.

        `scores`, float64 (n_blocks, n_pairs), are those of the positives within each block.
        """
        found = tuple(np.stack(arrays) for arrays in zip(*blocks, strict=True))
        has_floor = is_sparse(self.support_floor, self.parameters)
        couple = message_passing_kernels(self.gradient, is_sparse=has_floor)
        positives = batch.indptr, batch.positives, scores
        how = self.parameters, _ACTIVE_ABOVE, n_rounds
        couple(found, positives, batch.weight, *how, tuple(out))

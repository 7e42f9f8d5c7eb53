"""A loss over label sets, compiled into the loops that go through mini-batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.kernels.decomposition.label_gradients import label_gradient_kernels
from sklearn_xc.kernels.decomposition.message_passing import is_sparse, message_passing_kernels
from sklearn_xc.losses import LabelSetLoss
from sklearn_xc.mips.protocol import Candidates

#: Gradients by the scores up to this do not make a label active in message passing. Source: section
#: 4 of the paper.
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

    Examples
    --------
    >>> from sklearn_xc.gradients import SetLoss
    >>> from sklearn_xc.losses import MaxMargin
    >>> loss = MaxMargin(smoothing=5.0)
    >>> SetLoss.of(loss).parameters
    (5.0,)

    For scores 2, 0.5, 1.6 and -2 of an instance with label 0:

    >>> import numpy as np
    >>> from sklearn_xc.gradients import Batch, LabelGradient
    >>> batch = Batch(np.ones((1, 1)), np.array([0, 1]), np.array([0], np.int32), np.ones(1))
    >>> out = LabelGradient.empty(1, 4, np.float64)
    >>> SetLoss.of(loss).over_all(np.array([[2.0, 0.5, 1.6, -2.0]]), batch, out)
    >>> out.values[0, : out.counts[0]].round(6)
    array([-0.06,  0.06])
    """

    gradient: Callable[..., Any]
    support_floor: Callable[..., Any]
    parameters: tuple[float, ...]

    @classmethod
    def of(cls, loss: LabelSetLoss) -> "SetLoss":
        """Return the set loss of a loss as it is now.

        Parameters
        ----------
        loss : LabelSetLoss
            Its parameters are copied.

        Returns
        -------
        SetLoss
        """
        return cls(loss.gradient, loss.support_floor, tuple(map(float, loss.parameters)))

    def over_found(
        self, W: np.ndarray, batch: Batch, found: Candidates, is_exact: bool, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient over the positives and the labels found.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
            A row for each label.
        batch : Batch
            n instances.
        found : Candidates
            Labels that a search found for them.
        is_exact : bool
            Whether the scores of `found` are inner products, not estimates.
        out : LabelGradient
            Overwritten; needs space for the positives and the labels found.

        Returns
        -------
        ndarray of bool of shape (n,)
            Where labels beyond the last one found may have a gradient, according to the estimates.
        """
        wants_more = np.empty(len(batch.V), np.bool_)
        label_gradient_kernels(self.gradient, self.support_floor).searched(
            W, batch.V, batch.indptr, batch.positives, batch.weight,
            found.labels, found.scores, found.counts, is_exact, self.parameters, *out, wants_more,
        )  # fmt: skip
        return wants_more

    def over_all(self, scores: np.ndarray, batch: Batch, out: LabelGradient) -> None:
        """Write the gradient over all labels.

        Parameters
        ----------
        scores : ndarray of float of shape (n, n_labels)
            Overwritten.
        batch : Batch
            n instances.
        out : LabelGradient
            Overwritten; needs space for all labels.
        """
        label_gradient_kernels(self.gradient, self.support_floor).dense(
            scores, batch.indptr, batch.positives, batch.weight, self.parameters, *out
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
        labels, found, counts = (np.stack(arrays) for arrays in zip(*blocks, strict=True))
        has_floor = is_sparse(self.support_floor, self.parameters)
        message_passing_kernels(self.gradient, is_sparse=has_floor).couple(
            labels, found, counts, batch.indptr, batch.positives, scores, batch.weight,
            self.parameters, _ACTIVE_ABOVE, n_rounds, *out,
        )  # fmt: skip

"""The gradient over all labels."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.gradients.protocol import GradientMethod, GradientTask
from sklearn_xc.gradients.set_loss import SetLoss
from sklearn_xc.gradients.sharing import share_instances
from sklearn_xc.mips.protocol import Candidates
from sklearn_xc.parallel.team import Team

#: Labels whose scores are computed in one product.
_LABELS_PER_PRODUCT = 16_384


@dataclass
class ExactGradient(BaseEstimator):
    """The gradient over all labels; takes O(n_labels dim) time per instance.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.gradients import ExactGradient
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DecompMIPSClassifier(
    ...     gradient=ExactGradient(), max_iter=1, random_state=0
    ... ).fit(X[:900] / 16, y[:900])
    >>> bool(clf.score(X[900:] / 16, y[900:]) > 0.8)
    True
    """

    default_index: ClassVar[str] = "product"

    def start(self, task: GradientTask) -> "Exact":
        """Return the method that gives the gradients; see `Gradient.start`."""
        return Exact(task.loss)


@dataclass
class Exact(GradientMethod):
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
        share_instances(
            team, n, n_labels,
            lambda a, b: self.loss.over_all(scores[a:b], batch.part(a, b), out.part(a, b)),
        )  # fmt: skip
        return out

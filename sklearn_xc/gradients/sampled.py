"""The gradient over labels that are drawn at random."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.gradients.protocol import GradientMethod, GradientTask
from sklearn_xc.gradients.set_loss import SetLoss
from sklearn_xc.mips.protocol import Candidates
from sklearn_xc.parallel.team import Team


@dataclass
class SampledGradient(BaseEstimator):
    """The gradient over `n_candidates` labels drawn uniformly for each mini-batch.

    Examples
    --------
    Five of ten labels are drawn for each mini-batch:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.gradients import SampledGradient
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DecompMIPSClassifier(
    ...     gradient=SampledGradient(), n_candidates=5, max_iter=1, random_state=0
    ... ).fit(X[:900] / 16, y[:900])
    >>> bool(clf.score(X[900:] / 16, y[900:]) > 0.8)
    True
    """

    default_index: ClassVar[str] = "product"

    def start(self, task: GradientTask) -> "Sampled":
        """Return the method that gives the gradients; see `Gradient.start`."""
        return Sampled(task.loss, task.n_candidates, (task.seed, 1), task.n_drawn)


@dataclass
class Sampled(GradientMethod):
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
    step: int = 0  # mini-batches so far

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

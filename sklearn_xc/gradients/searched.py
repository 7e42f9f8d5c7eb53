"""The gradient over labels that one search has found."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._data import read_only
from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.gradients.protocol import GradientMethod, GradientTask
from sklearn_xc.gradients.set_loss import SetLoss
from sklearn_xc.gradients.sharing import share_instances
from sklearn_xc.gradients.watched_index import WatchedIndex
from sklearn_xc.mips.protocol import Candidates, MipsIndex
from sklearn_xc.parallel.team import Team

#: So many of the candidates are retrieved at first, as a share. It follows what scoring takes, at
#: this pace, so that this part of the instances wants all of them.
_FIRST_SHARE, _PACE, _WANT_MORE = 0.4, 0.5, 0.005
#: They then get so many times as many, until it is enough.
_FURTHER = 4


@dataclass
class SearchedGradient(BaseEstimator):
    """The gradient over the `n_candidates` labels that an index finds for each instance.

    With a `ProductIndex`, the search is decomposed: the columns are cut into blocks that are
    clustered separately, and coupled within the search. With another index, it is a plain search
    for large inner products.

    Parameters
    ----------
    default_index : str or MipsIndex, default="product"
        The index if the estimator's ``index`` is None.

    Examples
    --------
    A plain search among clusters of whole rows, which retrieves three of ten labels:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.gradients import SearchedGradient
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DecompMIPSClassifier(
    ...     gradient=SearchedGradient("spherical"), n_candidates=3, max_iter=1, random_state=0
    ... ).fit(X[:900] / 16, y[:900])
    >>> bool(clf.score(X[900:] / 16, y[900:]) > 0.8)
    True
    """

    default_index: str | MipsIndex = "product"

    def start(self, task: GradientTask) -> "Searched":
        """Return the method that gives the gradients; see `Gradient.start`."""
        index = WatchedIndex(task.make_index())
        return Searched(task.loss, task.n_candidates, index, seed=task.seed)


@dataclass
class Searched(GradientMethod):
    """The labels that score best, as far as an index finds them.

    Where an index estimates scores, its candidates are scored best first, and seldom all of them.
    So a share of them is retrieved at first, and all only for instances for which that is not
    enough. The share follows what earlier mini-batches took.

    And the labels of several mini-batches are searched for at once: one look at the index serves
    more queries. Rows move less in the meantime than the error of the estimates, and their exact
    scores are those of the weights as they stand.
    """

    loss: SetLoss
    n_candidates: int
    watched: WatchedIndex
    first_share: float = _FIRST_SHARE
    seed: int = 0

    @property
    def looks_ahead(self) -> bool:  # type: ignore[override]
        """Whether what is found serves for some steps: estimates do."""
        return not self.watched.index.has_exact_scores

    def build(self, W: np.ndarray) -> None:
        """Build the index anew."""
        self.watched.build(W, 0, W.shape[1], self.seed)

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates:
        """Return labels that may matter, with their scores or estimates of them."""
        index = self.watched.index
        # Of estimates, no more are retrieved than scoring takes: the best come first.
        share = 1.0 if index.has_exact_scores else self.first_share
        n_first = math.ceil(share * self.n_candidates)
        parts: dict[int, Candidates] = {}

        def query(first: int, last: int) -> None:
            parts[first] = index.query(read_only(V[first:last]), n_first)

        share_instances(team, len(V), len(W), query)
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

        share_instances(team, n, len(W), score)
        change = 1.0 + _PACE * (np.count_nonzero(wants_more) / n - _WANT_MORE)
        self.first_share = min(1.0, change * self.first_share)
        return out

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Tell the index."""
        self.watched.update(rows, lengths)

    def recall(self, W: np.ndarray, queries: Callable[[], np.ndarray], k: int) -> float:
        """Return the recall of the index."""
        return self.watched.recall(W, queries(), k, self.n_candidates)

    def following(self, W: np.ndarray) -> "Searched":
        """Return one with an index that follows a copy of W."""
        return replace(self, watched=self.watched.following(W))

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

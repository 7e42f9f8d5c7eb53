"""The gradient over the labels that one index finds."""

import math
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_xc._input.data import read_only
from sklearn_xc._parallel.threads import Team
from sklearn_xc._training.kernels.row_moves import add_drift
from sklearn_xc.decomposition.gradients.protocol import (
    GradientMethod,
    GradientTask,
    LabelGradient,
    RowBatch,
    SetLoss,
    share_instances,
)
from sklearn_xc.search.protocol import Candidates, MipsIndex
from sklearn_xc.search.recall import search_recall

#: The share of the candidates that is retrieved at first adapts, by _PACE, such that a fraction
#: _WANT_MORE of the instances needs more; these get _FURTHER times as many until it is enough.
_FIRST_SHARE, _PACE, _WANT_MORE = 0.4, 0.5, 0.005
_FURTHER = 4
#: A row is indexed again when it has moved by this fraction of the root mean square norm of rows.
_DRIFT = 0.1


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
    A plain search among clusters of whole rows:

    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.decomposition.gradients import SearchedGradient
    >>> clf = DecompMIPSClassifier(gradient=SearchedGradient("spherical"))
    """

    default_index: str | MipsIndex = "product"

    def start(self, task: GradientTask) -> "Searched":
        """Return the method of a training; see `GradientTask`."""
        return Searched(task.loss, task.n_candidates, FollowingIndex(task.make_index()), task.seed)


class FollowingIndex:
    """An index that is updated when a move of rows changes what it finds.

    One with exact scores is updated after each move. One with estimates, whose errors are larger
    than a small move, is updated once a row has drifted by a tenth of the norm of rows.
    """

    def __init__(self, index: MipsIndex) -> None:
        self.index = index

    def build(self, W: np.ndarray, first: int, last: int, seed: int) -> None:
        """Index columns `first` to `last` of W."""
        self._columns = first, last
        self.index.build(W, first, last, seed)
        self._drift = np.zeros(len(W), np.float32)
        part = W[:, first:last]
        self._limit = _DRIFT * float(np.sqrt(np.einsum("ij,ij->", part, part) / len(W)))

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Register moves of rows, and update the index where they matter."""
        if self.index.has_exact_scores:
            self.index.update(rows)
            return
        due = np.empty_like(rows)
        n = add_drift(rows, lengths, self._drift, self._limit, due)
        self.index.update(due[:n])

    def recall(self, W: np.ndarray, V: np.ndarray, k: int, n_candidates: int) -> float:
        """Return the recall at k within the columns."""
        first, last = self._columns
        part = read_only(np.ascontiguousarray(V[:, first:last]))
        return search_recall(self.index, W, first, last, part, k, n_candidates)


@dataclass
class Searched(GradientMethod):
    """The labels with the best scores, as far as an index finds them.

    An index with estimated scores is used sparingly. Its candidates are scored best first, and
    seldom all of them: a share is retrieved at first, and all only for instances that need them.
    And several mini-batches are searched for at once, since rows move less in the meantime than
    the error of the estimates; exact scores are always those of the current weights.
    """

    loss: SetLoss
    n_candidates: int
    following: FollowingIndex
    seed: int = 0
    first_share: float = _FIRST_SHARE
    searches = True

    @property
    def looks_ahead(self) -> bool:  # type: ignore[override]
        """Whether candidates serve for several steps: estimates do."""
        return not self.following.index.has_exact_scores

    def build(self, W: np.ndarray) -> None:
        """Build the index again."""
        self.following.build(W, 0, W.shape[1], self.seed)

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates:
        """Return labels that may matter, with their scores or estimates of them."""
        index = self.following.index
        share = 1.0 if index.has_exact_scores else self.first_share
        n_first = math.ceil(share * self.n_candidates)
        parts: dict[int, Candidates] = {}

        def query(first: int, last: int) -> None:
            parts[first] = index.query(read_only(V[first:last]), n_first)

        share_instances(team, len(V), len(W), query)
        return Candidates.joined([parts[first] for first in sorted(parts)])

    def of(
        self, W: np.ndarray, batch: RowBatch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores."""
        assert found is not None
        n = len(batch.V)
        room = self.n_candidates + int(np.diff(batch.indptr).max())
        out = LabelGradient.empty(n, room, W.dtype)
        wants_more = np.empty(n, np.bool_)

        def score(first: int, last: int) -> None:
            part = batch.part(first, last)
            into = out.part(first, last)
            wants_more[first:last] = self._score(W, part, found.part(first, last), into)

        share_instances(team, n, len(W), score)
        change = 1.0 + _PACE * (np.count_nonzero(wants_more) / n - _WANT_MORE)
        self.first_share = min(1.0, change * self.first_share)
        return out

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:
        """Update the index."""
        self.following.moved(rows, lengths)

    def recall(self, W: np.ndarray, V: np.ndarray, k: int) -> float:
        """Return the recall of the index."""
        return self.following.recall(W, V, k, self.n_candidates)

    def _score(
        self, W: np.ndarray, batch: RowBatch, found: Candidates, out: LabelGradient
    ) -> np.ndarray:
        """Write the gradient; return which instances needed more candidates than `found`."""
        index = self.following.index
        wants_more = self.loss.over_found(W, batch, found, index.has_exact_scores, out)
        short = np.flatnonzero(wants_more)
        n_found = found.labels.shape[1]
        while len(short) and n_found < self.n_candidates:
            n_found = min(_FURTHER * n_found, self.n_candidates)
            found = index.query(read_only(batch.V[short]), n_found)
            is_short = np.empty(len(short), np.bool_)
            for at, i in enumerate(short.tolist()):
                own = found.part(at, at + 1), False, out.part(i, i + 1)
                is_short[at] = self.loss.over_found(W, batch.part(i, i + 1), *own)[0]
            short = short[is_short]
        return wants_more

"""Training instances with their labels and weights."""

from typing import NamedTuple

import numpy as np

from sklearn_xc._input.blank_rows import LabelFrequencies, is_blank
from sklearn_xc._input.data import CsrRows
from sklearn_xc._input.equal_rows import distinct_by_hash, distinct_instances
from sklearn_xc._training.moving_rows import entry_places
from sklearn_xc.embedding._inputs import TextRows
from sklearn_xc.embedding.samplers.protocol import Positives


class Examples(NamedTuple):
    """Instances that have labels.

    Attributes
    ----------
    X : CsrRows of shape (n, n_features)
    positives : Positives
        Their labels, at least one each.
    weight : ndarray of float64 of shape (n,)
        Above 0.
    """

    X: CsrRows
    positives: Positives
    weight: np.ndarray

    @classmethod
    def distinct(cls, X: CsrRows, positives: Positives, weight: np.ndarray) -> "Examples":
        """Return the distinct instances, each with the weight of all that are equal to it."""
        if isinstance(X, TextRows):
            rows, total = distinct_by_hash(X.hashes(), *positives, weight)
        else:
            rows, total = distinct_instances(X, *positives, weight)
        return cls(X.take(rows), labels_of_rows(positives, rows), total)

    def take(self, rows: np.ndarray) -> "Examples":
        """Return some of the instances."""
        return Examples(self.X.take(rows), labels_of_rows(self.positives, rows), self.weight[rows])

    def with_features(self) -> "Examples":
        """Return the instances that have a feature; others cannot be embedded."""
        return self.take(np.flatnonzero(np.diff(self.X.indptr) > 0))

    def of_labels(self, labels: np.ndarray, n_labels: int) -> "Examples":
        """Return the instances that have one of some labels (rising), which are renumbered."""
        place = np.full(n_labels, -1, np.int32)
        place[labels] = np.arange(len(labels), dtype=np.int32)
        indptr, at = self.positives.indptr, place[self.positives.labels]
        counts = np.diff(np.append(0, np.cumsum(at >= 0))[indptr])
        rows = np.flatnonzero(counts > 0)
        own = Positives(np.append(0, np.cumsum(counts[rows])), at[at >= 0])
        return Examples(self.X.take(rows), own, self.weight[rows])

    def frequencies(self, n_labels: int) -> LabelFrequencies:
        """Return the summed weights of each label's instances."""
        rows = np.repeat(np.arange(len(self.weight)), np.diff(self.positives.indptr))
        return LabelFrequencies.of(
            rows, self.positives.labels, self.weight, is_blank(self.X), n_labels
        )


def labels_of_rows(positives: Positives, rows: np.ndarray) -> Positives:
    """Return the labels of some rows."""
    indptr, labels = positives
    at, bounds = entry_places(indptr[rows], indptr[rows + 1] - indptr[rows])
    return Positives(bounds, labels[at])


def held_out(
    positives: Positives, n_labels: int, n_wanted: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to train on and at most `n_wanted` rows to hold out, both rising.

    No label loses its last instance.
    """
    indptr, labels = positives
    n = len(indptr) - 1
    left = np.bincount(labels, minlength=n_labels)
    chosen: list[int] = []
    for i in np.random.default_rng((seed, 1)).permutation(n):
        if len(chosen) >= n_wanted:
            break
        own = labels[indptr[i] : indptr[i + 1]]
        if (left[own] > 1).all():
            left[own] -= 1
            chosen.append(i)
    rows = np.sort(np.array(chosen, np.int64))
    return np.setdiff1d(np.arange(n), rows), rows

"""What is said of an instance without features, such as a text of which no word is known.

Intercepts are no answer: they say where the features leave off, so that a frequent label that a
common feature tells has a lower one than a rare label. What answers is how frequent labels are
among the training instances without features; and as most data have few of these, or none, some
more are imagined, which have the labels of all instances in proportion.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc._input.data import CsrRows, DenseRows, entries_per_row
from sklearn_xc._input.row_pieces import row_pieces
from sklearn_xc._state.schema import Array, Holds, Number, declares

#: How many instances are imagined, and besides which share of all. Where features are indicators of
#: which one level is left out, instances without features are common, and outweigh these.
_IMAGINED, _IMAGINED_SHARE = 20.0, 0.02
#: Sums of weights, and of some of them, may round by so much.
_ROUNDED = 1.0 + 1e-6


def is_blank(X: CsrRows | DenseRows) -> np.ndarray:
    """Return which instances have no feature other than 0, bool of shape (n,)."""
    if isinstance(X, DenseRows):
        return np.asarray(~X.values.any(axis=1))
    return ~_any_in_row(X, lambda entries: X.data[entries] != 0)


def shares_any(X: CsrRows, features: np.ndarray) -> np.ndarray:
    """Return which instances have one of some features, bool of shape (n,).

    `features` is a bool array of shape (n_features,). Zeros that are stored count.
    """
    return _any_in_row(X, lambda entries: features[X.indices[entries]])


def _any_in_row(X: CsrRows, is_chosen: Callable[[slice], np.ndarray]) -> np.ndarray:
    found = np.empty(X.shape[0], bool)
    for first, last in row_pieces(X.indptr):
        chosen = is_chosen(slice(X.indptr[first], X.indptr[last]))
        found[first:last] = entries_per_row(X.indptr[first : last + 1], chosen) > 0
    return found


def features_of(X: CsrRows | DenseRows, rows: np.ndarray | None = None) -> np.ndarray:
    """Return which features any of some instances has, bool of shape (n_features,).

    What an encoder or a hidden layer makes of the others is as random as where it started: an
    instance that has no other features is one without.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, n_features)
        Instances.
    rows : ndarray of int, default=None
        Which; None for all.
    """
    if isinstance(X, DenseRows):
        return np.asarray((X.values if rows is None else X.values[rows]).any(axis=0))
    found = np.zeros(X.shape[1], bool)
    is_named = np.full(X.shape[0], rows is None)
    if rows is not None:
        is_named[rows] = True
    for first, last in row_pieces(X.indptr):
        entries = slice(X.indptr[first], X.indptr[last])
        lengths = np.diff(X.indptr[first : last + 1])
        is_there = (X.data[entries] != 0) & np.repeat(is_named[first:last], lengths)
        found[X.indices[entries][is_there]] = True
    return found


@declares(
    counts=Array("count", "labels", least=0),
    total=Number(),
    blank_counts=Array("count", "labels", least=0),
    blank_total=Number(),
    _counts_fit=Holds("no label on more instances than there are"),
)
@dataclass(frozen=True)
class LabelFrequencies:
    """How often labels are on the instances that training has seen.

    Attributes
    ----------
    counts : ndarray of float64 of shape (n_labels,)
        Summed weights of the instances of each label, and
    total : float
        of all instances.
    blank_counts, blank_total : ndarray of float64 of shape (n_labels,), float
        The same of the instances without features.
    """

    counts: np.ndarray
    total: float
    blank_counts: np.ndarray
    blank_total: float

    @property
    def _counts_fit(self) -> bool:
        some, blank = self.counts.max(initial=0), self.blank_counts.max(initial=0)
        return bool(some <= self.total * _ROUNDED and blank <= self.blank_total * _ROUNDED)

    @classmethod
    def of(
        cls,
        rows: np.ndarray,
        labels: np.ndarray,
        weight: np.ndarray,
        blank: np.ndarray,
        n_labels: int,
    ) -> "LabelFrequencies":
        """Return those of some instances.

        Parameters
        ----------
        rows, labels : ndarray of int of shape (n_pairs,)
            Which instance has which label.
        weight : ndarray of float of shape (n,)
            Of the instances.
        blank : ndarray of bool of shape (n,)
            Which of them have no features.
        n_labels : int
            Labels.
        """
        weight = weight.astype(np.float64)
        of_pair, on_blank = weight[rows], blank[rows]
        return cls(
            np.bincount(labels, of_pair, minlength=n_labels),
            float(weight.sum()),
            np.bincount(labels[on_blank], of_pair[on_blank], minlength=n_labels),
            float(weight[blank].sum()),
        )

    @classmethod
    def none(cls, n_labels: int) -> "LabelFrequencies":
        """Return those of no instances."""
        return cls(np.zeros(n_labels), 0.0, np.zeros(n_labels), 0.0)

    def plus(self, others: "LabelFrequencies") -> "LabelFrequencies":
        """Return those of both."""
        return LabelFrequencies(
            self.counts + others.counts,
            self.total + others.total,
            self.blank_counts + others.blank_counts,
            self.blank_total + others.blank_total,
        )

    def with_labels(self, n_new: int, order: np.ndarray) -> "LabelFrequencies":
        """Return the same with new labels behind the old ones, all in another order."""
        new = np.zeros(n_new)
        counts = np.concatenate([self.counts, new])[order]
        blank_counts = np.concatenate([self.blank_counts, new])[order]
        return LabelFrequencies(counts, self.total, blank_counts, self.blank_total)

    def of_blank(self) -> np.ndarray:
        """Return how many of all instances would have each label if none had features.

        Returns
        -------
        ndarray of float64 of shape (n_labels,)
            Between 0 and `total`; `counts` where no instance is without features.
        """
        if self.blank_total == 0:
            return self.counts
        imagined = _IMAGINED + _IMAGINED_SHARE * self.total
        share = self.blank_total / (self.blank_total + imagined)
        seen = self.blank_counts * (self.total / self.blank_total)
        return np.minimum((1.0 - share) * self.counts + share * seen, self.total)

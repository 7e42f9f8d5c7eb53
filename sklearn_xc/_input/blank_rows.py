"""Scores of an instance without features, such as a text without a known word.

Intercepts are no answer: a frequent label whose features are common, too, has a lower intercept
than a rare label. The answer is how frequent labels are among the training instances without
features; as most data have few of these, or none, some are added with the label frequencies of all.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_xc._input.data import CsrRows, DenseRows
from sklearn_xc._input.row_pieces import row_pieces
from sklearn_xc._state.schema import Array, Holds, Number, declares

#: Number of instances that are added, and their share of all. Where features are indicators of
#: which one level is left out, instances without features are common, and outweigh these.
_ADDED, _ADDED_SHARE = 20.0, 0.02
#: Tolerance for the rounding of sums of weights.
_ROUNDED = 1.0 + 1e-6


def is_blank(X: CsrRows | DenseRows) -> np.ndarray:
    """Return which instances have no feature other than 0, bool of shape (n,)."""
    if isinstance(X, DenseRows):
        return np.asarray(~X.values.any(axis=1))
    return ~_any_in_row(X, X.data != 0)


def shares_any(X: CsrRows, features: np.ndarray) -> np.ndarray:
    """Return which instances have one of some features, bool of shape (n,).

    `features` is a bool array of shape (n_features,). Zeros that are stored count.
    """
    return _any_in_row(X, features[X.indices])


def _any_in_row(X: CsrRows, chosen: np.ndarray) -> np.ndarray:
    found = np.diff(X.indptr) > 0
    if len(chosen):
        found[found] = np.logical_or.reduceat(chosen, X.indptr[:-1][found])
    return found


def features_of(X: CsrRows | DenseRows, rows: np.ndarray | None = None) -> np.ndarray:
    """Return which features any of some instances has, bool of shape (n_features,).

    Weights of the other features are as random as they were initialised: an instance that has no
    other features is one without.

    Parameters
    ----------
    X : CsrRows or DenseRows of shape (n, n_features)
        Instances.
    rows : ndarray of int, default=None
        Which; None for all.
    """
    named = slice(None) if rows is None else rows
    if isinstance(X, DenseRows):
        return np.asarray(X.values[named].any(axis=0))
    is_named, found = np.zeros(X.shape[0], bool), np.zeros(X.shape[1], bool)
    is_named[named] = True
    for first, last in row_pieces(X.indptr):
        entries = slice(X.indptr[first], X.indptr[last])
        lengths = np.diff(X.indptr[first : last + 1])
        chosen = (X.data[entries] != 0) & np.repeat(is_named[first:last], lengths)
        found[X.indices[entries][chosen]] = True
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
    """Label frequencies in the training data.

    Attributes
    ----------
    counts : ndarray of float64 of shape (n_labels,)
        Sum of the weights of the instances of each label.
    total : float
        Sum of the weights of all instances.
    blank_counts, blank_total : ndarray of float64 of shape (n_labels,), float
        The same for the instances without features.
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
        """Count the labels of some instances.

        Parameters
        ----------
        rows, labels : ndarray of int of shape (n_pairs,)
            Pairs of an instance and one of its labels.
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
        """Return the frequencies of no instances."""
        return cls(np.zeros(n_labels), 0.0, np.zeros(n_labels), 0.0)

    def with_labels(self, n_new: int, order: np.ndarray) -> "LabelFrequencies":
        """Return the same with new labels after the old ones, all in a new order."""
        new = np.zeros(n_new)
        counts = np.concatenate([self.counts, new])[order]
        blank_counts = np.concatenate([self.blank_counts, new])[order]
        return LabelFrequencies(counts, self.total, blank_counts, self.blank_total)

    def of_blank(self) -> np.ndarray:
        """Return the expected count of each label if no instance had features.

        Returns
        -------
        ndarray of float64 of shape (n_labels,)
            Between 0 and `total`; `counts` where no instance is without features.
        """
        if self.blank_total == 0:
            return self.counts
        added = _ADDED + _ADDED_SHARE * self.total
        share = self.blank_total / (self.blank_total + added)
        seen = self.blank_counts * (self.total / self.blank_total)
        return np.minimum((1.0 - share) * self.counts + share * seen, self.total)

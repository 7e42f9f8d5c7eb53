"""Targets as (instance, class) pairs, and the variable u that each pair keeps between calls."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sklearn_xc._blank_rows import LabelFrequencies, is_blank
from sklearn_xc._data import CsrRows, Targets
from sklearn_xc._declared_state import Array, declares
from sklearn_xc._distinct import hash_instances
from sklearn_xc.weights.class_weights import ClassWeights


@dataclass(frozen=True)
class Pairs:
    """Pairs of an instance and one of its classes.

    Attributes
    ----------
    rows, classes : ndarray of int32 of shape (n,)
        Row of X, and position of the class.
    weight : ndarray of float64 of shape (n,)
        Of the instance.
    """

    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray

    def take(self, chosen: np.ndarray) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(self.rows[chosen], self.classes[chosen], self.weight[chosen])


def pairs_of(targets: Targets, weight: np.ndarray, first_only: bool) -> Pairs:
    """Return the pairs that targets stand for, sorted by row; those of weight 0 are left out.

    Parameters
    ----------
    targets : Targets
        Checked targets.
    weight : ndarray of float64 of shape (n_rows,)
        Weights of the instances.
    first_only : bool
        Of an instance with several labels take the first column only.
    """
    if targets.kind == "classes" and len(targets.classes) == 2:
        classes = np.zeros(len(weight), np.int32)
        classes[targets.rows] = 1
        rows = np.arange(len(weight), dtype=np.int32)
    else:
        column = np.repeat(np.arange(targets.n_problems, dtype=np.int32), np.diff(targets.indptr))
        order = np.lexsort((column, targets.rows))
        rows, classes = targets.rows[order], column[order]
    kept = weight[rows] > 0
    if first_only and len(rows):
        kept &= np.concatenate(([True], rows[1:] != rows[:-1]))
    return Pairs(rows[kept], classes[kept], weight[rows[kept]])


def merge_equal(instances: CsrRows, pairs: Pairs) -> tuple[Pairs, np.ndarray]:
    """Return the distinct pairs in an order that follows from their content, with summed weights.

    Equal instances with the same class have the same optimal u, so that one variable does for all
    of them, and a fit does not depend on the order of the rows, nor on whether an instance is
    repeated or has a weight.

    Parameters
    ----------
    instances : CsrRows
        X.
    pairs : Pairs
        Of its rows.

    Returns
    -------
    merged : Pairs
        One for each content. Pairs of equal instances name the same row.
    place : ndarray of int64 of shape (n,)
        The number of the merged pair of each.
    """
    one, two = hash_instances(instances)[pairs.rows].T
    order = np.lexsort((pairs.weight, pairs.classes, two, one))  # sums round by their order
    is_first_of_row = np.ones(len(order), bool)
    is_first_of_row[1:] = (one[order][1:] != one[order][:-1]) | (two[order][1:] != two[order][:-1])
    is_first = is_first_of_row.copy()
    is_first[1:] |= pairs.classes[order][1:] != pairs.classes[order][:-1]
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(is_first) - 1
    row = pairs.rows[order][is_first_of_row][np.cumsum(is_first_of_row) - 1]
    weight = np.bincount(place[order], weights=pairs.weight[order])
    return Pairs(row[is_first], pairs.classes[order][is_first], weight), place


@declares(index=Array("int64", "pairs", 2, least=0), u=Array("float64", "pairs"))
@dataclass(frozen=True)
class Normalisers:
    """The u of all pairs met so far.

    Attributes
    ----------
    index : ndarray of int64 of shape (n, 2)
        Number of the instance and position of the class, sorted.
    u : ndarray of float64 of shape (n,)
        Their variables.
    """

    index: np.ndarray
    u: np.ndarray

    @classmethod
    def none(cls) -> "Normalisers":
        """Return those of no pairs."""
        return cls(np.empty((0, 2), np.int64), np.empty(0))

    def of_labels(self, places: np.ndarray, n_labels: int) -> "Normalisers":
        """Return those of pairs with some classes."""
        number = np.full(n_labels, -1)
        number[places] = np.arange(len(places))
        index = np.column_stack([self.index[:, 0], number[self.index[:, 1]]])
        kept = np.flatnonzero(index[:, 1] >= 0)
        order = kept[np.lexsort(index[kept].T[::-1])]
        return Normalisers(index[order], self.u[order])

    def find(self, index: np.ndarray, n_classes: int) -> np.ndarray:
        """Return where pairs are, or -1, int64 of shape (n_pairs,)."""
        known, asked = _keys(self.index, n_classes), _keys(index, n_classes)
        at = np.searchsorted(known, asked)
        inside = np.minimum(at, max(0, len(known) - 1))
        found = (known[inside] == asked) if len(known) else np.zeros(len(asked), bool)
        return np.where(found, inside, -1)

    def of_pairs(
        self,
        keys: np.ndarray,
        n_classes: int,
        of_new: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return the u that pairs start with: as it was, or that of new ones.

        Parameters
        ----------
        keys : ndarray of int64 of shape (n_pairs, 2)
            The index of each pair.
        n_classes : int
            K.
        of_new : callable, default=None
            Given the positions of the new pairs in `keys`, returns their u. None is 0.
        """
        at = self.find(keys, n_classes)
        u = np.zeros(len(keys))
        u[at >= 0] = self.u[at[at >= 0]]
        new = np.flatnonzero(at < 0)
        if new.size and of_new is not None:
            u[new] = of_new(new)
        return u

    def updated(self, index: np.ndarray, u: np.ndarray, n_classes: int) -> "Normalisers":
        """Return these, with the u of distinct pairs set or added."""
        at = self.find(index, n_classes)
        old = self.u.copy()
        old[at[at >= 0]] = u[at >= 0]
        index = np.concatenate([self.index, index[at < 0]])
        u = np.concatenate([old, u[at < 0]])
        order = np.argsort(_keys(index, n_classes), kind="stable")
        return Normalisers(index[order], u[order])


def largest_sample_id(n_classes: int) -> int:
    """Return the largest number that an instance may have."""
    return (2**63 - 1) // n_classes - 1


def _keys(index: np.ndarray, n_classes: int) -> np.ndarray:
    return index[:, 0] * n_classes + index[:, 1]


def label_frequencies(X: CsrRows, pairs: Pairs, n_classes: int) -> LabelFrequencies:
    """Return how often classes are among pairs."""
    blank, each = is_blank(X)[pairs.rows], np.arange(len(pairs.rows))
    return LabelFrequencies.of(each, pairs.classes, pairs.weight, blank, n_classes)


def summed_weights(pairs: Pairs, weight: np.ndarray) -> np.ndarray:
    """Return the summed weights of the pairs, and of the instances that have one.

    The sums are exact up to one last rounding: the order of the rows makes no difference.

    Parameters
    ----------
    pairs : Pairs
        Of some instances.
    weight : ndarray of float64 of shape (n_rows,)
        Weights of all instances.
    """
    return np.array([math.fsum(pairs.weight), math.fsum(weight[np.unique(pairs.rows)])])


def log_frequencies(weight: np.ndarray) -> np.ndarray:
    """Return the logarithm of each class's share of the weight of all pairs.

    Parameters
    ----------
    weight : ndarray of float64 of shape (n_classes,)
        Summed weights of the pairs of each class, some positive. All classes without a pair share
        half of the smallest share.

    Returns
    -------
    ndarray of float64 of shape (n_classes,)
        Finite.
    """
    shares = weight / weight.max()
    shares /= shares.sum()
    least = shares[shares > 0].min() / (2 * len(shares))
    return np.log(np.maximum(shares, max(least, np.finfo(np.float32).tiny)))


def log_losses_of_intercept(intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return ``-log p(class)`` of each class named, by intercepts alone."""
    b = intercept - intercept.max()
    return np.log(np.exp(b).sum()) - b[classes]


def exact_normalisers(
    weights: ClassWeights, instances: CsrRows, pairs: Pairs, n_jobs: int | None
) -> np.ndarray:
    """Return the u that is optimal for the weights, of each pair: its log-loss."""
    if not weights.coef.any():
        return log_losses_of_intercept(weights.intercept.astype(np.float64), pairs.classes)
    return np.maximum(weights.log_losses(instances, pairs.rows, pairs.classes, n_jobs), 0.0)

"""Targets as (instance, class) pairs: read from y, merged, held out, counted."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_xc._input.checks import check_weights, require_labels
from sklearn_xc._input.data import CsrRows, LabelFrequencies, Targets, is_blank
from sklearn_xc._input.equal_rows import hash_instances
from sklearn_xc._weights.class_weights import ClassWeights

#: A larger sum of weights may leave the range of float64.
_HEAVIEST = 1e304
#: Least number of held-out instances if ranks decide, but at most a third of all.
_LEAST_RANKED = 256
#: Most classes with which ranks decide. On sets with 151 to 943 labels, P@1 is then higher by
#: up to 6.5 points; with 3,220 to 5,695 labels, where few instances tell one class from the next,
#: it is between 3.2 lower and 0.5 higher.
_MOST_RANKED = 2048


@dataclass(frozen=True)
class ClassPairs:
    """Pairs of an instance and one of its classes.

    Attributes
    ----------
    rows, classes : ndarray of int32 of shape (n,)
        Row of X, and position of the class.
    weight : ndarray of float64 of shape (n,)
        Of the instance, times that of the pair.
    """

    rows: np.ndarray
    classes: np.ndarray
    weight: np.ndarray

    def take(self, chosen: np.ndarray) -> "ClassPairs":
        """Return some of the pairs."""
        return ClassPairs(self.rows[chosen], self.classes[chosen], self.weight[chosen])


def check_pairs(
    estimator: Any, targets: Targets, n: int, sample_weight: Any
) -> tuple[np.ndarray, ClassPairs]:
    """Return the weights of n instances, and their pairs; errors name the estimator."""
    weight = check_weights(estimator, sample_weight, n)
    weight = np.ones(n) if weight is None else weight
    pairs = pairs_of(targets, weight)
    require_labels(estimator, targets, pairs.rows)
    name = type(estimator).__name__
    with np.errstate(over="ignore"):
        total = float(pairs.weight.sum())
    if not total < _HEAVIEST:
        raise ValueError(
            f"{name}: sample_weight must sum to less than {_HEAVIEST:g} over all labels, times "
            f"pair_weight. Got {total:g}. Divide all by their mean."
        )
    if len(pairs.rows) >= 2**31 - 1:
        raise ValueError(
            f"{name}: y must have at most 2**31 - 2 labels in all. Got {len(pairs.rows)}."
        )
    return weight, pairs


def pairs_of(targets: Targets, weight: np.ndarray) -> ClassPairs:
    """Return the pairs of targets, sorted by row, without those of weight 0."""
    if targets.kind == "classes" and len(targets.classes) == 2:
        classes = np.zeros(len(weight), np.int32)
        classes[targets.rows] = 1
        rows = np.arange(len(weight), dtype=np.int32)
    else:
        column = np.repeat(np.arange(targets.n_problems, dtype=np.int32), np.diff(targets.indptr))
        order = np.lexsort((column, targets.rows))
        rows, classes = targets.rows[order], column[order]
    weight = weight[rows]
    if targets.pair_weight is not None:
        weight = weight * targets.pair_weight[order]
    kept = weight > 0
    return ClassPairs(rows[kept], classes[kept], weight[kept])


def merge_equal(instances: CsrRows, pairs: ClassPairs) -> ClassPairs:
    """Return the distinct pairs, with summed weights, in an order given by their content.

    Equal instances with the same class have the same optimal u and share it, so a fit depends
    neither on the order of the rows nor on whether an instance is repeated or has a weight. Pairs
    of equal instances name the same row.
    """
    one, two = hash_instances(instances)[pairs.rows].T
    order = np.lexsort((pairs.weight, pairs.classes, two, one))  # sums round by their order
    is_first_of_row = np.ones(len(order), bool)
    is_first_of_row[1:] = (one[order][1:] != one[order][:-1]) | (two[order][1:] != two[order][:-1])
    is_first = is_first_of_row.copy()
    is_first[1:] |= pairs.classes[order][1:] != pairs.classes[order][:-1]
    row = pairs.rows[order][is_first_of_row][np.cumsum(is_first_of_row) - 1]
    weight = np.bincount(np.cumsum(is_first) - 1, weights=pairs.weight[order])
    return ClassPairs(row[is_first], pairs.classes[order][is_first], weight)


def are_ranked(pairs: ClassPairs, n_classes: int) -> bool:
    """Whether ranks decide on held-out instances: with label sets, of not too many labels.

    The pairs are not merged: equal instances of one class each are no label sets.
    """
    return n_classes <= _MOST_RANKED and len(np.unique(pairs.rows)) < len(pairs.rows)


def hold_out(
    estimator: Any, pairs: ClassPairs, seed: int, by_rank: bool
) -> tuple[ClassPairs, ClassPairs]:
    """Return the pairs of trials, and those of other instances to validate them on.

    Both are all pairs if no held-out pair has a class that trials can learn.

    Parameters
    ----------
    estimator : estimator
        With the parameters ``early_stopping`` and ``validation_fraction``.
    pairs : ClassPairs
        Merged: sorted by content.
    seed : int
        Of the choice of instances.
    by_rank : bool
        Whether ranks decide, which takes more instances.
    """
    rows, first, row = np.unique(pairs.rows, return_index=True, return_inverse=True)
    n = len(rows)
    fraction = estimator.validation_fraction
    n_held = int(np.ceil((0.1 if fraction == "auto" else float(fraction)) * n))
    if fraction == "auto" and by_rank:
        n_held = max(n_held, min(_LEAST_RANKED, n // 3))
    if n_held >= n:
        if estimator.early_stopping not in ("auto", False):
            raise ValueError(
                f"{type(estimator).__name__}: early_stopping holds out {n_held} of {n} distinct "
                "instances; none is left to train on."
            )
        return pairs, pairs
    by_content = np.argsort(first)  # pairs are sorted by content, row numbers are not
    drawn = np.random.default_rng((seed, 2**32)).permutation(n)[:n_held]
    is_held = np.zeros(n, bool)
    is_held[by_content[drawn]] = True
    is_held = is_held[row]
    kept, held_out = pairs.take(np.flatnonzero(~is_held)), pairs.take(np.flatnonzero(is_held))
    return (kept, held_out) if np.isin(held_out.classes, kept.classes).any() else (pairs, pairs)


def first_instances(pairs: ClassPairs, n_rows: int) -> ClassPairs:
    """Return the pairs of the first `n_rows` instances, in the order of the pairs."""
    _, first, row = np.unique(pairs.rows, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return pairs.take(np.flatnonzero(rank[row] < n_rows))


def label_frequencies(X: CsrRows, pairs: ClassPairs, n_classes: int) -> LabelFrequencies:
    """Return the frequencies of the classes among pairs."""
    blank = is_blank(X)[pairs.rows]
    each = np.arange(len(pairs.rows))
    return LabelFrequencies.of(each, pairs.classes, pairs.weight, blank, n_classes)


def joined_frequencies(found: LabelFrequencies, old: LabelFrequencies) -> LabelFrequencies:
    """Return the frequencies of a warm start: absent classes keep their earlier share."""
    earlier = old.counts * (found.total / old.counts.sum())
    counts = np.where(found.counts > 0, found.counts, earlier)
    return replace(found, counts=counts, total=float(counts.sum()))


def log_frequencies(weight: np.ndarray) -> np.ndarray:
    """Return the logarithm of each class's share of the weight of all pairs, finite.

    All classes without a pair share half of the smallest share.
    """
    shares = weight / weight.max()
    shares /= shares.sum()
    least = shares[shares > 0].min() / (2 * len(shares))
    return np.log(np.maximum(shares, max(least, np.finfo(np.float32).tiny)))


def log_losses_of_intercept(intercept: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return ``-log p(class)`` of each class named, from intercepts alone."""
    b = intercept - intercept.max()
    return np.log(np.exp(b).sum()) - b[classes]


def exact_normalisers(
    weights: ClassWeights, instances: CsrRows, pairs: ClassPairs, n_jobs: int | None
) -> np.ndarray:
    """Return the optimal u of each pair for the weights: its log-loss."""
    if not weights.coef.any():
        return log_losses_of_intercept(weights.intercept.astype(np.float64), pairs.classes)
    return np.maximum(weights.log_losses(instances, pairs.rows, pairs.classes, n_jobs), 0.0)

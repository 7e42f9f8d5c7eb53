"""Hits, the record that all metrics read: which of the k best labels of each row are true."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_xc.metrics.check import (
    TrueLabels,
    check_k,
    check_propensities,
    check_sample_weight,
    check_topk,
    check_y_true,
)


@dataclass(frozen=True, slots=True)
class Hits:
    """Ranked labels and the truth about them.

    Attributes
    ----------
    hit : ndarray of shape (n_samples, k), bool, for the largest k of all that read the record
        Whether the label at this rank is true; padding never is.
    positions : ndarray of shape (n_samples, k), int64
        The labels, best first, -1 for padding.
    true : TrueLabels
        All true labels, found or not.
    """

    hit: np.ndarray
    positions: np.ndarray
    true: TrueLabels


def find_hits(
    Y_true: Any, topk: Any, k: int, classes: Any = None, counts: np.ndarray | None = None
) -> Hits:
    """Check the arguments and look the first `k` labels of each row up among the true ones.

    `counts` replaces the number of true labels of each row, where some of them have no column.
    """
    true = check_y_true(Y_true, classes)
    return hits_of(true if counts is None else true._replace(counts=counts), topk, k)


def hits_of(true: TrueLabels, topk: Any, k: int, name: str = "topk") -> Hits:
    """Check a ranking and look it up; `name` is that of the argument, for messages."""
    positions = check_topk(topk, k, true, name)
    rows = np.arange(len(positions), dtype=np.int64)[:, None]
    return Hits(is_true(true, rows, positions), positions, true)


def is_true(true: TrueLabels, rows: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return whether the labels at `positions` are true for `rows`; -1 never is.

    The pairs (row, label) become single int64 keys, row * width + label, which are searched in the
    sorted keys of the true pairs: O(n k log nnz) time, O(n k + nnz) memory.

    Parameters
    ----------
    true : TrueLabels
    rows, positions : ndarray of int64
        Of shapes that broadcast.

    Returns
    -------
    ndarray of bool of the shape of `positions`
    """
    # The width is that of the labels which occur, so that a key needs n * width < 2**63 only for
    # positions which are really there, whatever shape the matrices declare.
    width = 1 + max(int(positions.max(initial=0)), int(true.columns.max(initial=0)))
    if len(true.counts) * width >= 2**63:
        raise ValueError(f"Y_true: {len(true.counts)} rows times {width} labels pass 2**63.")
    keys = true.rows * width + true.columns
    hit = np.zeros(positions.shape, dtype=bool)
    if keys.size:
        wanted = rows * width + positions
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        hit = (keys[place] == wanted) & (positions >= 0)
    return hit


def discounts(k: int) -> np.ndarray:
    """Return the weight of each rank in a discounted gain, 1 / log2(rank + 1) from rank 1 on."""
    return 1.0 / np.log2(np.arange(2, k + 2))


def up_to(ks: tuple[int, ...], gains: np.ndarray) -> np.ndarray:
    """Return the sums over the first k ranks for each k: (n_samples, k_max) to (..., len(ks))."""
    return np.cumsum(gains, axis=1)[:, np.asarray(ks) - 1]


def mean_of(of_rows: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return the metric that is the (weighted) mean of the terms of the rows, at most 1."""

    def metric(hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None) -> np.ndarray:
        values = of_rows(hits, ks)
        if weight is None:
            return sum_over_rows(values) / len(values)
        # Two sums over n terms may round apart in the last digits; no fraction exceeds 1.
        return np.minimum(sum_over_rows(weight[:, None] * values) / weight.sum(), 1.0)

    return metric


def ratio_of(of_rows: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Callable[..., np.ndarray]:
    """Return the metric that divides the sum of the gains of all rows by that of the attainable."""

    def metric(
        hits: Hits, ks: tuple[int, ...], weight: np.ndarray | None, propensities: Any
    ) -> np.ndarray:
        gains, attainable = of_rows(hits, ks, check_propensities(propensities, hits.true))
        if weight is not None:
            gains, attainable = weight[:, None] * gains, weight[:, None] * attainable
        best = sum_over_rows(attainable)
        ratio = sum_over_rows(gains) / np.where(best > 0, best, 1.0)
        # The sums add in different orders; above 1 there is only rounding.
        return np.minimum(ratio, 1.0)

    return metric


def sum_over_rows(values: np.ndarray) -> np.ndarray:
    """Return the sums of the columns, each in the same order however many columns there are."""
    return np.ascontiguousarray(values.T).sum(axis=1)


def measure(
    metric: Callable[..., np.ndarray],
    Y_true: Any,
    topk: Any,
    k: Any,
    sample_weight: Any,
    classes: Any,
    *propensities: Any,
) -> Any:
    """Check the arguments of a public metric, and return a float for one k, else an array."""
    ks = check_k(k)
    hits = find_hits(Y_true, topk, max(ks), classes)
    weight = check_sample_weight(sample_weight, len(hits.positions))
    values = metric(hits, ks, weight, *propensities)
    return float(values[0]) if np.ndim(k) == 0 else values

"""What macro averages are made of: true, named and rightly named instances of each label."""

from typing import Any, NamedTuple

import numpy as np

from sklearn_xc.metrics.hits import Hits

#: bincount takes so many bytes for labels that do not occur before they are left out.
_SPARE = 1 << 20
OVER = ("all", "present", "true")


class LabelCounts(NamedTuple):
    """Instances by label, weighted; labels that do not occur may be left out.

    Attributes
    ----------
    right, named, true : ndarray of shape (n_counted,), float64
        Instances whose label is rightly named, is named, is true.
    n_labels : int or None
        Of the whole label set; None where it is not known.
    """

    right: np.ndarray
    named: np.ndarray
    true: np.ndarray
    n_labels: int | None


def count_labels(
    true: np.ndarray,
    named: np.ndarray,
    right: np.ndarray,
    n_labels: int | None,
    weights: tuple[np.ndarray, np.ndarray] | None,
) -> LabelCounts:
    """Count pairs by label.

    Parameters
    ----------
    true, named : ndarray of shape (n_true,) and (n_named,), int64
        The label of each pair that is true, or named.
    right : ndarray of shape (n_named,), bool
        Which of the named pairs are true.
    n_labels : int or None
    weights : tuple of ndarray of shape (n_true,) and (n_named,), or None
        Of the pairs.

    Notes
    -----
    O(n_true + n_named) where the largest label is not much above the number of pairs; else the
    labels are sorted.
    """
    width = 1 + max(int(true.max(initial=-1)), int(named.max(initial=-1)))
    if width > 4 * (len(true) + len(named)) + _SPARE:
        labels, at = np.unique(np.concatenate([true, named]), return_inverse=True)
        width, true, named = len(labels), at[: len(true)], at[len(true) :]
    of_true, of_named = (None, None) if weights is None else weights
    of_right = None if of_named is None else of_named[right]
    return LabelCounts(
        np.bincount(named[right], of_right, width).astype(np.float64),
        np.bincount(named, of_named, width).astype(np.float64),
        np.bincount(true, of_true, width).astype(np.float64),
        n_labels,
    )


def count_labels_of_hits(hits: Hits, k: int, weight: np.ndarray | None) -> LabelCounts:
    """Return the counts where the first `k` labels of each row are those it is given."""
    is_named = hits.positions[:, :k] >= 0
    named, right = hits.positions[:, :k][is_named], hits.hit[:, :k][is_named]
    weights = None
    if weight is not None:
        rows = np.broadcast_to(np.arange(len(weight))[:, None], is_named.shape)[is_named]
        weights = weight[hits.true.rows], weight[rows]
    return count_labels(hits.true.columns, named, right, hits.true.n_labels, weights)


def check_over(over: Any) -> None:
    """Raise ValueError unless `over` is None or a name in ``OVER``."""
    if over is not None and not (isinstance(over, str) and over in OVER):
        raise ValueError(f"over: expected None or one of {list(OVER)}. Got {over!r}.")


def mean_over_labels(values: np.ndarray, counts: LabelCounts, over: str | None) -> float:
    """Return the mean of values that are 0 for labels which do not occur."""
    if over is None:
        over = "present" if counts.n_labels is None else "all"
    if over == "all":
        if counts.n_labels is None:
            raise ValueError(
                'over: "all" needs the number of labels, from an indicator or classes. Got one '
                'class per row; over="present" is the mean over those that occur.'
            )
        n = counts.n_labels
    elif over == "present":
        n = int(((counts.true > 0) | (counts.named > 0)).sum())
    else:
        values = values[counts.true > 0]
        n = len(values)
    return float(values.sum() / n) if n else 0.0


def f1_of_labels(counts: LabelCounts) -> np.ndarray:
    """Return F1 of each label, 0 for one that is neither true nor named."""
    return quotients(2 * counts.right, counts.named + counts.true)


def quotients(of: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Return the quotients, 0 where there is nothing to divide by."""
    return of / np.where(by > 0, by, 1.0)

"""Labels in groups of similar training frequency."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from sklearn_xc._input.arguments import check_count, check_numbers


def frequency_groups(
    label_counts: Any, n_groups: int, caller: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut labels into groups of similar frequency.

    Parameters
    ----------
    label_counts : array-like of int of shape (n_labels,)
        Training instances of each label.
    n_groups : int
        Groups before those that end at the same frequency are merged.
    caller : str
        Named first in messages.

    Returns
    -------
    group : ndarray of int of shape (n_labels,)
        Each label's group; labels without instances are in one more group, the last.
    lower, upper : ndarray of int of shape (n_merged,)
        Range of frequencies of each group.

    Raises
    ------
    ValueError
        For counts that are not whole numbers of at least 0, for counts that are all 0, and for
        `n_groups` below 1.
    """
    n_groups = check_count(n_groups, f"{caller}: n_groups")
    label_counts = _check_counts(label_counts, f"{caller}: label_counts")
    seen = np.sort(label_counts[label_counts > 0])
    n_groups = min(n_groups, len(seen))
    last = np.ceil(np.arange(1, n_groups + 1) * len(seen) / n_groups).astype(int) - 1
    upper = np.unique(seen[last])
    group = np.searchsorted(upper, label_counts)
    group[label_counts == 0] = len(upper)
    lower = seen[np.r_[0, np.searchsorted(seen, upper[:-1], side="right")]]
    return group, lower, upper


def _check_counts(label_counts: Any, name: str) -> np.ndarray:
    """Return counts as int64, some above 0."""
    counts = check_numbers(label_counts, name, None, "label")
    wrong = (counts < 0) | (counts != np.rint(counts)) | (counts >= 2**63)
    if wrong.any() or np.asarray(label_counts).dtype == bool:
        at = int(wrong.argmax())
        raise ValueError(
            f"{name} must be whole numbers of at least 0. Got {np.asarray(label_counts)[at]} for "
            f"label {at}."
        )
    if not counts.any():
        raise ValueError(f"{name} must be above 0 for some label. Got {len(counts)} zeros.")
    return counts.astype(np.int64)


def check_length(
    n_counts: int, n_labels: int | None, named: Iterable[np.ndarray], caller: str
) -> None:
    """Raise ValueError unless there is a count for each label.

    Parameters
    ----------
    n_counts : int
    n_labels : int or None
        None where it is not known.
    named : iterable of ndarray of int
        Positions of labels, each of which then needs a count.
    caller : str
        Named first in the message.
    """
    if n_labels is None:
        n_labels = 1 + max(int(positions.max(initial=-1)) for positions in named)
        fits = n_labels <= n_counts
    else:
        fits = n_labels == n_counts
    if not fits:
        raise ValueError(
            f"{caller}: label_counts must have one count for each of {n_labels} labels. "
            f"Got {n_counts}."
        )


def frequency_edges(label_counts: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the smallest number of training instances of the labels of each group but the first.

    Parameters
    ----------
    label_counts : ndarray of int of shape (n_labels,)
        Training instances of each label.
    n_groups : int
        Most groups, the rarest labels first, each with about the same share of all pairs of an
        instance and a label. Labels of equal counts share a group, so that there may be fewer.

    Returns
    -------
    ndarray of int64 of shape (n_found - 1,)
        Sorted.
    """
    counts = np.sort(label_counts[label_counts > 0])
    if not counts.size:
        return np.empty(0, np.int64)
    pairs = np.cumsum(counts, dtype=np.float64)
    full = np.minimum(pairs * n_groups // pairs[-1], n_groups - 1)  # groups up to each label
    edges = np.unique(counts[np.diff(full, prepend=0.0) > 0])
    return edges[edges > counts[0]].astype(np.int64)


def group_of(label_counts: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the group of each label, int64 from 0 for the rarest, by its training instances."""
    return np.searchsorted(edges, label_counts, side="right")

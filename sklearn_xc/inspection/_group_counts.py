"""What was predicted of each group of labels of similar training frequency."""

from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._frequency_groups import check_length, frequency_groups
from sklearn_xc.metrics.hits import Hits, find_hits


class GroupCounts(NamedTuple):
    """Predictions of the k best labels of each instance, counted by group of labels.

    Labels without a training instance are in no group.

    Attributes
    ----------
    lower, upper : ndarray of int64 of shape (n_groups,)
        The least and the largest number of training instances of the group's labels.
    n_labels : ndarray of int64 of shape (n_groups,)
        Labels in each group.
    predicted, right, true : ndarray of shape (n_groups,)
        Predictions that name a label of the group; those that are right; true labels of instances.
    group : ndarray of int64 of shape (n_all_labels,)
        Each label's group; ``n_groups`` for labels without a training instance.
    counts : ndarray of int64 of shape (n_all_labels,)
        Training instances of each label.
    hits : Hits
        Which predictions are right.
    """

    lower: np.ndarray
    upper: np.ndarray
    n_labels: np.ndarray
    predicted: np.ndarray
    right: np.ndarray
    true: np.ndarray
    group: np.ndarray
    counts: np.ndarray
    hits: Hits

    def sums(self, labels: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return how often labels of each group occur, or the sums of their weights."""
        size = len(self.lower) + 1
        return np.bincount(self.group[labels], weights=weights, minlength=size)[:-1]


def count_by_group(
    who: str, y_true: Any, topk: Any, label_counts: Any, n_groups: Any, k: int, classes: Any,
    counts: np.ndarray | None = None,
) -> GroupCounts:  # fmt: skip
    """Check the arguments, cut the labels into groups, and count predictions by group.

    Parameters
    ----------
    who : str
        The display, for messages.
    y_true, topk, k, classes, counts
        As in :func:`~sklearn_xc.metrics.hits.find_hits`.
    label_counts, n_groups
        As in ``frequency_groups``.
    """
    group, lower, upper = frequency_groups(label_counts, n_groups, who)
    hits = find_hits(y_true, topk, k, classes, counts)
    check_length(len(group), hits.true.n_labels, (hits.positions, hits.true.columns), who)
    none = np.zeros(len(lower))
    found = GroupCounts(lower, upper, none, none, none, none, group, np.asarray(label_counts), hits)
    named = hits.positions >= 0
    ranked = hits.positions[named]
    return found._replace(
        n_labels=found.sums(np.arange(len(group))),
        predicted=found.sums(ranked),
        right=found.sums(ranked, hits.hit[named].astype(np.float64)),
        true=found.sums(hits.true.columns),
    )

"""Pairs of a held-out instance and one of its best labels, with scores and the truth."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from sklearn_xc._input.data import Targets
from sklearn_xc._labels.out_of_fold import Answers
from sklearn_xc.metrics.hits import find_hits

#: Bytes of a pair, and of the copies that are made of it while something is learned from it.
PAIR_BYTES = 120
_INT, _BOOL, _FLOAT = (np.empty(0, kind) for kind in (np.int64, bool, np.float64))
#: The arrays of no pairs.
_NONE = (_INT, _INT, _INT, _FLOAT, _BOOL, _FLOAT, _INT, _INT, _FLOAT, _INT)


class ScoredPairs(NamedTuple):
    """What a classifier said of instances that it was not trained on, and what is true of them.

    Attributes
    ----------
    rows, labels : ndarray of int64 of shape (n_pairs,)
        Instance, from 0 over those held out, and label. Pairs of an instance are side by side,
        best first.
    ranks : ndarray of int64 of shape (n_pairs,)
        From 0.
    scores : ndarray of float of shape (n_pairs,)
        Finite.
    relevant : ndarray of bool of shape (n_pairs,)
        Whether the instance has the label.
    weight : ndarray of float64 of shape (n_pairs,)
        Of the instance.
    frequency : ndarray of int64 of shape (n_pairs,)
        Instances with the label that the classifier was trained on. With those of all rows, the
        label of a held-out instance would tell itself.
    true_labels : ndarray of int64 of shape (n_true,)
        Labels of all relevant pairs, also of those that the classifier did not name.
    true_weight, true_frequency : ndarray of shape (n_true,)
        Likewise.
    n_labels, n : int
        Labels of y; instances.
    """

    rows: np.ndarray
    labels: np.ndarray
    ranks: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray
    weight: np.ndarray
    frequency: np.ndarray
    true_labels: np.ndarray
    true_weight: np.ndarray
    true_frequency: np.ndarray
    n_labels: int
    n: int

    @property
    def n_relevant(self) -> np.ndarray:
        """Summed weights of the instances with each label, float64 of shape (n_labels,)."""
        return np.bincount(self.true_labels, self.true_weight, minlength=self.n_labels)


def scored_pairs(
    answers: list[Answers],
    rows: list[np.ndarray],
    frequencies: list[np.ndarray],
    targets: Targets,
    weight: np.ndarray,
) -> ScoredPairs:
    """Return the pairs of all folds, none of none.

    Parameters
    ----------
    answers : list of Answers
        To the held-out rows of each fold.
    rows : list of ndarray of int64
        These rows.
    frequencies : list of ndarray of int64 of shape (n_labels,)
        Instances of each label that the model of each fold was trained on, scaled to all rows.
    targets : Targets
        Of all rows.
    weight : ndarray of float64 of shape (n,)
        Likewise.
    """
    indptr, labels = targets.by_instance(len(weight))
    n_labels = len(targets.classes)
    shape = (len(weight), n_labels)
    truth = sp.csr_array((np.ones(len(labels), np.int8), labels, indptr), shape=shape)
    parts, begin = [] if answers else [_NONE], 0
    for (named, scores), held, frequency in zip(answers, rows, frequencies, strict=True):
        true = truth[held]
        hit = find_hits(true, named, named.shape[1]).hit
        at, ranks = np.nonzero((named >= 0) & np.isfinite(scores))
        true_at = np.repeat(np.arange(len(held)), np.diff(true.indptr))
        found = named[at, ranks]
        true_found = true.indices.astype(np.int64)
        parts.append(
            (
                begin + at, found, ranks, scores[at, ranks], hit[at, ranks], weight[held][at],
                frequency[found], true_found, weight[held][true_at], frequency[true_found],
            )
        )  # fmt: skip
        begin += len(held)
    joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
    return ScoredPairs._make([*joined, n_labels, begin])

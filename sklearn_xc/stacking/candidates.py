"""Pairs of an instance and a label that some member ranks high, and what members say of them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Ranked = tuple[np.ndarray, np.ndarray]


class Candidates(NamedTuple):
    """Pairs, those of an instance side by side, its labels rising.

    Attributes
    ----------
    rows, labels : ndarray of int64 of shape (n_pairs,)
        Instance and label.
    scores : ndarray of float64 of shape (n_pairs, n_members)
        NaN where a member does not have the label among its answers.
    ranks : ndarray of float64 of shape (n_pairs, n_members)
        From 1; NaN likewise.
    n : int
        Instances, also those without a candidate.
    """

    rows: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    ranks: np.ndarray
    n: int

    def starts(self) -> np.ndarray:
        """Return where each instance's pairs begin, and the end: int64 of shape (n + 1,)."""
        return np.searchsorted(self.rows, np.arange(self.n + 1))


def gather(answers: Sequence[Ranked], n_candidates: int) -> Candidates:
    """Return the pairs that the first `n_candidates` answers of any member name.

    Parameters
    ----------
    answers : sequence of (labels, scores)
        One for each member, as of ``topk``: arrays of shape (n, k), k at least `n_candidates`,
        labels padded with -1. What stands beyond the candidates tells scores of pairs that other
        members name.
    n_candidates : int
        Of each member.

    Returns
    -------
    Candidates
    """
    n = len(answers[0][0])
    n_labels = 1 + max((int(labels.max(initial=-1)) for labels, _ in answers), default=-1)
    keys = [_keys(labels[:, :n_candidates], n_labels) for labels, _ in answers]
    pairs = np.unique(np.concatenate([key[key >= 0] for key in keys]))
    shape = (len(pairs), len(answers))
    scores, ranks = np.full(shape, np.nan), np.full(shape, np.nan)
    for member, (labels, values) in enumerate(answers):
        key = _keys(labels, n_labels)
        given = key >= 0
        at = np.searchsorted(pairs, key[given])
        at[at == len(pairs)] = 0
        known = pairs[at] == key[given] if len(pairs) else np.zeros(0, bool)
        rank = np.broadcast_to(np.arange(1.0, labels.shape[1] + 1), labels.shape)[given]
        scores[at[known], member] = values[given][known]
        ranks[at[known], member] = rank[known]
    rows, labels = np.divmod(pairs, max(n_labels, 1))
    return Candidates(rows, labels, scores, ranks, n)


def _keys(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Return a number for each pair, rising by instance and label; -1 for padding."""
    rows = np.arange(len(labels), dtype=np.int64)[:, None]
    return np.where(labels >= 0, rows * n_labels + labels, -1)


def describe(candidates: Candidates, frequencies: np.ndarray) -> np.ndarray:
    """Return the features of pairs, float32 of shape (n_pairs, 5 n_members + 2).

    Of each member the score, its distance from the member's best score for the instance, the rank,
    the best score and what it leads the second by; and besides the logarithm of the label's
    frequency, and the sum over members of one over the rank. NaN where there is nothing to tell.

    Parameters
    ----------
    candidates : Candidates
    frequencies : ndarray of shape (n_labels,)
        Training instances of each label.
    """
    starts = candidates.starts()
    filled = starts[1:] > starts[:-1]
    columns = []
    for scores, ranks in zip(candidates.scores.T, candidates.ranks.T, strict=True):
        first, second = (_at_rank(candidates, scores, ranks, rank) for rank in (1, 2))
        best = first[candidates.rows]
        columns += [scores, best - scores, ranks, best, (first - second)[candidates.rows]]
    columns.append(np.log1p(frequencies[candidates.labels]))
    columns.append(np.nansum(1.0 / candidates.ranks, axis=1))
    assert filled.any() or not len(candidates.rows)
    return np.column_stack(columns).astype(np.float32)


def _at_rank(
    candidates: Candidates, scores: np.ndarray, ranks: np.ndarray, rank: int
) -> np.ndarray:
    """Return the score at some rank for each instance; NaN where there is none."""
    found = np.full(candidates.n, np.nan)
    here = ranks == rank
    found[candidates.rows[here]] = scores[here]
    return found

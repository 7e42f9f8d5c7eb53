"""Pairs of an instance and a label that some member ranks high, and their features."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Ranked = tuple[np.ndarray, np.ndarray]

#: Features of a pair for each member, as ``describe`` lays them out, and whether a pair may only
#: become more (1) or less (-1) likely to be relevant as the feature grows.
OF_MEMBER = {"score": 1, "behind": -1, "rank": -1, "best": 0, "lead": 0}
#: And those that follow them.
OF_PAIR = {"log_frequency": 0, "votes": 1}
#: Features are clipped here: squares of larger ones would overflow float32.
_HUGE = 1e15


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
        Instances, also those without a pair.
    """

    rows: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    ranks: np.ndarray
    n: int

    def take(self, kept: np.ndarray) -> "Candidates":
        """Return some of the pairs."""
        rows, labels, scores, ranks = (part[kept] for part in self[:4])
        return Candidates(rows, labels, scores, ranks, self.n)


def gather(answers: Sequence[Ranked], n_candidates: int) -> Candidates:
    """Return the pairs among the first `n_candidates` answers of any member.

    Parameters
    ----------
    answers : sequence of (labels, scores)
        One for each member, as of ``topk``: arrays of shape (n, k), labels padded with -1.
    n_candidates : int
        Of each member. Its further answers score the candidates of others.

    Returns
    -------
    Candidates
    """
    n = len(answers[0][0])
    n_labels = 1 + max(int(labels.max(initial=-1)) for labels, _ in answers)
    named = [_keys(labels, n_labels) for labels, _ in answers]
    first = np.concatenate([keys[:, :n_candidates].ravel() for keys in named])
    first = np.sort(first[first >= 0])
    pairs = first[np.append(True, first[1:] > first[:-1])[: len(first)]]
    shape = (len(pairs), len(answers))
    scores, ranks = np.full(shape, np.nan), np.full(shape, np.nan)
    for member, (keys, (_, values)) in enumerate(zip(named, answers, strict=True)):
        at = np.searchsorted(pairs, keys)
        at[at == len(pairs)] = 0
        known = (keys >= 0) & (pairs[at] == keys) if len(pairs) else np.zeros(keys.shape, bool)
        scores[at[known], member] = values[known]
        ranks[at[known], member] = np.nonzero(known)[1] + 1
    rows, labels = np.divmod(pairs, max(n_labels, 1))
    return Candidates(rows, labels, scores, ranks, n)


def _keys(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Return a number for each pair, rising by instance and label; -1 for padding."""
    rows = np.arange(len(labels), dtype=np.int64)[:, None]
    return np.where(labels >= 0, rows * n_labels + labels, -1)


def among(
    plain: Sequence[Ranked],
    asked: Sequence[Ranked],
    shortlist: Candidates,
    n_candidates: int,
    depth: int,
) -> Candidates:
    """Return pairs of allowed labels, with the members' scores and ranks.

    Pairs of the shortlist keep the scores and ranks of an unrestricted query, and with them their
    probabilities. All others rank behind the `depth` labels of such a query.

    Parameters
    ----------
    plain : sequence of (labels, scores)
        Of an unrestricted query, one for each member: its best labels, (n, depth).
    asked : sequence of (labels, scores)
        Likewise, of the allowed labels.
    shortlist : Candidates
        Of `plain`.
    n_candidates : int
        Labels of each member in `asked` that are taken.
    depth : int
    """
    pairs = gather(asked, n_candidates)
    n_labels = 1 + max(int(labels.max(initial=-1)) for labels, _ in (*plain, *asked))
    keys = pairs.rows * n_labels + pairs.labels
    known = shortlist.rows * n_labels + shortlist.labels
    is_listed = np.isin(keys, known)
    scores, ranks = pairs.scores.copy(), pairs.ranks + depth
    for member, (labels, values) in enumerate(plain):
        own = _keys(labels, n_labels).ravel()
        order = np.argsort(own, kind="stable")
        at = order[np.searchsorted(own, keys, sorter=order).clip(max=len(own) - 1)]
        found = own[at] == keys
        scores[found, member] = values.ravel()[at[found]]
        ranks[found, member] = at[found] % labels.shape[1] + 1
        scores[is_listed & ~found, member] = ranks[is_listed & ~found, member] = np.nan
    return Candidates(pairs.rows, pairs.labels, scores, ranks, pairs.n)


def describe(
    candidates: Candidates, frequencies: np.ndarray, best: Candidates | None = None
) -> np.ndarray:
    """Return the features of pairs, float32 of shape (n_pairs, 5 n_members + 2), NaN if unknown.

    For each member: the score, how far it is behind the member's best for the instance, the rank,
    that best score, and its lead over the second. Then the logarithm of the label's frequency, and
    the sum of one over the rank.

    Parameters
    ----------
    candidates : Candidates
    frequencies : ndarray of shape (n_labels,)
        Instances of each label that the members were trained on.
    best : Candidates, default=None
        Where the best of each member are, if these are others.
    """
    rows, best = candidates.rows, candidates if best is None else best
    columns = []
    best_of = zip(best.scores.T, best.ranks.T, strict=True)
    of_members = zip(candidates.scores.T, candidates.ranks.T, best_of, strict=True)
    for scores, ranks, of_best in of_members:
        first, second = (_at_rank(best, *of_best, rank) for rank in (1, 2))
        columns += [scores, first[rows] - scores, ranks, first[rows], (first - second)[rows]]
    columns.append(np.log1p(frequencies[candidates.labels]))
    columns.append(np.nansum(1.0 / candidates.ranks, axis=1))
    return np.clip(np.column_stack(columns), -_HUGE, _HUGE).astype(np.float32)


def bytes_of_pair(n_members: int) -> int:
    """Return the bytes of a pair in training: itself, its features, and two copies of these."""
    n_features = len(OF_MEMBER) * n_members + len(OF_PAIR)
    return 16 * (1 + n_members) + (4 + 8 + 8) * n_features


def directions(n_members: int) -> list[int]:
    """Return for each feature of ``describe`` 1, -1 or 0, as in ``OF_MEMBER``."""
    return [*OF_MEMBER.values()] * n_members + [*OF_PAIR.values()]


def feature_names(members: Sequence[str]) -> list[str]:
    """Return the names of the features of ``describe``."""
    return [f"{member}: {name}" for member in members for name in OF_MEMBER] + [*OF_PAIR]


def _at_rank(
    candidates: Candidates, scores: np.ndarray, ranks: np.ndarray, rank: int
) -> np.ndarray:
    """Return the score at some rank for each instance; NaN where there is none."""
    found = np.full(candidates.n, np.nan)
    here = ranks == rank
    found[candidates.rows[here]] = scores[here]
    return found


def best_of_pairs(
    candidates: Candidates, values: np.ndarray, k: int, fill: float = -np.inf
) -> Ranked:
    """Return the k pairs of each instance with the largest values, ties to the smaller label.

    Parameters
    ----------
    candidates : Candidates
    values : ndarray of float of shape (n_pairs,)
    k : int
    fill : float
        Value where an instance has fewer pairs.

    Returns
    -------
    labels : ndarray of int64 of shape (n, k)
        Padded with -1.
    values : ndarray of shape (n, k)
    """
    order = np.lexsort((-values, candidates.rows))  # labels rise within a row
    rows = candidates.rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = place < k
    labels = np.full((candidates.n, k), -1, np.int64)
    best = np.full((candidates.n, k), fill, values.dtype)
    labels[rows[kept], place[kept]] = candidates.labels[order][kept]
    best[rows[kept], place[kept]] = values[order][kept]
    return labels, best


def is_relevant(candidates: Candidates, indptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return whether each pair is one of an instance and a label that it has.

    Parameters
    ----------
    candidates : Candidates
    indptr, labels : ndarray
        Labels of each instance, in CSR form.

    Returns
    -------
    ndarray of bool of shape (n_pairs,)
    """
    n_labels = 1 + max(int(labels.max(initial=0)), int(candidates.labels.max(initial=0)))
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    return np.isin(candidates.rows * n_labels + candidates.labels, rows * n_labels + labels)

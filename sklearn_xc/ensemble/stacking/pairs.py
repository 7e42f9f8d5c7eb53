"""Pairs of an instance and a label that some member ranks high, and their features."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc._input.sklearn_private import check_method_params
from sklearn_xc._training.boosting import best_share, boosting
from sklearn_xc.ensemble.held_out import HeldOutAnswers
from sklearn_xc.ensemble.members import Answers, named_errors
from sklearn_xc.ensemble.stacking.learner import (
    BoostedTrees,
    Mixture,
    ScaledLogistic,
    Votes,
    pair_probabilities,
)
from sklearn_xc.metrics import precision_at_k, psp_at_k
from sklearn_xc.metrics.check import topk_of_csr

#: Features of a pair for each member, as ``describe`` lays them out, and whether a pair may only
#: become more (1) or less (-1) likely to be relevant as the feature grows.
OF_MEMBER = {"score": 1, "behind": -1, "rank": -1, "best": 0, "lead": 0}
#: And those that follow them.
OF_PAIR = {"log_frequency": 0, "votes": 1}
#: Features are clipped here: squares of larger ones would overflow float32.
_HUGE = 1e15
#: Folds of the cross-validation of the learner itself.
_FOLDS = 3


class CandidatePairs(NamedTuple):
    """Pairs, those of an instance adjacent and its labels ascending.

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

    def take(self, kept: np.ndarray) -> "CandidatePairs":
        """Return some of the pairs."""
        rows, labels, scores, ranks = (part[kept] for part in self[:4])
        return CandidatePairs(rows, labels, scores, ranks, self.n)


def gather(answers: Sequence[Answers], n_candidates: int) -> CandidatePairs:
    """Return the pairs among the first `n_candidates` answers of any member.

    Parameters
    ----------
    answers : sequence of (labels, scores)
        One for each member, as of ``topk``: arrays of shape (n, k), labels padded with -1.
    n_candidates : int
        Of each member. Its further answers score the candidates of others.

    Returns
    -------
    CandidatePairs
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
    return CandidatePairs(rows, labels, scores, ranks, n)


def _keys(labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Return a number for each pair, ascending by instance and label; -1 for padding."""
    rows = np.arange(len(labels), dtype=np.int64)[:, None]
    return np.where(labels >= 0, rows * n_labels + labels, -1)


def among(
    plain: Sequence[Answers],
    asked: Sequence[Answers],
    shortlist: CandidatePairs,
    n_candidates: int,
    depth: int,
) -> CandidatePairs:
    """Return pairs of allowed labels, with the members' scores and ranks.

    Pairs of the shortlist keep the scores and ranks of an unrestricted query, and with them their
    probabilities. All others rank behind the `depth` labels of such a query.

    Parameters
    ----------
    plain : sequence of (labels, scores)
        Of an unrestricted query, one for each member: its best labels, (n, depth).
    asked : sequence of (labels, scores)
        Likewise, of the allowed labels.
    shortlist : CandidatePairs
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
    scores = pairs.scores.copy()
    ranks = pairs.ranks + depth
    for member, (labels, values) in enumerate(plain):
        own = _keys(labels, n_labels).ravel()
        order = np.argsort(own, kind="stable")
        at = order[np.searchsorted(own, keys, sorter=order).clip(max=len(own) - 1)]
        found = own[at] == keys
        scores[found, member] = values.ravel()[at[found]]
        ranks[found, member] = at[found] % labels.shape[1] + 1
        scores[is_listed & ~found, member] = ranks[is_listed & ~found, member] = np.nan
    return CandidatePairs(pairs.rows, pairs.labels, scores, ranks, pairs.n)


def describe(
    candidates: CandidatePairs, frequencies: np.ndarray, best: CandidatePairs | None = None
) -> np.ndarray:
    """Return the features of pairs, float32 of shape (n_pairs, 5 n_members + 2), NaN if unknown.

    For each member: the score, how far it is behind the member's best for the instance, the rank,
    that best score, and its lead over the second. Then the logarithm of the label's frequency, and
    the sum of one over the rank.

    Parameters
    ----------
    candidates : CandidatePairs
    frequencies : ndarray of shape (n_labels,)
        Instances of each label that the members were trained on.
    best : CandidatePairs, default=None
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
    candidates: CandidatePairs, scores: np.ndarray, ranks: np.ndarray, rank: int
) -> np.ndarray:
    """Return the score at some rank for each instance; NaN where there is none."""
    found = np.full(candidates.n, np.nan)
    here = ranks == rank
    found[candidates.rows[here]] = scores[here]
    return found


def topk_of_pairs(pairs: CandidatePairs, values: np.ndarray, k: int) -> Answers:
    """Return the k labels of each instance with the largest values, ties to the smaller label.

    Parameters
    ----------
    pairs : CandidatePairs
    values : ndarray of float of shape (n_pairs,)
    k : int
    """
    indptr = np.searchsorted(pairs.rows, np.arange(pairs.n + 1))
    shape = (pairs.n, 1 + int(pairs.labels.max(initial=0)))
    return Answers(*topk_of_csr(sp.csr_array((values, pairs.labels, indptr), shape=shape), k))


def is_relevant(candidates: CandidatePairs, indptr: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return whether each pair is one of an instance and a label that it has.

    Parameters
    ----------
    candidates : CandidatePairs
    indptr, labels : ndarray
        Labels of each instance, in CSR form.

    Returns
    -------
    ndarray of bool of shape (n_pairs,)
    """
    n_labels = 1 + max(int(labels.max(initial=0)), int(candidates.labels.max(initial=0)))
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    return np.isin(candidates.rows * n_labels + candidates.labels, rows * n_labels + labels)


class PairTraining:
    """Trains learners on pairs of held-out rows and candidate labels.

    Parameters
    ----------
    held_out : HeldOutAnswers
    n_candidates : int
    params : dict
        Further arguments of ``fit`` of the learner, of all instances.
    caller : str
        For messages.

    Attributes
    ----------
    pairs : CandidatePairs
        Its rows count from 0 over the held-out rows of all folds.
    features : ndarray of float32 of shape (n_pairs, n_features)
    first : list of ndarray of int64 of shape (n_rows, 1)
        The best label of each member.
    rows : ndarray of int64 of shape (n_rows,)
        Which instances were held out.
    truth : csr_array of shape (n_rows, n_labels)
    relevant : ndarray of bool of shape (n_pairs,)
    """

    def __init__(
        self, held_out: HeldOutAnswers, n_candidates: int, params: dict[str, Any], caller: str
    ) -> None:
        self.seed, self.caller = held_out.seed, caller
        folds = [gather(answers, n_candidates) for answers in held_out.answers]
        self.features = np.concatenate(
            [describe(*fold) for fold in zip(folds, held_out.counts, strict=True)]
        )
        begins = np.cumsum([0, *(pairs.n for pairs in folds)])
        parts = [
            (pairs.rows + begin, *pairs[1:4])
            for pairs, begin in zip(folds, begins[:-1], strict=True)
        ]
        joined = (np.concatenate(part) for part in zip(*parts, strict=True))
        self.pairs = CandidatePairs(*joined, int(begins[-1]))
        self.first = [
            np.concatenate([answers.labels[:, :1] for answers in of_member])
            for of_member in zip(*held_out.answers, strict=True)
        ]
        self.rows = np.concatenate(held_out.rows)
        self.weight = held_out.weight[self.rows]
        self.n = len(held_out.weight)
        self.params = {} if (self.weight == 1.0).all() else params
        self.truth = held_out.truth[self.rows]
        self.relevant = is_relevant(self.pairs, self.truth.indptr, self.truth.indices)

    def fit(self, final_estimator: Any) -> tuple[Any, np.ndarray]:
        """Return a fitted learner, and out-of-fold probabilities of all pairs.

        Without a `final_estimator` these are of a mixture of two default learners.
        """
        if final_estimator is not None:
            return self._fit(final_estimator), self._cross_validate(final_estimator)
        signs = directions(len(self.first))
        learners = [boosting(len(self.relevant), signs, self.seed), ScaledLogistic()]
        probabilities = [self._cross_validate(learner) for learner in learners]
        weight = self.weight[self.pairs.rows]
        share = best_share(probabilities[0], probabilities[1], self.relevant, weight)
        shares = (share, 1.0 - share)
        used = [(learner, share) for learner, share in zip(learners, shares, strict=True) if share]
        fitted = [BoostedTrees.replacing(self._fit(learner)) for learner, _ in used]
        return Mixture(fitted, [share for _, share in used]), np.average(probabilities, 0, shares)

    def _fit(self, learner: Any, kept: np.ndarray | None = None) -> Any:
        """Return a learner fitted to all pairs, or to those of a mask."""
        kept = np.ones(len(self.relevant), bool) if kept is None else kept
        relevant = self.relevant[kept]
        if not relevant.any() or relevant.all():
            return Votes()
        given = check_method_params(np.empty(self.n), self.params, self.rows[self.pairs.rows[kept]])
        with named_errors("final_estimator", self.caller):
            return clone(learner).fit(self.features[kept], relevant.astype(np.int8), **given)

    def _cross_validate(self, learner: Any) -> np.ndarray:
        """Return probabilities of all pairs, each from a fit without the pair's instance."""
        order = np.random.default_rng((self.seed, 3)).permutation(self.pairs.n)
        fold = (order % _FOLDS)[self.pairs.rows]
        probabilities = np.empty(len(fold))
        for one in np.unique(fold):
            out = fold == one
            probabilities[out] = pair_probabilities(self._fit(learner, ~out), self.features[out])
        return probabilities

    def report(
        self,
        names: list[str],
        probabilities: np.ndarray,
        gains: np.ndarray,
        propensities: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Return P@1 and PSP@1 of each member and of the stack on the held-out rows.

        Parameters
        ----------
        names : list of str
            Of the members.
        probabilities : ndarray of float of shape (n_pairs,)
            As of ``fit``.
        gains, propensities : ndarray of float of shape (n_labels,)
            The gain of a hit of each label for the stack's order; and propensities.
        """
        stacked, _ = topk_of_pairs(self.pairs, probabilities * gains[self.pairs.labels], 1)
        how: Any = {"k": 1, "sample_weight": self.weight}
        ranked = [*self.first, stacked]
        return {
            "name": np.array([*names, "stack"]),
            "P@1": np.array([precision_at_k(self.truth, one, **how) for one in ranked]),
            "PSP@1": np.array(
                [psp_at_k(self.truth, one, propensities=propensities, **how) for one in ranked]
            ),
        }

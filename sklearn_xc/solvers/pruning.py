"""What pruning costs, as a user sees it: answers for a sample of the training instances."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc._declared_state import Array, declares
from sklearn_xc.kernels.one_vs_all.pruning import pruning_kernel
from sklearn_xc.solvers.problem import OneVsAllProblem

#: Instances in a sample, evenly spaced among those with a label. Where every instance has a loss,
#: every label is scored for all of the sample, hence the smaller one.
SAMPLE_SIZE = 300
SMALL_SAMPLE = 100
#: Hits among so many first labels are counted, up to the last of these.
KS = (1, 5)
#: A loss of more than this share of the hits, and of more than so many, is notable. Training
#: instances are fitted: their F1 falls by several times what that of others does.
#: docs/one_vs_all.md has the loss on held-out instances where this warns and where it does not.
HITS_SHARE = 0.01
FEWEST_HITS = 2
F1_SHARE = 0.05


@declares(
    best=Array("float32", 2, "sampled", max(KS), finite=False),
    n_above=Array("float64", 2, least=0),
    place=Array("int64", "sampled positives", least=0, below="sampled"),
    of_positives=Array("float64", 2, "sampled positives", finite=False),
)
@dataclass
class SampleScores:
    """Scores that some labels give to the instances of a sample; row 0 before pruning, 1 after.

    Attributes
    ----------
    best : ndarray of float32 of shape (2, n_sampled, max(KS))
        The best of negatives; -inf where fewer have a loss.
    n_above : ndarray of float64 of shape (2,)
        Negatives with a score above 0.
    place : ndarray of int64 of shape (n_positives,)
        Place in the sample of each positive.
    of_positives : ndarray of float64 of shape (2, n_positives)
        Its score; -inf for those that would have no loss as negatives.
    """

    best: np.ndarray
    n_above: np.ndarray
    place: np.ndarray
    of_positives: np.ndarray


@declares()
class PruningCost(NamedTuple):
    """Answers for a sample, before pruning and after.

    Attributes
    ----------
    n_sampled : int
        Instances.
    hits : dict of int to tuple of int
        For each of ``KS``, how many correct labels are among the first of their instance.
    f1 : tuple of float
        Micro-averaged F1 of the labels that score above 0.
    """

    n_sampled: int
    hits: dict[int, tuple[int, int]]
    f1: tuple[float, float]

    def losses(self, n_labels: int, has_threshold: bool) -> list[tuple[str, float, float]]:
        """Return the name and the value, before and after, of each metric that fell notably.

        Parameters
        ----------
        n_labels : int
            Labels that are ranked.
        has_threshold : bool
            Whether labels are predicted by the sign of their score, so that F1 means something.
        """
        found = [
            (f"precision@{k}", before / (k * self.n_sampled), after / (k * self.n_sampled))
            for k, (before, after) in self.hits.items()
            if k < n_labels and before - after > max(FEWEST_HITS, HITS_SHARE * before)
        ]
        before, after = self.f1
        if has_threshold and after < (1.0 - F1_SHARE) * before:
            found.append(("F1", before, after))
        return found


class SampleScorer:
    """Takes up the scores of one label after the other.

    Parameters
    ----------
    problem : OneVsAllProblem
        The instances and their labels.
    """

    def __init__(self, problem: OneVsAllProblem) -> None:
        self.problem = problem
        self.sample, self.place = _draw(problem)
        n_sampled = len(self.sample)
        self.kernels = pruning_kernel(problem.loss, problem.rows_of)
        self.scores = np.full((2, n_sampled), -np.inf)
        self.scored = np.empty(n_sampled, np.int32)
        self.best = np.full((2, n_sampled, max(KS)), -np.inf)
        self.n_above = np.zeros(2)
        self.of_positives = np.empty((3, 0))
        self.n_positives = 0

    def add(
        self,
        label: int,
        candidates: np.ndarray,
        active: np.ndarray,
        before: np.ndarray,
        after: np.ndarray,
    ) -> None:
        """Take up a label, given its weights, and the rows that may have a loss after and before.

        Parameters
        ----------
        label : int
            The label.
        candidates, active : ndarray of int32
            Rows that may have a loss after pruning, and before; for losses that are never zero not
            looked at.
        before, after : ndarray of shape (d + 1,)
            Weights, intercept last.
        """
        positives = self.problem.positives(label)
        self._reserve(self.n_positives + min(len(positives), len(self.sample)))
        self.n_positives = self.kernels.score_sample(
            self.problem.instances.arrays, read_only(candidates), read_only(active), positives,
            self.sample, self.place, before, after, self.scores, self.scored, self.best,
            self.n_above, self.of_positives, self.n_positives,
        )  # fmt: skip

    def add_sets(self, batch: Any) -> None:
        """Take up labels that were solved on working sets, given as a ``Batch``."""
        problem = self.problem
        self._reserve(self.n_positives + int(np.minimum(batch.n_positives, len(self.sample)).sum()))
        vectors = np.zeros((2, problem.n_features + 1), problem.dtype)
        in_sample = np.empty(int(np.diff(batch.row_indptr).max()) + 1, np.int32)
        self.n_positives = self.kernels.score_sets(
            problem.instances.arrays, problem.y_indptr, problem.y_rows, batch.label,
            batch.row_indptr, batch.rows, batch.indptr, batch.features, batch.stand, problem.prune,
            self.sample, self.place, vectors, in_sample, self.scores, self.scored, self.best,
            self.n_above, self.of_positives, self.n_positives,
        )  # fmt: skip

    def result(self) -> SampleScores:
        """Return what was taken up."""
        place, *scores = self.of_positives[:, : self.n_positives]
        return SampleScores(
            self.best.astype(np.float32), self.n_above, place.astype(np.int64), np.array(scores)
        )

    def _reserve(self, size: int) -> None:
        held = self.of_positives.shape[1]
        if held < size:
            grown = np.empty((3, max(size, 2 * held)))
            grown[:, :held] = self.of_positives
            self.of_positives = grown


def sample_bytes(n: int) -> int:
    """Return about how many bytes a scorer takes for n instances."""
    return 4 * n + min(n, SAMPLE_SIZE) * 8 * (2 + 3 * max(KS))


def together(parts: Iterable[SampleScores | None]) -> SampleScores | None:
    """Return the scores that the labels of several parts give, in whatever order; None of none."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    best = known[0].best
    for part in known[1:]:
        best = np.sort(np.concatenate([best, part.best], axis=2), axis=2)[:, :, -max(KS) :]
    return SampleScores(
        best,
        np.sum([part.n_above for part in known], axis=0),
        np.concatenate([part.place for part in known]),
        np.concatenate([part.of_positives for part in known], axis=1),
    )


def sum_up(found: SampleScores) -> PruningCost:
    """Return the answers for the sample from the scores of all labels."""
    best, place, scores = np.sort(found.best, axis=2), found.place, found.of_positives
    before, after = (_ranks(place, scores[side], best[side]) for side in range(2))
    hits = {k: (int((before < k).sum()), int((after < k).sum())) for k in KS}
    n_found = (scores > 0).sum(axis=1)
    f1 = 2 * n_found / np.maximum(n_found + found.n_above + scores.shape[1], 1)
    return PruningCost(best.shape[1], hits, (float(f1[0]), float(f1[1])))


def _ranks(place: np.ndarray, scores: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Return how many labels come before each positive of its instance, or a large number."""
    scores = scores.astype(best.dtype)
    order = np.lexsort((-scores, place))
    first = np.searchsorted(place[order], place[order])
    ranks = np.empty(len(place), np.int64)
    ranks[order] = np.arange(len(place)) - first
    ranks += (best[place] > scores[:, None]).sum(axis=1)
    return np.where(scores > -np.inf, ranks, len(place) + max(KS))


def sample_size(problem: OneVsAllProblem) -> int:
    """Return the number of instances in the sample."""
    return len(_draw(problem)[0])


def _draw(problem: OneVsAllProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the sample, and the place of each row in it, -1 for none."""
    n = problem.n_samples
    is_labelled = np.zeros(n, bool)
    is_labelled[problem.y_rows] = True
    labelled = np.flatnonzero(is_labelled).astype(np.int32)
    size = SAMPLE_SIZE if np.isfinite(problem.loss.active_below) else SMALL_SAMPLE
    at = np.linspace(0, len(labelled), min(size, len(labelled)), endpoint=False).astype(np.int64)
    sample, place = labelled[at], np.full(n, -1, np.int32)
    place[sample] = np.arange(len(sample), dtype=np.int32)
    return read_only(sample), read_only(place)

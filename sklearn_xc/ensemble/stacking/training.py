"""Pairs of held-out rows, and the learner that is trained on them."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc._input.sklearn_private import check_method_params
from sklearn_xc._labels.out_of_fold import said_by
from sklearn_xc.ensemble.held_out import HeldOut
from sklearn_xc.ensemble.stacking.candidates import (
    Candidates,
    best_of_pairs,
    describe,
    directions,
    gather,
    is_relevant,
)
from sklearn_xc.ensemble.stacking.learner import (
    BoostedTrees,
    Mixture,
    Votes,
    best_mixture,
    default_learners,
    probabilities,
)
from sklearn_xc.metrics import precision_at_k, psp_at_k

#: Folds of the cross-validation of the learner itself.
_FOLDS = 3


class PairTraining:
    """Trains learners on pairs of held-out rows and candidate labels.

    Parameters
    ----------
    held_out : HeldOut
    n_candidates : int
    params : dict
        Further arguments of ``fit`` of the learner, of all instances.
    who : str
        For messages.

    Attributes
    ----------
    pairs : Candidates
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
        self, held_out: HeldOut, n_candidates: int, params: dict[str, Any], who: str
    ) -> None:
        self.seed, self.who = held_out.seed, who
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
        self.pairs = Candidates(*joined, int(begins[-1]))
        self.first = [
            np.concatenate([answers.labels[:, :1] for answers in of_member])
            for of_member in zip(*held_out.answers, strict=True)
        ]
        self.rows = np.concatenate(held_out.rows)
        self.weight, self.n = held_out.weight[self.rows], len(held_out.weight)
        self.params = {} if (self.weight == 1.0).all() else params
        indptr, labels = held_out.targets.by_instance(self.n)
        shape = (self.n, len(held_out.targets.classes))
        ones = np.ones(len(labels), np.int8)
        self.truth = sp.csr_array((ones, labels, indptr), shape=shape)[self.rows]
        self.relevant = is_relevant(self.pairs, self.truth.indptr, self.truth.indices)

    def fit(self, final_estimator: Any) -> tuple[Any, np.ndarray]:
        """Return a fitted learner, and out-of-fold probabilities of all pairs.

        Without a `final_estimator` these are of a mixture of two default learners.
        """
        if final_estimator is not None:
            return self._fit(final_estimator), self._cross_validate(final_estimator)
        signs = directions(len(self.first))
        learners = default_learners(len(self.relevant), signs, self.seed)
        chances = [self._cross_validate(learner) for learner in learners]
        shares = best_mixture(chances, self.relevant, self.weight[self.pairs.rows])
        used = [(learner, share) for learner, share in zip(learners, shares, strict=True) if share]
        fitted = [BoostedTrees.replacing(self._fit(learner)) for learner, _ in used]
        return Mixture(fitted, [share for _, share in used]), np.average(chances, 0, shares)

    def _fit(self, learner: Any, kept: np.ndarray | None = None) -> Any:
        """Return a learner fitted to all pairs, or to those of a mask."""
        kept = np.ones(len(self.relevant), bool) if kept is None else kept
        relevant = self.relevant[kept]
        if not relevant.any() or relevant.all():
            return Votes()
        given = check_method_params(np.empty(self.n), self.params, self.rows[self.pairs.rows[kept]])
        with said_by("final_estimator", self.who):
            return clone(learner).fit(self.features[kept], relevant.astype(np.int8), **given)

    def _cross_validate(self, learner: Any) -> np.ndarray:
        """Return probabilities of all pairs, each from a fit without the pair's instance."""
        order = np.random.default_rng((self.seed, 3)).permutation(self.pairs.n)
        fold = (order % _FOLDS)[self.pairs.rows]
        chances = np.empty(len(fold))
        for one in np.unique(fold):
            out = fold == one
            chances[out] = probabilities(self._fit(learner, ~out), self.features[out])
        return chances

    def report(
        self, names: list[str], chances: np.ndarray, gains: np.ndarray, propensities: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return P@1 and PSP@1 of each member and of the stack on the held-out rows.

        Parameters
        ----------
        names : list of str
            Of the members.
        chances : ndarray of float of shape (n_pairs,)
            As of ``fit``.
        gains, propensities : ndarray of float of shape (n_labels,)
            The gain of a hit of each label for the stack's order; and propensities.
        """
        stacked, _ = best_of_pairs(self.pairs, chances * gains[self.pairs.labels], 1)
        how: Any = {"k": 1, "sample_weight": self.weight}
        ranked = [*self.first, stacked]
        return {
            "name": np.array([*names, "stack"]),
            "P@1": np.array([precision_at_k(self.truth, one, **how) for one in ranked]),
            "PSP@1": np.array(
                [psp_at_k(self.truth, one, propensities=propensities, **how) for one in ranked]
            ),
        }

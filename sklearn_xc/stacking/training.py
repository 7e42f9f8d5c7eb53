"""What pairs are learned from, and what the learner makes of them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from sklearn_xc._data import Targets
from sklearn_xc._out_of_fold import Answers, said_by
from sklearn_xc._sklearn import check_method_params
from sklearn_xc.metrics import precision_at_k, psp_at_k
from sklearn_xc.stacking.candidates import (
    Candidates,
    are_relevant,
    best_of_pairs,
    describe,
    directions,
    gather,
)
from sklearn_xc.stacking.learner import (
    Mixture,
    Votes,
    best_mixture,
    default_learners,
    probabilities,
    without_scikit_learn,
)

#: Folds in which the learner itself is judged.
_JUDGED = 3


class Lesson(NamedTuple):
    """Pairs of held-out rows.

    Attributes
    ----------
    pairs : Candidates
        Its rows count from 0 over all lessons' rows that were concatenated.
    features : ndarray of float32 of shape (n_pairs, n_features)
    first : list of ndarray of int64 of shape (n, 1)
        The best label of each member.
    rows : ndarray of int64 of shape (n,)
        Which instance each row is.
    """

    pairs: Candidates
    features: np.ndarray
    first: list[np.ndarray]
    rows: np.ndarray


def make_lesson(
    answers: list[Answers], rows: np.ndarray, frequencies: np.ndarray, n_candidates: int
) -> Lesson:
    """Return the pairs of some held-out rows.

    Parameters
    ----------
    answers : list of Answers
        Of members that were not trained on these rows.
    rows : ndarray of int64
    frequencies : ndarray of shape (n_labels,)
        Instances of each label that the members were trained on. With those of all rows, the label
        of a held-out instance would tell itself.
    n_candidates : int
    """
    pairs = gather(answers, n_candidates)
    return Lesson(pairs, describe(pairs, frequencies), [a.labels[:, :1] for a in answers], rows)


def joined(lessons: list[Lesson]) -> Lesson:
    """Return the lessons of all folds as one."""
    ends = np.cumsum([lesson.pairs.n for lesson in lessons])
    pairs = Candidates(
        np.concatenate(
            [le.pairs.rows + end - le.pairs.n for le, end in zip(lessons, ends, strict=True)]
        ),
        np.concatenate([lesson.pairs.labels for lesson in lessons]),
        np.concatenate([lesson.pairs.scores for lesson in lessons]),
        np.concatenate([lesson.pairs.ranks for lesson in lessons]),
        int(ends[-1]),
    )
    return Lesson(
        pairs,
        np.concatenate([lesson.features for lesson in lessons]),
        [
            np.concatenate(of_member)
            for of_member in zip(*(le.first for le in lessons), strict=True)
        ],
        np.concatenate([lesson.rows for lesson in lessons]),
    )


class Teacher:
    """Fits learners to a lesson.

    Parameters
    ----------
    final_estimator : classifier or None
        The parameter of the stack.
    params : dict
        Further arguments of its ``fit``, of all instances.
    lesson : Lesson
    targets : Targets
        Of all instances.
    weight : ndarray of float of shape (n,)
        Likewise.
    seed : int
    who : str
        Named in messages.

    Attributes
    ----------
    truth : csr_array of shape (n_rows, n_labels)
        Labels of the lesson's rows.
    relevant : ndarray of bool of shape (n_pairs,)
    """

    def __init__(
        self,
        final_estimator: Any,
        params: dict[str, Any],
        lesson: Lesson,
        targets: Targets,
        weight: np.ndarray,
        seed: int,
        who: str,
    ) -> None:
        self.final_estimator, self.lesson = final_estimator, lesson
        self.seed, self.who = seed, who
        self.weight, self.n = weight[lesson.rows], len(weight)
        self.params = {} if (self.weight == 1.0).all() else params
        indptr, labels = targets.by_instance(len(weight))
        ones = np.ones(len(labels), np.int8)
        shape = (len(weight), len(targets.classes))
        self.truth = sp.csr_array((ones, labels, indptr), shape=shape)[lesson.rows]
        self.relevant = are_relevant(lesson.pairs, self.truth.indptr, self.truth.indices)

    def teach(self) -> tuple[Any, np.ndarray]:
        """Return a learner, and probabilities of pairs by learners that have not seen their rows.

        Without a ``final_estimator`` two are tried, and mixed as suits these probabilities.
        """
        if self.final_estimator is not None:
            return self._fit(self.final_estimator), self._examine(self.final_estimator)
        signs = directions(len(self.lesson.first))
        learners = default_learners(len(self.relevant), signs, self.seed)
        chances = [self._examine(learner) for learner in learners]
        weight = self.weight[self.lesson.pairs.rows]
        shares = best_mixture(chances, self.relevant, weight)
        used = [(learner, share) for learner, share in zip(learners, shares, strict=True) if share]
        fitted = [without_scikit_learn(self._fit(learner)) for learner, _ in used]
        return Mixture(fitted, [share for _, share in used]), np.average(chances, 0, shares)

    def _fit(self, learner: Any, kept: np.ndarray | None = None) -> Any:
        """Return a learner fitted to all pairs, or to those of a mask."""
        kept = np.ones(len(self.relevant), bool) if kept is None else kept
        relevant = self.relevant[kept]
        if not relevant.any() or relevant.all():
            return Votes()
        of_pairs = self.lesson.rows[self.lesson.pairs.rows[kept]]
        given = check_method_params(np.empty(self.n), self.params, of_pairs)
        features = self.lesson.features[kept]
        with said_by("final_estimator", self.who):
            return clone(learner).fit(features, relevant.astype(np.int8), **given)

    def _examine(self, learner: Any) -> np.ndarray:
        """Return probabilities of all pairs, each from a fit that has not seen its instance."""
        pairs = self.lesson.pairs
        order = np.random.default_rng((self.seed, 3)).permutation(pairs.n)
        fold = (order % _JUDGED)[pairs.rows]
        chances = np.empty(len(fold))
        for one in np.unique(fold):
            out = fold == one
            chances[out] = probabilities(self._fit(learner, ~out), self.lesson.features[out])
        return chances

    def report(
        self, names: list[str], chances: np.ndarray, gains: np.ndarray, propensities: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return precision@1, plain and propensity-scored, of each member and of the stack.

        Parameters
        ----------
        names : list of str
            Of the members.
        chances : ndarray of float of shape (n_pairs,)
            As of ``teach``.
        gains, propensities : ndarray of float of shape (n_labels,)
            What a hit of each label counts for the stack's order; and propensities.
        """
        pairs = self.lesson.pairs
        ranked = [*self.lesson.first, best_of_pairs(pairs, chances * gains[pairs.labels], 1)[0]]
        weight = self.weight
        plain = [precision_at_k(self.truth, one, k=1, sample_weight=weight) for one in ranked]
        scored = [
            psp_at_k(self.truth, one, k=1, propensities=propensities, sample_weight=weight)
            for one in ranked
        ]
        return {
            "name": np.array([*names, "stack"]), "P@1": np.array(plain), "PSP@1": np.array(scored)
        }  # fmt: skip

"""What is known of all problems of a fit, once they are solved."""

from typing import NamedTuple

import numpy as np

from sklearn_xc._blank_rows import LabelFrequencies, is_blank
from sklearn_xc.kernels.one_vs_all.constant_scores import constant_scores_kernel
from sklearn_xc.losses import Logistic
from sklearn_xc.solvers.problem import OneVsAllProblem


class Facts(NamedTuple):
    """What is known of all problems, once they are solved.

    Attributes
    ----------
    owner : str
        Named in messages.
    is_logistic : bool
        Whether scores are log-odds.
    is_bounded : bool
        Whether the ridge covers all weights, so that distances from the optimum have bounds.
    n_features : int
    prior : ndarray of shape (n_labels,)
        Scores of an instance without features.
    costs : tuple of ndarray of float64 of shape (n_labels,)
        Weights of the loss of a positive and of a negative.
    room : int or None
        Bytes that the weights may take in memory.
    """

    owner: str
    is_logistic: bool
    is_bounded: bool
    n_features: int
    prior: np.ndarray
    costs: tuple[np.ndarray, np.ndarray]
    room: int | None

    @classmethod
    def of(cls, problem: OneVsAllProblem, room: int | None) -> "Facts":
        """Return those of a problem."""
        return cls(
            owner=problem.owner,
            is_logistic=type(problem.margin_loss) is Logistic,
            is_bounded=problem.regularize_intercept or not problem.fit_intercept,
            n_features=problem.n_features,
            prior=_prior(problem),
            costs=problem.costs,
            room=room,
        )


def _prior(problem: OneVsAllProblem) -> np.ndarray:
    """Return the score that suits each label best if no instance had features."""
    labels = np.repeat(np.arange(problem.n_labels), np.diff(problem.y_indptr))
    frequencies = LabelFrequencies.of(
        problem.y_rows, labels, problem.weight, is_blank(problem.instances), problem.n_labels
    )
    positive = frequencies.of_blank()
    out = np.empty(problem.n_labels)
    constant_scores_kernel(problem.loss)(
        problem.plus * positive, problem.minus * (frequencies.total - positive), out
    )
    return out.astype(problem.dtype)

"""What a gradient by the scores is, and what works it out."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.gradients.set_loss import SetLoss
from sklearn_xc.mips.protocol import Candidates, MipsIndex
from sklearn_xc.parallel.team import Team

Method = TypeVar("Method", bound="GradientMethod")


@dataclass(frozen=True)
class GradientTask:
    """What a gradient is to be worked out for.

    Attributes
    ----------
    loss : SetLoss
        Gives losses and gradients by scores.
    make_index : callable
        Returns a new index, of the kind that the estimator was asked for.
    n_candidates : int
        Labels that a search retrieves, or that are drawn.
    n_columns : int
        Columns of W, without the column of intercepts if there is one.
    is_hidden : bool
        Whether instances are embedded by a hidden layer.
    seed : int
        Of what is random.
    n_drawn : int
        Mini-batches that labels were drawn for before.
    """

    loss: SetLoss
    make_index: Callable[[], MipsIndex]
    n_candidates: int
    n_columns: int
    is_hidden: bool = False
    seed: int = 0
    n_drawn: int = 0


class GradientMethod(ABC):
    """Gives gradients by the scores for the weights as they stand; holds what moves with them.

    Attributes
    ----------
    looks_ahead : bool
        Whether what is found serves for some steps; if not, for the weights as they stand. False by
        default.
    """

    looks_ahead: bool = False

    def build(self, W: np.ndarray) -> None:  # noqa: B027
        """Prepare for W, which has moved far since the last time; called before anything else.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
            A row for each label, with an intercept in the last column if there are intercepts. It
            moves in place from here on.
        """

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates | None:
        """Return labels that may matter to some instances; None, the default, if none are sought.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
        V : ndarray of float of shape (n, dim)
            Scores are ``V @ W.T``.
        team : Team
            Threads, on which nothing depends.

        Returns
        -------
        Candidates or None
        """
        return None

    @abstractmethod
    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient by the scores.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
        batch : Batch
            Instances.
        found : Candidates or None
            What ``search`` has found for them.
        team : Team
            Threads, on which nothing depends.

        Returns
        -------
        LabelGradient
        """

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:  # noqa: B027
        """Take notice that some rows of W have moved; nothing by default.

        Parameters
        ----------
        rows : ndarray of int32 of shape (m,)
            Distinct.
        lengths : ndarray of float of shape (m,)
            How far each has moved.
        """

    def recall(self, W: np.ndarray, queries: Callable[[], np.ndarray], k: int) -> float | None:
        """Return the share of the k best labels that are found; None, the default, if none are.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
        queries : callable
            Returns what the scores of some instances are linear in, (n, dim).
        k : int

        Returns
        -------
        float or None
            From 0 to 1.
        """
        return None

    def following(self: Method, W: np.ndarray) -> Method:
        """Return one that goes on from here with a copy of W, while this one stays as it is.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
            The copy.

        Returns
        -------
        GradientMethod
            Of the same class.
        """
        return copy.copy(self)

    def kept(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: by default all attributes but ``loss``."""
        return {name: value for name, value in vars(self).items() if name != "loss"}

    def going_on(self: Method, kept: dict[str, Any], W: np.ndarray) -> Method:
        """Return one that goes on from what another one kept.

        Parameters
        ----------
        kept : dict
            As ``kept`` returned it.
        W : ndarray of float of shape (n_labels, dim)
            The weights, as they were then.

        Returns
        -------
        GradientMethod
            Of the same class.
        """
        other = copy.copy(self)
        vars(other).update(kept)
        return other.following(W)


@runtime_checkable
class Gradient(Protocol):
    """Where the gradient by the scores comes from: parameters, which training never changes.

    Attributes
    ----------
    default_index : str or MipsIndex
        What is searched, also for answers, where the estimator's ``index`` is None.
    """

    @property
    def default_index(self) -> str | MipsIndex:
        """Return the index where the estimator has none."""

    def start(self, task: GradientTask) -> GradientMethod:
        """Return what gives the gradients of one training.

        Parameters
        ----------
        task : GradientTask
            What they are worked out for.

        Returns
        -------
        GradientMethod

        Raises
        ------
        ValueError
            If the parameters have no meaning for this task.
        """

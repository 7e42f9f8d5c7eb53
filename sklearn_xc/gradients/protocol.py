"""What a gradient by the scores is, and what works it out."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from sklearn_xc.gradients.batch import Batch, LabelGradient
from sklearn_xc.gradients.set_loss import SetLoss
from sklearn_xc.mips.protocol import Candidates, MipsIndex
from sklearn_xc.parallel.team import Team

Method = TypeVar("Method", bound="GradientMethod")


@dataclass(frozen=True)
class GradientTask:
    """What a gradient is computed for.

    Attributes
    ----------
    loss : SetLoss
        Gives losses and gradients with respect to scores.
    make_index : callable
        Returns a new index, of the kind that was requested from the estimator.
    n_candidates : int
        Number of labels that a search retrieves, or that are drawn.
    n_columns : int
        Number of columns of W, without the column of intercepts if there is one.
    is_hidden : bool
        Whether instances are embedded by a hidden layer.
    seed : int
        Random seed.
    n_drawn : int
        Number of mini-batches for which labels were drawn before.

    Examples
    --------
    An instance with label 0; of the other labels, label 2 comes within a margin of 1:

    >>> import numpy as np
    >>> from sklearn_xc.gradients import Batch, ExactGradient, GradientTask, SetLoss
    >>> from sklearn_xc.losses import MaxMargin
    >>> from sklearn_xc.mips import ExactIndex
    >>> from sklearn_xc.parallel.team import Team
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
    >>> batch = Batch(
    ...     V=np.array([[2.0, 0.5]]), indptr=np.array([0, 1]), positives=np.array([0], np.int32),
    ...     weight=np.ones(1),
    ... )
    >>> task = GradientTask(SetLoss.of(MaxMargin()), ExactIndex, n_candidates=2, n_columns=2)
    >>> method = ExactGradient().start(task)
    >>> method.build(W)
    >>> with Team(n_workers=1) as team:
    ...     found = method.of(W, batch, method.search(W, batch.V, team), team)
    >>> found.labels[0, : found.counts[0]], found.values[0, : found.counts[0]].round(6)
    (array([0, 2], dtype=int32), array([-0.3,  0.3]))
    """

    loss: SetLoss
    make_index: Callable[[], MipsIndex]
    n_candidates: int
    n_columns: int
    is_hidden: bool = False
    seed: int = 0
    n_drawn: int = 0


class GradientMethod(ABC):
    """Gives gradients with respect to scores at the current weights; keeps what moves with them.

    Attributes
    ----------
    looks_ahead : bool
        Whether the labels that ``search`` finds serve for several steps; if not, they serve only
        for the current weights. False by default.

    Examples
    --------
    How training uses a method, here for an instance with label 0:

    >>> import numpy as np
    >>> from sklearn_xc.gradients import Batch, GradientTask, SearchedGradient, SetLoss
    >>> from sklearn_xc.losses import MaxMargin
    >>> from sklearn_xc.mips import ExactIndex
    >>> from sklearn_xc.parallel.team import Team
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
    >>> batch = Batch(
    ...     V=np.array([[2.0, 0.5]]), indptr=np.array([0, 1]), positives=np.array([0], np.int32),
    ...     weight=np.ones(1),
    ... )
    >>> task = GradientTask(SetLoss.of(MaxMargin()), ExactIndex, n_candidates=2, n_columns=2)
    >>> method = SearchedGradient().start(task)
    >>> method.build(W)
    >>> with Team(n_workers=1) as team:
    ...     candidates = method.search(W, batch.V, team)
    ...     found = method.of(W, batch, candidates, team)
    >>> candidates.labels, found.losses.round(6)
    (array([[0, 2]], dtype=int32), array([0.09]))
    >>> W[[0, 2]] -= 0.5 * found.values[0, :2, None] * batch.V  # a step
    >>> method.moved(np.array([0, 2], np.int32), np.array([0.3, 0.3]))
    >>> with Team(n_workers=1) as team:
    ...     float(method.of(W, batch, method.search(W, batch.V, team), team).losses[0])
    0.0
    """

    looks_ahead: bool = False

    def build(self, W: np.ndarray) -> None:  # noqa: B027
        """Prepare for W; called first, and again when W has moved far.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
            A row for each label, with an intercept in the last column if there are intercepts. It
            changes in place from here on.
        """

    def search(self, W: np.ndarray, V: np.ndarray, team: Team) -> Candidates | None:
        """Return labels that may matter to some instances; by default None, for no search.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
        V : ndarray of float of shape (n, dim)
            Scores are ``V @ W.T``.
        team : Team
            Threads; they do not affect the result.

        Returns
        -------
        Candidates or None
        """
        return None

    @abstractmethod
    def of(
        self, W: np.ndarray, batch: Batch, found: Candidates | None, team: Team
    ) -> LabelGradient:
        """Return the gradient with respect to the scores.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
        batch : Batch
            Instances.
        found : Candidates or None
            What ``search`` found for them.
        team : Team
            Threads; they do not affect the result.

        Returns
        -------
        LabelGradient
        """

    def moved(self, rows: np.ndarray, lengths: np.ndarray) -> None:  # noqa: B027
        """Register that some rows of W have moved; does nothing by default.

        Parameters
        ----------
        rows : ndarray of int32 of shape (m,)
            Distinct.
        lengths : ndarray of float of shape (m,)
            How far each has moved.
        """

    def recall(self, W: np.ndarray, queries: Callable[[], np.ndarray], k: int) -> float | None:
        """Return the share of the k best labels that are found; by default None, for no search.

        Parameters
        ----------
        W : ndarray of float of shape (n_labels, dim)
        queries : callable
            Returns the vectors in which the scores of some instances are linear, (n, dim).
        k : int

        Returns
        -------
        float or None
            From 0 to 1.
        """
        return None

    def following(self: Method, W: np.ndarray) -> Method:
        """Return one that continues from here with a copy of W, while this one stays as it is.

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


@runtime_checkable
class Gradient(Protocol):
    """How gradients with respect to scores are computed; training never changes its parameters.

    Attributes
    ----------
    default_index : str or MipsIndex
        The index, also for predictions, if the estimator's ``index`` is None.

    Examples
    --------
    A gradient of your own, which draws at most five labels, whatever the estimator requests:

    >>> from dataclasses import replace
    >>> from sklearn.base import BaseEstimator
    >>> from sklearn.datasets import load_digits
    >>> from sklearn_xc import DecompMIPSClassifier
    >>> from sklearn_xc.gradients import SampledGradient
    >>> class FewLabels(BaseEstimator):
    ...     default_index = "exact"
    ...
    ...     def start(self, task):
    ...         n_candidates = min(task.n_candidates, 5)
    ...         return SampledGradient().start(replace(task, n_candidates=n_candidates))
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DecompMIPSClassifier(gradient=FewLabels(), max_iter=1, random_state=0)
    >>> bool(clf.fit(X[:900] / 16, y[:900]).score(X[900:] / 16, y[900:]) > 0.8)
    True
    """

    @property
    def default_index(self) -> str | MipsIndex:
        """Return the index to use if the estimator has none."""

    def start(self, task: GradientTask) -> GradientMethod:
        """Return the method that gives the gradients of one training.

        Parameters
        ----------
        task : GradientTask
            What they are computed for.

        Returns
        -------
        GradientMethod

        Raises
        ------
        ValueError
            If the parameters have no meaning for this task.
        """

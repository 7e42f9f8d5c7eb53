"""Which gradient a step takes, and when what it searches is built."""

import copy
from collections.abc import Callable

import numpy as np

from sklearn_xc._parts import same_part
from sklearn_xc.decomposition._settings import Settings
from sklearn_xc.gradients import GradientMethod, GradientTask, SampledGradient, make_gradient
from sklearn_xc.gradients.sampled import Sampled
from sklearn_xc.mips import copy_index, make_index
from sklearn_xc.solvers.moving_rows import MovingRows

#: Of the recall of an index.
RECALL_K = 10
#: What is searched is built again when so many times as many rows have moved as at its last build.
_BUILD_AGAIN = 1.3


class Guide:
    """Gives the method of the next gradient: samples at first, then what was asked for.

    Parameters
    ----------
    settings : Settings
    n_candidates : int
        Labels that a search retrieves, or that are drawn.
    n_columns : int
        Of W, without intercepts.
    is_hidden : bool
        Whether there is a hidden layer.
    seed : int
    n_drawn : int
        Mini-batches that labels were drawn for before, in earlier passes.

    Attributes
    ----------
    queries : callable or None
        Gives what the scores of some instances are linear in, to measure the recall. To be set
        before training.
    recall : float or None
        Of the last index built, at 10 among the candidates; the smallest of the blocks' own.
    n_builds : int
        How often something was built.
    """

    def __init__(
        self,
        settings: Settings,
        n_candidates: int,
        n_columns: int,
        is_hidden: bool,
        seed: int,
        n_drawn: int = 0,
    ) -> None:
        self.queries: Callable[[], np.ndarray] | None = None
        self.recall: float | None = None
        self.n_builds = 0
        index = copy_index(settings.index)
        task = GradientTask(
            settings.loss, lambda: make_index(index, who=f"{settings.name}: index"),
            n_candidates, n_columns, is_hidden, seed, n_drawn,
        )  # fmt: skip
        self._is_for = settings.loss, n_candidates, n_columns, is_hidden
        self._gradient, self._index = make_gradient(settings.gradient), index
        self._n_candidates = n_candidates
        self._asked: GradientMethod = settings.gradient.start(task)
        # Drawn labels follow from one count of mini-batches, early or not.
        is_sampled = isinstance(self._asked, Sampled)
        self._early = self._asked if is_sampled else SampledGradient().start(task)
        self._n_moved, self._build_at, self._scale = 0, 0, 1.0

    @property
    def n_drawn(self) -> int:
        """Mini-batches that labels were drawn for."""
        assert isinstance(self._early, Sampled)
        return self._early.step

    def serves(
        self, settings: Settings, n_candidates: int, n_columns: int, is_hidden: bool
    ) -> bool:
        """Tell whether this is what a new one would be, except for the seed."""
        return (
            (settings.loss, n_candidates, n_columns, is_hidden) == self._is_for
            and same_part(settings.gradient, self._gradient)
            and same_part(settings.index, self._index)
        )

    def following(self, W: np.ndarray) -> "Guide":
        """Return one that goes on from here with W, a copy of the weights; this one stays."""
        other = copy.copy(self)
        other._asked = self._asked.following(W)
        other._early = other._asked if self._early is self._asked else self._early.following(W)
        return other

    def method(self, weights: MovingRows, is_early: bool) -> GradientMethod:
        """Return what gives the next gradient."""
        if is_early or self._early is self._asked:
            return self._early
        # A scale that has risen was multiplied with all values.
        is_due = self._n_moved >= self._build_at or weights.scale > self._scale
        self._scale = weights.scale
        if is_due:
            self._build(weights.values)
        return self._asked

    def moved(self, n_rows: int) -> None:
        """Take notice that so many rows of W have moved."""
        self._n_moved += n_rows

    def _build(self, W: np.ndarray) -> None:
        self._asked.build(W)
        self.n_builds += 1
        self._build_at = int(_BUILD_AGAIN * self._n_moved) + len(W)
        if self.queries is not None:
            k = min(RECALL_K, self._n_candidates)
            self.recall = self._asked.recall(W, self.queries, k)

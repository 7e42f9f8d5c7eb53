"""Epochs of mini-batches: learning rates, ways to the gradient, when an index is built."""

import copy
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.mips import INDEXES, search_recall
from sklearn_xc.parallel.team import Team
from sklearn_xc.solvers.averaging import CourseAverages
from sklearn_xc.solvers.batch_sgd import (
    HiddenLayer,
    IdentityLayer,
    LabelSets,
    MovingRows,
    Step,
    take_steps,
)
from sklearn_xc.solvers.label_gradients import (
    Coupled,
    Exact,
    GradientMethod,
    Sampled,
    Searched,
    SetLoss,
    WatchedIndex,
)

#: Of the recall of an index.
RECALL_K = 10
#: Instances whose labels are searched for at once: one look at the index for all. Twice as many are
#: hardly faster.
_AHEAD = 40
#: An index is built again when so many times as many rows have moved as at its last build.
_BUILD_AGAIN = 1.3


@dataclass(frozen=True)
class SearchSettings:
    """How labels are found.

    Attributes
    ----------
    gradient : {"decomp_mips", "mips", "sampled", "exact"}
    index : str
        A key of ``INDEXES``.
    n_blocks : int
        Blocks of columns, for message passing.
    n_rounds : int or None
        Rounds of message passing; None is for one index of all columns.
    n_candidates : int
    seed : int
    """

    gradient: str
    index: str
    n_blocks: int
    n_rounds: int | None
    n_candidates: int
    seed: int


class Guide:
    """Gives the way to the gradient: samples at first, then what was asked for.

    Parameters
    ----------
    loss : SetLoss
    settings : SearchSettings
    n_drawn : int
        Mini-batches that labels were sampled for before, in earlier passes.

    Attributes
    ----------
    queries : callable
        Gives what the scores of some instances are linear in, to measure the recall. To be set
        before training.
    recall : float or None
        Of the last index built, at 10 among the candidates; the smallest of the blocks' own.
    """

    def __init__(
        self,
        loss: SetLoss,
        settings: SearchSettings,
        n_drawn: int = 0,
    ) -> None:
        self.queries: Callable[[], np.ndarray] | None = None
        self.recall: float | None = None
        self._settings = settings
        self._sampled = Sampled(loss, settings.n_candidates, (settings.seed, 1), n_drawn)
        is_exact = settings.gradient == "exact"
        self._asked: GradientMethod = Exact(loss) if is_exact else self._sampled
        self._loss = loss
        self._indexes: list[WatchedIndex] = []
        self._bounds = np.empty(0, np.int64)
        self._n_moved, self._build_at, self._scale = 0, 0, 1.0

    @property
    def n_drawn(self) -> int:
        """Mini-batches that labels were sampled for."""
        return self._sampled.step

    def serves(self, loss: SetLoss, settings: SearchSettings) -> bool:
        """Tell whether this is what a new one would be for, but for the seed."""
        return (loss, replace(settings, seed=0)) == (self._loss, replace(self._settings, seed=0))

    def following(self, W: np.ndarray) -> "Guide":
        """Return one that goes on from here with W, a copy of the weights; this one stays."""
        other = copy.copy(self)
        other._sampled = copy.copy(self._sampled)
        other._indexes = [index.following(W) for index in self._indexes]
        if self._asked is self._sampled:
            other._asked = other._sampled
        elif isinstance(self._asked, Searched):
            other._asked = replace(self._asked, watched=other._indexes[0])
        elif isinstance(self._asked, Coupled):
            other._asked = replace(self._asked, indexes=other._indexes)
        return other

    def method(self, weights: MovingRows, is_early: bool) -> GradientMethod:
        """Return the way to the next gradient."""
        if is_early or self._settings.gradient == "sampled":
            return self._sampled
        # A scale that has risen was multiplied with all values.
        is_due = self._n_moved >= self._build_at or weights.scale > self._scale
        self._scale = weights.scale
        if self._settings.gradient != "exact" and is_due:
            self._build(weights.values)
        return self._asked

    def moved(self, n_rows: int) -> None:
        """Take notice that so many rows of W have moved."""
        self._n_moved += n_rows

    def _build(self, W: np.ndarray) -> None:
        how = self._settings
        n_blocks = 1 if how.n_rounds is None else how.n_blocks
        if not self._indexes:
            self._indexes = [WatchedIndex(INDEXES[how.index]()) for _ in range(n_blocks)]
            self._bounds = np.linspace(0, W.shape[1], n_blocks + 1).round().astype(np.int64)
            self._asked = self._search()
        for index, first, last in self._blocks():
            index.build(W, first, last, how.seed)
        self._build_at = int(_BUILD_AGAIN * self._n_moved) + len(W)
        self._measure(W)

    def _search(self) -> GradientMethod:
        how = self._settings
        if how.n_rounds is None:
            return Searched(self._loss, how.n_candidates, self._indexes[0])
        return Coupled(self._loss, how.n_candidates, self._indexes, self._bounds, how.n_rounds)

    def _measure(self, W: np.ndarray) -> None:
        if self.queries is None:
            return
        how, V = self._settings, self.queries()
        k, recalls = min(RECALL_K, how.n_candidates), []
        for index, first, last in self._blocks():
            part = read_only(np.ascontiguousarray(V[:, first:last]))
            recalls.append(search_recall(index.index, W, first, last, part, k, how.n_candidates))
        self.recall = min(recalls)

    def _blocks(self) -> Any:
        return zip(self._indexes, self._bounds[:-1], self._bounds[1:], strict=True)


@dataclass
class Schedule:
    """Learning rates by the number of instances visited, and what is sampled.

    Attributes
    ----------
    rate : float
        At the beginning.
    interval : float
        Visits after which the rate has halved: it is ``rate / (1 + visits / interval)``.
    n_sampled : float
        Visits before which labels are sampled.
    visits : int
        So far.
    """

    rate: float
    interval: float
    n_sampled: float
    visits: int = 0

    def now(self) -> float:
        """Return the rate."""
        return self.rate / (1.0 + self.visits / self.interval)


@dataclass
class Trainer:
    """All that moves in training, and all that tells it how.

    Attributes
    ----------
    layer : IdentityLayer or HiddenLayer
    weights : MovingRows
    sets : LabelSets
    guide : Guide
    schedule : Schedule
    averages : CourseAverages
    ridge : float
        See ``take_steps``.
    batch_size : int
    n_workers : int
    """

    layer: IdentityLayer | HiddenLayer
    weights: MovingRows
    sets: LabelSets
    guide: Guide
    schedule: Schedule
    averages: CourseAverages
    ridge: float
    batch_size: int
    n_workers: int

    def begin_pass(self, seed: int, number: int) -> None:
        """Draw what each pass draws anew, the same if it is done again."""
        self.layer.begin_pass(np.random.default_rng((seed, 6, number)))

    def run(self, order: np.ndarray) -> float:
        """Go once through the instances in this order; return the summed loss, as seen in steps.

        It is the loss over the labels that were considered. NaN ends the pass. The averages are
        not brought up to date at the end.
        """
        total = 0.0
        with Team(self.n_workers) as team, np.errstate(over="ignore", invalid="ignore"):
            for step in self._steps(order, team):
                total += step.loss
                if not np.isfinite(total):
                    break
        return total

    def _steps(self, order: np.ndarray, team: Team) -> Iterator[Step]:
        at = self.schedule
        for first in range(0, len(order), self.n_ahead):
            rows = order[first : first + self.n_ahead]
            while len(rows):
                method = self.guide.method(self.weights, at.visits < at.n_sampled)
                n = len(rows) if method.looks_ahead else self.batch_size
                for step in self.steps(method, rows[:n], team):
                    self.guide.moved(step.n_moved)
                    self.averages.visited(at.visits)
                    yield step
                rows = rows[n:]

    @property
    def n_ahead(self) -> int:
        """Instances, of whole mini-batches, whose labels may be searched for at once."""
        return max(1, _AHEAD // self.batch_size) * self.batch_size

    def steps(self, method: GradientMethod, rows: np.ndarray, team: Team) -> Iterator[Step]:
        """Take the steps of some mini-batches, whose labels are searched for at once."""
        how = self.layer, self.weights, self.sets, method, rows, self.batch_size
        for step in take_steps(*how, self.schedule.now, self.ridge, team):
            self.schedule.visits += step.n
            yield step


def announce(name: str, text: str) -> None:
    """Print a line for those who asked for `verbose`."""
    print(f"[{name}] {text}", file=sys.stdout, flush=True)


def progress_of(name: str, max_iter: int) -> Callable[[int, float, float | None], None]:
    """Return what prints a line per epoch, at most one a second."""
    began = time.perf_counter()
    shown = -1.0

    def show(epoch: int, loss: float, recall: float | None) -> None:
        nonlocal shown
        seconds = time.perf_counter() - began
        if seconds < shown + 1.0 and epoch + 1 < max_iter:
            return
        shown = seconds
        found = "" if recall is None else f", recall@{RECALL_K} of the index {recall:.3f}"
        announce(name, f"epoch {epoch + 1} of {max_iter}: loss {loss:.4g}{found}, {seconds:.1f} s")

    return show

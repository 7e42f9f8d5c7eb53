"""Epochs of mini-batches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sklearn_xc.decomposition._guide import Guide
from sklearn_xc.gradients import GradientMethod
from sklearn_xc.parallel.team import Team
from sklearn_xc.solvers.averaging import CourseAverages
from sklearn_xc.solvers.batch_sgd import LabelSets, Step, take_steps
from sklearn_xc.solvers.layers import HiddenLayer, IdentityLayer
from sklearn_xc.solvers.moving_rows import MovingRows
from sklearn_xc.solvers.schedule import Schedule

#: Instances whose labels are searched for at once: one look at the index for all. Twice as many are
#: hardly faster.
_AHEAD = 40


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
        Learning rates by epochs.
    epoch_visits : float
        Instances visited in an epoch of the schedule.
    n_sampled : float
        Visits before which labels are drawn.
    visits : int
        So far.
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
    epoch_visits: float
    n_sampled: float
    visits: int
    averages: CourseAverages
    ridge: float
    batch_size: int
    n_workers: int

    def rate(self) -> float:
        """Return the learning rate of the next step."""
        return self.schedule.after(self.visits / self.epoch_visits)

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
        for first in range(0, len(order), self.n_ahead):
            rows = order[first : first + self.n_ahead]
            while len(rows):
                method = self.guide.method(self.weights, self.visits < self.n_sampled)
                n = len(rows) if method.looks_ahead else self.batch_size
                for step in self.steps(method, rows[:n], team):
                    self.guide.moved(step.n_moved)
                    self.averages.visited(self.visits)
                    yield step
                rows = rows[n:]

    @property
    def n_ahead(self) -> int:
        """Instances, of whole mini-batches, whose labels may be searched for at once."""
        return max(1, _AHEAD // self.batch_size) * self.batch_size

    def steps(self, method: GradientMethod, rows: np.ndarray, team: Team) -> Iterator[Step]:
        """Take the steps of some mini-batches, whose labels are searched for at once."""
        how = self.layer, self.weights, self.sets, method, rows, self.batch_size
        for step in take_steps(*how, self.rate, self.ridge, team):
            self.visits += step.n
            yield step

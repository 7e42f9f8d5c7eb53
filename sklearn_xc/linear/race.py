"""Which values of C are scored on which folds, so that few fits find the best one.

    first fold    the middle of the grid -> outwards while the value at the edge may be the best
    each fold     the values still in the race -> those that have clearly fallen leave, and the
                  worst of the others where too many are left
    the end       the folds are used up, or one value is left

What a fit costs and what a score is, is not known here: ``score`` does both.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from sklearn_xc.parallel.progress import Progress
from sklearn_xc.parallel.tasks import Task

#: A value leaves once it is so many standard errors behind the best. Of those that are just so far
#: behind after the first of five folds, one in 400 would be ahead after the last.
CLEARLY = 2.5
#: The share of the grid that is scored at first, where it begins, and how far it then goes at once.
MIDDLE, BEGIN, STEP = 0.4, 0.2, 0.2
#: On the first fold smaller values are tried also if the smallest so far is less behind: there the
#: way is short, as its solutions are at hand; on later folds it is a cold start.
NEARLY = 1.0
#: After a share s of the folds at most 1 + CROWD (1 - s)^2 times the number at first stay: 4, 3 and
#: 1 after each of five folds. With 4, 3, 2 and 1 it took an eighth longer, and chose the C of all
#: folds in 84% of 480 races on twelve sets, not 80%; on average 0.05 points of precision were lost
#: on the folds, not 0.08, and none on test rows.
CROWD = 1.4
#: Fewer values than these are scored at once: each beginning is a cold start.
FEW = 4

#: Scores values on a fold: pairs of a score, and what each test row adds to it (None: not known).
Score = Callable[[int, Sequence[int]], Sequence[tuple[float, np.ndarray | None]]]


class Race:
    """A race of the values of C.

    Parameters
    ----------
    score : callable
        Called as ``score(fold, values)`` with rising positions in the grid.
    n_folds : int
        How many folds there are.
    grid : range
        Positions of the values that are asked for.
    wider : range
        Positions that may be tried, `grid` among them: beyond it only if its outermost value is
        best.
    by_rows : bool
        Whether `score` tells what each row adds. If not, nothing is known about the noise: the
        first two folds score the whole grid, and then values leave by their rank alone.
    progress : Progress, default=None
        Is told of the folds. A callback that asks for an end has the race decided by those so far.

    Attributes
    ----------
    scores : ndarray of float64 of shape (n_folds, len(wider))
        NaN where nothing was scored.
    n_run : int
        Folds that were run.
    in_race : list of int
        Values that were scored on all of them, rising.
    """

    def __init__(
        self,
        score: Score,
        n_folds: int,
        grid: range,
        wider: range,
        by_rows: bool,
        progress: Progress | None = None,
    ) -> None:
        self.score, self.n_folds, self.by_rows = score, n_folds, by_rows
        self.progress = Progress(Task(), None, "fold", n_folds) if progress is None else progress
        self.grid, self.wider = grid, wider
        self.scores = np.full((n_folds, len(wider)), np.nan)
        self.gains: dict[tuple[int, int], np.ndarray | None] = {}
        self.in_race: list[int] = []
        self.n_run = 0

    def run(self) -> int:
        """Run the race and return the winner: the best, and the smallest where several are."""
        for fold in range(self.n_folds):
            if fold > 0 and len(self.in_race) == 1:
                break
            task = self._begin(fold)
            self._score([fold], self.in_race if fold > 0 else self._first())
            while beyond := self._beyond(-1) or self._beyond(1):
                self._score(range(fold + 1), sorted(beyond))
            self._leave()
            if self._end(task):
                break
        return self.leader()

    def run_all(self) -> int:
        """Score the whole grid on all folds and return the winner."""
        for fold in range(self.n_folds):
            task = self._begin(fold)
            self._score([fold], self.grid)
            if self._end(task):
                break
        return self.leader()

    def leader(self) -> int:
        """Return the value with the best mean score among those in the race."""
        means = self.scores[: self.n_run, self.in_race].mean(axis=0)
        return self.in_race[int(np.argmax(means))]

    def errors_behind(self, value: int, leader: int) -> float:
        """Return how far a value is behind another, in standard errors of the paired rows."""
        behind = variance = 0.0
        for fold in range(self.n_run):
            ahead, own = self.gains[fold, leader], self.gains[fold, value]
            assert ahead is not None
            assert own is not None
            difference = ahead - own
            behind += difference.sum()
            variance += len(difference) ** 2 * _variance_of_mean(difference)
        if variance == 0.0:
            return math.copysign(math.inf, behind) if behind else 0.0
        return behind / math.sqrt(variance)

    def _begin(self, fold: int) -> Task:
        self.n_run = fold + 1
        return self.progress.begin()

    def _end(self, task: Task) -> bool:
        """Tell that a fold is done; return whether it shall be the last."""
        return self.progress.end(task, f"scored, {len(self.in_race)} values of C in the race")

    def _score(self, folds: Sequence[int], values: Sequence[int]) -> None:
        values = list(values)
        for fold in folds:
            for value, (score, gains) in zip(values, self.score(fold, values), strict=True):
                self.scores[fold, value] = score
                self.gains[fold, value] = gains
        self.in_race = sorted({*self.in_race, *values})

    def _tried(self) -> list[int]:
        return np.flatnonzero(np.isfinite(self.scores[0])).tolist()

    def _first(self) -> Sequence[int]:
        """Return what the first fold begins with."""
        n = len(self.grid)
        if n <= FEW or not self.by_rows:
            return self.grid
        begin = int(BEGIN * n)
        return self.grid[begin : begin + max(FEW - 1, math.ceil(MIDDLE * n))]

    def _beyond(self, side: int) -> list[int]:
        """Return the values to try next on a side of those tried, smaller (-1) or larger (1)."""
        tried = self._tried()
        edge = tried[0] if side < 0 else tried[-1]
        leader = self.leader()
        goes_on = side < 0 and self.n_run == 1 and self.by_rows
        if edge != leader and not (goes_on and self.errors_behind(edge, leader) < NEARLY):
            return []
        last = self.grid[0] if side < 0 else self.grid[-1]
        if edge == leader and (last - edge) * side <= 0 and self._is_better(edge, edge - side):
            last = self.wider[0] if side < 0 else self.wider[-1]
        # The small ones are dear.
        step = max(2, math.ceil(STEP * len(self.grid))) // (2 if side < 0 else 1)
        n = min(step, (last - edge) * side)
        return [edge + side * i for i in range(1, n + 1)]

    def _is_better(self, value: int, other: int) -> bool:
        """Return whether a value is better than another on the folds where both were scored."""
        if other not in self.wider:
            return False
        common = np.isfinite(self.scores[:, other]) & np.isfinite(self.scores[:, value])
        return bool(self.scores[common, value].sum() > self.scores[common, other].sum())

    def _leave(self) -> None:
        """Take those out of the race that cannot win, or are the last of too many."""
        leader, n_left = self.leader(), 1.0 - self.n_run / self.n_folds
        if n_left == 0.0:
            return
        if self.by_rows:
            in_race = [
                value
                for value in self.in_race
                if value == leader or self.errors_behind(value, leader) < CLEARLY
            ]
            begun = max(FEW, math.ceil(MIDDLE * len(self.grid)))
            allowed = 1 + int(CROWD * begun * n_left**2 + 1e-9)
        elif self.n_run > 1:
            in_race = self.in_race
            allowed = max(2, math.ceil(len(self._tried()) * n_left - 1e-9))
        else:
            return
        means = self.scores[: self.n_run, in_race].mean(axis=0)
        best = np.argsort(-means, kind="stable")[:allowed]
        self.in_race = sorted(in_race[i] for i in best)
        for key in [key for key in self.gains if key[1] not in self.in_race]:
            del self.gains[key]


def _variance_of_mean(values: np.ndarray) -> float:
    """Return an estimate of the variance of the mean of some rows; 0 for a single row."""
    n = len(values)
    return float(values.var()) / (n - 1) if n > 1 else 0.0

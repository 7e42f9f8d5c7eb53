"""``learning_rate="auto"``: powers of ten, judged on instances held out of the trials.

The search climbs: from a rate in the middle to its neighbours, and on in the direction that is
better, as long as it is better. So it reads few rates where the middle is right, and has a wide
range where it is not. A trial ends early where it gets worse, or where it cannot catch up.

Source: section 4.1 of [1]_ tries seven powers of ten on a tenth of the data, and takes the lowest
log-loss of that tenth itself: often the rate that fits most noise.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

#: Powers of ten on either side of the middle.
REACH = 4


class Trial(NamedTuple):
    """What a learning rate came to.

    Attributes
    ----------
    rate : float
        In units of 1 / (total weight).
    losses : tuple of float
        Held-out log-loss after each epoch, or after the last one alone; () if it diverged.
    """

    rate: float
    losses: tuple[float, ...]

    @property
    def loss(self) -> float:
        """The lowest held-out log-loss that is no stroke of luck; inf if the trial diverged."""
        return min(self._steady(), default=np.inf)

    @property
    def n_epochs(self) -> int:
        """Epochs until then."""
        return int(np.argmin(self._steady())) + 1

    def _steady(self) -> np.ndarray:
        """Return the highest log-loss of each epoch and its neighbours.

        Where steps are nearly too long, the log-loss jumps up and down, and another training of as
        many epochs may well end at a peak.
        """
        losses = np.array((-np.inf, *self.losses, -np.inf))
        return np.maximum(np.maximum(losses[:-2], losses[1:-1]), losses[2:])


def search_rate(
    run: Callable[[float, float], Trial],
    middle: float,
    tol: float,
    n_jobs: int,
    show: Callable[[Trial], None] | None = None,
) -> tuple[Trial, bool]:
    """Return the trial with the lowest held-out log-loss, and whether it is at the last rate.

    Parameters
    ----------
    run : callable
        Given a rate, and the lowest log-loss so far, returns its trial. A trial may end once it is
        clear that its log-loss will be higher than that.
    middle : float
        The first rate to try. The last are `middle` times 10 to the power of plus or minus REACH.
    tol : float
        The next power is tried where the last one has lowered the log-loss by more.
    n_jobs : int
        Trials at a time, at most two.
    show : callable, default=None
        Is given each trial.

    Raises
    ------
    FloatingPointError
        If all trials diverge.
    """
    trials: dict[int, Trial] = {}
    due: Sequence[int] = [0]
    while due:
        least = min((trial.loss for trial in trials.values()), default=np.inf)
        rates = [middle * 10.0**power for power in due]
        found = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(run)(rate, least) for rate in rates
        )
        for power, trial in zip(due, found, strict=True):
            trials[power] = trial
            if show is not None:
                show(trial)
        due = [-1, 1] if len(trials) == 1 else _next_power(trials, tol)
    best = trials[_best(trials)]
    if best.loss == np.inf:
        raise FloatingPointError("no learning rate of the search converges")
    at_edge = abs(_best(trials)) == REACH and _is_better_than_inside(trials, tol)
    return best, at_edge


def _best(trials: dict[int, Trial]) -> int:
    """Return the power of the lowest log-loss, the lower one of two."""
    return min(trials, key=lambda power: (trials[power].loss, power))


def _next_power(trials: dict[int, Trial], tol: float) -> Sequence[int]:
    """Return the power to try next, or none."""
    best, low, high = _best(trials), min(trials), max(trials)
    if trials[best].loss == np.inf:  # steps are too long
        return [low - 1] if low > -REACH else []
    if best not in (low, high) or abs(best) == REACH or not _is_better_than_inside(trials, tol):
        return []
    return [best - 1 if best == low else best + 1]


def _is_better_than_inside(trials: dict[int, Trial], tol: float) -> bool:
    """Tell whether the best trial, at an end, is clearly better than its neighbour."""
    best = _best(trials)
    neighbour = trials[best + 1 if best < 0 else best - 1]
    return trials[best].loss < neighbour.loss - tol

"""``learning_rate="auto"``: powers of ten, judged on instances held out of the trials.

The search climbs: from a rate in the middle to its neighbours, and on in the direction that is
better, as long as it is better; a last trial is between the best power and the better one of its
neighbours. So it reads few rates where the middle is right, and has a wide range where it is not. A
trial ends early where it gets worse, or where it cannot catch up.

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
#: The next power is tried where the last one has lowered the log-loss by more than this part, or
#: this, where it is below 1: perfect classifiers gain a little from any rate.
_GAIN = 0.01


class Trial(NamedTuple):
    """What a learning rate came to.

    Attributes
    ----------
    rate : float
        In units of 1 / (total weight).
    losses : tuple of float
        What judges, after each epoch or after the last one alone: the held-out log-loss, or one
        less the mean reciprocal rank and a little of it; () if it diverged.
    log_losses : tuple of float
        Held-out log-loss then.
    """

    rate: float
    losses: tuple[float, ...]
    log_losses: tuple[float, ...] = ()

    @property
    def loss(self) -> float:
        """The lowest held-out loss that is no stroke of luck; inf if the trial diverged."""
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
    n_jobs: int,
    show: Callable[[Trial], None] | None = None,
    *,
    is_fine: bool = True,
) -> tuple[Trial, bool]:
    """Return the trial with the lowest held-out loss, and whether it is at the last rate.

    Parameters
    ----------
    run : callable
        Given a rate, and the lowest log-loss so far, returns its trial. A trial may end once it is
        clear that its log-loss will be higher than that.
    middle : float
        The first rate to try. The last are `middle` times 10 to the power of plus or minus REACH.
    n_jobs : int
        Trials at a time, at most two.
    show : callable, default=None
        Is given each trial.
    is_fine : bool
        Whether to try a rate between the best power and one of its neighbours.

    Raises
    ------
    FloatingPointError
        If all trials diverge.
    """
    trials: dict[float, Trial] = {}
    due: Sequence[float] = [0]
    while due:
        least = min((trial.loss for trial in trials.values()), default=np.inf)
        rates = [middle * _multiple(power) for power in due]
        found = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(run)(rate, least) for rate in rates
        )
        for power, trial in zip(due, found, strict=True):
            trials[power] = trial
            if show is not None:
                show(trial)
        due = [-1, 1] if len(trials) == 1 else _next_power(trials, is_fine)
    best = _best(trials)
    if trials[best].loss == np.inf:
        raise FloatingPointError("no learning rate of the search converges")
    return trials[best], abs(best) == REACH and _is_better_than_inside(trials)


def _multiple(power: float) -> float:
    """Return 10 to a power, or 3 times the one below half a power."""
    whole = float(np.floor(power))
    return 10.0**whole * (1.0 if power == whole else 3.0)


def _best(trials: dict[float, Trial]) -> float:
    """Return the power of the lowest log-loss, the lower one of two."""
    return min(trials, key=lambda power: (trials[power].loss, power))


def _next_power(trials: dict[float, Trial], is_fine: bool) -> Sequence[float]:
    """Return the power to try next, or none."""
    best, low, high = _best(trials), min(trials), max(trials)
    if any(power % 1 for power in trials):
        return []
    if trials[best].loss == np.inf:  # steps are too long
        return [low - 1] if low > -REACH else []
    if best in (low, high) and abs(best) < REACH and _is_better_than_inside(trials):
        return [best - 1 if best == low else best + 1]
    if not is_fine:
        return []
    # Between the best power and the better one of its neighbours.
    sides = [side for side in (-1, 1) if best + side in trials]
    side = min(sides, key=lambda side: trials[best + side].loss)
    return [best + 0.5 * side]


def _is_better_than_inside(trials: dict[float, Trial]) -> bool:
    """Tell whether the best trial, at an end, is clearly better than its neighbour."""
    best = _best(trials)
    neighbour = trials[best + 1 if best < 0 else best - 1]
    loss = trials[best].loss
    return neighbour.loss - loss > _GAIN * max(1.0, loss)

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

from sklearn_xc.softmax.judge import Verdict, standard_error

#: Powers of ten on either side of the middle.
REACH = 4
#: The next power is tried where the last one has lowered the log-loss by more than this part, or
#: this, where it is below 1: perfect classifiers gain a little from any rate.
_GAIN = 0.01
#: Standard errors that a trial may be worse than the best, and count as good.
_ERRORS = 1.0
#: Log-loss of pairs that a trial may have, as a multiple of that of the best, and count as good.
_DEARER = 1.015


class Trial(NamedTuple):
    """What a learning rate came to.

    Attributes
    ----------
    rate : float
        In units of 1 / (total weight).
    losses : tuple of float
        What judges each epoch, or the last one alone, lower is better; () if it diverged.
    verdicts : tuple of Verdict, default=()
        More on each epoch, where the judge says more.
    """

    rate: float
    losses: tuple[float, ...]
    verdicts: tuple[Verdict, ...] = ()

    @property
    def loss(self) -> float:
        """The lowest held-out loss that is no stroke of luck; inf if the trial diverged."""
        return min(self._steady(), default=np.inf)

    @property
    def n_epochs(self) -> int:
        """Epochs until then."""
        return int(np.argmin(self._steady())) + 1

    @property
    def factor(self) -> float:
        """The factor on scores that suits then."""
        return self.verdicts[self.n_epochs - 1].factor if self.verdicts else 1.0

    @property
    def log_loss(self) -> float:
        """The highest log-loss of pairs of that epoch and its neighbours."""
        return max(self.log_losses[max(0, self.n_epochs - 2) : self.n_epochs + 1], default=np.inf)

    @property
    def log_losses(self) -> tuple[float, ...]:
        """Held-out log-loss of pairs after each epoch, by the factor that suits it."""
        return tuple(verdict.log_loss for verdict in self.verdicts) or self.losses

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
    weight: np.ndarray | None = None,
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
    weight : ndarray of float64, default=None
        Of the instances that judge. With it, the lowest rate is returned whose trial is not worse
        than the best by more than the standard error of the difference.

    Raises
    ------
    FloatingPointError
        If all trials diverge.
    """
    trials: dict[float, Trial] = {}
    due: Sequence[float] = [0]
    while due:
        least = min((trial.loss for trial in trials.values()), default=np.inf)
        target = least if weight is None else _target(trials, weight)
        found = Parallel(n_jobs=n_jobs, require="sharedmem")(
            delayed(run)(middle * _multiple(power), target) for power in due
        )
        for power, trial in zip(due, found, strict=True):
            trials[power] = trial
            if show is not None:
                show(trial)
        due = [-1, 1] if len(trials) == 1 else _next_power(trials, is_fine)
    best = _best(trials)
    if trials[best].loss == np.inf:
        raise FloatingPointError("no learning rate of the search converges")
    at_edge = abs(best) == REACH and _is_better_than_inside(trials)
    if weight is not None:
        as_good = [power for power in trials if _is_as_good(trials[power], trials[best], weight)]
        at_edge, best = at_edge and min(as_good) == best, min(as_good)
    return trials[best], at_edge


def _target(trials: dict[float, Trial], weight: np.ndarray) -> float:
    """Return the loss above which a trial may end, where what is as good as the best counts.

    A trial that cannot come to within twice the standard error of the best one's loss is neither as
    good nor better. What could is not ended: the loss at the best factor may rise at first.
    """
    best = trials[_best(trials)] if trials else None
    if best is None or not best.losses:
        return np.inf
    return best.loss + 2.0 * standard_error(best.verdicts[best.n_epochs - 1].each, weight)


def _is_as_good(trial: Trial, best: Trial, weight: np.ndarray) -> bool:
    """Tell whether a trial may be as good as the best, by the standard error of the difference."""
    if not trial.losses:
        return False
    one, other = (t.verdicts[t.n_epochs - 1].each for t in (trial, best))
    if trial.log_loss > _DEARER * best.log_loss:
        return False
    return trial.loss - best.loss <= _ERRORS * standard_error(one - other, weight)


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

"""Hill climbing over a grid of learning rates."""

from collections.abc import Callable
from typing import TypeVar

Trial = TypeVar("Trial")


def climb_rates(
    run: Callable[[int, Trial | None], Trial],
    is_better: Callable[[Trial, Trial], bool],
    has_failed: Callable[[Trial], bool],
    grid: range,
    first: int,
) -> tuple[int, Trial]:
    """Return the best position in a grid of ascending learning rates, and its trial.

    Starts at `first` and moves to larger rates while each is better than the best so far. If none
    is, moves to smaller rates in the same way, and past any number of failures: where training
    diverges or learns nothing, steps may be too long.

    Parameters
    ----------
    run : callable
        ``run(position, best)`` returns the trial of a rate; `best` is the best trial so far, so
        that hopeless ones can end early, and None for the first.
    is_better : callable
        ``is_better(trial, best)``.
    has_failed : callable
        Whether a trial is of no use. A failure is replaced by any later trial that is better.
    grid : range
        Positions that may be tried.
    first : int
        Where to start.
    """
    at = first
    best = run(first, None)
    for step in (1, -1):
        position = first + step
        while position in grid:
            trial = None  # let go of a worse one: the caller has room for two
            trial = run(position, best)
            if is_better(trial, best):
                at, best = position, trial
            elif step > 0 or not has_failed(best):
                break
            position += step
        if at != first:
            break
    return at, best

"""The instances of a mini-batch, shared among threads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sklearn_xc.parallel.team import Team

#: Threads share the instances of a mini-batch if they have at least so many labels together.
LEAST_WORK = 500_000


def share_instances(team: Team, n: int, n_labels: int, work: Callable[[int, int], Any]) -> None:
    """Do the work for ranges of n instances in all threads, or in this one if it is little."""
    if team.n_workers == 1 or n * n_labels < LEAST_WORK:
        work(0, n)
        return
    bounds = np.linspace(0, n, team.n_workers + 1).astype(int)

    def share(worker: int) -> None:
        if bounds[worker] < bounds[worker + 1]:
            work(bounds[worker], bounds[worker + 1])

    team.run(share)

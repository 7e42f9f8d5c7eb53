"""Hill climbing over learning rates."""

import weakref

import pytest

from sklearn_xc._training.rate_search import climb_rates

INF = float("inf")


def climb(losses, first):
    """Return the best position, and the positions in the order of their trials."""
    tried = []

    def run(position, best):
        assert best == min((losses[i] for i in tried), default=None)
        tried.append(position)
        return losses[position]

    found, loss = climb_rates(
        run, lambda a, b: a < b, lambda loss: loss == INF, range(len(losses)), first
    )
    assert loss == losses[found]
    return found, tried


@pytest.mark.parametrize(
    ("losses", "first", "found", "tried"),
    [
        ([3, 2, 1, 2, 3], 2, 2, [2, 3, 1]),
        ([5, 4, 3, 2, 4], 2, 3, [2, 3, 4]),  # up, and not down any more
        ([1, 2, 3, 4, 5], 2, 0, [2, 3, 1, 0]),  # to the end of the grid
        ([5, 4, 3, 2, 1], 2, 4, [2, 3, 4]),
        ([2, 1, INF, INF, INF], 3, 1, [3, 4, 2, 1, 0]),  # down past failures
        ([INF, INF, INF], 1, 1, [1, 2, 0]),
    ],
)
def test_climbs_from_the_first(losses, first, found, tried):
    assert climb(losses, first) == (found, tried)


def test_at_most_two_trials_are_held_at_a_time():
    alive = weakref.WeakSet()

    class Trial:
        def __init__(self, position):
            alive.add(self)
            assert len(alive) <= 2
            self.position = position

    found, _ = climb_rates(
        lambda position, best: Trial(position),
        lambda a, b: a.position < b.position,
        lambda trial: False,
        range(6),
        4,
    )
    assert found == 0

"""Learning rates by the number of epochs."""

import pytest

from sklearn_xc.softmax.training import Schedule


def test_a_factor():
    schedule = Schedule(2.0, 0.9)
    for epoch in range(4):
        assert schedule.within_epoch(epoch, 50) == (pytest.approx(2.0 * 0.9**epoch), 0.0)
    assert schedule.after(2.7) == schedule.after(2)  # it falls at the ends of epochs
    assert Schedule(2.0, 1.0).within_epoch(1000, 50) == (2.0, 0.0)


def test_one_over_t_falls_without_a_jump_between_epochs():
    """The rate after e epochs and t visits is rate / (1 + e + t / n)."""
    schedule = Schedule(2.0, "1/t")
    for epoch in (0, 1, 2.5, 7):
        rate, slowing = schedule.within_epoch(epoch, 50)
        assert rate == schedule.after(epoch)
        for t in (0, 10, 50):
            assert rate / (1 + slowing * t) == pytest.approx(2.0 / (1 + epoch + t / 50))

"""Lines that tell how far a training is, and how long it will take."""

import re

import pytest

from sklearn_xc._parallel import progress
from sklearn_xc._parallel.progress import Fit, duration


class Verbose:
    verbose = 1


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose first entry is the time."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def lines_of(capsys):
    return capsys.readouterr().out.splitlines()


def run(fit, clock, seconds, **parts):
    """Make parts that take some seconds each; return their progress."""
    shown = fit.parts("epoch", len(seconds), **parts)
    for taken in seconds:
        task = shown.begin()
        clock[0] += taken
        shown.end(task, "log-loss 0.25")
    shown.close()
    return shown


def test_at_most_one_line_a_second_and_always_the_last(clock, capsys):
    run(Fit(Verbose(), None, None), clock, [0.3] * 12)
    lines = lines_of(capsys)
    assert [line.split()[2] for line in lines] == ["1", "5", "9", "12"]
    assert lines[0] == "[Verbose] epoch 1 of 12: log-loss 0.25, 0.3 s"
    assert lines[1] == "[Verbose] epoch 5 of 12: log-loss 0.25, 1.5 s, about 2.1 s left"
    assert lines[-1] == "[Verbose] epoch 12 of 12: log-loss 0.25, 3.6 s"


def test_the_last_line_comes_where_parts_end_early(clock, capsys):
    shown = Fit(Verbose(), None, None).parts("fold", 5)
    for _ in range(2):
        task = shown.begin()
        clock[0] += 0.25
        shown.end(task, "scored")
    assert [line.split()[2] for line in lines_of(capsys)] == ["1"]
    shown.close()
    assert lines_of(capsys) == ["[Verbose] fold 2 of 5: scored, 0.5 s"]


@pytest.mark.parametrize("first", [0.5, 90.0])
def test_the_time_left_does_without_the_first_part(first, clock, capsys):
    """It compiles: nine more follow, of a second each."""
    run(Fit(Verbose(), None, None), clock, [first] + [1.0] * 9)
    left = [re.search(r"about (\S+) s left", line) for line in lines_of(capsys)[:-1]]
    assert left[0] is None
    assert [float(found[1]) for found in left[1:]] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_costs_weigh_parts_in_any_order(clock, capsys):
    costs, sizes = [4.0, 2.0, 1.0, 1.0], [1, 1, 1, 97]
    shown = Fit(Verbose(), None, None).parts(
        "block", 4, unit="label", sizes=sizes, costs=costs, in_order=False
    )
    for number in (2, 0, 3, 1):
        task = shown.part(number).begin()
        clock[0] += 10 * costs[number]
        task.end()
        shown.ended("solved", number)
    assert lines_of(capsys) == [
        "[Verbose] label 1 of 100: solved, 10.0 s",
        "[Verbose] label 2 of 100: solved, 50.0 s, about 30.0 s left",
        "[Verbose] label 99 of 100: solved, 60.0 s, about 20.0 s left",
        "[Verbose] label 100 of 100: solved, 80.0 s",
    ]


def test_restored_parts_take_no_time(clock, capsys):
    shown = Fit(Verbose(), None, None).parts("epoch", 5)
    shown.known()
    shown.known()
    for _ in range(2):
        task = shown.begin()
        clock[0] += 2.0
        shown.end(task, "run")
    assert lines_of(capsys)[-1] == "[Verbose] epoch 4 of 5: run, 4.0 s, about 2.0 s left"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.26, "1.3 s"),
        (99.96, "1 min 40 s"),
        (3599.6, "1 h 00 min"),
        (3600 * 26.5, "26 h 30 min"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text

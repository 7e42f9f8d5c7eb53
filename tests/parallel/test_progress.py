"""Lines that tell how far a training is, and how long it will take."""

import itertools
import re

import numpy as np
import pytest

from sklearn_xc import OvALinearXC
from sklearn_xc.parallel import progress
from sklearn_xc.parallel.progress import Fit, Lines, duration


class Verbose:
    verbose = 1


class Silent:
    verbose = 0


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


def test_nothing_without_verbose(clock, capsys):
    run(Fit(Silent(), None, None), clock, [2.0] * 3)
    assert lines_of(capsys) == []


def test_parts_of_unknown_number_have_a_line_each_and_nothing_left(clock, capsys):
    shown = Fit(Verbose(), None, None).parts("trial", None)
    for rate in (1, 3):
        task = shown.begin()
        clock[0] += 0.1
        shown.end(task, f"learning rate {rate}")
    shown.close()
    assert lines_of(capsys) == [
        "[Verbose] learning rate 1, 0.1 s", "[Verbose] learning rate 3, 0.2 s"
    ]  # fmt: skip


class TestTimeLeft:
    @pytest.mark.parametrize("first", [0.5, 5.0, 90.0])
    def test_the_first_part_does_not_count(self, first, clock, capsys):
        """It compiles: it says nothing of the nine after it, of a second each."""
        run(Fit(Verbose(), None, None), clock, [first] + [1.0] * 9)
        left = [re.search(r"about (\S+) s left", line) for line in lines_of(capsys)[:-1]]
        assert left[0] is None
        assert [float(found[1]) for found in left[1:]] == [8, 7, 6, 5, 4, 3, 2, 1]

    @pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
    def test_costs_weigh_parts(self, order, clock, capsys):
        """Parts that take ten seconds for each unit of their cost, in any order."""
        costs, sizes = [4.0, 2.0, 1.0, 1.0], [1, 1, 1, 97]
        shown = Fit(Verbose(), None, None).parts(
            "block", 4, unit="label", sizes=sizes, costs=costs, in_order=False
        )
        spent, n_done, expected = 0.0, 0, []
        for number in order:
            task = shown.part(number).begin()
            clock[0] += 10 * costs[number]
            task.end()
            shown.ended("solved", number)
            spent, n_done = spent + costs[number], n_done + sizes[number]
            tail = f", about {10 * (8 - spent):.1f} s left" if expected and spent < 8 else ""
            expected.append(
                f"[Verbose] label {n_done} of 100: solved, {duration(10 * spent)}{tail}"
            )
        assert lines_of(capsys) == expected

    def test_parts_under_way_are_half_done(self, clock, capsys):
        shown = Fit(Verbose(), None, None).parts("block", 4, costs=[2.0] * 4, in_order=False)
        clock[0] = 3.0
        shown.ended("solved", 0, under_way=[1])
        clock[0] = 5.0
        shown.ended("solved", 1, under_way=[2])
        assert lines_of(capsys) == [
            "[Verbose] block 1 of 4: solved, 3.0 s",
            "[Verbose] block 2 of 4: solved, 5.0 s, about 3.0 s left",
        ]

    def test_no_promise_without_progress(self, clock, capsys):
        lines = Lines("Some", "fit", 3)
        for n in (1, 2):
            clock[0] = 2.0 * n
            lines.show(n, "nothing done", 0.0)
        assert lines_of(capsys) == [
            "[Some] fit 1 of 3: nothing done, 2.0 s", "[Some] fit 2 of 3: nothing done, 4.0 s"
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"), (1.26, "1.3 s"), (99.94, "99.9 s"), (99.96, "1 min 40 s"),
        (125.4, "2 min 05 s"), (3599.4, "59 min 59 s"), (3599.6, "1 h 00 min"),
        (3600 * 26.5, "26 h 30 min"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


#: What each line of a training looks like.
FORM = re.compile(
    r"\[\w+\] (.+ \d+ of \d+: )?.+, (\d+\.\d s|\d+ min \d\d s|\d+ h \d\d min)(, about \S.* left)?"
)


def test_lines_of_an_estimator_have_the_form(monkeypatch, capsys):
    seconds = itertools.count()
    monkeypatch.setattr(progress.time, "perf_counter", lambda: float(next(seconds)))
    rng = np.random.default_rng(0)
    X, Y = rng.random((40, 6)), (rng.random((40, 300)) < 0.2).astype(int)
    OvALinearXC(prune=0, verbose=1).fit(X, Y)
    lines = [line for line in lines_of(capsys) if line.startswith("[OvALinearXC]")]
    assert all(FORM.fullmatch(line) for line in lines), lines
    assert len(lines) > 2
    assert [line.endswith(" left") for line in lines] == [False, *[True] * (len(lines) - 2), False]

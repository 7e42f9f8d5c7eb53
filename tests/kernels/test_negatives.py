"""Draws of classes: distinct, in range, never the target, all sets equally likely."""

import itertools
import math

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats

from sklearn_xc.kernels._jit import kernel
from sklearn_xc.kernels.negatives import (
    draw_classes,
    draw_classes_besides,
    draw_each,
    mix_key,
    random_below,
)

#: The sets of m out of K classes are counted over so many draws.
N_DRAWS = 40_000


@kernel
def draw_steps(key, first, n_classes, out):
    for t in range(out.shape[0]):
        draw_classes(key, first + t, n_classes, out[t])


@kernel
def draw_steps_besides(key, first, n_classes, target, taken, out):
    for t in range(out.shape[0]):
        draw_classes_besides(key, first + t, n_classes, target, taken, out[t])


@kernel
def random_each(key, bound, out):
    for t in range(out.shape[0]):
        out[t] = random_below(key, t, bound)


def draw(key, n_classes, m, n=N_DRAWS, first=0):
    out = np.full((n, m), -1, np.int64)
    draw_steps(key, first, n_classes, out)
    return out


def draw_others(key, n_classes, targets, m):
    out = np.full((len(targets), m), -1, np.int64)
    draw_each(key, n_classes, np.asarray(targets, np.int64), out)
    return out


def draw_besides(key, n_classes, target, taken, m, n=N_DRAWS, first=0):
    out = np.full((n, m), -1, np.int64)
    draw_steps_besides(key, first, n_classes, target, np.asarray(taken, np.int64), out)
    return out


def assert_equally_likely(drawn, classes):
    m = drawn.shape[1]
    sets = list(itertools.combinations(classes, m))
    found, counts = np.unique(np.sort(drawn, axis=1), axis=0, return_counts=True)
    np.testing.assert_array_equal(found, sets)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(("n_classes", "m"), [(2, 1), (3, 2), (5, 1), (5, 2), (6, 3), (6, 4)])
def test_all_sets_are_equally_likely(n_classes, m):
    assert_equally_likely(draw(mix_key(1, 2), n_classes, m), range(n_classes))


@pytest.mark.parametrize(("n_classes", "m"), [(3, 1), (4, 2), (6, 3), (7, 2)])
@pytest.mark.parametrize("target", ["first", "middle", "last"])
def test_all_sets_without_the_target_are_equally_likely(n_classes, m, target):
    y = {"first": 0, "middle": n_classes // 2, "last": n_classes - 1}[target]
    drawn = draw_others(mix_key(3, 4), n_classes, np.full(N_DRAWS, y), m)
    assert_equally_likely(drawn, [k for k in range(n_classes) if k != y])


@pytest.mark.parametrize(
    ("n_classes", "target", "taken", "m"),
    [
        (3, 1, [0], 1), (4, 0, [2], 1), (5, 4, [3, 0], 1), (5, 2, [4], 2), (7, 3, [6, 0, 2], 2),
        (7, 0, [5], 3), (6, 5, [], 2), (6, 1, [2, 3], 3),
    ],
)  # fmt: skip
def test_all_sets_besides_those_taken_are_equally_likely(n_classes, target, taken, m):
    drawn = draw_besides(mix_key(3, 4), n_classes, target, taken, m)
    left = [k for k in range(n_classes) if k not in (target, *taken)]
    if len(left) > m:
        assert_equally_likely(drawn, left)
    assert (np.sort(drawn, axis=1)[:, :1] >= left[0]).all()
    # Each place of a draw alone is uniform as well: the order is not that of the classes.
    for place in drawn.T:
        counts = np.bincount(place, minlength=n_classes)[left]
        assert counts.sum() == N_DRAWS
        if len(left) > 1:
            assert scipy.stats.chisquare(counts).pvalue > 1e-3


@hypothesis.given(
    seed=st.integers(0, 2**63),
    step=st.integers(0, 2**33),
    n_classes=st.integers(2, 70_000),
    data=st.data(),
)
def test_draws_besides_are_distinct_and_not_taken(seed, step, n_classes, data):
    target = data.draw(st.integers(0, n_classes - 1))
    others = st.integers(0, n_classes - 1).filter(lambda k: k != target)
    most = min(n_classes - 1, 12)
    taken = data.draw(st.lists(others, max_size=most, unique=True))
    m = data.draw(st.integers(0, min(n_classes - 1 - len(taken), 12)))
    drawn = draw_besides(mix_key(seed, 0), n_classes, target, taken, m, n=2, first=step)
    for row in drawn:
        assert all(0 <= k < n_classes for k in row)
        assert len({*row.tolist(), *taken, target}) == m + len(taken) + 1


@pytest.mark.parametrize("n_classes", [2, 3, 9, 200])
def test_the_one_class_that_is_left_is_drawn(n_classes):
    for target in (0, n_classes // 2, n_classes - 1):
        for left in {0, n_classes - 1, (target + 1) % n_classes} - {target}:
            taken = [k for k in range(n_classes) if k not in (target, left)]
            assert (draw_besides(mix_key(0, 1), n_classes, target, taken, 1, n=50) == left).all()


def test_nothing_is_drawn_where_nothing_is_left():
    assert draw_besides(mix_key(0, 0), 3, 1, [0, 2], 0, n=5).shape == (5, 0)


def test_a_draw_besides_depends_on_its_key_and_step_alone():
    key, taken = mix_key(7, 3), [5, 900, 31]
    whole = draw_besides(key, 1000, 4, taken, 5, n=50)
    np.testing.assert_array_equal(draw_besides(key, 1000, 4, taken, 5, n=20, first=30), whole[30:])
    assert len(np.unique(whole, axis=0)) == 50
    assert (draw_besides(mix_key(8, 3), 1000, 4, taken, 5, n=50) != whole).any(axis=1).all()


def test_consecutive_steps_besides_are_independent():
    first = draw_besides(mix_key(5, 0), 6, 1, [4], 1)[:, 0]
    table = np.zeros((6, 6))
    np.add.at(table, (first[:-1], first[1:]), 1)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    assert table.shape == (4, 4)
    assert scipy.stats.chi2_contingency(table).pvalue > 1e-3


def test_consecutive_steps_are_independent():
    first = draw(mix_key(5, 0), 4, 1)[:, 0]
    table = np.zeros((4, 4))
    np.add.at(table, (first[:-1], first[1:]), 1)
    assert scipy.stats.chi2_contingency(table).pvalue > 1e-3


@hypothesis.given(
    seed=st.integers(0, 2**63),
    epoch=st.integers(0, 10**6),
    n_classes=st.integers(2, 70_000),
    data=st.data(),
)
def test_draws_are_distinct_in_range_and_not_the_target(seed, epoch, n_classes, data):
    m = data.draw(st.integers(1, min(n_classes - 1, 20)))
    targets = data.draw(st.lists(st.integers(0, n_classes - 1), min_size=1, max_size=5))
    drawn = draw_others(mix_key(seed, epoch), n_classes, targets, m)
    assert drawn.min() >= 0
    assert drawn.max() < n_classes
    for y, row in zip(targets, drawn, strict=True):
        assert len({*row.tolist(), y}) == m + 1


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_all_others_are_drawn_where_all_are_asked_for(n_classes):
    targets = np.arange(n_classes)
    drawn = draw_others(mix_key(0, 0), n_classes, targets, n_classes - 1)
    for y in targets:
        assert sorted(drawn[y]) == [k for k in range(n_classes) if k != y]
    np.testing.assert_array_equal(np.sort(draw(mix_key(0, 0), n_classes, n_classes, 1)[0]), targets)


def test_two_classes_leave_one():
    targets = np.array([0, 1, 1, 0])
    np.testing.assert_array_equal(draw_others(mix_key(9, 9), 2, targets, 1)[:, 0], 1 - targets)


def test_a_draw_depends_on_its_key_and_step_alone():
    key = mix_key(7, 3)
    whole = draw(key, 1000, 5, n=50)
    np.testing.assert_array_equal(draw(key, 1000, 5, n=50), whole)
    np.testing.assert_array_equal(draw(key, 1000, 5, n=20, first=30), whole[30:])
    assert len(np.unique(whole, axis=0)) == 50
    assert (draw(mix_key(7, 4), 1000, 5, n=50) != whole).any(axis=1).all()
    assert (draw(mix_key(8, 3), 1000, 5, n=50) != whole).any(axis=1).all()


def test_keys_differ_by_seed_and_epoch():
    keys = {int(mix_key(seed, epoch)) for seed in range(60) for epoch in range(60)}
    assert len(keys) == 3600
    assert mix_key(0, 1) != mix_key(1, 0)
    assert isinstance(mix_key(2**64 - 1, 2**31), np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 1000, 2**31, 2**32 - 1])
def test_random_below(bound):
    out = np.empty(10_000, np.int64)
    random_each(mix_key(0, 0), bound, out)
    assert out.min() >= 0
    assert out.max() < bound
    deviation = math.sqrt((bound**2 - 1) / 12 / len(out))
    assert abs(out.mean() - (bound - 1) / 2) <= 4 * deviation

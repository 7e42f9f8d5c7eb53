"""Trees of labels, cut into blocks that wait for each other as little as can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc.one_vs_all.blocks import cut_tree, plan_blocks, topological


@st.composite
def trees(draw):
    """Return the parents of some labels, in no particular order."""
    m = draw(st.integers(1, 60))
    deep = draw(st.booleans())
    parents = [draw(st.integers(max(-1, j - 3) if deep else -1, j - 1)) for j in range(m)]
    order = np.array(draw(st.permutations(range(m))))
    renamed = np.empty(m, np.int64)
    renamed[order] = [order[p] if p >= 0 else -1 for p in parents]
    return renamed


def cut(parents, most=4):
    counts = np.arange(len(parents)) % 7
    return cut_tree(parents, counts, lambda n_left: min(most, max(1, n_left // 3)))


@given(trees(), st.integers(1, 20))
def test_a_parent_is_in_the_block_or_in_an_earlier_wave(parents, most):
    waves = cut(parents, most)
    blocks = [block for wave in waves for block in wave]
    np.testing.assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(len(parents)))
    assert all(0 < len(block) <= most for block in blocks)
    assert all(waves)
    wave_of, block_of = np.empty((2, len(parents)), int)
    for number, block in enumerate(blocks):
        block_of[block] = number
    for number, wave in enumerate(waves):
        wave_of[np.concatenate(wave)] = number
    for label, parent in enumerate(parents):
        if parent >= 0:
            assert block_of[parent] == block_of[label] or wave_of[parent] < wave_of[label]


@given(trees(), st.integers(1, 20))
def test_no_piece_waits_that_need_not(parents, most):
    """A tree of no more labels than a block is one piece; then nothing waits."""
    n_below = np.ones(len(parents), int)
    for label in topological(parents)[::-1]:
        if parents[label] >= 0:
            n_below[parents[label]] += n_below[label]
    waves = cut_tree(parents, np.ones(len(parents), int), lambda n_left: most)
    assert (len(waves) == 1) == (n_below[parents < 0].max() <= most)


def test_a_long_path_takes_no_recursion():
    parents = np.arange(-1, 49_999)
    waves = cut_tree(parents, np.ones(50_000, int), lambda n_left: 1000)
    assert len(waves) == 50


@pytest.mark.parametrize("parents", [[1, 0], [0], [-1, 2, 3, 1], [1, 2, 2, -1]])
def test_labels_on_cycles_are_missing(parents):
    assert len(topological(np.array(parents))) < len(parents)


def test_a_plan_along_a_tree():
    labels, parents = np.array([30, 10, 20, 40]), np.array([-1, 0, 1, -1])
    plan = plan_blocks(labels, np.ones(4, int), lambda lanes: 1, str, None, 1, parents=parents)
    assert plan.waves == [range(1)]
    assert sorted(plan.blocks[0]) == [10, 20, 30, 40]
    plan = plan_blocks(
        labels, np.ones(4, int), lambda lanes: lanes, str, 1, 1, labels_per_lane=1, parents=parents
    )
    assert plan.n_lanes == 1
    assert [[plan.blocks[b].tolist() for b in wave] for wave in plan.waves] == [
        [[30], [40]],
        [[10]],
        [[20]],
    ]

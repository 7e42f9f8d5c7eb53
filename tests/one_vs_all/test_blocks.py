"""The cut of labels into blocks: a partition, within the memory, with work for all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._parallel import memory
from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.one_vs_all.blocks import (
    BLOCKS_PER_WORKER,
    DEFAULT_WORKSPACE_BYTES,
    MAX_BLOCK_LABELS,
    MAX_LANES,
    plan_blocks,
)


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A machine whose free memory never decides."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**50)


def plan(counts, max_memory=None, n_workers=1, bytes_per_lane=1000):
    return plan_blocks(
        np.arange(len(counts)),
        np.asarray(counts),
        lambda lanes: 500 + bytes_per_lane * lanes,
        lambda lanes: f"an array of {lanes} lanes",
        max_memory,
        n_workers,
    )


@given(
    counts=st.lists(st.integers(0, 50), min_size=1, max_size=3000),
    n_workers=st.integers(1, 64),
    max_memory=st.none() | st.integers(1500, 200_000),
)
def test_blocks_are_a_partition(counts, n_workers, max_memory):
    one, many = (plan(counts, max_memory, n) for n in (1, n_workers))
    assert one.n_lanes == many.n_lanes
    by_frequency = np.argsort(-np.array(counts), kind="stable")
    for found in (one, many):
        assert sum(map(len, found.blocks)) == len(counts)
        left = by_frequency
        for block in found.blocks:
            assert block.tolist() == sorted(left[: len(block)])
            left = left[len(block) :]
        assert max(map(len, found.blocks)) <= MAX_BLOCK_LABELS
    assert 1 <= many.n_workers <= n_workers
    if max_memory is not None:
        assert many.n_workers * (500 + 1000 * many.n_lanes) <= max_memory


def test_lanes_shrink_to_fit_the_memory():
    assert plan(np.zeros(1000)).n_lanes == MAX_LANES
    assert plan(np.zeros(5)).n_lanes == 5
    assert plan(np.zeros(1000), max_memory=20_000).n_lanes == 16
    assert plan(np.zeros(1000), max_memory=1500).n_lanes == 1
    assert plan(np.zeros(1000), bytes_per_lane=DEFAULT_WORKSPACE_BYTES // 10).n_lanes == 8


def test_workers_share_max_memory():
    assert plan(np.zeros(1000), max_memory=3 * 64_500 + 1, n_workers=8).n_workers == 3


@pytest.mark.parametrize("n_workers", [1, 16])
def test_there_is_work_for_all_workers(n_workers):
    n_blocks = BLOCKS_PER_WORKER * n_workers
    blocks = plan(np.zeros(2000 * n_blocks), n_workers=n_workers).blocks
    assert len(blocks) >= n_blocks
    assert all(len(block) % MAX_LANES == 0 for block in blocks[:-1])


def test_a_budget_too_small_for_one_lane_names_the_largest_array():
    with pytest.raises(MemoryBudgetError, match=r"max_memory allows 1.0 KiB.*an array of 1 lanes"):
        plan(np.zeros(100), max_memory=1024)


def test_a_machine_too_small_is_named(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 200_000)
    monkeypatch.setattr(memory, "_SMALL", 0)
    with pytest.raises(MemoryBudgetError, match=r"this machine has .* each of 4 workers.* n_jobs"):
        plan(np.zeros(100), n_workers=4)
    assert plan(np.zeros(100), n_workers=3).n_workers == 3
    assert plan(np.zeros(100), n_workers=3).n_lanes == MAX_LANES

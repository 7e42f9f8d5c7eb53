"""Checks of single numbers and vectors of numbers."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc._input.arguments import (
    check_count,
    check_numbers,
    check_topk_size,
    draw_seed,
    refuse_masks_and_dates,
)
from sklearn_xc._parallel.memory import parse_bytes
from sklearn_xc._parallel.threads import count_threads
from sklearn_xc.exceptions import MemoryBudgetError

DATES = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[D]")


def test_none_draws_another_seed_each_time():
    assert draw_seed(None) != draw_seed(None)


@pytest.mark.parametrize("value", [1, np.int8(3), np.int64(10**12), 2**70])
def test_counts(value):
    found = check_count(value, "k")
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize("value", [0, 1.0, True, "3", np.timedelta64(2), [1]])
def test_no_counts(value):
    with pytest.raises(ValueError, match=r"^k must be an integer of at least 1. Got "):
        check_count(value, "k")


@pytest.mark.parametrize(
    "values", [(1.5, 2, 3), np.arange(3), [True, False, True], pd.Series([1.0, 2, 3])]
)
def test_numbers(values):
    found = check_numbers(values, "w", 3, "row")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.asarray(values, float))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, 2], r"shape \(2,\), expected \(3,\): one for each row"),
        (np.ones((3, 1)), r"shape \(3, 1\), expected \(3,\)"),
        ([1, np.nan, 3], r"contains NaN at entry 1"),
        (["1", "2", "3"], r"holds '1' \(dtype <U1\)"),
        ([1j, 2, 3], r"dtype complex128"),
        ([[1], [2, 3]], r"no array of one dimension"),
        (sp.csr_array(np.ones((1, 3))), r"is a sparse matrix"),
        (DATES, r"holds dates or times \(dtype datetime64\[D\]\)"),
    ],
)
def test_no_numbers(values, says):
    with pytest.raises(ValueError, match=r"^w .*" + says):
        check_numbers(values, "w", 3, "row")


def test_masked_arrays_and_dates():
    with pytest.raises(TypeError, match=r"^w is a masked array"):
        check_numbers(np.ma.masked_array([1, 2, 3], [0, 1, 0]), "w", 3, "row")
    with pytest.raises(TypeError, match=r"^X is a masked array"):
        refuse_masks_and_dates(np.ma.masked_array(np.ones((2, 2)), np.eye(2)), "X")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": DATES})
    with pytest.raises(ValueError, match=r"^X holds dates or times"):
        refuse_masks_and_dates(frame, "X")
    refuse_masks_and_dates(frame[["a"]], "X")
    refuse_masks_and_dates([[1, 2]], "X")


@pytest.mark.parametrize("n_jobs", [1, np.int32(3), -1, None, 2**80, -(10**9)])
def test_threads(n_jobs):
    assert 1 <= count_threads(n_jobs) <= 1000
    if n_jobs is not None and 0 < n_jobs < 4:
        assert count_threads(n_jobs) == n_jobs


@pytest.mark.parametrize("n_jobs", [0, True, 1.0, "2"])
def test_no_threads(n_jobs):
    with pytest.raises(ValueError, match=r"^Who: n_jobs must be None or an integer other than 0"):
        count_threads(n_jobs, "Who: n_jobs")


@pytest.mark.parametrize("size", [0, 0.5, True, np.inf, "GB", "-1GB", "inf", "9" * 400])
def test_no_memory_sizes(size):
    says = "max_memory must be a positive number of bytes or a text as '8GB'. Got " + repr(size)
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_bytes(size, "max_memory")


@pytest.mark.parametrize("size", [np.int64(4096), np.float32(4096.0), "4 KiB", "4kb", "4096", 4096])
def test_memory_sizes(size):
    assert parse_bytes(size, "max_memory") == 4096


def test_an_answer_larger_than_memory():
    assert check_topk_size(10**12, np.ones((0, 3))) == 10**12
    with pytest.raises(MemoryBudgetError, match=r"the answer, 5 instances x k=1000000000000"):
        check_topk_size(10**12, np.ones((5, 3)))
    with pytest.raises(MemoryBudgetError, match=r"the answer, 1 instances x k=1000000000000000"):
        check_topk_size(10**15, object())

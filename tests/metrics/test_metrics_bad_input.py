"""What may come in where labels, scores, weights and propensities are expected."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc.metrics import TopKScorer, get_scorer, precision_at_k, psp_at_k

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
TOPK = np.array([[2, 3, 0], [3, 1, -1], [0, 1, 2]])
P = np.array([0.5, 0.25, 0.1, 1.0])
SCORES = np.array([[0.1, 0.2, 0.9, 0.4], [0.3, 0.2, 0.1, 0.7], [0.3, 0.2, 0.1, 0.7]])
DATES = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "datetime64[D]")
nan = float("nan")


class TestSparse:
    @pytest.mark.parametrize("malformed", ["column"], indirect=True)
    def test_index_arrays_outside_the_shape_are_refused(self, malformed):
        with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
            precision_at_k(malformed(Y), TOPK, 2)
        with pytest.raises(ValueError, match=r"topk: this .* is malformed"):
            precision_at_k(Y, malformed(SCORES), 2)

    @pytest.mark.parametrize(
        ("times", "dtype", "container"),
        [
            (2, bool, sp.coo_array),
            (257, np.int8, sp.coo_array),
            (257, np.int8, sp.csr_array),
            (2, np.float32, sp.csc_array),
        ],
    )
    def test_repeated_entries_never_wrap_to_one(self, times, dtype, container):
        data, zeros = np.ones(times, dtype), np.zeros(times, int)
        if container is sp.coo_array:
            repeated = sp.coo_array((data, (zeros, zeros)), shape=(1, 1))
        else:
            repeated = container((data, zeros, [0, times]), shape=(1, 1))
        with pytest.raises(ValueError, match=f"Got {times}.* at row 0, column 0 .repeated"):
            precision_at_k(repeated, [[0]], 1)

    def test_repeated_and_unsorted_scores_are_added_up(self):
        # Label 1 scores 0.3 + 0.3, label 3 0.5.
        scores = sp.csr_array(([0.3, 0.5, 0.3], [1, 3, 1], [0, 3]), shape=(1, 4))
        assert precision_at_k([[0, 1, 0, 0]], scores, 1) == 1.0
        assert precision_at_k([[0, 1, 0, 0]], scores.tocoo(), 2) == 0.5
        assert scores.indices.tolist() == [1, 3, 1]
        small = sp.csr_array((np.array([100, 120, 100], np.int8), [1, 3, 1], [0, 3]), shape=(1, 4))
        assert precision_at_k([[0, 1, 0, 0]], small, 1) == 1.0

    def test_arrays_longer_than_their_pointers_say(self):
        longer = sp.csr_array(Y)
        longer.indices = np.append(longer.indices, 77)
        longer.data = np.append(longer.data, 5)
        assert precision_at_k(longer, TOPK, 2) == precision_at_k(Y, TOPK, 2)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("heavy", r"holds .*'heavy'"),
        ([1, 1], r"has shape \(2,\), expected \(3,\)"),
        ([1, 1, -1], "Got -1 at row 2"),
        ([0, 0, 0], "and a sum of 0"),
        ([1e308, 1e308, 1e308], "and a sum of inf"),
    ],
)
def test_weights(weight, message):
    with pytest.raises(ValueError, match=f"^sample_weight.*{message}"):
        precision_at_k(Y, TOPK, 2, sample_weight=weight)


@pytest.mark.parametrize(
    ("propensities", "message"), [([1, nan, 1], "contains NaN at entry 1"), (None, "holds None")]
)
def test_propensities(propensities, message):
    with pytest.raises(ValueError, match=f"^propensities .*{message}"):
        psp_at_k(Y[:, :3], [[2, 1]] * 3, 2, propensities=propensities)


@pytest.mark.parametrize("make", [TopKScorer, lambda **kw: get_scorer("PSP@1", **kw)])
def test_scorers_check_propensities_at_once(make):
    with pytest.raises(ValueError, match=r"propensities.* Got 2.0 for label 1"):
        make(propensities=[0.5, 2])


@pytest.mark.parametrize("k", [0, True, 1.0, (), {1, 2}, [[1, 2]], [1, True]], ids=str)
def test_cut_offs(k):
    with pytest.raises(ValueError, match=r"^k: expected an int of at least 1"):
        precision_at_k(Y, TOPK, k)


def test_sequences_of_cut_offs_give_arrays():
    expected = [precision_at_k(Y, TOPK, 1), precision_at_k(Y, TOPK, 2)]
    for k in ([1, 2], range(1, 3), np.array([1, 2]), pd.Series([1, 2])):
        assert precision_at_k(Y, TOPK, k).tolist() == expected, type(k)


def test_masks_and_dates():
    """numpy would turn them into other numbers."""
    for where in (0, 1):
        arguments = [Y, TOPK]
        arguments[where] = np.ma.masked_equal(arguments[where], 3)
        with pytest.raises(TypeError, match=r"(Y_true|topk) is a masked array"):
            precision_at_k(*arguments, 2)
    with pytest.raises(TypeError, match="topk is a masked array"):
        precision_at_k(Y, (TOPK, np.ma.array(np.zeros((3, 3)))), 2)
    with pytest.raises(ValueError, match=r"Y_true: .* Got dtype datetime64"):
        precision_at_k(DATES, TOPK, 2)
    with pytest.raises(ValueError, match="topk: expected integer label positions"):
        precision_at_k(Y, DATES[:, None], 1)


def test_rows_of_unequal_length():
    for topk in ([[1, 2], [1], [2]], (TOPK, [[1, 2], [1], [2]])):
        with pytest.raises(ValueError, match=r"topk: expected .*. Got rows of unequal length"):
            precision_at_k(Y, topk, 1)

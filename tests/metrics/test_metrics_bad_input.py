"""What may come in where labels, scores, weights and propensities are expected."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from sklearn_xc.exceptions import MemoryBudgetError
from sklearn_xc.metrics import (
    TopKScorer,
    get_scorer,
    macro_f1_at_k,
    precision_at_k,
    propensity,
    psp_at_k,
)

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
TOPK = np.array([[2, 3, 0], [3, 1, -1], [0, 1, 2]])
P = np.array([0.5, 0.25, 0.1, 1.0])
SCORES = np.array([[0.1, 0.2, 0.9, 0.4], [0.3, 0.2, 0.1, 0.7], [0.3, 0.2, 0.1, 0.7]])
DATES = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "datetime64[D]")
SPANS = np.array([1, 2, 3], "timedelta64[s]")
nan = float("nan")


def with_propensities(function):
    return lambda *args, **kwargs: function(*args, propensities=P, **kwargs)


METRICS = [precision_at_k, with_propensities(psp_at_k), macro_f1_at_k]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=["P", "PSP", "MacroF1"])


class TestSparse:
    @every_metric
    def test_index_arrays_that_lie_are_refused(self, metric, malformed):
        with pytest.raises(ValueError, match=r"Y_true: this .* is malformed"):
            metric(malformed(Y), TOPK, 2)
        with pytest.raises(ValueError, match=r"topk: this .* is malformed"):
            metric(Y, malformed(SCORES), 2)

    @every_metric
    def test_a_one_dimensional_array_is_refused(self, metric):
        with pytest.raises(ValueError, match=r"Y_true: .* 2 dimensions .* shape \(4,\)"):
            metric(sp.coo_array(Y[0]), TOPK, 2)
        with pytest.raises(ValueError, match=r"topk: .* 2 dimensions .* shape \(4,\)"):
            metric(Y, sp.coo_array(SCORES[0]), 2)

    @pytest.mark.parametrize("convert", [sp.coo_array.tocsr, sp.coo_array.tocsc, sp.coo_array.copy])
    @pytest.mark.parametrize("dtype", [bool, np.int8, np.float32])
    @pytest.mark.parametrize("times", [2, 257])
    def test_repeated_entries_never_wrap_to_one(self, times, dtype, convert):
        rows = np.r_[np.zeros(times, int), 1]
        columns = np.r_[np.full(times, 2), 1]
        Y = sp.coo_array((np.ones(times + 1, dtype), (rows, columns)), shape=(3, 4))
        if convert is not sp.coo_array.copy:
            Y = _without_sums(Y, convert)
        with pytest.raises(ValueError, match=f"Got {times}.* at row 0, column 2 .repeated"):
            precision_at_k(Y, TOPK, 1)

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

    def test_ranks_that_fit_no_memory(self):
        wide = sp.csr_array((3, 2**40))
        with pytest.raises(MemoryBudgetError, match=r"3 rows x k=1099511627776\. Lower k"):
            precision_at_k(np.array([0, 1, 2]), wide, 2**40)


def _without_sums(coo, convert):
    """Convert a matrix to CSR or CSC, its repeated entries kept."""
    major, minor = coo.coords if convert is sp.coo_array.tocsr else coo.coords[::-1]
    kind = sp.csr_array if convert is sp.coo_array.tocsr else sp.csc_array
    n = coo.shape[0] if kind is sp.csr_array else coo.shape[1]
    order = np.argsort(major, kind="stable")
    indptr = np.r_[0, np.cumsum(np.bincount(major, minlength=n))]
    return kind((coo.data[order], minor[order], indptr), shape=coo.shape)


SHORT = [1, 1]
ODD = [
    (None, "holds None"),
    ("heavy", r"holds .*'heavy'"),
    ([1, nan, 1], "contains NaN at entry 1"),
    (SHORT, r"has shape \(2,\), expected \(3,\)"),
    ([[1], [1, 2], [1]], "one dimension"),
    (sp.csr_array(np.ones((3, 1))), "sparse matrix"),
    (np.ma.array([1.0, 2, 3], mask=[0, 1, 0]), "masked array"),
    (DATES, "dates or times"),
    ([1j, 1, 1], "dtype complex128"),
]


class TestWeights:
    @pytest.mark.parametrize(("weight", "message"), ODD[1:])
    def test_what_is_no_vector_of_numbers(self, weight, message):
        with pytest.raises((ValueError, TypeError), match=f"^sample_weight .*{message}"):
            precision_at_k(Y, TOPK, 2, sample_weight=weight)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            ([1, 1, -1], "at least 0. Got -1.0 at row 2"),
            ([0, 0, 0], "positive, finite sum. Got 0: only zeros"),
            ([1e308, 1e308, 1e308], "finite sum. Got inf: divide them"),
        ],
    )
    def test_numbers_that_are_no_weights(self, weight, message):
        with pytest.raises(ValueError, match=f"^sample_weight: expected .*{message}"):
            precision_at_k(Y, TOPK, 2, sample_weight=weight)


class TestPropensities:
    @pytest.mark.parametrize(("propensities", "message"), ODD)
    def test_what_is_no_vector_of_numbers(self, propensities, message):
        with pytest.raises((ValueError, TypeError), match=f"^propensities .*{message}"):
            psp_at_k(Y[:, :3], [[2, 1]] * 3, 2, propensities=propensities)

    @pytest.mark.parametrize("make", [TopKScorer, lambda **kw: get_scorer("PSP@1", **kw)])
    @pytest.mark.parametrize(
        ("propensities", "message"), [([0.5, 2], "Got 2.0 for label 1"), ("all", "holds .*'all'")]
    )
    def test_scorers_look_at_once(self, make, propensities, message):
        with pytest.raises(ValueError, match=f"propensities.* {message}"):
            make(propensities=propensities)


class TestPropensity:
    @pytest.mark.parametrize(("counts", "message"), [case for case in ODD if case[0] is not SHORT])
    def test_counts(self, counts, message):
        message = message.replace(r"\(3,\)", r"\(n,\)")
        with pytest.raises((ValueError, TypeError), match=f"^label_counts .*{message}"):
            propensity(counts, 10)

    @pytest.mark.parametrize(
        "number",
        [True, None, "10", nan, np.inf, -5, 10 + 0j, SPANS[2], np.array([10, 20]), [10]],
    )
    def test_single_numbers(self, number):
        with pytest.raises(ValueError, match="n_samples: expected a number"):
            propensity([1, 2], number)
        for name in ("A", "B"):
            if number is not None:
                with pytest.raises(ValueError, match=f"{name}: expected a positive number"):
                    propensity([1, 2], 10, **{name: number})


class TestCutOffs:
    @every_metric
    @pytest.mark.parametrize(
        "k",
        [0, True, 1.0, "1", None, (), {1, 2}, iter([1, 2]), [[1, 2]], [1, True], SPANS],
        ids=lambda k: type(k).__name__,
    )
    def test_what_is_none(self, metric, k):
        with pytest.raises(ValueError, match=r"^k(: expected an int of at least 1| holds dates)"):
            metric(Y, TOPK, k)

    @pytest.mark.parametrize(
        "k", [[1, 2], (1, 2), range(1, 3), np.array([1, 2]), pd.Series([1, 2])]
    )
    def test_sequences_give_arrays(self, k):
        expected = [precision_at_k(Y, TOPK, 1), precision_at_k(Y, TOPK, 2)]
        assert precision_at_k(Y, TOPK, k).tolist() == expected


class TestDisguised:
    """Masks, dates and 64-bit positions, which numpy would turn into other numbers."""

    @every_metric
    def test_masks(self, metric):
        for where in (0, 1):
            arguments = [Y, TOPK]
            arguments[where] = np.ma.masked_equal(arguments[where], 3)
            with pytest.raises(TypeError, match=r"(Y_true|topk) is a masked array"):
                metric(*arguments, 2)
        with pytest.raises(TypeError, match="topk is a masked array"):
            metric(Y, (TOPK, np.ma.array(np.zeros((3, 3)))), 2)
        with pytest.raises(TypeError, match="Y_true is a masked array"):
            metric(np.ma.array([0, 1, 2]), TOPK, 2)

    @every_metric
    @pytest.mark.parametrize("dates", [DATES, SPANS])
    def test_dates(self, metric, dates):
        square = dates[:, None] + np.zeros((1, 3), "timedelta64[D]")
        with pytest.raises(ValueError, match=f"Y_true: .* Got dtype {dates.dtype.name[:8]}"):
            metric(dates, TOPK, 2)
        with pytest.raises(ValueError, match="Y_true: expected an indicator"):
            metric(square, TOPK, 2)
        with pytest.raises(ValueError, match="topk: expected integer label positions"):
            metric(Y, square, 2)
        with pytest.raises(ValueError, match="topk: expected scores"):
            metric(Y, (TOPK, square), 2)

    def test_positions_beyond_int64(self):
        huge = np.array([0, 1, 2**64 - 1], np.uint64)  # -1 as int64, which would be a padding
        with pytest.raises(ValueError, match=r"Y_true: positions must be below 2\*\*63"):
            precision_at_k(huge, TOPK, 1)
        with pytest.raises(ValueError, match=r"topk: positions must be below 2\*\*63"):
            precision_at_k(Y, huge[:, None], 1)

    def test_rows_of_unequal_length(self):
        for topk in ([[1, 2], [1], [2]], ([[1, 2], [1], [2]], [[1, 2], [1], [2]])):
            with pytest.raises(ValueError, match=r"topk: expected .*. Got rows of unequal length"):
                precision_at_k(Y, topk, 1)

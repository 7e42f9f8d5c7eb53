"""Metrics at k against hand-computed numbers and a slow twin, and their errors."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import label_ranking_average_precision_score

from sklearn_xc.metrics import (
    average_precision_at_k,
    hit_rate_at_k,
    lrap_at_k,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)

PLAIN = {
    "precision": precision_at_k,
    "recall": recall_at_k,
    "ndcg": ndcg_at_k,
    "reciprocal_rank": reciprocal_rank_at_k,
    "average_precision": average_precision_at_k,
    "lrap": lrap_at_k,
    "hit_rate": hit_rate_at_k,
}
PROPENSITY_SCORED = {"psp": psp_at_k, "psndcg": psndcg_at_k}

# Three rows: two true labels, one, none.
Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
TOPK = np.array([[2, 3, 0], [3, 1, -1], [0, 1, 2]])
P = np.array([0.5, 0.25, 0.1, 1.0])


def all_metrics(Y_true, topk, k, propensities, sample_weight=None):
    """Return the values of all metrics as an array of shape (9,) or (9, len(k))."""
    values = [f(Y_true, topk, k, sample_weight=sample_weight) for f in PLAIN.values()]
    values += [
        f(Y_true, topk, k, propensities=propensities, sample_weight=sample_weight)
        for f in PROPENSITY_SCORED.values()
    ]
    return np.array(values)


def slow_metrics(dense, rankings, k, propensities, weights):
    """Return the same from sets and loops: `rankings` are lists of labels, best first."""
    total = sum(weights)
    mrr = average = lrap = hit_rate = 0.0
    precision = recall = ndcg = psp = best_psp = psndcg = best_psndcg = 0.0
    for row, ranking, weight in zip(dense, rankings, weights, strict=True):
        true = {label for label, value in enumerate(row) if value}
        found = [(rank, label) for rank, label in enumerate(ranking[:k]) if label in true]
        rarest = sorted((1 / propensities[label] for label in true), reverse=True)[:k]
        precision += weight * len(found) / k
        psp += weight * sum(1 / propensities[label] for _, label in found)
        best_psp += weight * sum(rarest)
        if true:
            ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, len(true))))
            recall += weight * len(found) / len(true)
            ndcg += weight * sum(1 / math.log2(rank + 2) for rank, _ in found) / ideal
            gain = sum(1 / propensities[label] / math.log2(rank + 2) for rank, label in found)
            psndcg += weight * gain / ideal
            best = sum(value / math.log2(rank + 2) for rank, value in enumerate(rarest))
            best_psndcg += weight * best / ideal
            precisions = sum(n / (rank + 1) for n, (rank, _) in enumerate(found, 1))
            average += weight * precisions / min(k, len(true))
            lrap += weight * precisions / len(true)
        if found:
            hit_rate += weight
            mrr += weight / (found[0][0] + 1)
    return np.array(
        [
            precision / total,
            recall / total,
            ndcg / total,
            mrr / total,
            average / total,
            lrap / total,
            hit_rate / total,
            psp / best_psp if best_psp else 0.0,
            psndcg / best_psndcg if best_psndcg else 0.0,
        ]
    )


@st.composite
def problems(draw):
    n_samples, n_labels = draw(st.integers(1, 8)), draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y_true = rng.random((n_samples, n_labels)) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    Y_true &= rng.random(n_labels) < 0.8  # labels without positives
    Y_true &= rng.random((n_samples, 1)) < 0.8  # empty rows
    lengths = rng.integers(0, n_labels + 1, n_samples)
    rankings = [list(rng.permutation(n_labels)[:length]) for length in lengths]
    width = n_labels + draw(st.integers(0, 2))
    topk = np.full((n_samples, width), -1)
    for row, ranking in enumerate(rankings):
        topk[row, : len(ranking)] = ranking
    weights = draw(st.sampled_from([np.ones(n_samples), 1.0 + rng.integers(0, 3, n_samples)]))
    k = draw(st.integers(1, width))
    return Y_true, topk, rankings, k, rng.uniform(0.01, 1, n_labels), weights


@given(problems())
def test_equal_to_slow_twin(problem):
    Y_true, topk, rankings, k, propensities, weights = problem
    expected = slow_metrics(Y_true, rankings, k, propensities, weights)
    actual = all_metrics(sp.csr_array(Y_true), topk, k, propensities, weights)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    assert (actual >= 0).all()
    assert (actual <= 1).all()


@settings(max_examples=12)
@given(problems())
def test_containers_agree(problem):
    Y_true, topk, _, k, propensities, _ = problem
    expected = all_metrics(Y_true, topk, k, propensities)
    scores = np.where(topk >= 0, -np.arange(topk.shape[1], dtype=float), -np.inf)
    for container in (sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix, np.asarray):
        for dtype, ranked in ((bool, topk), (np.int64, (topk, scores)), (float, topk.astype("i2"))):
            actual = all_metrics(container(Y_true.astype(dtype)), ranked, k, propensities)
            np.testing.assert_array_equal(actual, expected)


@given(problems(), st.sampled_from([np.float32, np.int64]))
def test_sparse_scores_rank_ties_by_label(problem, dtype):
    Y_true, topk, _, k, propensities, _ = problem
    n_labels = Y_true.shape[1]
    k = min(k, n_labels)
    # The stored labels of a row come in the arbitrary order of topk, their scores have many ties,
    # signs, and zeros, which are scores like any other.
    rows, ranks = np.nonzero(topk >= 0)
    columns = topk[rows, ranks]
    data = ((columns * 7 + rows) % 3 - 1).astype(dtype)
    indptr = np.concatenate([[0], np.cumsum((topk >= 0).sum(axis=1))])
    scores = sp.csr_array((data, columns, indptr), shape=Y_true.shape)
    rankings = [
        [label for _, label in sorted(zip(-data[rows == row], columns[rows == row], strict=True))]
        for row in range(len(Y_true))
    ]
    expected = slow_metrics(Y_true, rankings, k, propensities, np.ones(len(Y_true)))
    before = scores.copy()
    actual = all_metrics(Y_true, scores, k, propensities)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(scores.indices, before.indices)
    np.testing.assert_array_equal(scores.data, before.data)


def test_by_hand():
    log3 = 1 / math.log2(3)
    assert precision_at_k(Y, TOPK, k=1) == 1 / 3
    assert precision_at_k(Y, TOPK, k=3) == pytest.approx((2 / 3 + 1 / 3 + 0) / 3)
    assert recall_at_k(Y, TOPK, k=1) == pytest.approx((1 / 2) / 3)
    assert recall_at_k(Y, TOPK, k=3) == pytest.approx(2 / 3)
    assert ndcg_at_k(Y, TOPK, k=1) == pytest.approx(1 / 3)
    assert ndcg_at_k(Y, TOPK, k=3) == pytest.approx(((1 + 0.5) / (1 + log3) + log3) / 3)
    assert reciprocal_rank_at_k(Y, TOPK, k=[1, 3]) == pytest.approx([1 / 3, (1 + 1 / 2) / 3])
    assert average_precision_at_k(Y, TOPK, k=1) == pytest.approx(1 / 3)
    assert lrap_at_k(Y, TOPK, k=1) == pytest.approx((1 / 2) / 3)
    # Row 0 has hits at ranks 1 and 3, of precision 1 and 2/3; row 1 one at rank 2.
    for function in (average_precision_at_k, lrap_at_k):
        assert function(Y, TOPK, k=3) == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2) / 3)
    assert hit_rate_at_k(Y, TOPK, k=[1, 3]) == pytest.approx([1 / 3, 2 / 3])
    # Inverse propensities are 2, 4, 10, 1: the best of row 0 is 10, then 2; that of row 1 is 4.
    assert psp_at_k(Y, TOPK, k=1, propensities=P) == pytest.approx(10 / 14)
    assert psp_at_k(Y, TOPK, k=2, propensities=P) == pytest.approx(14 / 16)
    assert psp_at_k(Y, TOPK, k=3, propensities=P) == 1.0
    ideal = 1 + log3
    assert psndcg_at_k(Y, TOPK, k=3, propensities=P) == pytest.approx(
        ((10 + 2 * 0.5) / ideal + 4 * log3) / ((10 + 2 * log3) / ideal + 4)
    )


def test_lrap_of_all_labels_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores, weight = rng.random((50, 20)), rng.random(50)
    Y_true = rng.random(scores.shape) < 0.2
    Y_true[:, 3] = True  # scikit-learn gives rows without a true label 1
    expected = label_ranking_average_precision_score(Y_true, scores, sample_weight=weight)
    found = lrap_at_k(sp.csr_array(Y_true), sp.csr_array(scores), 20, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12)


def test_one_k_gives_float_many_give_array():
    for function in PLAIN.values():
        many = function(Y, TOPK, k=(3, 1))
        assert type(function(Y, TOPK, k=3)) is float
        assert many.dtype == np.float64
        assert many.tolist() == [function(Y, TOPK, k=3), function(Y, TOPK, k=np.int32(1))]


def test_class_without_column_is_a_true_label_that_nobody_finds():
    y, topk = np.array([2, -1]), np.array([[2, 0], [-1, 1]])
    *plain, psp, psndcg = all_metrics(y, topk, 1, P)
    assert plain == [0.5] * len(PLAIN)
    assert (psp, psndcg) == (1.0, 1.0)  # the other row attains all that can be attained


def test_more_labels_than_32_bits_hold_as_keys():
    n_labels = 3_000_000
    columns = np.arange(5_000) * 600 + 7
    Y_true = sp.csr_array((np.ones(5_000), (np.arange(5_000), columns)), shape=(5_000, n_labels))
    topk = np.stack([columns - 1, columns], axis=1)
    assert precision_at_k(Y_true, topk, k=[1, 2]).tolist() == [0.0, 0.5]
    # In 32-bit arithmetic, a neighbouring key wraps around onto that of another row.
    assert precision_at_k(Y_true, np.roll(topk, 1, axis=0), k=2) == 0.0


nan, inf = float("nan"), float("inf")
STORED_TWICE = sp.coo_array((np.ones(2), ([1, 1], [2, 2])), shape=(3, 4))
SCORES = sp.csr_array(np.array([[1.0, 2, 3, 4], [1, 2, 3, nan], [1, 2, 3, 4]]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Y_true": Y * 2}, "Y_true: an indicator holds only 0 and 1. Got 2 at row 0, column 0"),
        ({"Y_true": STORED_TWICE}, "Y_true: .* Got 2.0 at row 1, column 2 .repeated"),
        ({"Y_true": Y[:2]}, "topk: Y_true has 2 rows, topk has 3"),
        ({"Y_true": Y[:0]}, "Y_true: expected at least one row"),
        ({"Y_true": Y[None]}, r"Y_true: expected 1 or 2 dimensions. Got shape \(1, 3, 4\)"),
        ({"Y_true": [[0, 1], [2], []]}, "encode_targets.*unequal length"),
        ({"topk": TOPK[0]}, r"topk: expected shape \(n_samples, at least k\). Got \(3,\)"),
        ({"topk": TOPK + 1}, "topk: .* at least -1 and below 4, the number.* Got 4 at row 0"),
        ({"topk": [[0, 1], [1, 1], [0, 1]]}, "topk: .* label 1 twice .* of row 1"),
        ({"topk": TOPK.astype(float)}, "topk: expected integer .* dtype float64.*argsort"),
        ({"topk": (TOPK, TOPK[:2])}, r"topk: indices and scores .* \(3, 3\) and \(2, 3\)"),
        ({"topk": (TOPK, [[1, 0, 0], [1, nan, 0], [0, 0, 0]])}, "topk: .* Got other ones in row 1"),
        (
            {"topk": (TOPK, [[1, 0, 0], [1, 0, -inf], [0, 1, 0]])},
            "topk: .* Got other ones in row 2",
        ),
        ({"topk": sp.csr_array(Y > 0)}, "topk: a sparse argument must be .* dtype bool"),
        (
            {"topk": sp.csr_array((3, 4)), "k": 5},
            "k must be at most 4, the label columns of topk. Got 5",
        ),
        ({"k": 4}, "k must be at most 3, the columns of topk. Got 4. Ask predict_topk for k=4"),
        ({"propensities": 1 / P}, "propensities: .* 2.0 for label 0. Inverse propensities"),
        (
            {"Y_true": np.array([0, 1, 4]), "topk": np.array([[0, 1]] * 3)},
            "Y_true: .* below 4, the number of labels. Got 4 at row 2",
        ),
    ],
)
def test_error_names_argument_and_value(changed, message):
    arguments = {"Y_true": Y, "topk": TOPK, "k": 2, "propensities": P} | changed
    with pytest.raises(ValueError, match=message):
        psp_at_k(**arguments)
    if "propensities" not in changed and "Got 4 at row 2" not in message:
        del arguments["propensities"]
        with pytest.raises(ValueError, match=message):
            precision_at_k(**arguments)

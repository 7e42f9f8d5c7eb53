"""The difference of two rankings: its value, and how often its interval holds the truth."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc.metrics import (
    ndcg_at_k,
    paired_bootstrap,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)
from sklearn_xc.metrics.bootstrap import bootstrap_ratio

METRICS = {
    "P": precision_at_k,
    "nDCG": ndcg_at_k,
    "R": recall_at_k,
    "PSP": psp_at_k,
    "PSnDCG": psndcg_at_k,
}


def problem(n=400, n_labels=30, seed=0):
    """Return an indicator, two rankings that are right about half of the time, propensities."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, n_labels)) < 0.15).astype(float)
    base = 0.7 * Y + rng.random((n, n_labels))
    a, b = (np.argsort(-(base + 0.3 * rng.random(Y.shape)), axis=1)[:, :5] for _ in range(2))
    return sp.csr_array(Y), a, b, rng.uniform(0.1, 1, n_labels)


@pytest.mark.parametrize(
    ("metric", "k", "weighted"),
    [("P", 1, False), ("nDCG", 3, True), ("R", 3, False), ("PSP", 1, True), ("PSnDCG", 3, False)],
)
def test_difference_is_that_of_the_metrics_and_its_error_that_of_a_loop(metric, k, weighted):
    Y, a, b, propensities = problem()
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.2, 2, 400) if weighted else np.ones(400)
    function, name = METRICS[metric], f"{metric}@{k}"
    options = {"propensities": propensities} if metric.startswith("PS") else {}

    def difference(rows):
        values = [
            function(Y[rows], each[rows], k, sample_weight=weight[rows], **options)
            for each in (a, b)
        ]
        return values[1] - values[0]

    found = paired_bootstrap(Y, a, b, metric=name, sample_weight=weight, random_state=0, **options)
    assert found.difference == pytest.approx(difference(np.arange(400)), abs=1e-14)
    assert (found.n, found.name, found.confidence) == (400, name, 0.95)
    drawn = [difference(rng.integers(0, 400, 400)) for _ in range(150)]
    # The standard deviation of 150 draws has an error of 6%.
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(np.std(drawn), rel=0.15)
    assert (found.high + found.low) / 2 == pytest.approx(found.difference)


def interval(n_alike, seed=0, n_resamples=4_000, jitter=0.0):
    """Return the interval of given numbers of rows at -1, 0 and 1, which may differ a little."""
    of = np.repeat([-1.0, 0.0, 1.0], n_alike)
    rng = np.random.default_rng(seed)
    of = of + jitter * rng.random(len(of))
    ratio, low, high, p_value = bootstrap_ratio(of, np.ones(len(of)), n_resamples, 0.95, rng)
    assert ratio == pytest.approx(of.mean())
    return np.array([low, high, p_value])


def test_rows_that_are_alike_are_drawn_as_if_they_were_not():
    together, apart = interval([30, 300, 60]), interval([30, 300, 60], jitter=1e-9)
    np.testing.assert_allclose(together, apart, atol=0.004)
    # Many rows: the normal interval.
    error = np.sqrt(90 - 30**2 / 390) / 390
    expected = 30 / 390 + 1.96 * error * np.array([-1, 1])
    np.testing.assert_allclose(together[:2], expected, atol=0.004)


@given(
    st.lists(st.integers(0, 12), min_size=3, max_size=3).filter(lambda n: sum(n) > 1),
    st.integers(0, 1000),
)
def test_p_value_and_interval_agree(n_alike, seed):
    low, high, p_value = interval(n_alike, seed, n_resamples=999)
    ratio = (n_alike[2] - n_alike[0]) / sum(n_alike)
    assert np.isfinite([low, high]).all()
    assert low - 1e-12 <= ratio <= high + 1e-12
    assert 1 / 1000 <= p_value <= 1
    if low > 1e-12 or high < -1e-12:
        assert p_value <= 0.05 + 1e-12
    if p_value <= 0.05:
        assert low > -1e-12 or high < 1e-12


def test_extremes():
    y = np.zeros(50, int)
    right, wrong = np.zeros((50, 1), int), np.ones((50, 1), int)
    same = paired_bootstrap(y, right, right, n_resamples=200, random_state=0)
    assert same[:4] == (0.0, 0.0, 0.0, 1.0)
    always = paired_bootstrap(y, wrong, right, n_resamples=200, random_state=0)
    assert always[:4] == (1.0, 1.0, 1.0, 1 / 201)
    one = paired_bootstrap(y, right, np.r_[wrong[:1], right[1:]], random_state=0)
    assert one.low < one.difference == -1 / 50 < one.high == 0.0
    assert one.p_value > 0.3
    nothing = paired_bootstrap(
        sp.csr_array((50, 2)), right, wrong, metric="PSP@1", propensities=[1, 1], random_state=0
    )
    assert nothing[:4] == (0.0, 0.0, 0.0, 1.0)


def test_seeds_and_containers():
    Y, a, b, _ = problem()
    found = paired_bootstrap(Y, a, b, random_state=3)
    scores = (b, np.tile([5.0, 4, 3, 2, 1], (400, 1)))
    assert found == paired_bootstrap(Y.toarray(), a, scores, random_state=3)
    assert found == paired_bootstrap(Y, a, b, random_state=np.random.RandomState(3))
    other = paired_bootstrap(Y, a, b, random_state=4)
    assert found != other
    np.testing.assert_allclose(found[:3], other[:3], atol=0.005)
    named = paired_bootstrap(["x", "y"] * 9, a[:18, :1] % 2, b[:18, :1] % 2, classes=["x", "y"])
    assert named.n == 18


def test_it_prints_as_a_sentence():
    found = type(paired_bootstrap(Y, A, B))(0.0042, -0.001, 0.0095, 0.11, 4321, "P@1", 0.95)
    expected = "P@1 +0.42 points (95% interval -0.10 to +0.95, p = 0.11, 4,321 instances)"
    assert repr(found) == str(found) == f"{found}" == expected


def test_intervals_hold_the_truth_in_95_percent_of_samples():
    """4% of rows are right with the second ranking only, 2% with the first only."""
    rng, covered = np.random.default_rng(0), 0
    for seed in range(400):
        chance, y = rng.random(300), np.zeros(300, int)
        a = np.where(chance < 0.04, 1, 0)[:, None]
        b = np.where((chance >= 0.04) & (chance < 0.06), 1, 0)[:, None]
        found = paired_bootstrap(y, a, b, n_resamples=999, random_state=seed)
        covered += found.low <= 0.02 <= found.high
    assert 0.92 <= covered / 400 <= 0.98


Y, A, B, P = problem(n=4)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metric": "map"}, 'metric: expected one of "P@k", "nDCG@k", .* Got .map.'),
        ({"metric": "Cov@3"}, "metric: expected one of .* Got 'Cov@3'"),
        ({"metric": "P@6"}, "k must be at most 5, the columns of topk_a. Got 6"),
        ({"n_resamples": 99}, "n_resamples must be an integer of at least 100. Got 99"),
        ({"confidence": 1.0}, "confidence: expected a number between 0 and 1. Got 1.0"),
        ({"topk_a": A[:3]}, "topk_a: Y_true has 4 rows, topk_a has 3"),
        ({"topk_b": B + 30}, "topk_b: label positions must be at least -1 and below 30"),
        ({"Y_true": 2 * Y}, "Y_true: an indicator holds only 0 and 1"),
        ({"Y_true": ["a;b", "c", "a;c", "b"]}, "Lists of names become .* encode_targets"),
        ({"propensities": P}, "propensities: 'P@1' takes none; .* Got some"),
        ({"metric": "PSP@1"}, r"propensities holds None.* propensity\(clf"),
        ({"sample_weight": [1, 0, 0, 0]}, "Y_true: expected at least two rows .* Got 1"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_error_names_argument_and_value(changed, message):
    arguments = {"Y_true": Y, "topk_a": A, "topk_b": B} | changed
    given = [arguments.pop(name) for name in ("Y_true", "topk_a", "topk_b")]
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(*given, **arguments)

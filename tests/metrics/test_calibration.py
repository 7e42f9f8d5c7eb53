"""Brier score and calibration error of pairs against loops, scikit-learn and by hand."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from sklearn_xc.metrics import (
    brier_score,
    calibration_by_frequency,
    expected_calibration_error,
)

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
P = np.array([[0.9, 0.0, 0.5, 0.2], [0.1, 0.7, 0.0, 0.0], [0.0, 0.0, 0.0, 0.6]])
COUNTS = np.array([1, 9, 1, 0])


@st.composite
def problems(draw):
    """Return an indicator, probabilities with ties and NaN where there is none, weights."""
    n_samples, n_labels = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y_true = (rng.random((n_samples, n_labels)) < 0.4).astype(int)
    P = rng.random((n_samples, n_labels))
    P = np.round(P, draw(st.sampled_from([1, 6])))
    P[rng.random(P.shape) < 0.3] = np.nan
    P[0, 0] = 0.25
    weights = draw(st.sampled_from([None, 1.0 + rng.integers(0, 3, n_samples)]))
    return Y_true, P, weights


def pairs_of(Y_true, P, k, weights):
    """Return probability, truth, weight and label of the scored pairs, as lists."""
    found = []
    for i, row in enumerate(P):
        best = sorted((-p, label) for label, p in enumerate(row) if not np.isnan(p))[:k]
        weight = 1.0 if weights is None else weights[i]
        found += [(-p, Y_true[i, label], weight, label) for p, label in best]
    return found


def csr_of(P):
    rows, columns = np.nonzero(~np.isnan(P))
    return sp.csr_array(sp.coo_array((P[rows, columns], (rows, columns)), shape=P.shape))


def arrays_of(P, k):
    scores = np.where(np.isnan(P), -np.inf, P)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(scores, order, axis=1)
    return np.where(np.isinf(scores), -1, order), scores


def slow_error(pairs, n_bins, strategy):
    """Return the calibration error with each pair repeated as its weight says."""
    repeated = sorted((p, true) for p, true, weight, _ in pairs for _ in range(int(weight)))
    n = len(repeated)
    if strategy == "uniform":
        edges = [j / n_bins for j in range(1, n_bins)]
    else:
        edges = [repeated[-(-n * j // n_bins) - 1][0] for j in range(1, n_bins)]
    bins = {}
    for p, true in repeated:
        bins.setdefault(sum(p > edge for edge in edges), []).append((p, true))
    return sum(abs(sum(true - p for p, true in members)) for members in bins.values()) / n


@given(problems(), st.sampled_from([None, 1, 2]), st.integers(1, 6))
def test_equal_to_slow_twin(problem, k, n_bins):
    Y_true, P, weights = problem
    k = None if k is None else min(k, P.shape[1])
    pairs = pairs_of(Y_true, P, k, weights)
    mass = sum(weight for _, _, weight, _ in pairs)
    brier = sum(weight * (p - true) ** 2 for p, true, weight, _ in pairs) / mass
    options = {"k": k, "sample_weight": weights}
    for Y_prob in (csr_of(P), csr_of(P).tocsc(), arrays_of(P, P.shape[1])):
        assert brier_score(Y_true, Y_prob, **options) == pytest.approx(brier, abs=1e-14)
        for strategy in ("quantile", "uniform"):
            found = expected_calibration_error(
                sp.csr_array(Y_true), Y_prob, n_bins=n_bins, strategy=strategy, **options
            )
            assert found == pytest.approx(slow_error(pairs, n_bins, strategy), abs=1e-13)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_bins_are_those_of_scikit_learn(strategy):
    rng = np.random.default_rng(5)
    p = rng.random((60, 5)) ** 3
    Y_true = (rng.random(p.shape) < p**0.7).astype(int)
    true, mean = calibration_curve(Y_true.ravel(), p.ravel(), n_bins=10, strategy=strategy)
    edges = np.linspace(0, 1, 11)
    if strategy == "quantile":
        edges = np.percentile(p, 100 * edges)
    size = np.bincount(np.searchsorted(edges[1:-1], p.ravel()))
    expected = (size[size > 0] / p.size * np.abs(true - mean)).sum()
    found = expected_calibration_error(Y_true, p, n_bins=10, strategy=strategy)
    assert found == pytest.approx(expected, rel=1e-12)
    assert brier_score(Y_true, p) == pytest.approx(brier_score_loss(Y_true.ravel(), p.ravel()))


def test_by_hand():
    # Stored: 0.9 right, 0.5 right, 0.2 wrong, 0.1 wrong, 0.7 right, 0.6 wrong.
    squares = np.array([0.1, 0.5, 0.2, 0.1, 0.3, 0.6]) ** 2
    assert brier_score(Y, sp.csr_array(P)) == pytest.approx(squares.mean())
    assert brier_score(Y, P) == pytest.approx(squares.sum() / 12)  # with six zeros, all right
    assert brier_score(Y, sp.csr_array(P), k=1) == pytest.approx((0.01 + 0.09 + 0.36) / 3)
    # Halves: 0.1, 0.2, 0.5 with one right; 0.6, 0.7, 0.9 with two right.
    expected = (abs(1 - 0.8) + abs(2 - 2.2)) / 6
    assert expected_calibration_error(Y, sp.csr_array(P), n_bins=2) == pytest.approx(expected)


def test_ranked_by_something_else():
    # As a calibrator answers: in the order of scores, which probabilities need not follow.
    indices, probabilities = (
        np.array([[2, 0], [1, 0], [3, 0]]),
        np.array([[0.5, 0.9], [0.7, 0.1], [0.6, 0.0]]),
    )
    assert brier_score(Y, (indices, probabilities), k=1) == pytest.approx(
        np.mean([0.5**2, 0.3**2, 0.6**2])
    )
    swapped = indices[:, ::-1], probabilities[:, ::-1]
    for measure in (brier_score, expected_calibration_error):
        both = [measure(Y, pairs) for pairs in ((indices, probabilities), swapped)]
        assert both[0] == pytest.approx(both[1])


def test_calibrated_probabilities_have_a_small_error():
    rng = np.random.default_rng(0)
    p = rng.random((4_000, 10)) ** 4
    Y_true = rng.random(p.shape) < p
    chance = np.sqrt(2 * 15 * (p * (1 - p)).mean() / (np.pi * p.size))
    assert expected_calibration_error(Y_true, p) < 2 * chance < 0.02
    assert expected_calibration_error(Y_true, np.sqrt(p)) > 0.1


def test_class_labels():
    y, first = ["bee", "ant"], np.array([[1], [1]])
    found = brier_score(y, (first, np.array([[0.8], [0.4]])), classes=["ant", "bee"])
    assert found == pytest.approx((0.04 + 0.16) / 2)


@given(problems(), st.sampled_from([None, 2]), st.integers(1, 5))
def test_groups_are_their_parts_by_themselves(problem, k, n_groups):
    Y_true, P, weights = problem
    k = None if k is None else min(k, P.shape[1])
    counts = np.array([3, 0, 1, 1, 7, 2, 40, 1])[: P.shape[1]]
    table = pd.DataFrame(
        calibration_by_frequency(
            Y_true, csr_of(P), counts, k=k, n_bins=3, n_groups=n_groups, sample_weight=weights
        )
    )
    pairs = pairs_of(Y_true, P, k, weights)
    assert table["n_pairs"].sum() == len(pairs)
    assert table["n_labels"].sum() == len(counts)
    assert (table["upper"].to_numpy()[:-1] < table["lower"].to_numpy()[1:]).all()
    for group in table.itertuples():
        mine = [pair for pair in pairs if group.lower <= counts[pair[3]] <= group.upper]
        assert group.n_pairs == len(mine)
        assert group.n_positives == sum(true for _, true, _, _ in mine)
        if not mine:
            assert np.isnan([group.mean_probability, group.brier_score]).all()
            continue
        p, true, weight, _ = np.array(mine).T
        assert group.mean_probability == pytest.approx(np.average(p, weights=weight))
        assert group.share_positive == pytest.approx(np.average(true, weights=weight))
        brier = np.average((p - true) ** 2, weights=weight)
        assert group.brier_score == pytest.approx(brier, abs=1e-14)
        expected = slow_error(mine, 3, "quantile")
        assert group.calibration_error == pytest.approx(expected, abs=1e-13)


def test_groups_by_hand():
    found = calibration_by_frequency(Y, sp.csr_array(P), COUNTS, n_groups=2)
    assert found["lower"].tolist() == found["upper"].tolist() == [0, 1, 9]
    assert found["n_labels"].tolist() == [1, 2, 1]
    assert found["n_pairs"].tolist() == [2, 3, 1]
    assert found["n_positives"].tolist() == [0, 2, 1]
    np.testing.assert_allclose(found["mean_probability"], [0.4, 0.5, 0.7])
    assert {len(column) for column in found.values()} == {3}


@pytest.mark.parametrize("measure", [brier_score, expected_calibration_error])
def test_weight_zero_drops_a_row_and_two_repeats_it(measure):
    weighted = measure(Y, sp.csr_array(P), sample_weight=[2, 0, 1])
    assert weighted == pytest.approx(measure(Y[[0, 0, 2]], sp.csr_array(P[[0, 0, 2]])))
    found = calibration_by_frequency(Y, sp.csr_array(P), COUNTS, sample_weight=[1, 0, 1])
    without = calibration_by_frequency(Y[[0, 2]], sp.csr_array(P[[0, 2]]), COUNTS)
    for name, column in without.items():
        np.testing.assert_array_equal(found[name], column)


MEASURES = {
    "brier": brier_score,
    "ece": expected_calibration_error,
    "by frequency": lambda Y_true, Y_prob, **options: calibration_by_frequency(
        Y_true, Y_prob, COUNTS, **options
    ),
}
INDICES = np.array([[0, 2], [1, -1], [3, 0]])
OF_INDICES = np.array([[0.9, 0.5], [0.7, -np.inf], [0.6, 0.1]])
NOTHING = (np.zeros((3, 0), int), np.zeros((3, 0)))
nan = float("nan")


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Y_prob": sp.csr_array(3 * P)}, r"Y_prob: .* in \[0, 1\]. Got 2.7.* label 0 of row 0"),
        ({"Y_prob": sp.csr_array(-P)}, r"Y_prob: .* Got -0.2 for label 3 .*predict_proba"),
        ({"Y_prob": np.where(P == 0.7, nan, P)}, "Y_prob: expected scores. Got NaN in row 1"),
        ({"Y_prob": P[:2]}, "Y_prob: Y_true has 3 rows, Y_prob has 2"),
        ({"Y_prob": sp.csr_array(P[:, :3])}, "Y_prob: Y_true has 4 label columns, .* have 3"),
        ({"Y_prob": P[0]}, r"Y_prob: expected a matrix .* Got dtype float64 and shape \(4,\)"),
        ({"Y_prob": INDICES}, r"Y_prob: expected a matrix .*tuple .* Got dtype int64"),
        ({"Y_prob": sp.csr_array(P > 0)}, "Y_prob: a sparse argument .* Got dtype bool"),
        ({"Y_prob": sp.csr_array((3, 4))}, "Y_prob: expected a probability .* Got none"),
        ({"Y_prob": (INDICES,)}, "Y_prob: a tuple must be .indices, scores. .* Got 1 entries"),
        ({"Y_prob": ()}, "Y_prob: a tuple must be .* Got 0 entries"),
        ({"Y_prob": (INDICES, OF_INDICES[:2])}, r"Y_prob: indices and scores .* \(2, 2\)"),
        ({"Y_prob": (INDICES + 2, OF_INDICES)}, "Y_prob: .* below 4, the number of labels. Got 4"),
        ({"Y_prob": (INDICES, 2 * OF_INDICES)}, "Y_prob: expected probabilities.* Got 1.8"),
        ({"Y_prob": (INDICES * 0.5, OF_INDICES)}, "Y_prob: expected integer label positions"),
        ({"Y_prob": NOTHING, "k": None}, "at least one pair.* Got none"),
        ({"Y_prob": None}, "Y_prob: expected a matrix of probabilities"),
        ({"k": 0}, "k must be an integer of at least 1. Got 0"),
        ({"k": [1, 2]}, "k must be an integer"),
        ({"k": 5}, "k must be at most 4, the label columns of Y_prob. Got 5"),
        ({"k": 3, "Y_prob": (INDICES, OF_INDICES)}, "k must be at most 2, the columns of Y_prob"),
        ({"Y_true": 2 * Y}, "Y_true: an indicator holds only 0 and 1"),
        ({"Y_true": ["a", "b", "c"]}, "Y_true: .* pass classes="),
        ({"sample_weight": [1, -1, 1]}, "sample_weight: .* Got -1.0 at row 1"),
    ],
)
def test_error_names_argument_and_value(measure, changed, message):
    arguments = {"Y_true": Y, "Y_prob": sp.csr_array(P), "k": 2} | changed
    with pytest.raises(ValueError, match=message):
        measure(arguments.pop("Y_true"), arguments.pop("Y_prob"), **arguments)


def test_disguised(malformed):
    for measure in MEASURES.values():
        with pytest.raises(ValueError, match=r"Y_prob: this .* is malformed"):
            measure(Y, malformed(P))
        with pytest.raises(TypeError, match="Y_prob is a masked array"):
            measure(Y, np.ma.array(P))
        with pytest.raises(TypeError, match="Y_prob is a masked array"):
            measure(Y, (INDICES, np.ma.array(OF_INDICES)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be an integer from 1 to 1000000. Got 0"),
        ({"n_bins": 10**12}, "n_bins must be an integer from 1 to 1000000"),
        ({"n_bins": 2.5}, "n_bins must be an integer"),
        ({"strategy": "kmeans"}, "strategy: expected one of .'quantile', 'uniform'.. Got 'kmeans'"),
        ({"strategy": None}, "strategy: expected one of .* Got None"),
    ],
)
def test_bins_that_are_none(options, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(Y, P, **options)
    with pytest.raises(ValueError, match=message):
        calibration_by_frequency(Y, P, COUNTS, **options)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (COUNTS[:3], "calibration_by_frequency: label_counts must have one .* of 4 labels. Got 3"),
        ([1, 9, -1, 0], "calibration_by_frequency: label_counts must be whole .* Got -1"),
        ([0, 0, 0, 0], "label_counts must be above 0"),
        (None, "label_counts holds None"),
    ],
)
def test_counts_that_are_none(counts, message):
    with pytest.raises(ValueError, match=message):
        calibration_by_frequency(Y, P, counts)
    with pytest.raises(ValueError, match="calibration_by_frequency: n_groups must be an integer"):
        calibration_by_frequency(Y, P, COUNTS, n_groups=0)
    with pytest.raises(ValueError, match=r"label_counts must have one .* each of 5 labels. Got 4"):
        calibration_by_frequency([0, 1, 4], (INDICES, OF_INDICES), COUNTS)

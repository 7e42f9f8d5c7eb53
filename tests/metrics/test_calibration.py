"""Calibration error of pairs against loops, scikit-learn and by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from sklearn_xc.metrics import expected_calibration_error

Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
P = np.array([[0.9, 0.0, 0.5, 0.2], [0.1, 0.7, 0.0, 0.0], [0.0, 0.0, 0.0, 0.6]])


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
    options = {"k": k, "sample_weight": weights}
    for Y_prob in (csr_of(P), csr_of(P).tocsc(), arrays_of(P, P.shape[1])):
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


def test_by_hand():
    # Stored: 0.9 right, 0.5 right, 0.2 wrong, 0.1 wrong, 0.7 right, 0.6 wrong.
    # Halves: 0.1, 0.2, 0.5 with one right; 0.6, 0.7, 0.9 with two right.
    expected = (abs(1 - 0.8) + abs(2 - 2.2)) / 6
    assert expected_calibration_error(Y, sp.csr_array(P), n_bins=2) == pytest.approx(expected)
    # A calibrator ranks by score, which probabilities need not follow.
    pairs = np.array([[2, 0], [1, 0], [3, 0]]), np.array([[0.5, 0.9], [0.7, 0.1], [0.6, 0.0]])
    first = expected_calibration_error(Y, pairs, k=1, n_bins=1)
    assert first == pytest.approx((0.5 + 0.3 - 0.6) / 3)
    y, labels = ["bee", "ant"], (np.array([[1], [1]]), np.array([[0.8], [0.4]]))
    found = expected_calibration_error(y, labels, classes=["ant", "bee"], n_bins=2)
    assert found == pytest.approx((0.2 + 0.4) / 2)


def test_weight_zero_drops_a_row_and_two_repeats_it():
    weighted = expected_calibration_error(Y, sp.csr_array(P), sample_weight=[2, 0, 1])
    rows = [0, 0, 2]
    repeated = expected_calibration_error(Y[rows], sp.csr_array(P[rows]))
    assert weighted == pytest.approx(repeated)


INDICES = np.array([[0, 2], [1, -1], [3, 0]])
OF_INDICES = np.array([[0.9, 0.5], [0.7, -np.inf], [0.6, 0.1]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"Y_prob": sp.csr_array(3 * P)}, r"Y_prob: .* in \[0, 1\]. Got 2.7.* label 0 of row 0"),
        ({"Y_prob": sp.csr_array(-P)}, r"Y_prob: .* Got -0.2 for label 3 .*predict_proba"),
        ({"Y_prob": P[0]}, r"Y_prob: expected a matrix .* Got dtype float64 and shape \(4,\)"),
        ({"Y_prob": sp.csr_array((3, 4))}, "Y_prob: expected a probability .* Got none"),
        ({"Y_prob": (INDICES,)}, "Y_prob: a tuple must be .* Got 1 entries"),
        ({"Y_prob": (INDICES, 2 * OF_INDICES)}, "Y_prob: expected probabilities.* Got 1.8"),
        ({"k": 5}, "k must be at most 4, the label columns of Y_prob. Got 5"),
        ({"n_bins": 0}, "n_bins must be an integer from 1 to 1000000. Got 0"),
        ({"strategy": "kmeans"}, "strategy: expected one of .'quantile', 'uniform'.. Got 'kmeans'"),
    ],
)
def test_error_names_argument_and_value(changed, message):
    arguments = {"Y_true": Y, "Y_prob": sp.csr_array(P), "k": 2} | changed
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(**arguments)


def test_masks():
    for Y_prob in (np.ma.array(P), (INDICES, np.ma.array(OF_INDICES))):
        with pytest.raises(TypeError, match="Y_prob is a masked array"):
            expected_calibration_error(Y, Y_prob)

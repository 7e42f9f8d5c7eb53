"""Coverage and macro-F1 of the k best labels, against scikit-learn, sets and by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from sklearn_xc.metrics import coverage_at_k, macro_f1_at_k

METRICS = [coverage_at_k, macro_f1_at_k]
Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
TOPK = np.array([[2, 3, 0], [3, 1, -1], [0, 1, 2]])


@st.composite
def problems(draw):
    """Return an indicator of two labels or more, a ranking with padding, k and weights."""
    n_samples, n_labels = draw(st.integers(1, 8)), draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Y_true = rng.random((n_samples, n_labels)) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    Y_true &= rng.random(n_labels) < 0.7  # labels without positives
    topk = np.array([rng.permutation(n_labels) for _ in range(n_samples)])
    topk[np.arange(n_labels) >= rng.integers(0, n_labels + 1, n_samples)[:, None]] = -1
    weights = draw(st.sampled_from([None, 1.0 + rng.integers(0, 3, n_samples)]))
    return Y_true.astype(int), topk, draw(st.integers(1, n_labels)), weights


@given(problems())
def test_macro_f1_is_that_of_scikit_learn(problem):
    Y_true, topk, k, weights = problem
    named = np.zeros_like(Y_true)
    for row, labels in enumerate(topk[:, :k]):
        named[row, labels[labels >= 0]] = 1
    expected = f1_score(Y_true, named, average="macro", zero_division=0, sample_weight=weights)
    found = macro_f1_at_k(sp.csr_array(Y_true), topk, k, sample_weight=weights)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(problems())
def test_coverage_by_sets(problem):
    Y_true, topk, k, _ = problem
    sets = [set(np.flatnonzero(row)) for row in Y_true]
    true = set().union(*sets)
    found = set().union(*(s & set(row[:k]) for s, row in zip(sets, topk, strict=True)))
    expected = len(found) / len(true) if true else 0.0
    assert coverage_at_k(sp.csc_matrix(Y_true), topk, k) == expected


def test_by_hand():
    # Labels 0, 1 and 2 are true; 2 is found at rank 1, 1 at rank 2, 0 at rank 3.
    assert coverage_at_k(Y, TOPK, [1, 2, 3]).tolist() == [1 / 3, 2 / 3, 1]
    # At 2: label 0 named once, wrongly; 1 twice, once rightly; 2 once, rightly; 3 twice, wrongly.
    assert macro_f1_at_k(Y, TOPK, 2) == pytest.approx((0 + 2 / 3 + 1 + 0) / 4)


@pytest.mark.parametrize("metric", METRICS)
def test_weights_and_empty_answers(metric):
    weighted = metric(Y, TOPK, [1, 2, 3], sample_weight=[2, 0, 1])
    np.testing.assert_allclose(weighted, metric(Y[[0, 0, 2]], TOPK[[0, 0, 2]], [1, 2, 3]))
    nothing, empty = sp.csr_array((3, 4)), np.full((3, 2), -1)
    assert metric(nothing, TOPK, 2) == metric(Y, empty, 2) == metric(nothing, empty, 2) == 0.0


def test_class_positions_and_labels():
    y, topk = np.array([2, 0, 2, -1]), np.array([[2, 0], [1, 0], [0, 1], [1, 0]])
    assert coverage_at_k(y, topk, [1, 2]).tolist() == [1 / 2, 1]
    # Label 0: named once at rank 1, wrongly; 1: twice, wrongly; 2: once, rightly, of two.
    assert macro_f1_at_k(y, topk, 1) == pytest.approx((0 + 0 + 2 / 3) / 3)
    names = np.array(["ant", "bee", "cat", "dog"])
    labels = np.append(names[y[:3]], "eel")
    assert macro_f1_at_k(labels, topk, 1, classes=names) == pytest.approx((2 / 3) / 4)
    assert coverage_at_k(labels, topk, 1, classes=names) == 1 / 2

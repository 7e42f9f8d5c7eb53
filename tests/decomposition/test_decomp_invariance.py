"""Weights beyond the number of visits, and labels that a warm start does not see again."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

PROMISED = (
    "coef_",
    "intercept_",
    "feature_embedding_",
    "fit_report_",
    "threshold_",
    "label_counts_",
)


def value_of(model, name):
    """Return an attribute; of what training did, the losses: seconds differ."""
    return model.fit_report_["loss"] if name == "fit_report_" else getattr(model, name)


@st.composite
def problems(draw, weights):
    """Return X with few distinct rows, zeros of both signs among them, Y and weights."""
    n = draw(st.integers(6, 14))
    kinds = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    rows = rng.choice([0.0, -0.0, 0.5, 0.1, -1.25], (4, 7), p=[0.3, 0.2, 0.2, 0.2, 0.1])
    labels = rng.random((4, 3)) < 0.4
    labels[0] = [True, False, True]
    X, Y = rows[kinds], labels[kinds].astype(int)
    X[0], Y[0] = 1.0, [0, 1, 0]
    weight = np.array(draw(st.lists(st.sampled_from(weights), min_size=n, max_size=n)))
    weight[0] = max(weight)
    hypothesis.assume(weight[0] > 0)
    return X, Y, weight


METHODS = (
    {"gradient": "exact"},
    {"gradient": "exact", "dropout": 0.5},
    {"gradient": "decomp_mips", "sampled_epochs": 0.5, "n_candidates": 2, "loss": "softmax"},
)


@pytest.mark.parametrize("method", METHODS, ids=str)
@hypothesis.settings(max_examples=15)
@hypothesis.given(problem=problems([0, 1, 2, 3, 66]), seed=st.integers(0, 99))
def test_whole_weights_are_repeated_rows(problem, seed, method, make):
    """In all but the counts, which are of the instances that were passed."""
    X, Y, weight = problem
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(X)), weight))
    weighted, repeated = make(**method).fit(X, Y, weight), make(**method).fit(X[rows], Y[rows])
    for name in PROMISED[:-1]:
        a, b = value_of(weighted, name), value_of(repeated, name)
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), name
    assert weighted.n_samples_fit_ == np.count_nonzero(weight)
    np.testing.assert_array_equal(weighted.label_counts_, Y[weight > 0].sum(axis=0))
    assert repeated.n_samples_fit_ == len(rows)
    np.testing.assert_array_equal(repeated.label_counts_, Y[rows].sum(axis=0))

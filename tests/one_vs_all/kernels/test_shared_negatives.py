"""Labels at the kink: free numbers are at the minimum, over all rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.one_vs_all.kernels.shared_negatives import (
    balance_kernel,
    full_gradient_kernel,
    score_alone,
)
from sklearn_xc.one_vs_all.problem import sum_instances
from sklearn_xc.one_vs_all.solver.newton_cg import shared_negatives_of

SEEDS = st.integers(0, 2**31)


def make_short_rows(rng, make_problem, dtype=np.float64, **given):
    """Return a problem of short rows, many of them without features, and few labels."""
    n, d, n_labels = 200, 30, 3
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.06)
    Y = np.zeros((n, n_labels), np.int8)
    for j in range(n_labels):
        Y[rng.choice(n, 1 + j, replace=False), j] = 1
    return make_problem(
        sp.csr_array(X),
        sp.csr_array(Y),
        dtype=dtype,
        weight=rng.uniform(0.5, 2, n),
        plus=rng.uniform(0.5, 2, n_labels),
        minus=rng.uniform(0.5, 2, n_labels),
        **given,
    )


def balance(problem, label, features, weights, share, tolerance=1e-3, free=()):
    """Return the share and the height found, and the vector with the negatives and without."""
    negatives = shared_negatives_of(problem, sum_instances(problem))
    positives = problem.positives(label)
    own = np.zeros(problem.n_features)
    own[features] = weights
    before, scores = own.copy(), np.full(problem.n_samples, np.nan)
    of_positives = np.empty(len(positives))
    score_alone(problem.postings[0], features, own, positives, scores, of_positives)
    costs = problem.plus[label], problem.minus[label]
    data = problem.weight, positives, costs, negatives.scores
    free = np.array(free, np.int32)
    found = balance_kernel(problem.loss)(
        problem.postings[0],
        data,
        free,
        own,
        negatives.weights,
        (share, share),
        tolerance,
        scores,
        of_positives,
    )
    moved = np.flatnonzero(own != before)
    assert set(moved.tolist()) <= set(free.tolist())
    check_scores(problem, own, positives, scores, of_positives)
    w = np.append(found[0] * negatives.weights + own, found[1] - problem.loss.active_below)
    return found, w, negatives


def check_scores(problem, own, positives, scores, of_positives):
    expected = rows_of(problem) @ own
    np.testing.assert_allclose(of_positives, expected[positives], atol=1e-6)
    expected[positives] = -np.inf
    np.testing.assert_allclose(scores, expected, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS,
    label=st.integers(0, 2),
    start=st.sampled_from([1e-6, 1e-3, 0.3]),
    loss=st.sampled_from(["squared_hinge", "huber_hinge"]),
)
def test_both_derivatives_vanish(seed, label, start, loss, make_problem, objective_of):
    rng = np.random.default_rng(seed)
    problem = make_short_rows(rng, make_problem, loss=loss)
    features = rng.permutation(30)[: rng.integers(0, 9)].astype(np.int32)
    weights = rng.normal(size=len(features)) * 0.3
    tolerance = 1e-3
    _, w, negatives = balance(problem, label, features, weights, start, tolerance)
    gradient = objective_of(problem, label).gradient(w)
    assert abs(gradient[-1]) <= 0.01 * tolerance + 1e-9
    assert abs(gradient[:-1] @ negatives.weights) <= (
        0.01 * tolerance * np.linalg.norm(negatives.weights) + 1e-9
    )


def rows_of(problem):
    indptr, indices, data = problem.instances.arrays
    return sp.csr_array((data, indices, indptr), shape=problem.instances.shape)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS,
    label=st.integers(0, 2),
    variant=st.sampled_from([("squared_hinge", np.float32), ("huber_hinge", np.float64)]),
    slack=st.sampled_from([1e-6, 0.1]),
)
def test_certificates_are_those_over_all_rows(
    seed, label, variant, slack, make_problem, objective_of
):
    """For known scores with any error within their slack."""
    rng, (loss, dtype) = np.random.default_rng(seed), variant
    problem = make_short_rows(rng, make_problem, dtype, loss=loss)
    point = (rng.normal(size=31) * rng.choice([0.01, 0.3, 3.0])).astype(dtype)
    point[-1] = rng.choice([-1.0, -0.99, 0.5, -3.0])
    positives, share = problem.positives(label), rng.normal()
    answer = rng.normal(size=200)
    alone = rows_of(problem) @ point[:-1].astype(np.float64) - share * answer
    alone += slack * rng.uniform(-0.99, 0.99, 200)
    alone[positives] = -np.inf
    objective, norm = full_gradient_kernel(problem.loss)(
        problem.instances.arrays,
        problem.weight,
        positives,
        (problem.plus[label], problem.minus[label]),
        point,
        (alone, answer, share, slack),
        np.empty(31),
    )
    reference = objective_of(problem, label)
    assert objective == pytest.approx(reference.value(point), rel=1e-12)
    assert norm == pytest.approx(np.linalg.norm(reference.gradient(point)), rel=1e-9, abs=1e-12)

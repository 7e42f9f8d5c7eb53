"""Labels and the crowd: both numbers are the minimum, and certificates those over all rows."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.kernels.one_vs_all.certificate import certificate_kernel
from sklearn_xc.kernels.one_vs_all.crowd import balance_kernel, score_by_features
from sklearn_xc.solvers.crowd import crowd_of
from sklearn_xc.solvers.problem import sum_instances

SEEDS = st.integers(0, 2**31)


def crowded(rng, make_problem, dtype=np.float64, **given):
    """Return a problem of short rows, many of them without features, and few labels."""
    n, d, n_labels = 200, 30, 3
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.06)
    Y = np.zeros((n, n_labels), np.int8)
    for j in range(n_labels):
        Y[rng.choice(n, 1 + j, replace=False), j] = 1
    return make_problem(
        sp.csr_array(X.astype(dtype)), sp.csr_array(Y), weight=rng.uniform(0.5, 2, n),
        plus=rng.uniform(0.5, 2, n_labels), minus=rng.uniform(0.5, 2, n_labels), **given,
    )  # fmt: skip


def balance(problem, label, features, weights, share, tolerance=1e-3):
    """Return the share and the height found, and the vector with the crowd and without."""
    crowd = crowd_of(problem, sum_instances(problem))
    found = balance_kernel(problem.loss)(
        problem.postings[0], problem.weight, problem.positives(label),
        (problem.plus[label], problem.minus[label]), problem.ridge, features, weights,
        crowd.weights, crowd.scores, share, tolerance, np.empty(problem.n_samples),
    )  # fmt: skip
    w = np.append(found[0] * crowd.weights, found[1] - problem.loss.active_below)
    w[features] += weights
    return found, w, crowd


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS, label=st.integers(0, 2), start=st.sampled_from([1e-6, 1e-3, 0.3]),
    loss=st.sampled_from(["squared_hinge", "huber_hinge"]), regularize=st.booleans(),
)  # fmt: skip
def test_both_derivatives_vanish(seed, label, start, loss, regularize, make_problem, objective_of):
    rng = np.random.default_rng(seed)
    problem = crowded(rng, make_problem, loss=loss, regularize_intercept=regularize)
    features = rng.permutation(30)[: rng.integers(0, 9)].astype(np.int32)
    weights = rng.normal(size=len(features)) * 0.3
    tolerance = 1e-3
    _, w, crowd = balance(problem, label, features, weights, start, tolerance)
    gradient = objective_of(problem, label).gradient(w)
    assert abs(gradient[-1]) <= 0.01 * tolerance + 1e-9
    assert abs(gradient[:-1] @ crowd.weights) <= (
        0.01 * tolerance * np.linalg.norm(crowd.weights) + 1e-9
    )


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_the_intercept_is_a_number_of_the_type(seed, make_problem, objective_of):
    rng = np.random.default_rng(seed)
    problem = crowded(rng, make_problem, np.float32)
    features = rng.permutation(30)[:3].astype(np.int32)
    weights = (rng.normal(size=3) * 0.3).astype(np.float32)
    _, w, crowd = balance(problem, 0, features, weights, 1e-3)
    assert np.float32(w[-1]) == w[-1]
    # With this intercept, the share is the best one.
    gradient = objective_of(problem, 0).gradient(w)
    assert abs(gradient[:-1] @ crowd.weights) <= 1.1e-5 * np.linalg.norm(crowd.weights)


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS, label=st.integers(0, 2), prune=st.sampled_from([0.0, 0.1, 9.0]),
    loss=st.sampled_from(["squared_hinge", "huber_hinge"]), regularize=st.booleans(),
)  # fmt: skip
def test_certificates_are_those_over_all_rows(
    seed, label, prune, loss, regularize, make_problem, objective_of
):
    rng = np.random.default_rng(seed)
    problem = crowded(rng, make_problem, loss=loss, regularize_intercept=regularize)
    point = rng.normal(size=31) * rng.choice([0.01, 0.3, 3.0])
    point[-1] = rng.choice([-1.0, -0.99, 0.5, -3.0])
    objective, norm, pruned = certificate_kernel(problem.loss)(
        problem.instances.arrays, problem.weight, problem.positives(label),
        (problem.plus[label], problem.minus[label]), problem.ridge, point, prune,
        np.empty(200), np.empty(31),
    )  # fmt: skip
    reference = objective_of(problem, label)
    assert objective == pytest.approx(reference.value(point), rel=1e-12)
    assert norm == pytest.approx(np.linalg.norm(reference.gradient(point)), rel=1e-9, abs=1e-12)
    kept = np.where(np.abs(point) >= prune, point, 0.0)
    kept[-1] = point[-1]
    assert pruned == pytest.approx(reference.value(kept), rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_not_finite_are_never_certified(bad, make_problem):
    problem = crowded(np.random.default_rng(0), make_problem)
    point = np.zeros(31)
    point[4] = bad
    with np.errstate(invalid="ignore"):
        _, norm, _ = certificate_kernel(problem.loss)(
            problem.instances.arrays, problem.weight, problem.positives(0), (1.0, 1.0), 1.0, point,
            0.1, np.empty(200), np.empty(31),
        )  # fmt: skip
    assert not norm < np.inf


def test_scores_by_features_are_those_of_rows(make_problem):

    rng = np.random.default_rng(0)
    problem = crowded(rng, make_problem)
    features, weights = rng.permutation(30)[:7].astype(np.int32), rng.normal(size=7)
    scores = np.full(200, np.nan)

    @numba.njit
    def run(*args):
        score_by_features(*args)

    run(problem.postings[0], features, weights, scores)
    w = np.zeros(30)
    w[features] = weights
    indptr, indices, data = problem.instances.arrays
    X = sp.csr_array((data, indices, indptr), shape=(200, 30))
    np.testing.assert_allclose(scores, X @ w, atol=1e-12)

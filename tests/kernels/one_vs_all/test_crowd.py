"""Labels and the crowd: what is free is at the minimum, certificates are those over all rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_xc.kernels.one_vs_all.certificate import certificate_kernels
from sklearn_xc.kernels.one_vs_all.crowd import balance_kernel, score_alone
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
        sp.csr_array(X), sp.csr_array(Y), dtype=dtype, weight=rng.uniform(0.5, 2, n),
        plus=rng.uniform(0.5, 2, n_labels), minus=rng.uniform(0.5, 2, n_labels), **given,
    )  # fmt: skip


def balance(problem, label, features, weights, share, tolerance=1e-3, free=()):
    """Return the share and the height found, and the vector with the crowd and without."""
    crowd, positives = crowd_of(problem, sum_instances(problem)), problem.positives(label)
    own = np.zeros(problem.n_features)
    own[features] = weights
    before, scores = own.copy(), np.full(problem.n_samples, np.nan)
    of_positives = np.empty(len(positives))
    score_alone(problem.postings[0], features, own, positives, scores, of_positives)
    found = balance_kernel(problem.loss)(
        problem.postings[0], problem.weight, positives,
        (problem.plus[label], problem.minus[label]), problem.ridge, np.array(free, np.int32), own,
        crowd.weights, crowd.scores, share, share, tolerance, scores, of_positives,
    )  # fmt: skip
    moved = np.flatnonzero(own != before)
    assert set(moved.tolist()) <= set(free)
    check_scores(problem, own, positives, scores, of_positives)
    w = np.append(found[0] * crowd.weights + own, found[1] - problem.loss.active_below)
    return found, w, crowd


def check_scores(problem, own, positives, scores, of_positives):
    expected = rows_of(problem) @ own
    np.testing.assert_allclose(of_positives, expected[positives], atol=1e-6)
    expected[positives] = -np.inf
    np.testing.assert_allclose(scores, expected, atol=1e-6)


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


@settings(max_examples=40, deadline=None)
@given(
    seed=SEEDS, label=st.integers(0, 2), loss=st.sampled_from(["squared_hinge", "huber_hinge"]),
    regularize=st.booleans(),
)  # fmt: skip
def test_free_features_come_nearer_to_the_minimum(
    seed, label, loss, regularize, make_problem, objective_of
):
    """Each turn takes Newton steps by one weight; the objective falls, and so does its gradient."""
    rng = np.random.default_rng(seed)
    problem = crowded(rng, make_problem, loss=loss, regularize_intercept=regularize)
    features = rng.permutation(30)[:6].astype(np.int32)
    weights = rng.normal(size=6) * 0.3
    free = features[:4].tolist() + [j for j in range(30) if j not in features][:2]
    reference = objective_of(problem, label)
    _, held, crowd = balance(problem, label, features, weights, 1e-3)
    point = held
    for _ in range(8):  # turns from where the last one ended
        own = point[:-1] - held[:-1]
        own[features] += weights
        nonzero = np.flatnonzero(own).astype(np.int32)
        _, point, _ = balance(problem, label, nonzero, own[nonzero], 1e-3, free=free)
    assert reference.value(point) <= reference.value(held) * (1 + 1e-12)
    gradient = reference.gradient(point)
    before = np.linalg.norm(reference.gradient(held)[free])
    assert np.linalg.norm(gradient[free]) <= 0.05 * before + 1e-3
    assert abs(gradient[:-1] @ crowd.weights) <= 0.01 * 1e-3 * np.linalg.norm(crowd.weights) + 1e-9


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


def rows_of(problem):
    indptr, indices, data = problem.instances.arrays
    return sp.csr_array((data, indices, indptr), shape=problem.instances.shape)


@settings(max_examples=60, deadline=None)
@given(
    seed=SEEDS, label=st.integers(0, 2), dtype=st.sampled_from([np.float32, np.float64]),
    slack=st.sampled_from([1e-6, 0.1]), loss=st.sampled_from(["squared_hinge", "huber_hinge"]),
    regularize=st.booleans(),
)  # fmt: skip
def test_certificates_are_those_over_all_rows(
    seed, label, dtype, slack, loss, regularize, make_problem, objective_of
):
    """However the scores that say where to look are off, within their slack."""
    rng = np.random.default_rng(seed)
    problem = crowded(rng, make_problem, dtype, loss=loss, regularize_intercept=regularize)
    point = (rng.normal(size=31) * rng.choice([0.01, 0.3, 3.0])).astype(dtype)
    point[-1] = rng.choice([-1.0, -0.99, 0.5, -3.0])
    positives, share = problem.positives(label), rng.normal()
    answer = rng.normal(size=200)
    alone = rows_of(problem) @ point[:-1].astype(np.float64) - share * answer
    alone += slack * rng.uniform(-0.99, 0.99, 200)
    alone[positives] = -np.inf
    objective, norm = certificate_kernels(problem.loss).certify(
        problem.instances.arrays, problem.weight, positives,
        (problem.plus[label], problem.minus[label]), problem.ridge, point,
        (alone, answer, share, slack), np.empty(31),
    )  # fmt: skip
    reference = objective_of(problem, label)
    assert objective == pytest.approx(reference.value(point), rel=1e-12)
    assert norm == pytest.approx(np.linalg.norm(reference.gradient(point)), rel=1e-9, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS, label=st.integers(0, 2), bias=st.sampled_from([-3.0, -1.0, -0.99, 0.5]),
    loss=st.sampled_from(["squared_hinge", "huber_hinge"]),
)  # fmt: skip
def test_losses_are_those_of_all_rows(seed, label, bias, loss, make_problem, objective_of):
    rng = np.random.default_rng(seed)
    problem = crowded(rng, make_problem, loss=loss)
    positives, point = problem.positives(label), np.append(rng.normal(size=30), bias)
    scores = rows_of(problem) @ point[:-1]
    of_positives = scores[positives]
    scores[positives] = -np.inf
    found = certificate_kernels(problem.loss).add_up_losses(
        problem.weight, positives, (problem.plus[label], problem.minus[label]), bias, scores,
        of_positives,
    )  # fmt: skip
    expected = objective_of(problem, label).value(point) - 0.5 * point @ point
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_not_finite_are_never_certified(bad, make_problem):
    problem = crowded(np.random.default_rng(0), make_problem)
    point, alone = np.zeros(31), np.zeros(200)
    point[4] = bad
    alone[problem.positives(0)] = -np.inf
    with np.errstate(invalid="ignore"):
        _, norm = certificate_kernels(problem.loss).certify(
            problem.instances.arrays, problem.weight, problem.positives(0), (1.0, 1.0), 1.0, point,
            (alone, np.zeros(200), bad, bad), np.empty(31),
        )  # fmt: skip
    assert not norm < np.inf


def test_scores_by_features_are_those_of_rows(make_problem):
    rng = np.random.default_rng(0)
    problem = crowded(rng, make_problem)
    features, own = rng.permutation(30)[:7].astype(np.int32), np.zeros(30)
    own[features] = rng.normal(size=7)
    positives, scores, of_positives = problem.positives(2), np.full(200, np.nan), np.empty(3)
    score_alone(problem.postings[0], features, own, positives, scores, of_positives)
    check_scores(problem, own, positives, scores, of_positives)

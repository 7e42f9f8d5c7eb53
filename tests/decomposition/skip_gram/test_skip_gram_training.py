"""Gradients of the collapsed softmax, and contexts drawn for those that were not found."""

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_xc._parallel.threads import Team
from sklearn_xc.decomposition.gradients import SampledGradient, SearchedGradient
from sklearn_xc.decomposition.gradients.protocol import GradientTask
from sklearn_xc.decomposition.skip_gram.collapsed_softmax import CollapsedSoftmax, ContextSampler
from sklearn_xc.decomposition.skip_gram.cooccurrence import Cooccurrences
from sklearn_xc.decomposition.skip_gram.training import Training, Vectors
from sklearn_xc.search import make_index

N_WORDS, N_CONTEXTS, DIM = 300, 170, 7


@pytest.fixture(scope="module")
def matrix():
    """Return counts, with a word without contexts and a context without words."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.3, 1.0, (N_WORDS, N_CONTEXTS)) * 3).astype(float)
    counts[5] = 0
    counts[:, 11] = 0
    return counts


def cooccurrences(matrix):
    return Cooccurrences.of(sp.csr_array(matrix), "Test")


def training(
    matrix,
    gradient=None,
    *,
    n_sampled=20,
    ridge=0.0,
    rate=0.1,
    scale=0.7,
    index="exact",
    n_candidates=20,
    seed=0,
    n_workers=1,
    n_iter=0,
    dtype=np.float64,
):
    counts, rng = cooccurrences(matrix), np.random.default_rng(1)
    U = (scale * rng.normal(size=(matrix.shape[0], DIM))).astype(dtype)
    U[counts.word_totals == 0] = 0
    W = (scale * rng.normal(size=(matrix.shape[1], DIM + 1))).astype(dtype)
    W[:, -1] = counts.log_shares + 0.3 * W[:, -1]
    task = GradientTask(CollapsedSoftmax(), lambda: make_index(index), n_candidates, DIM, seed=seed)
    method = None if gradient is None else gradient.start(task)
    sampler = ContextSampler(counts.context_totals, n_sampled)
    return Training(
        counts,
        Vectors(U),
        Vectors(W),
        method,
        sampler,
        rate,
        ridge,
        seed,
        n_workers,
        n_iter,
    )


def total_loss(matrix, U, W, ridge=0.0):
    """Return the loss summed over all pairs, one after the other."""
    scores = U @ W[:, :-1].T + W[:, -1]
    top = scores.max(axis=1, keepdims=True)
    log_softmax = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    loss = 0.0
    for i, k in zip(*np.nonzero(matrix), strict=True):
        loss -= matrix[i, k] * log_softmax[i, k]
    squares = (U**2).sum() + (W[:, :-1] ** 2).sum()
    return loss + ridge / 2 * squares


def gradients(one):
    """Return the gradients by all vectors, and the loss."""
    one._build()
    with Team(one.n_workers) as team:
        by_outputs, loss = one.output_gradient(team)
        return one.input_gradient(team)[0], by_outputs, loss


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_the_gradient_is_that_of_the_sum_over_single_pairs(matrix, ridge):
    one = training(matrix, ridge=ridge)
    U, W = one.inputs.values, one.outputs.values
    by_inputs, by_outputs, loss = gradients(one)
    assert loss == pytest.approx(total_loss(matrix, U, W) / matrix.sum(), rel=1e-9)
    rng, word_totals, context_totals = np.random.default_rng(2), matrix.sum(1), matrix.sum(0)
    for vectors, gradient, sizes in ((U, by_inputs, word_totals), (W, by_outputs, context_totals)):
        for _ in range(12):
            k, j = rng.integers(len(vectors)), rng.integers(vectors.shape[1])
            if sizes[k] == 0:
                continue
            kept, values = vectors[k, j], []
            for step in (1e-5, -1e-5):
                vectors[k, j] = kept + step
                values.append(total_loss(matrix, U, W, ridge))
            vectors[k, j] = kept
            slope = (values[0] - values[1]) / 2e-5
            assert gradient[k, j] * max(sizes[k], 1.0) == pytest.approx(slope, rel=2e-5, abs=1e-5)


@pytest.mark.parametrize(
    ("gradient", "how"),
    [
        (SampledGradient(), {"n_candidates": 1}),
        (SearchedGradient(), {"index": "product"}),
        (SearchedGradient("exact"), {"n_candidates": 9}),
    ],
)
def test_all_contexts_found_or_drawn_give_the_exact_gradient(matrix, gradient, how):
    """The reference and what corrects it cancel out, to rounding, where all are drawn."""
    exact = gradients(training(matrix))
    how = {"n_sampled": N_CONTEXTS, "dtype": np.float32, **how}
    found = gradients(training(matrix, gradient, **how))
    for one, expected in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-5)


def test_the_second_step_reuses_the_contexts_that_matter(matrix):
    how = {"n_candidates": N_CONTEXTS, "n_sampled": N_CONTEXTS, "dtype": np.float32}
    one = training(matrix, SearchedGradient("exact"), **how)
    calls = []
    search = one.method.search
    one.method.search = lambda *given: calls.append(1) or search(*given)
    by_inputs, _, _ = gradients(one)
    assert len(calls) == -(-(N_WORDS - 1) // 128)
    np.testing.assert_allclose(by_inputs, gradients(training(matrix))[0], atol=1e-5)


def test_gradients_by_samples_are_right_on_average(matrix):
    scale, noise = 0.5, 0.3
    exact = gradients(training(matrix, scale=scale))
    n, sums = 200, [0.0, 0.0, 0.0]
    errors = []
    for seed in range(n):
        how = {"n_candidates": 1, "n_sampled": 30, "seed": seed, "scale": scale}
        how["dtype"] = np.float32
        found = gradients(training(matrix, SampledGradient(), **how))
        sums = [total + one for total, one in zip(sums, found, strict=True)]
        errors.append(np.linalg.norm(found[0] - exact[0]))
    for total, expected in zip(sums, exact, strict=True):
        size = np.linalg.norm(expected)
        assert np.linalg.norm(total / n - expected) < 0.05 * size
    assert np.mean(errors) < noise * np.linalg.norm(exact[0])


def test_the_curvature_of_steps_is_the_hessian_where_the_softmax_is_that_of_all_words(matrix):
    """With equal words, the Hessian of each by finite differences of the gradient."""
    same = np.tile(matrix.sum(axis=0) + 1.0, (40, 1))
    one = training(same, ridge=3.0, scale=0.3)
    one.inputs.values[...] = 0
    one.outputs.values[:, -1] = one.log_shares
    _, _, _ = gradients(one)
    steps = []
    one.inputs.step = lambda *given: steps.append(given)
    with Team(1) as team:
        one.step_inputs(0.5, team)
        gradient, curvature, ridge, rate, _ = steps[0]
        hessian = np.empty((DIM, DIM))
        for j in range(DIM):
            one.inputs.values[7, j] += 1e-4
            hessian[j] = (one.input_gradient(team)[0][7] - gradient[7]) / 1e-4
            one.inputs.values[7, j] = 0
    assert rate == 0.5
    np.testing.assert_allclose(hessian, curvature + ridge[7] * np.eye(DIM), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("n_workers", [1, 3])
def test_a_step_solves_with_the_curvature_and_goes_on(n_workers):
    """Also beyond one piece of rows, and where steps are cut."""
    rng, n, dim, rate = np.random.default_rng(0), 5000, 4, 0.4
    A = rng.normal(size=(dim, dim))
    C, ridge = A @ A.T, rng.random(n)
    values, moves = rng.normal(size=(n, dim)), np.zeros((n, dim))
    one = Vectors(values.copy())
    for scale in (0.01, 30.0, 1.0):
        gradient = scale * rng.normal(size=(n, dim))
        for k in range(n):
            floor = ridge[k] + 0.03 * np.trace(C) / dim
            step = np.linalg.solve(C + floor * np.eye(dim), gradient[k])
            change = np.linalg.norm(step) * np.sqrt(np.trace(C))
            moves[k] = 0.3 * moves[k] + rate * min(1.0, 3.0 / change) * step
        values -= moves
        with Team(n_workers) as team:
            lengths = one.step(gradient, C, ridge, rate, team)
        np.testing.assert_allclose(lengths, np.linalg.norm(moves, axis=1))
        np.testing.assert_allclose(one.values, values)
        np.testing.assert_allclose(one.moves, moves, atol=1e-12)


@pytest.mark.parametrize("n_drawn", [1, 100, 169, 500])
def test_contexts_are_drawn_with_the_probabilities_that_are_told(n_drawn):
    frequencies = 1000.0 / np.arange(1, 171) ** 2
    frequencies[60] = 0
    sampler = ContextSampler(frequencies, n_drawn)
    assert sampler.probabilities.sum() == pytest.approx(min(n_drawn, 170))
    assert (sampler.probabilities > 0).all()
    assert (sampler.probabilities <= 1).all()
    rng, n, seen = np.random.default_rng(0), 4000, np.zeros(170)
    for _ in range(n):
        others = sampler.draw(rng)
        assert (np.diff(others.labels) > 0).all()
        assert abs(len(others.labels) - min(n_drawn, 170)) <= 1
        np.testing.assert_array_equal(others.probabilities, sampler.probabilities[others.labels])
        seen[others.labels] += 1
    spread = np.sqrt(n * sampler.probabilities * (1 - sampler.probabilities))
    assert (np.abs(seen - n * sampler.probabilities) <= 5 * spread + 1e-9).all()


@pytest.mark.parametrize("gradient", [None, SampledGradient(), SearchedGradient()])
def test_threads_change_no_bit(matrix, gradient):
    found = []
    for n_workers in (1, 2, 3):
        index = getattr(gradient, "default_index", "product")
        one = training(
            matrix,
            gradient,
            n_sampled=20,
            n_workers=n_workers,
            dtype=np.float32,
            index=index,
            n_candidates=30,
        )
        for _ in range(3):
            one.iterate()
        found.append((one.inputs.values.tobytes(), one.outputs.values.tobytes()))
    assert found[0] == found[1] == found[2]

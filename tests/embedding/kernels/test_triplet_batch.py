"""The triplet loss of a mini-batch, beside sums in plain numpy."""

import itertools

import numpy as np
import pytest
import scipy.optimize

from sklearn_xc.embedding.kernels.triplet_batch import triplet_gradient

N, L = 7, 30


def make(m=12, dtype=np.float64, seed=0):
    """Return scores, own columns, label sets, columns, weights; some positives are in the pool."""
    rng = np.random.default_rng(seed)
    pool = np.sort(rng.choice(L, m, replace=False)).astype(np.int32)
    own = rng.integers(0, m, N)
    sets = [
        np.unique(np.r_[pool[own[i]], rng.choice(L, i, replace=False)]).astype(np.int32)
        for i in range(N)
    ]
    indptr = np.cumsum([0, *map(len, sets)])
    columns = np.full(L, -1, np.int32)
    columns[pool] = np.arange(m)
    scores = rng.uniform(-1, 1, (N, m)).astype(dtype)
    return scores, own, indptr, np.concatenate(sets), columns, rng.uniform(0.5, 2, N).astype(dtype)


def run(data, margin=0.3, cuts=(0, N)):
    scores, own, indptr, positives, columns, weight = data
    gradient, losses, n_violations = scores.copy(), np.full(N, np.nan), np.full(N, -9)
    for begin, end in itertools.pairwise(cuts):
        triplet_gradient(
            gradient, own, indptr, positives, columns, weight, margin, begin, end, losses,
            n_violations,
        )  # fmt: skip
    return gradient, losses, n_violations


def loss_of(scores, data, margin):
    """Return the loss of each instance, one pair of labels at a time."""
    _, own, indptr, positives, columns, weight = data
    pool = {int(column): label for label, column in enumerate(columns) if column >= 0}
    losses = np.zeros(N)
    for i in range(N):
        true = set(positives[indptr[i] : indptr[i + 1]].tolist())
        for k, z in enumerate(scores[i]):
            if pool[k] not in true:
                losses[i] += weight[i] * max(0.0, float(z) - float(scores[i, own[i]]) + margin)
    return losses


@pytest.mark.parametrize("margin", [0.0, 0.3, 3.0])
def test_gradient_and_loss(margin):
    data = make()
    gradient, losses, n_violations = run(data, margin)
    np.testing.assert_allclose(losses, loss_of(data[0], data, margin), rtol=1e-12)
    slope = scipy.optimize.approx_fprime(
        data[0].ravel(),
        lambda z: loss_of(z.reshape(data[0].shape), data, margin).sum(),
        1e-8,
    )
    np.testing.assert_allclose(gradient.ravel(), slope, rtol=1e-5, atol=2e-6)
    np.testing.assert_array_equal(n_violations, (gradient > 0).sum(axis=1))


def test_true_positives_are_never_negatives():
    data = make(m=L)
    gradient, _, n_violations = run(data, margin=100.0)
    for i in range(N):
        own_set = data[3][data[2][i] : data[2][i + 1]]
        assert n_violations[i] == L - len(own_set)
        assert (gradient[i, own_set] > 0).sum() == 0
        assert (gradient[i] < 0).sum() == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_instances_are_independent(dtype):
    data = make(dtype=dtype)
    for a, b in zip(run(data), run(data, cuts=(0, 1, 4, N)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype

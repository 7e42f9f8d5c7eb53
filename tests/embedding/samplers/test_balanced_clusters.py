"""Balanced clusters: exact sizes, the same for any threads, and nearly as tight as unbalanced."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn.cluster import BisectingKMeans

from sklearn_xc.embedding.samplers import balanced_clusters, clusters
from sklearn_xc.embedding.samplers.clusters import clusters_of


def of_norm_1(V):
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def uniform(n, dim, seed=0):
    return of_norm_1(np.random.default_rng(seed).normal(size=(n, dim)))


def gaussians(n, dim, n_groups, noise, seed=0, sizes=None):
    """Return directions around the centres of groups, of given or equal sizes, in any order."""
    rng = np.random.default_rng(seed)
    centres = uniform(n_groups, dim, seed + 1)
    groups = rng.permutation(n) % n_groups
    if sizes is not None:
        groups = np.repeat(np.arange(n_groups), sizes)[rng.permutation(n)]
    return of_norm_1(centres[groups] + noise * rng.normal(size=(n, dim)) / np.sqrt(dim)), groups


def inertia(V, cluster):
    sums = np.zeros((cluster.max() + 1, V.shape[1]))
    np.add.at(sums, cluster, V)
    means = sums / np.bincount(cluster)[:, None]
    return ((V - means[cluster]) ** 2).sum()


@given(
    n=st.integers(1, 400),
    share=st.floats(0, 1),
    dim=st.integers(1, 5),
    dtype=st.sampled_from([np.float32, np.float64]),
    is_coarse=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_sizes_differ_by_one_at_most(n, share, dim, dtype, is_coarse, seed):
    V = np.random.default_rng(seed).normal(size=(n, dim)).astype(dtype)
    if is_coarse:  # many equal rows
        V = V.round()
    n_clusters = 1 + round(share * (n - 1))
    cluster = balanced_clusters(V, n_clusters, seed)
    assert cluster.dtype == np.int64
    assert cluster.shape == (n,)
    sizes = np.bincount(cluster, minlength=n_clusters)
    assert len(sizes) == n_clusters
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    ("few", "dtype"), [(0, np.float32), (2**40, np.float64)], ids=["level by level", "in one go"]
)
def test_neither_threads_nor_repetition_change_a_cluster(monkeypatch, few, dtype):
    monkeypatch.setattr(clusters, "_FEW", few)
    V = uniform(3001, 17).astype(dtype)
    once = balanced_clusters(V, 300, 4)
    for n_jobs in (None, 1, 2, 3):
        np.testing.assert_array_equal(balanced_clusters(V, 300, 4, n_jobs), once)
    assert (balanced_clusters(V, 300, 5) != once).any()


@pytest.mark.parametrize(
    ("n_clusters", "V"),
    [
        (8, uniform(3000, 64)),
        (100, gaussians(3000, 32, 10, 1.0)[0]),
        (8, gaussians(3000, 32, 50, 1.0)[0]),
        (100, gaussians(3000, 64, 300, 1.0)[0] * 7 - 3),
    ],
    ids=["uniform", "10 groups", "50 groups", "moved away"],
)
def test_inertia_is_near_that_of_unbalanced_bisection(n_clusters, V):
    free = BisectingKMeans(n_clusters, random_state=0).fit_predict(V)
    assert inertia(V, balanced_clusters(V, n_clusters, 0)) <= 1.15 * inertia(V, free)


@pytest.mark.parametrize("n_clusters", [2, 64])
def test_groups_that_can_be_kept_together_are_kept(n_clusters):
    V, groups = gaussians(3072, 32, 64, 0.2)
    cluster = balanced_clusters(V.astype(np.float32), n_clusters, 0)
    pairs = np.unique(np.column_stack([groups, cluster]), axis=0)
    assert len(pairs) <= 1.5 * 64


@pytest.mark.parametrize(("n_clusters", "seed"), [(6, 0), (2, -1), (2, 2**63)])
def test_numbers_out_of_range(n_clusters, seed):
    with pytest.raises(ValueError, match=r"n_clusters must be from 1 to .* 5, and seed from 0"):
        balanced_clusters(np.eye(5), n_clusters, seed)


def test_matrices_that_are_refused():
    with pytest.raises(ValueError, match="Input V contains NaN"):
        balanced_clusters(np.full((5, 2), np.nan), 2, 0)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        balanced_clusters(sp.csr_array(np.eye(5)), 2, 0)


def test_clusters_of_what_is_no_number():
    """A training that diverges fails later, with a message."""
    V = np.random.default_rng(0).normal(size=(40, 3))
    V[::3] = np.nan
    assert np.bincount(clusters_of(V, 5, 0, None)).tolist() == [8] * 5

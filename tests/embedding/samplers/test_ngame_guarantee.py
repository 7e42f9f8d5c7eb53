"""How many hard negatives clusters miss: the bound of NGAME's Theorem 1, for equal degrees.

The paper's corollary 2: where each instance has p labels and each label q instances, the share of
pairs of an instance and a negative within r that are missed is eps1 + eps2 at most. eps1 is the
share of positive pairs that are r or more apart, eps2 that of pairs of instances within 2 r that
are in two clusters. A label is found if it is a true one of any instance of the cluster.
"""

import numpy as np
import pytest

from sklearn_xc.embedding.samplers import balanced_clusters


def of_norm_1(V):
    return V / np.linalg.norm(V, axis=1, keepdims=True)


def make_groups(n_groups, size, p, spread, noise, seed=0):
    """Return instances, labels and Y: groups of as many of both, p positives in rows and columns.

    Labels are `spread` around their group's centre, instances `noise` around the mean of theirs.
    """
    rng = np.random.default_rng(seed)
    dim = 24
    centres = np.repeat(of_norm_1(rng.normal(size=(n_groups, dim))), size, axis=0)
    labels = of_norm_1(centres + spread * rng.normal(size=centres.shape) / np.sqrt(dim))
    Y = np.zeros((n_groups * size,) * 2, bool)
    for i in range(len(Y)):
        first, place = i - i % size, i % size
        Y[i, first + (place + np.arange(p)) % size] = True
    means = Y @ labels / p
    return of_norm_1(means + noise * rng.normal(size=means.shape) / np.sqrt(dim)), labels, Y


def distances(A, B):
    return np.linalg.norm(A[:, None] - B[None], axis=2)


def missed(V, W, Y, cluster, r, pools):
    """Return the share of missed pairs, and eps1 + eps2."""
    far = distances(V, W)
    found = np.array([pools[c] for c in cluster])
    share = (~Y & (far <= r) & ~found).mean()
    eps1 = (far[Y] >= r).mean()
    apart = cluster[:, None] != cluster[None]
    eps2 = ((distances(V, V) <= 2 * r) & apart).mean()
    return share, eps1 + eps2


def all_positives(Y, cluster):
    """Return for each cluster a mask of the labels that are true ones of its instances."""
    return np.array([Y[cluster == c].any(axis=0) for c in range(cluster.max() + 1)])


@pytest.mark.parametrize(
    ("cluster_size", "r", "spread", "noise"),
    [(4, 0.5, 0.2, 0.2), (16, 0.2, 1.0, 1.5), (16, 1.2, 0.5, 0.5), (64, 0.8, 0.2, 0.2)],
)
def test_no_more_are_missed_than_the_bound_allows(cluster_size, r, spread, noise):
    V, W, Y = make_groups(16, 16, 4, spread, noise)
    assert set(Y.sum(axis=0)) == set(Y.sum(axis=1)) == {4}
    cluster = balanced_clusters(V, len(V) // cluster_size, 0)
    share, bound = missed(V, W, Y, cluster, r, all_positives(Y, cluster))
    assert share <= bound

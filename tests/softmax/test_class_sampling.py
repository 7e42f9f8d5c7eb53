"""Which sampler an epoch has, and how often its steps move each class."""

import itertools
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from sklearn_xc._compile.arithmetic import sampling
from sklearn_xc._compile.arithmetic.sampling import (
    ClassSampler,
    class_shares,
    draw_negatives,
)
from sklearn_xc.softmax.sampling import choose_sampler, expected_touches

COUNTS = np.array([50, 0, 7, 1, 0, 30, 12, 3])
K = len(COUNTS)


def touches(counts, classes, visits, hard, sampler, m):
    problem = SimpleNamespace(counts=counts, classes=classes, visits=visits, n_classes=len(counts))
    return expected_touches(problem, hard, sampler, m)


class TestChooseSampler:
    def test_uniform(self):
        for counts in (COUNTS, np.ones(8), COUNTS * 1000):
            sampler, m = choose_sampler(counts, "uniform", 2, 0, (0, 0))
            assert m == 2
            np.testing.assert_allclose(class_shares(sampler), 1 / K, rtol=1e-13)

    def test_frequency_is_a_fifth_even_and_the_rest_by_counts(self):
        sampler, m = choose_sampler(COUNTS * 1000, "frequency", 3, 1, (4, 2))
        assert m == 3
        expected = 0.2 / K + 0.8 * COUNTS / COUNTS.sum()
        np.testing.assert_allclose(class_shares(sampler), expected, rtol=1e-12)


def chances_of(sampler, m, target, hard):
    """Return how likely a step moves each class, by all starts that its draws could have."""
    n_classes, own = len(sampler.classes), int(sampler.place[target])
    gap = sampler.start[own + 1] - sampler.start[own]
    line = np.where(np.arange(n_classes + 1) > own, sampler.start - gap, sampler.start)
    ends = np.unique(np.concatenate([[0.0, 1.0], (line * m / (1 - gap)) % 1.0]))
    chances = np.zeros(n_classes)
    drawn, alpha = np.empty(m + len(hard), np.int64), np.empty(m + len(hard))
    for first, last in itertools.pairwise(ends):
        drawn[: len(hard)] = hard
        with mock.patch.object(sampling, "random_unit", return_value=(first + last) / 2):
            n = draw_negatives(sampler, 0, 0, target, m, drawn, alpha, len(hard))
        chances[drawn[:n]] += last - first
    chances[target] += 1.0
    return chances


def make_pairs(n_hard, n_classes, seed=0, n=25):
    rng = np.random.default_rng(seed)
    classes = rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 0.5))).astype(np.int32)
    visits = rng.choice([1, 1, 1, 2, 5], n)
    others = [np.delete(np.arange(n_classes), y) for y in classes]
    hard = np.array([rng.permutation(each)[:n_hard] for each in others], np.int32)
    return classes, visits, hard.reshape(n, n_hard)


def count(classes, visits, n_classes):
    return np.bincount(classes, visits, minlength=n_classes).astype(np.int64)


SHARES = {
    "equal": np.ones(6),
    "uneven": np.array([1.0, 2.0, 0.5, 3.0, 0.1, 1.0]),
    "one is most": np.array([1.0, 1.0, 20.0, 1.0, 2.0, 1e-6]),
    "two are most": np.array([0.01, 5.0, 0.01, 0.02, 5.0, 0.05]),
    "two classes": np.array([1.0, 7.0]),
}
each_shares = pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)


class TestExpectedTouches:
    @each_shares
    @pytest.mark.parametrize(("m", "n_hard"), [(1, 5), (2, 1), (3, 0), (5, 3)])
    def test_equals_the_sum_over_pairs_and_starts(self, shares, m, n_hard):
        n_classes = len(shares)
        classes, visits, hard = make_pairs(min(n_hard, n_classes - 1), n_classes)
        sampler = ClassSampler.of(shares, np.random.default_rng(1).permutation(n_classes))
        counts = count(classes, visits, n_classes)
        expected = sum(
            v * chances_of(sampler, m, y, h) for y, v, h in zip(classes, visits, hard, strict=True)
        )
        found = touches(counts, classes, visits, hard, sampler, m)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_the_cap_bites(self):
        """Where a class is certain for some targets and not for others."""
        sampler = ClassSampler.of(np.array([0.4, 0.45, 0.1, 0.05]), np.arange(4))
        counts = np.array([10, 20, 30, 40])
        none = np.empty((100, 0), np.int32)
        classes = np.repeat(np.arange(4), counts)
        found = touches(counts, classes, np.ones(100, np.int64), none, sampler, 2)
        # Class 0 is certain beside 1, not beside 2 and 3, where it is drawn by 0.8 / 0.9 or 0.95.
        expected = 10 + 20 + 30 * 0.8 / 0.9 + 40 * 0.8 / 0.95
        assert found[0] == pytest.approx(expected, rel=1e-12)
        assert found[1] == pytest.approx(20 + 10 + 30 + 40 * 0.9 / 0.95, rel=1e-12)

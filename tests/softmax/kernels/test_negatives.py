"""Draws of classes: unbiased for any shares, distinct, never the target, fixed by key and step."""

from unittest import mock

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from sklearn_xc._compile.arithmetic import sampling
from sklearn_xc._compile.arithmetic.sampling import (
    ClassSampler,
    class_shares,
    draw_negatives,
    mix_key,
)
from sklearn_xc._compile.jit import kernel

#: Draws that frequencies are counted over.
N_DRAWS = 40_000


@kernel
def draw_steps(sampler, key, first, target, m, drawn, alpha, n_taken, counts):
    for t in range(counts.shape[0]):
        step = first + t
        counts[t] = draw_negatives(sampler, key, step, target, m, drawn[t], alpha[t], n_taken)


def draw(sampler, key, m, target=None, taken=(), n=N_DRAWS, first=0):
    """Return lists of the classes of n steps, those taken first, and of their factors."""
    room = m + len(taken)
    drawn, alpha = np.full((n, room), -1, np.int64), np.ones((n, room))
    drawn[:, : len(taken)] = taken
    counts = np.empty(n, np.int64)
    target = -1 if target is None else target
    draw_steps(sampler, key, first, target, m, drawn, alpha, len(taken), counts)
    assert counts.max(initial=0) <= room
    return (
        [row[:count].tolist() for row, count in zip(drawn, counts, strict=True)],
        [row[:count] for row, count in zip(alpha, counts, strict=True)],
    )


def draw_from(sampler, start, m, target=None, taken=()):
    """Return the classes and factors of a random start, by the uncompiled functions."""
    drawn, alpha = np.full(m + len(taken), -1, np.int64), np.ones(m + len(taken))
    drawn[: len(taken)] = taken
    with mock.patch.object(sampling, "random_unit", return_value=start):
        of_all = -1 if target is None else target
        n = draw_negatives(sampler, 0, 0, of_all, m, drawn, alpha, len(taken))
    assert n <= m + len(taken)
    return drawn[:n].tolist(), alpha[:n]


def line_of(sampler, target=None):
    """Return where the places begin and end on the line without the target, and its length."""
    line = sampler.start
    if target is None:
        return line, 1.0
    own = int(sampler.place[target])
    gap = line[own + 1] - line[own]
    return np.where(np.arange(len(line)) > own, line - gap, line), 1.0 - gap


def starts_of(sampler, m, target=None):
    """Return the middles and the lengths of the intervals of starts that draw the same."""
    line, left = line_of(sampler, target)
    ends = np.unique(np.concatenate([[0.0, 1.0], (line / left * m) % 1.0]))
    lengths = np.diff(ends)
    kept = lengths > 1e-13 + 1e-15 * m / left  # shorter ones are rounding
    return (0.5 * (ends[1:] + ends[:-1]))[kept], lengths[kept]


def error_of(sampler):
    """Return what the rounding of the line leaves of a sum that should be 1."""
    return 1e-12 + 1e-14 * len(sampler.classes) / np.diff(sampler.start).min()


def assert_exact(sampler, m, target=None, taken=()):
    """Integrate over all starts."""
    shares, n_classes = class_shares(sampler), len(sampler.classes)
    left = 1.0 - (0.0 if target is None else shares[target])
    met, mean = np.zeros(n_classes), np.zeros(n_classes)
    line, _ = line_of(sampler, target)
    for start, length in zip(*starts_of(sampler, m, target), strict=True):
        drawn, alpha = draw_from(sampler, start, m, target, taken)
        assert len(set(drawn)) == len(drawn)
        assert target not in drawn
        assert drawn[: len(taken)] == list(taken)
        new = np.array(drawn[len(taken) :], np.int64)
        met[new] += length
        mean[new] += length * alpha[len(taken) :]
        points = (start + np.arange(m)) / m * left
        places = sampler.place[new]
        hits = [((line[p] <= points) & (points < line[p + 1])).sum() for p in places]
        expected = np.array(hits) * left / (m * shares[new])
        np.testing.assert_allclose(alpha[len(taken) :], expected, rtol=error_of(sampler))
    others = np.setdiff1d(np.arange(n_classes), [*taken, -1 if target is None else target])
    chances = np.minimum(1.0, m * shares[others] / left)
    np.testing.assert_allclose(mean[others], 1.0, rtol=error_of(sampler))
    np.testing.assert_allclose(met[others], chances, rtol=error_of(sampler))
    gone = np.setdiff1d(np.arange(n_classes), others)
    assert (met[gone] == 0).all()


SHARES = {
    "equal": np.ones(6),
    "two": np.array([1.0, 3.0]),
    "uneven": np.array([5.0, 1.0, 2.0, 0.5, 0.25, 3.0, 1.0]),
    "one is most": np.array([1.0, 60.0, 1.0, 2.0, 3.0]),
    "nearly none": np.array([1.0, 1e-9, 2.0, 1e-9, 1e-6]),
    "one is nearly all": np.array([1e-9, 1e-9, 1.0, 1e-9]),
    "powers": 0.5 ** np.arange(9),
}
each_shares = pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)


def shuffled(shares, seed=0):
    return ClassSampler.of(shares, np.random.default_rng(seed).permutation(len(shares)))


class TestExactly:
    """By integrals over the random start."""

    @each_shares
    def test_of_all_classes(self, shares):
        for m in (1, 2, 3, 8):
            assert_exact(shuffled(shares, m), m)

    @hypothesis.given(
        shares=st.lists(st.floats(1e-9, 1.0), min_size=2, max_size=12),
        m=st.integers(1, 14),
        seed=st.integers(0, 1000),
        data=st.data(),
    )
    def test_any_shares(self, shares, m, seed, data):
        target = data.draw(st.none() | st.integers(0, len(shares) - 1))
        taken = []
        if target is not None:
            others = st.integers(0, len(shares) - 1).filter(lambda k: k != target)
            taken = data.draw(st.lists(others, max_size=len(shares) - 1, unique=True))
        assert_exact(shuffled(np.array(shares), seed), m, target, taken)


def skewed(rng, n_classes, kind):
    """Return shares of which the smallest are a billionth of the largest."""
    if kind == "even":
        return np.ones(n_classes)
    if kind == "power law":
        return np.maximum(np.arange(1, n_classes + 1.0) ** -1.5, 1e-9)
    return rng.choice([1.0, 1e-3, 1e-9], n_classes) + 1e-12


class TestCompiled:
    @hypothesis.given(
        seed=st.integers(0, 2**63),
        step=st.integers(0, 2**33),
        n_classes=st.integers(2, 70_000),
        kind=st.sampled_from(["even", "power law", "skewed"]),
        end=st.sampled_from(["first", "last", "any"]),
        data=st.data(),
    )
    def test_draws_are_distinct_and_neither_the_target_nor_taken(
        self, seed, step, n_classes, kind, end, data
    ):
        rng = np.random.default_rng(seed)
        sampler = shuffled(skewed(rng, n_classes, kind), seed)
        place = {"first": 0, "last": n_classes - 1, "any": int(rng.integers(n_classes))}[end]
        target = int(sampler.classes[place])
        others = st.integers(0, n_classes - 1).filter(lambda k: k != target)
        most = min(n_classes - 1, 12)
        taken = data.draw(st.lists(others, max_size=most, unique=True))
        m = data.draw(st.integers(1, 20))
        shares = class_shares(sampler)
        classes, alphas = draw(sampler, mix_key(seed, 0), m, target, taken, n=3, first=step)
        for drawn, alpha in zip(classes, alphas, strict=True):
            assert all(0 <= k < n_classes for k in drawn)
            assert len({*drawn, target}) == len(drawn) + 1
            assert drawn[: len(taken)] == taken
            # Each factor is that of one point, times the points that met the class.
            new = drawn[len(taken) :]
            hits = alpha[len(taken) :] * m * shares[new] / (1.0 - shares[target])
            np.testing.assert_allclose(hits, np.rint(hits), rtol=1e-9)
            assert hits.sum() <= m + 1e-6
            if not taken:
                np.testing.assert_allclose(hits.sum(), m, rtol=1e-9)

"""Draws of classes: unbiased for any shares, distinct, never the target, fixed by key and step."""

from unittest import mock

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats

from sklearn_xc._compile.arithmetic import sampling as negatives
from sklearn_xc._compile.arithmetic.sampling import (
    ClassSampler,
    class_shares,
    draw_classes,
    draw_negatives,
    mix_key,
    random_unit,
)
from sklearn_xc._compile.jit import kernel

#: Draws that frequencies are counted over.
N_DRAWS = 40_000


@kernel
def draw_steps(sampler, key, first, target, m, drawn, alpha, n_taken, counts):
    for t in range(counts.shape[0]):
        step = first + t
        counts[t] = draw_negatives(sampler, key, step, target, m, drawn[t], alpha[t], n_taken)


@kernel
def draw_steps_of_all(sampler, key, first, m, drawn, alpha, counts):
    for t in range(counts.shape[0]):
        counts[t] = draw_classes(sampler, key, first + t, m, drawn[t], alpha[t])


@kernel
def units(key, first, out):
    for t in range(out.shape[0]):
        out[t] = random_unit(key, first + t)


def draw(sampler, key, m, target=None, taken=(), n=N_DRAWS, first=0):
    """Return lists of the classes of n steps, those taken first, and of their factors."""
    room = m + len(taken)
    drawn, alpha = np.full((n, room), -1, np.int64), np.ones((n, room))
    drawn[:, : len(taken)] = taken
    counts = np.empty(n, np.int64)
    if target is None:
        draw_steps_of_all(sampler, key, first, m, drawn, alpha, counts)
    else:
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
    with mock.patch.object(negatives, "random_unit", return_value=start):
        if target is None:
            n = draw_classes(sampler, 0, 0, m, drawn, alpha)
        else:
            n = draw_negatives(sampler, 0, 0, target, m, drawn, alpha, len(taken))
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


class TestSampler:
    @each_shares
    def test_shares_are_those_of_the_classes(self, shares):
        for factor in (1.0, 1e-12, 37.5):
            found = class_shares(shuffled(shares * factor))
            np.testing.assert_allclose(found, shares / shares.sum(), rtol=1e-13, atol=1e-15)

    @hypothesis.given(
        seed=st.integers(0, 2**32),
        n_classes=st.integers(2, 3000),
        spread=st.just(0.0) | st.floats(0.0, 6.0),
    )
    def test_the_place_of_a_point(self, seed, n_classes, spread):
        rng = np.random.default_rng(seed)
        sampler = shuffled(rng.lognormal(sigma=spread, size=n_classes), seed)
        starts = rng.choice(sampler.start[:-1], 30)
        points = np.concatenate([rng.random(30), starts, np.nextafter(starts, 0), [0.0]])
        for point in points:
            at = negatives.place_of(sampler, point)
            assert sampler.start[at] <= point < sampler.start[at + 1]
        assert negatives.place_of(sampler, 1.0) == n_classes - 1


class TestExactly:
    """By integrals over the random start."""

    @each_shares
    @pytest.mark.parametrize("m", [1, 2, 3, 5, 8])
    def test_of_all_classes(self, shares, m):
        for seed in range(3):
            assert_exact(shuffled(shares, seed), m)

    @each_shares
    @pytest.mark.parametrize("m", [1, 2, 3, 6])
    def test_every_target(self, shares, m):
        sampler = shuffled(shares)
        for target in range(len(shares)):
            assert_exact(sampler, m, target)

    @each_shares
    @pytest.mark.parametrize("n_taken", [1, 2, 4])
    @pytest.mark.parametrize("m", [1, 3])
    def test_none_that_is_taken(self, shares, n_taken, m):
        sampler = shuffled(shares, 2)
        for target in range(len(shares)):
            others = np.delete(np.arange(len(shares)), target)
            taken = np.random.default_rng(target).permutation(others)[:n_taken].tolist()
            assert_exact(sampler, m, target, taken)

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

    @pytest.mark.parametrize("place", [0, -1])
    @each_shares
    def test_the_target_at_an_end_of_the_line(self, shares, place):
        for seed in range(4):
            sampler = shuffled(shares, seed)
            for m in (1, 2, len(shares) - 1):
                assert_exact(sampler, m, int(sampler.classes[place]))


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

    @pytest.mark.parametrize("n_classes", [2, 5, 40, 3000])
    @pytest.mark.parametrize("kind", ["even", "power law", "skewed"])
    def test_compiled_draws_equal_those_in_python(self, n_classes, kind):
        rng = np.random.default_rng(n_classes)
        sampler = shuffled(skewed(rng, n_classes, kind))
        for target in rng.integers(0, n_classes, 3):
            for m in (1, 2, 7):
                found, slow = (
                    (np.full((20, m), -1, np.int64), np.zeros((20, m)), np.zeros(20, np.int64))
                    for _ in range(2)
                )
                for steps, out in ((draw_steps, found), (draw_steps.py_func, slow)):
                    drawn, alpha, counts = out
                    with np.errstate(over="ignore"):
                        steps(sampler, mix_key(3, m), 5, target, m, drawn, alpha, 0, counts)
                np.testing.assert_array_equal(found[2], slow[2])
                np.testing.assert_array_equal(found[0], slow[0])
                np.testing.assert_allclose(found[1], slow[1], rtol=1e-12)


class TestRandomNumbers:
    def test_a_draw_depends_on_its_key_and_step_alone(self):
        sampler, key = shuffled(np.random.default_rng(0).random(1000) + 0.1), mix_key(7, 3)
        for target, taken in ((None, []), (4, []), (4, [5, 900, 31])):
            whole = draw(sampler, key, 5, target, taken, n=50)[0]
            assert draw(sampler, key, 5, target, taken, n=50)[0] == whole
            assert draw(sampler, key, 5, target, taken, n=20, first=30)[0] == whole[30:]
            assert len({tuple(each) for each in whole}) >= 48
            for other in (mix_key(7, 4), mix_key(8, 3)):
                moved = draw(sampler, other, 5, target, taken, n=50)[0]
                assert sum(a != b for a, b in zip(moved, whole, strict=True)) >= 48

    @pytest.mark.parametrize("shares", [np.ones(4), np.array([4.0, 1.0, 2.0, 1.0])])
    @pytest.mark.parametrize("target", [None, 2])
    @pytest.mark.parametrize("lag", [1, 2, 3])
    def test_consecutive_steps_are_independent(self, shares, target, lag):
        drawn = np.array(draw(shuffled(shares), mix_key(5, 0), 1, target)[0])[:, 0]
        table = scipy.stats.contingency.crosstab(drawn[:-lag], drawn[lag:]).count
        assert scipy.stats.chi2_contingency(table).pvalue > 1e-3

    @pytest.mark.parametrize("first", [0, 2**32 - 5])
    def test_random_unit(self, first):
        out = np.empty(100_000)
        units(mix_key(0, 0), first, out)
        assert out.min() >= 0
        assert out.max() < 1
        assert abs(out.mean() - 0.5) <= 4 * np.sqrt(1 / 12 / len(out))
        assert scipy.stats.kstest(out, "uniform").pvalue > 1e-3
        assert len(np.unique(out)) == len(out)
        with np.errstate(over="ignore"):
            slow = [random_unit(mix_key(0, 0), first + t) for t in range(100)]
        np.testing.assert_array_equal(out[:100], slow)

    def test_random_unit_is_neither_0_nor_1(self):
        for bits in (0, 1, 2**63, 2**64 - 1):
            with mock.patch.object(negatives, "mix", lambda z, bits=bits: np.uint64(bits)):
                assert 0 < random_unit(np.uint64(0), 0) < 1

    def test_keys_differ_by_seed_and_epoch(self):
        keys = {int(mix_key(seed, epoch)) for seed in range(60) for epoch in range(60)}
        assert len(keys) == 3600
        assert mix_key(0, 1) != mix_key(1, 0)
        assert isinstance(mix_key(2**64 - 1, 2**31), np.uint64)

"""Which values a race scores, on constructed scores."""

import numpy as np
import pytest

from sklearn_xc.linear.race import CLEARLY, Race

ROWS = 400


class Scores:
    """Rows whose chance of a hit is known; what was asked for is noted."""

    def __init__(self, chances, n_folds=5, seed=0, by_rows=True, n_rows=ROWS):
        rng = np.random.default_rng(seed)
        # The same luck for all values: a row that one value hits, a better one hits too.
        luck = rng.random((n_folds, 1, n_rows))
        self.hits = luck < np.asarray(chances)[None, :, None]
        self.by_rows, self.calls = by_rows, []

    def __call__(self, fold, values):
        self.calls.append((fold, list(values)))
        gains = self.hits[fold, list(values)] / self.hits.shape[2]
        return [(g.sum(), g if self.by_rows else None) for g in gains]

    @property
    def mean(self):
        return self.hits.mean(axis=(0, 2))


def race(scores, grid=None, wider=None):
    n_folds, n_values, _ = scores.hits.shape
    wider = range(n_values) if wider is None else wider
    return Race(scores, n_folds, grid or wider, wider, scores.by_rows)


def hill(n, top, fall=0.06):
    """Chances that fall to both sides of the value `top`."""
    return 0.6 - fall * np.abs(np.arange(n) - top)


@pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "fold scores"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("top", range(10))
def test_the_value_that_wins_is_never_left(top, seed, by_rows):
    """Wherever it is, at the edges too, and where it is only a little ahead."""
    scores = Scores(hill(10, top, 0.03), seed=seed, by_rows=by_rows)
    assert np.argmax(scores.mean) == top
    a_race = race(scores)
    assert a_race.run() == top
    run = a_race.scores[: a_race.n_run]
    assert np.isfinite(run[:, top]).all()
    assert np.isnan(a_race.scores[a_race.n_run :]).all()


def test_values_that_have_clearly_fallen_are_left_for_good():
    scores = Scores(hill(10, 3))
    a_race = race(scores)
    a_race.run()
    fits = np.isfinite(a_race.scores)
    assert fits.sum() < 12
    assert not fits[:, 6:].any()
    for fold in range(1, 5):
        assert (fits[fold] <= fits[fold - 1]).all()


def test_a_race_ends_when_one_value_is_left():
    scores = Scores(hill(10, 3, 0.2))
    a_race = race(scores)
    assert a_race.run() == 3
    assert a_race.n_run == 1
    assert scores.calls == [(0, [2, 3, 4, 5])]


def test_values_that_cannot_be_told_apart_stay_until_they_are_too_many():
    scores = Scores(np.full(10, 0.5))
    scores.hits = np.random.default_rng(0).random(scores.hits.shape) < 0.5
    a_race = race(scores)
    a_race.run()
    fits = np.isfinite(a_race.scores).sum(axis=1)
    assert fits[0] >= 4
    assert fits[1:].tolist() == [4, 3, 0, 0]


def test_all_values_are_scored_when_asked():
    scores = Scores(hill(10, 3))
    a_race = race(scores)
    assert a_race.run_all() == 3
    assert np.isfinite(a_race.scores).all()
    assert a_race.n_run == 5


def test_a_tie_goes_to_the_smallest():
    scores = Scores(np.full(10, 0.5))
    assert race(scores).run() == 0  # down to the edge, as the smallest leads
    assert race(scores, grid=range(3, 10)).run() == 3  # but not beyond it


class TestBeyondTheGrid:
    @pytest.mark.parametrize("top", [0, 2, 11, 13])
    def test_it_goes_on_where_the_outermost_value_is_best(self, top):
        scores = Scores(hill(14, top, 0.03))
        a_race = race(scores, grid=range(3, 11))
        assert a_race.run() == top
        tried = np.flatnonzero(np.isfinite(a_race.scores[0]))
        np.testing.assert_array_equal(tried, np.arange(tried[0], tried[-1] + 1))

    @pytest.mark.parametrize("by_rows", [True, False], ids=["rows", "fold scores"])
    def test_nothing_is_tried_there_otherwise(self, by_rows):
        scores = Scores(hill(14, 5), by_rows=by_rows)
        a_race = race(scores, grid=range(3, 11))
        a_race.run()
        assert np.isnan(a_race.scores[:, [0, 1, 2, 11, 12, 13]]).all()

    def test_folds_that_were_run_catch_up(self):
        """On the first fold the last value of those tried at first is not the best."""
        scores = Scores(hill(10, 6, 0.03))
        scores.hits[0] = Scores(hill(10, 4, 0.01)).hits[0]
        a_race = race(scores)
        assert a_race.run() == 6
        assert np.isfinite(a_race.scores[: a_race.n_run, 6]).all()
        later = [fold for fold, values in scores.calls if 6 in values]
        assert later[:2] == [0, 1]
        assert scores.calls.index((0, [6, 7])) > scores.calls.index((1, [3, 4, 5]))


class TestErrors:
    @pytest.fixture
    def gains(self):
        return np.random.default_rng(0).random((3, 2, 50))

    def a_race(self, gains):
        def score(fold, values):
            return [(gains[fold, value].sum(), gains[fold, value]) for value in values]

        a_race = Race(score, 3, range(2), range(2), True)
        a_race.run_all()
        return a_race

    def test_they_are_those_of_paired_rows(self, gains):
        behind = self.a_race(gains).errors_behind(1, 0)
        difference = gains[:, 0] - gains[:, 1]
        of_folds = 50 * difference.std(axis=1, ddof=1) ** 2
        assert behind == pytest.approx(difference.sum() / np.sqrt(of_folds.sum()))

    def test_rows_without_a_difference(self, gains):
        gains[:, 1] = gains[:, 0]
        assert self.a_race(gains).errors_behind(1, 0) == 0.0
        gains[:, 1] -= 1.0
        assert self.a_race(gains).errors_behind(1, 0) == np.inf
        one_row = gains[:, :, :1]
        assert self.a_race(one_row).errors_behind(1, 0) == np.inf

    @pytest.mark.parametrize(("behind", "stays"), [(0.9, True), (1.1, False)])
    def test_a_value_stays_up_to_a_limit(self, behind, stays):
        """Of two values, the second misses some rows that the first hits."""
        n = 1000
        n_missed = round(behind * CLEARLY**2)  # m misses are sqrt(m) standard errors
        gains = np.full((2, 2, n), 1.0 / n)
        gains[:, 1, :n_missed] = 0.0

        def score(fold, values):
            return [(gains[fold, value].sum(), gains[fold, value]) for value in values]

        a_race = Race(score, 2, range(2), range(2), True)
        a_race.run()
        assert (a_race.n_run == 2) == stays

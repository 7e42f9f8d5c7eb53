"""Maps of pairs against scikit-learn and against what is known of the data."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sklearn_xc.ensemble.held_out import ScoredPairs
from sklearn_xc.ensemble.pair_map import LEAST, PairMap, Spline, leads


def drawn(n=3000, k=4, seed=0):
    """Return pairs, and the true probability of each: of scores, and of how frequent a label is."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(n, k)), axis=1)
    frequency = rng.choice([2, 100], (n, k))
    probabilities = expit(2 * scores - 1 + np.where(frequency > 10, 1.0, -0.5))
    relevant = rng.random((n, k)) < probabilities
    rows, ranks = (part.ravel() for part in np.mgrid[:n, :k])
    labels = ranks
    true = relevant.ravel()
    pairs = ScoredPairs(
        rows,
        labels,
        ranks,
        scores.ravel(),
        true,
        np.ones(n * k),
        frequency.ravel(),
        labels[true],
        np.ones(true.sum()),
        frequency.ravel()[true],
        k,
        n,
    )
    return pairs, scores, frequency, probabilities


@pytest.mark.parametrize("method", ["sigmoid", "spline"])
def test_true_probabilities_are_found(method):
    pairs, scores, frequency, probabilities = drawn()
    found = PairMap(np.array([50]), method).fit(pairs, 4).probabilities(scores, frequency)
    assert np.abs(found - probabilities).mean() < 0.03
    assert ((found >= LEAST) & (found <= 1 - LEAST)).all()


def test_the_best_label_has_a_map_of_its_own():
    pairs, scores, frequency, _ = drawn()
    always = pairs._replace(relevant=pairs.relevant | (pairs.ranks == 0))
    found = PairMap(np.array([50]), "sigmoid").fit(always, 4).probabilities(scores, frequency)
    assert (found[:, 0] > 0.99).all()
    assert found[:, 1:].mean() == pytest.approx(always.relevant[pairs.ranks > 0].mean(), abs=0.01)


def test_without_groups_it_is_a_logistic_regression():
    pairs, scores, frequency, _ = drawn()
    found = PairMap(np.empty(0, np.int64), "sigmoid").fit(pairs, 4).probabilities(scores, frequency)
    lead = leads(scores)
    first = np.column_stack([scores[:, 0], lead[:, 0], np.log1p(frequency[:, 0])])
    relevant = pairs.relevant.reshape(scores.shape)[:, 0]
    expected = LogisticRegression(C=1e6, max_iter=1000).fit(first, relevant).predict_proba(first)
    np.testing.assert_allclose(found[:, 0], expected[:, 1], atol=0.01)


class TestSpline:
    def bent_data(self, n):
        rng = np.random.default_rng(3)
        z = rng.normal(scale=3, size=n)
        true = np.where(z > 0, 0.4 * z, z)
        return z, true, rng.random(n) < expit(true)

    def test_a_bend_is_found(self):
        z, _, relevant = self.bent_data(20_000)
        spline = Spline().fit(z, relevant, np.ones(len(z)))
        at = np.array([-4.0, -1.0, 1.0, 4.0, 8.0])
        expected = np.where(at > 0, 0.4 * at, at)
        np.testing.assert_allclose(expit(spline.bent(at)), expit(expected), atol=0.06)
        assert log_loss(relevant, expit(spline.bent(z))) < log_loss(relevant, expit(z)) - 0.03

    def test_it_is_the_least_of_its_loss(self):
        """By another solver, without bounds, where none is reached."""
        z, _, relevant = self.bent_data(3000)
        spline = Spline().fit(z, relevant, np.ones(len(z)))
        bends = np.quantile(z[relevant], [0.25, 0.5, 0.75], method="inverted_cdf")
        np.testing.assert_array_equal(spline.bends, bends)

        def bent(slopes):
            below = np.minimum(z, bends[0]) * slopes[0]
            middle = sum(
                slope * np.clip(z - a, 0, b - a)
                for slope, a, b in zip(slopes[1:3], bends[:2], bends[1:], strict=True)
            )
            return below + middle + slopes[3] * np.maximum(z - bends[2], 0) + slopes[4]

        def loss(slopes):
            odds = bent(slopes)
            return (
                np.logaddexp(0, odds).sum()
                - odds[relevant].sum()
                + 1.5 * np.sum((slopes[:4] - 1) ** 2)
            )

        expected = minimize(loss, np.zeros(5), method="BFGS")
        assert (expected.x[:4] > 0).all()
        np.testing.assert_allclose(spline.slopes, expected.x, atol=0.01)
        np.testing.assert_allclose(spline.bent(z), bent(spline.slopes), atol=1e-12)

    def test_few_pairs_leave_log_odds_as_they_are(self):
        z = np.array([-1.0, 1.0])
        spline = Spline().fit(z, np.array([False, True]), np.full(2, 1e-3))
        np.testing.assert_allclose(spline.slopes[:-1], 1.0, atol=1e-3)


def test_leads():
    scores = np.array([[3.0, 1.0, -1.0], [2.0, 2.0, 0.0]])
    np.testing.assert_array_equal(leads(scores), [[2, -2, -4], [0, 0, -2]])
    np.testing.assert_array_equal(leads(scores[:, :1]), [[0], [0]])

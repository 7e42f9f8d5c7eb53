"""Maps of pairs against scikit-learn and against what is known of the data."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sklearn_xc._scored_pairs import ScoredPairs
from sklearn_xc.calibration.pair_map import LEAST, PairMap, leads
from sklearn_xc.calibration.temperature import TemperatureMap


def drawn(n=3000, k=4, seed=0, one_class=False):
    """Return pairs, and the true probability of each: of scores, and of how frequent a label is."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(n, k)), axis=1)
    frequency = rng.choice([2, 100], (n, k))
    chances = expit(2 * scores - 1 + np.where(frequency > 10, 1.0, -0.5))
    relevant = rng.random((n, k)) < chances
    if one_class:
        chances = softmax(scores / 0.3, axis=1)
        relevant = np.zeros((n, k), bool)
        relevant[np.arange(n), (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)] = True
    rows, ranks = (part.ravel() for part in np.mgrid[:n, :k])
    labels = ranks
    true = relevant.ravel()
    pairs = ScoredPairs(
        rows, labels, ranks, scores.ravel(), true, np.ones(n * k), frequency.ravel(),
        labels[true], np.ones(true.sum()), frequency.ravel()[true], k, n,
    )  # fmt: skip
    return pairs, scores, frequency, chances


@pytest.mark.parametrize("isotonic", [False, True])
def test_true_probabilities_are_found(isotonic):
    pairs, scores, frequency, chances = drawn()
    found = PairMap(np.array([50]), isotonic).fit(pairs, 4).chances(scores, frequency)
    assert np.abs(found - chances).mean() < 0.03
    assert ((found >= LEAST) & (found <= 1 - LEAST)).all()


def test_the_best_label_has_a_map_of_its_own():
    pairs, scores, frequency, _ = drawn()
    always = pairs._replace(relevant=pairs.relevant | (pairs.ranks == 0))
    found = PairMap(np.array([50]), False).fit(always, 4).chances(scores, frequency)
    assert (found[:, 0] > 0.99).all()
    assert found[:, 1:].mean() == pytest.approx(always.relevant[pairs.ranks > 0].mean(), abs=0.01)


def test_without_groups_it_is_a_logistic_regression():
    pairs, scores, frequency, _ = drawn()
    found = PairMap(np.empty(0, np.int64), False).fit(pairs, 4).chances(scores, frequency)
    lead = leads(scores)
    first = np.column_stack([scores[:, 0], lead[:, 0], np.log1p(frequency[:, 0])])
    relevant = pairs.relevant.reshape(scores.shape)[:, 0]
    expected = LogisticRegression(C=1e6, max_iter=1000).fit(first, relevant).predict_proba(first)
    np.testing.assert_allclose(found[:, 0], expected[:, 1], atol=0.01)


def test_weights_are_repetitions():
    pairs, scores, frequency, _ = drawn(n=300)
    counts = np.random.default_rng(1).integers(1, 4, pairs.n)
    weighted = pairs._replace(weight=counts[pairs.rows].astype(float))
    times = counts[pairs.rows]
    again = ScoredPairs(
        np.repeat(pairs.rows, times), *(np.repeat(part, times) for part in pairs[1:7]), *pairs[7:]
    )
    a, b = (
        PairMap(np.array([50]), True).fit(one, 4).chances(scores, frequency)
        for one in (weighted, again)
    )
    np.testing.assert_allclose(a, b, atol=2e-3)


def test_nothing_to_learn_from():
    pairs, scores, frequency, _ = drawn(n=50)
    for relevant, low, high in ((np.zeros(200, bool), 0.0, 0.05), (np.ones(200, bool), 0.95, 1.0)):
        none = pairs._replace(relevant=relevant)
        found = PairMap(np.array([50]), True).fit(none, 4).chances(scores, frequency)
        assert ((found > low) & (found < high)).all()


def test_leads():
    scores = np.array([[3.0, 1.0, -1.0], [2.0, 2.0, 0.0]])
    np.testing.assert_array_equal(leads(scores), [[2, -2, -4], [0, 0, -2]])
    np.testing.assert_array_equal(leads(scores[:, :1]), [[0], [0]])


def test_temperature():
    pairs, scores, frequency, chances = drawn(one_class=True)
    fitted = TemperatureMap().fit(pairs, 4)
    assert fitted.temperature == pytest.approx(0.3, rel=0.05)
    np.testing.assert_allclose(fitted.chances(scores, frequency), chances, atol=0.03)
    y = np.nonzero(pairs.relevant.reshape(scores.shape))[1]
    best = minimize_scalar(
        lambda t: log_loss(y, softmax(scores / t, axis=1)), bounds=(0.05, 2), method="bounded"
    )
    assert fitted.temperature == pytest.approx(best.x, rel=1e-3)
    flat = pairs._replace(scores=np.zeros(len(pairs.scores)))
    assert TemperatureMap().fit(flat, 4).temperature == 1.0

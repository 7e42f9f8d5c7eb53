"""Intercepts: their worth, their steps, and the scores of rows without features."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.metrics import log_loss

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._input.checks import check_instances
from sklearn_xc.softmax.problem import SoftmaxProblem

#: Few epochs: the last may be the best, labels may be missing, rates may be too high.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
]

STEPS = {
    "U-max": (SoftmaxUMax, {"n_negatives": 2, "learning_rate": 0.3}),
    "U-max, hard": (SoftmaxUMax, {"n_hard_negatives": 1, "learning_rate": 0.3}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 2}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_hard_negatives": 2}),
}
#: A learning rate so small that nothing moves.
STILL = 1e-13
#: Weights of rows; 0 is a missing row.
WEIGHT = np.random.default_rng(7).choice([0.0, 0.5, 1.0, 3.0], 80)


def make(**parameters):
    own = {"max_iter": 4, "random_state": 0, "n_hard_negatives": 0}
    return ImplicitSoftmaxSGD(**{"learning_rate": 1.0, **own, **parameters})


def make_step(step, **parameters):
    estimator, own = STEPS[step]
    return estimator(
        **{"learning_rate": 1.0, "max_iter": 4, "random_state": 0, **own, **parameters}
    )


def draw(n=80, d=9):
    """Return sparse X without empty rows, whose last three columns are empty, and classes 0 to 3.

    Class 3 has three rows, class 0 the most.
    """
    rng = np.random.default_rng(0)
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    y[:3] = 3
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.5)
    X[np.arange(n), y] += 1.0
    X[:, -3:] = 0
    return sp.csr_array(X), rng.permutation(y)


def blank_rows(dtype=np.float64):
    """Return rows without features, of an explicit zero, and of features that never occurred."""
    rows = sp.csr_array(
        (np.array([0.0, 5.0, -2.0], dtype), np.array([1, 6, 8]), np.array([0, 0, 1, 3])),
        shape=(3, 9),
    )
    assert rows.nnz == 3
    return rows


def dense(answer):
    return answer.toarray() if sp.issparse(answer) else answer


def shares_of(y, weight=None, n_classes=None):
    mass = np.bincount(y, weight, minlength=n_classes or 0)
    return mass / mass.sum()


class TestWorth:
    def test_frequencies_need_no_features(self):
        """From the start, however short the training: scores are those of the classes."""
        y = np.repeat([0, 1, 2], [60, 30, 10])
        X = np.random.default_rng(0).normal(size=(100, 4))
        model = SoftmaxUMax(learning_rate=STILL, max_iter=1, init="zero", random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), [[0.6, 0.3, 0.1]] * 100, rtol=1e-6)
        assert model.fit_report_["log_loss"][0] == pytest.approx(
            log_loss(y, [[0.6, 0.3, 0.1]] * 100)
        )


class TestRowsWithoutFeatures:
    @pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
    def test_labels(self, container):
        """The share of a label is that among all pairs, and column 2 has none."""
        X, y = draw()
        Y = np.zeros((80, 6), int)
        Y[np.arange(80), np.array([0, 1, 4, 5])[y]] = 1
        Y[::3, 1] = 1
        Y[::2, 3] = 1
        columns = np.nonzero(Y)[1]
        n_pairs = np.bincount(columns, minlength=6)
        seen = np.flatnonzero(n_pairs)
        assert seen.tolist() == [0, 1, 3, 4, 5]
        share = n_pairs / n_pairs.sum()
        assert len(set(share[seen])) == 5
        model = make().fit(X, container(Y))
        order = seen[np.argsort(-share[seen])]
        labels, best = model.predict_topk(blank_rows(), 6)
        assert labels.tolist() == [[*order, 2]] * 3
        np.testing.assert_allclose(best[:, :5], np.log([share[order]] * 3), rtol=1e-12)
        assert (best[:, 5] < best[:, 4]).all()
        np.testing.assert_allclose(dense(model.predict_proba(blank_rows())), [share] * 3, rtol=1e-9)
        scores = model.decision_function(blank_rows())
        np.testing.assert_allclose(dense(scores)[:, seen], np.log([share[seen]] * 3), rtol=1e-12)
        is_likely = share > 0.5 * 80 / n_pairs.sum()
        assert is_likely.any()
        assert dense(model.predict(blank_rows())).tolist() == [is_likely.astype(int).tolist()] * 3
        if container is sp.csr_array:
            assert scores.nnz == 3 * 5
            few = model.set_params(top_k=2).predict_proba(blank_rows())
            assert few.indices.reshape(3, 2).tolist() == [sorted(order[:2])] * 3
            np.testing.assert_allclose(
                few.data.reshape(3, 2), [share[np.sort(order[:2])]] * 3, rtol=1e-9
            )

    def test_a_warm_start_counts_anew(self):
        """A class that is not there any more keeps its share."""
        X, y = draw()
        model = make(warm_start=True).fit(X, y)
        model.fit(X[20:], y[20:])
        assert set(y[20:]) == {0, 1, 2, 3}
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [shares_of(y[20:])] * 3)
        kept = y != 1
        model.set_params(warm_start=True).fit(X, y).fit(X[kept], y[kept])
        mass = np.bincount(y[kept], minlength=4).astype(float)
        mass[1] = shares_of(y)[1] * kept.sum()
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [mass / mass.sum()] * 3)


class TestRidge:
    @pytest.mark.parametrize("step", STEPS)
    def test_it_leaves_intercepts_alone(self, step):
        """However large: weights go to 0, and intercepts are the frequencies."""
        X, y = draw()
        model = make_step(step, alpha=1e7, max_iter=20, init="zero").fit(X, y)
        assert 0 < np.abs(model.coef_).max() < 1e-4
        np.testing.assert_allclose(softmax(model.intercept_), shares_of(y), atol=1e-3)


def test_the_constant_is_a_weighted_root_mean_square():
    X, y = draw()
    rows = np.flatnonzero(WEIGHT).astype(np.int32)
    problem = SoftmaxProblem(
        check_instances(SoftmaxUMax(), X, reset=True),
        rows,
        y[rows].astype(np.int32),
        WEIGHT[rows],
        4,
        0.0,
    )
    used = X.toarray()[rows]
    used = used[:, used.any(axis=0)]
    expected = np.average(used**2, axis=0, weights=WEIGHT[rows]).mean()
    assert problem.mean_square() == pytest.approx(expected, rel=1e-12)
    assert used.shape[1] == 6


class TestWarmStart:
    def test_a_late_class_starts_at_its_share(self):
        X, y = draw()
        early = np.flatnonzero(y != 1)
        Y = np.eye(4, dtype=int)[y]
        model = make(warm_start=True).fit(X[early], Y[early])
        old = model.intercept_.copy()
        model.set_params(learning_rate=STILL, max_iter=1).fit(X, Y)
        assert model.intercept_[1] == pytest.approx(np.log(shares_of(y)[1]), rel=1e-9)
        np.testing.assert_allclose(np.delete(model.intercept_, 1), np.delete(old, 1), atol=1e-9)

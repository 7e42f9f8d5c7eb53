"""Intercepts: what they are worth, who moves them, and what rows without features get."""

import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc._checks import check_instances
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem

#: Few epochs: the last may be the best, labels may be missing, rates may be too high.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning"),
]

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]
STEPS = {
    "U-max": (SoftmaxUMax, {"n_negatives": 2, "learning_rate": 0.3}),
    "U-max, hard": (SoftmaxUMax, {"n_hard_negatives": 1, "learning_rate": 0.3}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 2}),
    "implicit, hard": (ImplicitSoftmaxSGD, {"n_hard_negatives": 2}),
    "batches": (ImplicitSoftmaxSGD, {"n_negatives": 4, "batch_size": 8, "learning_rate": 8.0}),
}
#: A learning rate so small that nothing moves.
STILL = 1e-13
#: Weights of rows; 0 is a missing row.
WEIGHT = np.random.default_rng(7).choice([0.0, 0.5, 1.0, 3.0], 80)


def learned(model, name):
    """Return an attribute of a fitted model, or a column of its report."""
    return model.fit_report_[name] if name in model.fit_report_ else getattr(model, name)


@pytest.fixture(params=ESTIMATORS)
def make(request):
    def make(**parameters):
        rate = 0.3 if request.param is SoftmaxUMax else 1.0
        return request.param(
            **{
                "learning_rate": rate, "max_iter": 4, "random_state": 0, "n_hard_negatives": 0,
                **parameters,
            }
        )  # fmt: skip

    return make


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
    @pytest.mark.parametrize("features", ["scaled", "shifted"])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_dense_features(self, estimator, features):
        """Planes through the origin tell the species apart less well."""
        X, y = load_iris(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0) if features == "scaled" else X[:, 2:] / 10
        without, model = (
            estimator(learning_rate=3.0, max_iter=60, random_state=0, fit_intercept=f).fit(X, y)
            for f in (False, True)
        )
        assert model.score(X, y) > 0.95 > 0.9 > without.score(X, y)
        losses = [log_loss(y, m.predict_proba(X)) for m in (model, without)]
        assert losses[0] < 0.5 * losses[1]

    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_frequencies_need_no_features(self, estimator):
        """From the start, however short the training: scores are those of the classes."""
        y = np.repeat([0, 1, 2], [60, 30, 10])
        X = np.random.default_rng(0).normal(size=(100, 4))
        model = estimator(learning_rate=STILL, max_iter=1, init="zero", random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), [[0.6, 0.3, 0.1]] * 100, rtol=1e-6)
        assert model.fit_report_["log_loss"][0] == pytest.approx(
            log_loss(y, [[0.6, 0.3, 0.1]] * 100)
        )


class TestRowsWithoutFeatures:
    @pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weights"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("way", ["fit", "partial_fit"])
    def test_classes(self, way, dtype, weight, make):
        X, y = draw()
        names = np.array(["b", "d", "a", "c"])[y]
        model = getattr(make(), way)(X.astype(dtype), names, sample_weight=weight)
        expected = shares_of(np.unique(names, return_inverse=True)[1], weight)
        assert len(set(expected)) == 4
        blank = blank_rows(dtype)
        proba = model.predict_proba(blank)
        np.testing.assert_allclose(proba, np.tile(expected, (3, 1)), rtol=1e-6)
        scores = model.decision_function(blank)
        assert scores.dtype == model.intercept_.dtype == dtype
        np.testing.assert_allclose(scores, np.log(np.tile(expected, (3, 1))), rtol=1e-6)
        np.testing.assert_allclose(model.predict_log_proba(blank), scores, rtol=1e-6)
        order = np.argsort(-expected)
        labels, best = model.predict_topk(blank, 4)
        assert labels.tolist() == [order.tolist()] * 3
        np.testing.assert_allclose(best, np.log(np.tile(expected[order], (3, 1))), rtol=1e-6)
        assert model.predict(blank).tolist() == [model.classes_[expected.argmax()]] * 3
        # Other rows have scores of their own, with the intercepts as they have become.
        some = X[:5].toarray()
        np.testing.assert_allclose(
            model.decision_function(X[:5].astype(dtype)),
            some @ model.coef_.astype(float).T + model.intercept_, rtol=1e-4,
        )  # fmt: skip
        assert np.abs(softmax(model.intercept_) - expected).max() > 1e-3

    def test_two_classes(self, make):
        X, y = draw()
        model = make().fit(X, y == 0)
        share = (y == 0).mean()
        assert model.intercept_.shape == (2,)
        proba = np.tile([1 - share, share], (3, 1))
        np.testing.assert_allclose(model.predict_proba(blank_rows()), proba, rtol=1e-12)
        odds = np.log(share / (1 - share))
        np.testing.assert_allclose(model.decision_function(blank_rows()), odds, rtol=1e-12)
        assert model.predict(blank_rows()).tolist() == [share > 0.5] * 3
        rare = make().fit(X, y == 3)
        assert rare.predict(blank_rows()).tolist() == [False] * 3
        labels, best = rare.predict_topk(blank_rows(), 2)
        assert labels.tolist() == [[0, 1]] * 3
        np.testing.assert_allclose(best, np.log([[77 / 80, 3 / 80]] * 3), rtol=1e-12)

    @pytest.mark.parametrize("multilabel", ["all", "first"])
    @pytest.mark.parametrize("container", [sp.csr_array, np.asarray])
    def test_labels(self, container, multilabel, make):
        """The share of a label is that among all pairs, and column 2 has none."""
        X, y = draw()
        Y = np.zeros((80, 6), int)
        Y[np.arange(80), np.array([0, 1, 4, 5])[y]] = 1
        Y[::3, 1] = 1
        Y[::2, 3] = 1
        rows, columns = np.nonzero(Y)
        if multilabel == "first":
            columns = columns[np.unique(rows, return_index=True)[1]]
        n_pairs = np.bincount(columns, minlength=6)
        seen = np.flatnonzero(n_pairs)
        assert seen.tolist() == [0, 1, 3, 4, 5]
        share = n_pairs / n_pairs.sum()
        assert len(set(share[seen])) == 5
        model = make(multilabel=multilabel).fit(X, container(Y))
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

    def test_classes_that_are_not_there_yet(self, make):
        X, y = draw()
        there = y < 2
        model = make().partial_fit(X[there], y[there], classes=np.arange(4))
        expected = shares_of(y[there], n_classes=4)
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [expected] * 3, rtol=1e-12)
        assert model.predict_topk(blank_rows(), 4)[0].tolist() == [[0, 1, 2, 3]] * 3
        assert np.isfinite(model.intercept_).all()

    @pytest.mark.parametrize("average", [False, True])
    def test_pieces_add_up(self, average, make):
        """Of an instance that comes again under its number the first time counts."""
        X, y = draw()
        model, number = make(average=average), np.arange(80)
        for rows in (slice(0, 30), slice(20, 60), slice(0, 80)):
            model.partial_fit(
                X[rows], y[rows], classes=np.arange(4), sample_weight=1 + WEIGHT[rows],
                sample_ids=number[rows],
            )  # fmt: skip
        expected = shares_of(y, 1 + WEIGHT)
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [expected] * 3, rtol=1e-12)
        model.partial_fit(X[:9], y[:9])  # new ones
        both = np.concatenate([y, y[:9]]), np.concatenate([1 + WEIGHT, np.ones(9)])
        np.testing.assert_allclose(
            model.predict_proba(blank_rows()), [shares_of(*both)] * 3, rtol=1e-12
        )

    def test_pieces_after_a_fit(self, make):
        X, y = draw()
        model = make().fit(X, y).partial_fit(X[:20], y[:20], sample_ids=np.arange(20))
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [shares_of(y)] * 3)
        model.partial_fit(X[:20], y[:20])
        twice = np.concatenate([y, y[:20]])
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [shares_of(twice)] * 3)

    def test_a_warm_start_counts_anew(self, make):
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

    def test_what_is_held_out_counts(self, make):
        X, y = draw()
        model = make(early_stopping=True, validation_fraction=0.4).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(blank_rows()), [shares_of(y)] * 3)

    def test_labels_as_likely_as_each_other(self, make):
        """Ties go to the smaller position."""
        X, y = draw()
        y = np.arange(80) % 4
        model = make().fit(X, y)
        assert model.predict_topk(blank_rows(), 4)[0].tolist() == [[0, 1, 2, 3]] * 3


class TestRidge:
    @pytest.mark.parametrize("step", STEPS)
    def test_it_leaves_intercepts_alone(self, step):
        """However large: weights go to 0, and intercepts are the frequencies."""
        X, y = draw()
        model = make_step(step, alpha=1e7, max_iter=20, init="zero").fit(X, y)
        assert 0 < np.abs(model.coef_).max() < 1e-4
        np.testing.assert_allclose(softmax(model.intercept_), shares_of(y), atol=1e-3)

    @pytest.mark.parametrize("step", STEPS)
    def test_frequencies_from_intercepts_of_zero(self, step):
        """As in scikit-learn, at the end of a long way."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(60, 3)), np.repeat([0, 1, 2, 3], [30, 15, 9, 6])
        model = make_step(step, alpha=100.0, warm_start=True).fit(X, y)
        model.intercept_ = np.zeros(4)
        model.set_params(decay="1/t", average=True, max_iter=400)
        model.set_params(learning_rate=10 * model.learning_rate).fit(X, y)
        best = LogisticRegression(C=0.01, tol=1e-9).fit(X, y)
        assert np.abs(best.coef_).max() < 0.1
        np.testing.assert_allclose(softmax(model.intercept_), softmax(best.intercept_), atol=0.02)
        np.testing.assert_allclose(softmax(best.intercept_), shares_of(y), atol=0.02)

    @pytest.mark.parametrize("step", STEPS)
    def test_their_sum_stays(self, step):
        """A step takes from some classes what it gives to one, and the ridge takes nothing."""
        X, y = draw()
        for alpha in (0.0, 3.0):
            model = make_step(step, alpha=alpha, init="zero", max_iter=1, learning_rate=0.1)
            model.set_params(n_negatives=2).fit(X, y)
            moved = model.intercept_ - np.log(shares_of(y))
            assert np.abs(moved).max() > 1e-4
            if alpha == 0.0:
                assert abs(moved.sum()) < 1e-12


def assert_same_bytes(a, b):
    for name in ("intercept_", "coef_", "loss", "log_loss"):
        assert learned(a, name).tobytes() == learned(b, name).tobytes(), name
    X = sp.vstack([draw()[0], blank_rows()]).tocsr().astype(a.coef_.dtype)
    assert a.predict_log_proba(X).tobytes() == b.predict_log_proba(X).tobytes()


@pytest.mark.parametrize("step", STEPS)
class TestSameBytes:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_threads(self, dtype, step):
        X, y = draw()
        one, *others = (make_step(step, n_jobs=j).fit(X.astype(dtype), y) for j in (1, 2, 3))
        for other in others:
            assert_same_bytes(one, other)
        assert one.intercept_.dtype == dtype
        others = [m.partial_fit(X.astype(dtype), y) for m in (one, *others)]
        assert len({m.intercept_.tobytes() for m in others}) == 1

    def test_threads_and_many_classes(self, step):
        """More blocks of classes than threads."""
        X = np.random.default_rng(0).random((120, 8))
        y = np.random.default_rng(1).integers(0, 90, 120)
        own = {"n_negatives": 70} if step == "batches" else {}
        models = [make_step(step, n_jobs=j, max_iter=2, **own).fit(X, y) for j in (1, 2, 3)]
        assert len({m.intercept_.tobytes() for m in models}) == 1
        assert len(np.unique(models[0].intercept_)) > 50

    def test_the_order_of_the_rows(self, step):
        X, y = draw()
        order = np.random.default_rng(0).permutation(80)
        assert_same_bytes(make_step(step).fit(X, y), make_step(step).fit(X[order], y[order]))

    def test_dense_x(self, step):
        X, y = draw()
        assert_same_bytes(make_step(step).fit(X, y), make_step(step).fit(X.toarray(), y))

    def test_a_weight_of_two_is_a_repeated_row_and_of_zero_a_missing_one(self, step):
        """Also where the missing row alone has a feature."""
        X, y = draw()
        X = sp.vstack([X, blank_rows()]).tocsr()
        y = np.concatenate([y, [0, 1, 2]])
        counts = np.concatenate([np.arange(80) % 2 + 1, [0, 0, 0]])
        rows = np.repeat(np.arange(83), counts)
        assert_same_bytes(
            make_step(step).fit(X, y, sample_weight=counts), make_step(step).fit(X[rows], y[rows])
        )

    def test_columns_that_never_occur(self, step):
        """The constant is as large as a feature that occurs, however wide X is."""
        X, y = draw()
        narrow = X[:, :6]
        wide = sp.csr_array((X.data, X.indices, X.indptr), shape=(80, 5000))
        a, b = make_step(step).fit(narrow, y), make_step(step).fit(wide, y)
        assert a.intercept_.tobytes() == b.intercept_.tobytes()
        assert a.coef_.tobytes() == b.coef_[:, :6].tobytes()


def test_the_constant_is_a_weighted_root_mean_square():
    X, y = draw()
    rows = np.flatnonzero(WEIGHT).astype(np.int32)
    problem = SoftmaxProblem(
        check_instances(SoftmaxUMax(), X, reset=True), rows, y[rows].astype(np.int32),
        WEIGHT[rows], 4, 0.0,
    )  # fmt: skip
    used = X.toarray()[rows]
    used = used[:, used.any(axis=0)]
    expected = np.average(used**2, axis=0, weights=WEIGHT[rows]).mean()
    assert problem.mean_square() == pytest.approx(expected, rel=1e-12)
    assert used.shape[1] == 6


def simulate(X, y, n_classes, rate, average):
    """Return W, b and their means after one U-max step on each row, with all classes in it.

    A u that is exact makes such a step one along the gradient of the log-loss. The feature of the
    intercepts is of the size of the first row.
    """
    W, b = np.zeros((n_classes, X.shape[1])), np.zeros(n_classes)
    constant, seen = (X[0] ** 2).sum() / (X[0] != 0).sum(), np.zeros(n_classes)
    mean_W, mean_b = W.copy(), b.copy()
    for t, (x, k) in enumerate(zip(X, y, strict=True)):
        is_late = seen == 0
        seen[k] += 1
        share = seen / seen.sum()
        share[seen == 0] = share[seen > 0].min() / (2 * n_classes)
        b[is_late] = mean_b[is_late] = np.log(share[is_late])
        gradient = softmax(W @ x + b)
        gradient[k] -= 1
        W -= rate * np.outer(gradient, x)
        b -= rate * constant * gradient
        mean_W += (W - mean_W) * 2 / (t + 2)
        mean_b += (b - mean_b) * 2 / (t + 2)
    return (mean_W, mean_b) if average else (W, b)


class TestGoingOn:
    @pytest.mark.parametrize("average", [False, True])
    def test_pieces_of_one_row(self, average):
        """Classes 2 and 3 come late, and start at their shares; also the average does."""
        X, y = draw(n=30)
        X, y = X.toarray(), np.sort(y)
        y[15:] = y[15:][::-1]
        model = SoftmaxUMax(
            n_negatives=3, sampling="uniform", learning_rate=0.2, decay=1.0, average=average,
            random_state=0, n_hard_negatives=0,
        )  # fmt: skip
        for i in range(30):
            model.partial_fit(X[[i]], y[[i]], classes=np.arange(4))
            W, b = simulate(X[: i + 1], y[: i + 1], 4, 0.2, average)
            np.testing.assert_allclose(model.intercept_, b, atol=1e-12)
            np.testing.assert_allclose(model.coef_, W, atol=1e-12)
        assert len(set(y[:5])) == 1 < len(set(y)) == 4

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("way", ["partial_fit", "warm start"])
    def test_a_class_that_comes_late_starts_at_its_share(self, way, average, make):
        X, y = draw()
        early = y != 1
        model = make(warm_start=True, average=average)
        model.partial_fit(X[early], y[early], classes=np.arange(4))
        for _ in range(3):
            model.partial_fit(X[early], y[early], sample_ids=np.flatnonzero(early))
        old = model.intercept_.copy()
        assert old[1] < np.log(0.5 * shares_of(y)[1])
        model.set_params(learning_rate=STILL, max_iter=1)
        if way == "partial_fit":
            model.partial_fit(X[~early], y[~early])
            mass = np.bincount(model.u_index_[:, 1], minlength=4)
            share = mass / mass.sum()
        else:
            model.fit(X, y)
            share = shares_of(y)
        assert model.intercept_[1] == pytest.approx(np.log(share[1]), rel=1e-9)
        if not average:
            np.testing.assert_allclose(np.delete(model.intercept_, 1), np.delete(old, 1), atol=1e-9)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("average", [False, True])
    def test_a_warm_start(self, average, dtype, make):
        """From the iterate, not the average; in float32 to within its rounding."""
        X, y = draw()
        X = X.astype(dtype)
        whole = make(max_iter=5, decay=1.0).fit(X, y)
        model = make(max_iter=3, decay=1.0, warm_start=True, average=average).fit(X, y)
        first = model.intercept_.copy()
        model.set_params(max_iter=2, average=False).fit(X, y)
        tol = 1e-15 if dtype == np.float64 else 1e-6
        np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=tol)
        np.testing.assert_allclose(model.coef_, whole.coef_, atol=10 * tol)
        assert np.abs(first - whole.intercept_).max() > 1e-3

    @pytest.mark.parametrize("way", ["fit", "partial_fit"])
    def test_average(self, way, make):
        """The k-th iterate has weight k."""
        X, y = draw()
        if way == "fit":
            iterates = [make(max_iter=k).fit(X, y).intercept_ for k in (1, 2, 3)]
            model = make(max_iter=3, average=True).fit(X, y)
        else:
            plain, model, iterates = make(), make(average=True), []
            for _ in range(3):
                iterates.append(plain.partial_fit(X, y, sample_ids=np.arange(80)).intercept_)
                model.partial_fit(X, y, sample_ids=np.arange(80))
        expected = np.average(iterates, axis=0, weights=[1, 2, 3])
        np.testing.assert_allclose(model.intercept_, expected, atol=1e-14)
        assert np.abs(expected - iterates[-1]).max() > 1e-3

    @pytest.mark.parametrize("average", [False, True])
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_early_stopping_trains_all_for_the_best_number_of_epochs(self, estimator, average):
        X, y = draw()
        y = np.random.default_rng(1).permutation(y)  # nothing to be learnt
        parameters = {
            "learning_rate": 0.5, "decay": 1.0, "random_state": 0, "average": average,
            "init": "zero",
        }  # fmt: skip
        model = estimator(
            max_iter=12, early_stopping=True, validation_fraction=0.4, **parameters
        ).fit(X, y)  # fmt: skip
        assert model.n_iter_ < 8
        cut = estimator(max_iter=model.n_iter_, **parameters).fit(X, y)
        assert model.intercept_.tobytes() == cut.intercept_.tobytes()
        assert model.coef_.tobytes() == cut.coef_.tobytes()
        later = estimator(max_iter=model.n_iter_ + 1, **parameters).fit(X, y)
        assert np.abs(model.intercept_ - later.intercept_).max() > 1e-3

    @pytest.mark.parametrize("kind", ["classes", "sparse"])
    def test_copies_answer_alike(self, kind, make, tmp_path):
        X, y = draw()
        y = y if kind == "classes" else sp.csr_array(np.eye(4)[y])
        model = make(average=True).fit(X, y)
        joblib.dump(model, tmp_path / "model")
        others = [
            pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model"),
            joblib.load(tmp_path / "model", mmap_mode="r"), clone(model).fit(X, y),
        ]  # fmt: skip
        assert not hasattr(clone(model), "intercept_")
        rows = sp.vstack([X, blank_rows()]).tocsr()
        answers = dense(model.predict_proba(rows)).tobytes()
        further = model.partial_fit(X, y).intercept_.tobytes()
        for other in others:
            assert dense(other.predict_proba(rows)).tobytes() == answers
            assert other.partial_fit(X, y).intercept_.tobytes() == further

    @pytest.mark.parametrize("before", [False, True])
    def test_another_setting_after_the_fit_changes_no_answer(self, before, make):
        X, y = draw()
        rows = sp.vstack([X, blank_rows()]).tocsr()
        model = make(fit_intercept=before).fit(X, y)
        answers = model.predict_log_proba(rows)
        model.set_params(fit_intercept=not before)
        assert model.predict_log_proba(rows).tobytes() == answers.tobytes()
        # The next call that trains heeds it.
        model.partial_fit(X, y)
        assert model.intercept_.any() == (not before)
        blank = model.predict_proba(blank_rows())
        np.testing.assert_allclose(blank, [[0.25] * 4 if before else shares_of(y)] * 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("step", STEPS)
class TestWithout:
    def test_they_are_zeros_and_all_classes_tie(self, step, dtype):
        X, y = draw()
        X = X.astype(dtype)
        fitted = make_step(step, fit_intercept=False, average=True).fit(X, y)
        for model in (fitted, make_step(step, fit_intercept=False).partial_fit(X, y)):
            assert model.intercept_.dtype == dtype
            assert model.intercept_.tolist() == [0.0] * 4
            np.testing.assert_allclose(model.predict_proba(blank_rows(dtype)), 0.25, rtol=1e-6)
            assert model.predict_topk(blank_rows(dtype), 4)[0].tolist() == [[0, 1, 2, 3]] * 3
            assert not model.decision_function(blank_rows(dtype)).any()
            np.testing.assert_allclose(
                model.decision_function(X), X @ model.coef_.T, rtol=1e-4, atol=1e-5
            )

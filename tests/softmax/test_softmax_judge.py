"""What held-out instances say of weights: log-losses, and ranks where they have label sets."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax
from softmax_inputs import instances_of

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax
from sklearn_xc.softmax import classifier
from sklearn_xc.softmax._inputs import hold_out
from sklearn_xc.softmax.judge import Judge, judged_by_rank
from sklearn_xc.softmax.pairs import Pairs
from sklearn_xc.weights.class_weights import ClassWeights

ESTIMATORS = [SoftmaxUMax, ImplicitSoftmaxSGD]


def rank_loss_of(scores, Y, weight):
    """Return one less the mean reciprocal rank of the best own class, row by row; ties are lost."""
    found = []
    for row, own in zip(scores, Y.astype(bool), strict=True):
        found.append(1.0 / (1 + sum(score >= row[own].max() for score in row[~own])))
    return 1.0 - np.average(found, weights=weight)


def pairs_of_sets(Y, weight):
    rows, classes = (c.astype(np.int32) for c in np.nonzero(Y))
    order = np.lexsort((rows, classes))  # pairs of an instance need not be side by side
    rows, classes = rows[order], classes[order]
    return Pairs(rows, classes, weight[rows])


class TestJudge:
    @pytest.fixture
    def sets(self):
        rng = np.random.default_rng(0)
        Y = rng.random((40, 9)) < 0.3
        Y[np.arange(40), rng.integers(0, 9, 40)] = True
        weight = rng.integers(1, 4, 40).astype(float)
        return rng.normal(size=(40, 6)), Y, weight

    @pytest.mark.parametrize("by_rank", [False, True])
    def test_the_loss_is_that_of_a_loop(self, by_rank, sets):
        X, Y, weight = sets
        rng = np.random.default_rng(1)
        W, b = rng.normal(size=(9, 6)), rng.normal(size=9)
        pairs = pairs_of_sets(Y, weight)
        judge = Judge(instances_of(X), pairs, by_rank, 1)
        loss, log_loss = judge(ClassWeights(W, intercept=b))
        scores = X @ W.T + b
        each = -log_softmax(scores, axis=1)[pairs.rows, pairs.classes]
        assert log_loss == pytest.approx(np.average(each, weights=pairs.weight), rel=1e-12)
        expected = rank_loss_of(scores, Y, weight) + 0.01 * log_loss if by_rank else log_loss
        assert loss == pytest.approx(expected, rel=1e-12)

    def test_ranks_do_not_depend_on_the_scale_of_scores(self, sets):
        X, Y, weight = sets
        W = np.random.default_rng(1).normal(size=(9, 6))
        judge = Judge(instances_of(X), pairs_of_sets(Y, weight), True, 1)
        one, other = judge(ClassWeights(W)), judge(ClassWeights(0.25 * W))
        assert one[1] > other[1]  # which alone, by its hundredth, makes a difference
        assert one[0] - 0.01 * one[1] == pytest.approx(other[0] - 0.01 * other[1], rel=1e-12)

    def test_equal_scores_are_no_merit(self, sets):
        X, Y, weight = sets
        judge = Judge(instances_of(X), pairs_of_sets(Y, weight), True, 1)
        expected = 1.0 - np.average(1.0 / (10 - Y.sum(axis=1)), weights=weight)
        expected += 0.01 * np.log(9)
        assert judge(ClassWeights(np.zeros((9, 6))))[0] == pytest.approx(expected, rel=1e-12)


class TestWhatIsJudgedByRank:
    @pytest.mark.parametrize(
        ("rows", "n_classes", "by_rank"),
        [([0, 0, 1], 2048, True), ([0, 1, 2], 2048, False), ([0, 0, 1], 2049, False)],
    )
    def test_sets_of_not_too_many_classes(self, rows, n_classes, by_rank):
        pairs = Pairs(np.array(rows, np.int32), np.array([0, 1, 1], np.int32), np.ones(3))
        assert judged_by_rank(pairs, n_classes) == by_rank

    @pytest.mark.parametrize(
        ("n", "by_rank", "n_held"),
        [(30, True, 10), (300, True, 100), (900, True, 256), (3000, True, 300), (300, False, 30)],
    )
    def test_ranks_take_more_instances(self, n, by_rank, n_held):
        rows = np.arange(n, dtype=np.int32)
        pairs = Pairs(rows, rows % 2, np.ones(n))
        kept, held = hold_out(ImplicitSoftmaxSGD(), pairs, 0, 2, by_rank)
        assert (len(held.rows), len(kept)) == (n_held, n - n_held)
        given = ImplicitSoftmaxSGD(validation_fraction=0.1)
        assert len(hold_out(given, pairs, 0, 2, by_rank)[1].rows) == n // 10

    @pytest.mark.filterwarnings("ignore:.*was still falling")  # three epochs are few
    @pytest.mark.parametrize("call", ["fit", "partial_fit"])
    @pytest.mark.parametrize("kind", ["sets", "first", "one column each", "equal rows"])
    def test_of_estimators(self, kind, call, make_xy, monkeypatch):
        X, Y = make_xy(n=120)
        first = np.asarray(Y.toarray().argmax(axis=1))
        target = {
            "sets": Y, "first": Y, "one column each": sp.csr_array(np.eye(15, dtype=int)[first]),
            "equal rows": np.tile(first, 2),
        }[kind]  # fmt: skip
        if kind == "equal rows":
            X, target[120:] = sp.vstack([X, X]).tocsr(), np.roll(first, 1)
        seen = []

        def spy(*arguments, by_rank, **parameters):
            seen.append(by_rank)
            return find_rate(*arguments, by_rank=by_rank, **parameters)

        find_rate = classifier.find_rate
        monkeypatch.setattr(classifier, "find_rate", spy)
        multilabel = "first" if kind == "first" else "all"
        model = ImplicitSoftmaxSGD(multilabel=multilabel, max_iter=3, random_state=0)
        getattr(model, call)(X, target)
        assert set(seen) == {kind == "sets"}


class TestTheModel:
    @pytest.mark.parametrize("estimator", ESTIMATORS)
    def test_the_epochs_are_those_of_the_best_rank(self, estimator, make_xy, monkeypatch):
        """And what is reported is the log-loss of the instances held out."""
        X, Y = make_xy(n=300)
        Y = Y[:, np.flatnonzero(Y.sum(axis=0) > 5)]
        seen = []

        def spy_hold_out(*arguments):
            seen.append(hold_out(*arguments))
            return seen[-1]

        monkeypatch.setattr(classifier, "hold_out", spy_hold_out)
        parameters = {"random_state": 0, "learning_rate": 0.3, "fit_intercept": False}
        model = estimator(early_stopping=True, max_iter=20, tol=0.0, **parameters).fit(X, Y)
        pairs = seen[0][1]
        held = np.unique(pairs.rows)
        assert len(held) == 100
        known = sp.csr_array((np.ones(len(pairs.rows)), (pairs.rows, pairs.classes)), Y.shape)
        kept = np.setdiff1d(np.flatnonzero(np.diff(Y.indptr)), held)
        ranks, losses = [], []
        for max_iter in range(1, model.n_iter_ + 4):
            part = estimator(max_iter=max_iter, early_stopping=False, **parameters)
            scores = part.fit(X[kept], Y[kept]).predict_log_proba(X[held])
            scores = scores.toarray() if sp.issparse(scores) else np.asarray(scores)
            losses.append(-scores[known[held].nonzero()].mean())
            rank_loss = rank_loss_of(scores, known[held].toarray(), None)
            ranks.append(rank_loss + 0.01 * losses[-1])
        assert model.n_iter_ < 20
        assert (
            model.coef_.tobytes()
            == estimator(max_iter=model.n_iter_, early_stopping=False, **parameters)
            .fit(X, Y)
            .coef_.tobytes()
        )  # in the end all are trained on
        steady = [max(ranks[max(0, i - 1) : i + 2]) for i in range(len(ranks) - 1)]
        assert int(np.argmin(steady)) + 1 == model.n_iter_
        np.testing.assert_allclose(
            model.fit_report_["log_loss"], losses[: model.n_iter_], rtol=1e-9
        )

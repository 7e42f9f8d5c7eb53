"""Top-k with a budget: valid at any stop, exact when it says so, and the same bits at the end."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from sklearn_xc._data import CsrRows
from sklearn_xc.kernels.prediction.row_scores import N_TIERS
from sklearn_xc.weights.anytime import TimeBudget
from sklearn_xc.weights.by_feature import arrange_by_feature
from sklearn_xc.weights.label_weights import LabelWeights

BUDGETS = (0, 1, 10, 40, 150, 500, 2_000, np.inf)


class WorkBudget:
    """So many postings per row, in one slice: no clock decides what is found."""

    def __init__(self, work):
        self.work = float(work)

    def start(self):
        self.left = self.work

    def next_slice(self):
        work, self.left = self.left, 0.0
        return work


def make_model(n_labels, dtype, seed=0, n_features=60):
    """Return a model with rare features of large weights and common ones of small weights."""
    rng = np.random.default_rng(seed)
    density = rng.random(n_features) ** 3
    W = rng.normal(size=(n_labels, n_features)) * (rng.random((n_labels, n_features)) < density)
    W *= 0.3 / (0.1 + density)
    return LabelWeights(
        sp.csr_array(W.astype(dtype)), rng.normal(-1, 0.1, size=n_labels).astype(dtype)
    )


def make_rows(n, dtype, seed=1, n_features=60, density=0.3):
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < density))
    X = X.astype(dtype)
    return CsrRows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape)


def check_answer(answer, model, X, k):
    """Assert all that holds at any stop; return the share of exact rows."""
    n_labels, dtype = len(model.intercept), model.intercept.dtype
    scores = model.scores(X, None)
    indices = model.topk(X, k, None)[0]
    known = min(k, n_labels)
    tolerance = 200 * np.finfo(dtype).eps * np.abs(scores).max()
    assert answer.indices.shape == answer.scores.shape == (len(scores), k)
    assert answer.indices.dtype == np.int64
    assert answer.scores.dtype == dtype
    assert (answer.indices[:, known:] == -1).all()
    assert (answer.scores[:, known:] == -np.inf).all()
    for i, found in enumerate(answer.indices[:, :known]):
        assert len(set(found)) == known
        assert set(found) <= set(range(n_labels))
        np.testing.assert_allclose(scores[i, found], answer.scores[i, :known], atol=tolerance)
        others = np.delete(scores[i], found)
        assert (others <= answer.bound_on_missed_score[i]).all()
    assert (np.diff(answer.scores[:, :known]) <= 0).all()
    exact = answer.exact
    np.testing.assert_array_equal(answer.indices[exact], indices[exact])
    if n_labels > k:
        assert (answer.bound_on_missed_score[exact] <= answer.scores[exact, k - 1]).all()
    else:
        assert (answer.bound_on_missed_score == -np.inf).all()
    return exact.mean()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 5, 100])
@pytest.mark.parametrize("n_labels", [7, 100, 1_500])
def test_any_budget_gives_a_valid_answer(n_labels, k, dtype):
    """7 labels: no columns, and fewer than k; 1,500 labels: both kinds of features."""
    model, X = make_model(n_labels, dtype), make_rows(25, dtype)
    for work in BUDGETS:
        check_answer(model.topk_anytime(X, k, WorkBudget(work)), model, X, k)


def test_the_budget_decides():
    """More work finds more, and between nothing and everything there are steps."""
    model, X = make_model(1_500, np.float32), make_rows(60, np.float32)
    indices, _ = model.topk(X, 5, None)
    recall, exact, bound = [], [], []
    for work in BUDGETS:
        answer = model.topk_anytime(X, 5, WorkBudget(work))
        hits = [len(set(a) & set(b)) for a, b in zip(answer.indices, indices, strict=True)]
        recall.append(np.mean(hits) / 5)
        exact.append(answer.exact.mean())
        bound.append(answer.bound_on_missed_score.mean())
    assert recall[0] < 0.2
    assert exact[0] == 0
    assert recall[-1] == exact[-1] == 1
    assert sum(0.2 < share < 1 for share in recall) >= 2
    assert recall == sorted(recall)
    assert bound == sorted(bound, reverse=True)


def test_bounds_can_prove_an_early_stop():
    """Label 3 leads by more than the feature that is not read can change."""
    W = np.zeros((50, 2))
    W[3, 0], W[:30, 1] = 5.0, 0.1
    model = LabelWeights(sp.csr_array(W), np.zeros(50))
    X = CsrRows(np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2), (1, 2))
    assert list(model.by_feature.tier) == sorted(model.by_feature.tier)
    stopped = model.topk_anytime(X, 1, WorkBudget(1))
    assert stopped.exact.tolist() == [True]
    assert stopped.indices.tolist() == [[3]]
    assert stopped.scores.tolist() == [[5.1]]
    assert 0.1 <= stopped.bound_on_missed_score[0] < 0.2
    assert not model.topk_anytime(X, 1, WorkBudget(0)).exact[0]
    # The second place is tied among 29 labels: their order is not proved.
    assert not model.topk_anytime(X, 2, WorkBudget(1)).exact[0]


@given(
    seed=st.integers(0, 2**31),
    n_labels=st.sampled_from([3, 40, 300, 1100]),
    k=st.integers(1, 12),
    work=st.floats(0, 500),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_bound_and_exactness_hold_for_random_models(seed, n_labels, k, work, dtype):
    model, X = make_model(n_labels, dtype, seed), make_rows(4, dtype, seed + 1)
    check_answer(model.topk_anytime(X, k, WorkBudget(work)), model, X, k)


class Slices:
    """A budget of slices of equal work, without end."""

    def __init__(self, work):
        self.work, self.n_slices = float(work), 0

    def start(self):
        self.n_rows = getattr(self, "n_rows", 0) + 1

    def next_slice(self):
        self.n_slices += 1
        return self.work


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("work", [1, 77, 1_000, np.inf])
def test_slices_do_not_change_a_bit(work, density, dtype):
    """Also where columns are few, or no multiple of four, and for rows without features."""
    model = make_model(1_500, dtype)
    columns = (model.by_feature.tier >= N_TIERS).sum()
    assert 4 < columns < 50
    X = make_rows(40, dtype, density=density)
    slices = Slices(work)
    answer = model.topk_anytime(X, 5, slices)
    indices, scores = model.topk(X, 5, None)
    np.testing.assert_array_equal(answer.indices, indices)
    np.testing.assert_array_equal(answer.scores, scores)
    assert answer.exact.all()
    np.testing.assert_array_equal(answer.bound_on_missed_score, scores[:, 4])
    assert slices.n_rows == 40
    assert (slices.n_slices > 2 * 40) == (work < np.inf and density > 0)


class Clock:
    """Time that passes as it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_time_becomes_slices_of_half_of_what_is_left():
    clock = Clock()
    budget = TimeBudget(1.0, clock)
    budget.start()
    first = budget.next_slice()
    assert first == TimeBudget.FIRST_SPEED / 2
    clock.now += 0.25
    assert budget.next_slice() == pytest.approx(first / 0.25 * 0.75 / 2)  # at the speed measured
    clock.now += 0.8
    assert budget.next_slice() == 0
    budget.start()
    assert budget.next_slice() > 0


def test_no_time_is_no_slice_and_endless_time_is_one():
    clock = Clock()
    for seconds, expected in ((0.0, 0.0), (np.inf, np.inf)):
        budget = TimeBudget(seconds, clock)
        budget.start()
        assert budget.next_slice() == expected


def test_a_slow_slice_does_not_stop_later_rows():
    clock = Clock()
    budget = TimeBudget(1e-3, clock)
    budget.start()
    budget.next_slice()
    clock.now += 60
    assert budget.next_slice() == 0
    budget.start()
    assert budget.next_slice() == TimeBudget.LEAST_SLICE
    clock.now += 1e-5
    assert budget.next_slice() > TimeBudget.LEAST_SLICE


def test_rows_share_work_space_without_a_trace():
    """Stopped rows and finished ones in turn: each answer is that of the row alone."""
    model, X = make_model(1_500, np.float32), make_rows(20, np.float32, density=0.1)
    together = model.topk_anytime(X, 5, WorkBudget(500))
    assert 0 < together.exact.sum() < 20
    for i in range(20):
        alone = model.topk_anytime(X.take(np.array([i])), 5, WorkBudget(500))
        for a, b in zip(alone, together, strict=True):
            np.testing.assert_array_equal(a[0], b[i])


def test_rows_follow_the_dtype_of_the_weights():
    model = make_model(300, np.float32)
    answer = model.topk_anytime(make_rows(3, np.float64), 2, WorkBudget(np.inf))
    assert answer.scores.dtype == np.float32
    expected = model.topk(make_rows(3, np.float64), 2, None)
    np.testing.assert_array_equal(answer.scores, expected[1])


def test_index_width_of_the_weights_does_not_matter():
    model, X = make_model(300, np.float64), make_rows(5, np.float64)
    wide = LabelWeights(model.coef.copy(), model.intercept)
    wide.coef.indptr = wide.coef.indptr.astype(np.int64)
    wide.coef.indices = wide.coef.indices.astype(np.int64)
    assert arrange_by_feature(wide.coef).labels.dtype == np.int32
    for a, b in zip(
        wide.topk_anytime(X, 3, WorkBudget(50)), model.topk_anytime(X, 3, WorkBudget(50)),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_array_equal(a, b)

"""One mini-batch step: rows that move, the hidden layer, and label sets of a batch."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

from sklearn_xc._input.data import CsrRows, DenseRows
from sklearn_xc._parallel.threads import Team
from sklearn_xc._training.adam import Entries
from sklearn_xc.decomposition._training_set import LabelSets
from sklearn_xc.decomposition.batch_sgd import take_steps
from sklearn_xc.decomposition.gradients.protocol import SetLoss
from sklearn_xc.decomposition.gradients.scored import Exact
from sklearn_xc.decomposition.layers import HiddenLayer, IdentityLayer
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin
from sklearn_xc.decomposition.moving_rows import MovingRows
from sklearn_xc.search.protocol import Candidates

N, D, K, DIM = 8, 12, 9, 5
MU = 2.0


def csr_rows(X):
    X = sp.csr_array(X)
    return CsrRows(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape)


def make(scale=0.2, seed=0):
    """Return a sparse X with an empty row, feature vectors, W and label sets."""
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)
    X[3] = 0
    E, W = rng.normal(size=(D, DIM)), 0.3 * rng.normal(size=(K, DIM))
    sizes = 1 + np.arange(N) % 3
    sets = [rng.choice(K, size, replace=False) for size in sizes]
    indptr = np.cumsum([0, *sizes])
    weight = rng.uniform(0.2, 1.0, N)
    return X, E, W, LabelSets(indptr, np.concatenate(sets).astype(np.int32), weight)


def step(layer, W, sets, rows, rate, loss="softmax"):
    weights = MovingRows(W)
    own = MaxMargin(MU) if loss == "margin" else LABEL_SET_LOSSES[loss]()
    method = Exact(SetLoss.of(own))
    rows = np.asarray(rows)
    with Team(1) as team:
        (one,) = take_steps(layer, weights, sets, method, rows, len(rows), lambda: rate, team)
        return one


@pytest.fixture
def objective(label_set_loss):
    """Return a function that gives the summed loss of some rows."""

    def find(loss, V, W, sets, rows):
        total = 0.0
        for v, i in zip(V, rows, strict=True):
            own = sets.labels[sets.indptr[i] : sets.indptr[i + 1]].tolist()
            labels = own + [k for k in range(K) if k not in own]
            total += sets.weight[i] * label_set_loss(loss, W[labels] @ v, len(own), MU)[0]
        return total

    return find


def slope(function, at):
    shape = at.shape
    return scipy.optimize.approx_fprime(
        at.ravel(), lambda x: function(x.reshape(shape)), 1e-7
    ).reshape(shape)


@pytest.mark.parametrize("loss", ["margin", "softmax"])
def test_the_step_of_the_weights_is_the_rate_times_the_gradient(loss, objective):
    X, _, _, sets = make(scale=1.0)
    rows = [5, 0, 7, 1]
    W = np.random.default_rng(2).normal(size=(K, D))
    expected = slope(lambda w: objective(loss, X[rows], w, sets, rows), W)
    before, value = W.copy(), objective(loss, X[rows], W, sets, rows)
    n, found, n_moved = step(IdentityLayer(DenseRows(X)), W, sets, rows, 0.05, loss)
    assert n == len(rows)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose((before - W) / 0.05, expected, atol=1e-5)
    assert n_moved == (K if loss == "softmax" else expected.any(axis=1).sum())


@pytest.mark.parametrize("loss", ["margin", "softmax"])
def test_the_step_of_the_hidden_layer_is_the_rate_times_the_gradient(loss, objective):
    """Of instances of norm below 1 and gradients below 1: at the weights before they move."""
    X, E, W, sets = make()
    rows = [5, 0, 6, 3]
    E_before, W_before = E.copy(), W.copy()
    assert (np.linalg.norm(X, axis=1) < 1).all()
    by_E = slope(lambda e: objective(loss, X[rows] @ e, W_before, sets, rows), E_before)
    by_W = slope(lambda w: objective(loss, X[rows] @ E_before, w, sets, rows), W_before)
    layer = HiddenLayer(csr_rows(X), MovingRows(E))
    np.testing.assert_allclose(layer.forward(np.array(rows)), X[rows] @ E, atol=1e-14)
    step(layer, W, sets, rows, 0.05, loss)
    np.testing.assert_allclose((E_before - E) / 0.05, by_E, atol=1e-5)
    np.testing.assert_allclose((W_before - W) / 0.05, by_W, atol=1e-5)
    assert np.abs(by_E).max() > 0.01


def test_long_instances_and_large_gradients_are_divided_out():
    X, E, _, _ = make(scale=1.0)
    rows, rate = np.array([1, 3, 6]), 0.5
    assert (np.linalg.norm(X[[1, 6]], axis=1) > 1).all()
    X[6] *= 0.5 / np.linalg.norm(X[6])
    gradient = np.random.default_rng(0).normal(size=(3, DIM))
    gradient[0] *= 20 / np.linalg.norm(gradient[0])
    gradient[2] *= 0.3 / np.linalg.norm(gradient[2])
    before = E.copy()
    layer = HiddenLayer(csr_rows(X), MovingRows(E))
    layer.backward(layer.embed(rows), gradient, rate)
    expected = before - rate * np.outer(X[1], gradient[0]) / (20 * (X[1] @ X[1]))
    expected -= rate * np.outer(X[6], gradient[2])
    np.testing.assert_allclose(E, expected, atol=1e-13)


def test_what_is_left_out_is_drawn_anew_and_the_rest_scaled():
    X, E, _, _ = make(scale=1.0)
    before, rows = E.copy(), np.array([2, 3, 0])  # row 3 is empty
    layer = HiddenLayer(csr_rows(X), MovingRows(E), dropout=0.25)
    np.testing.assert_allclose(layer.forward(rows), X[rows] @ E, atol=1e-14)  # answers have all
    kept, total = np.zeros(D), np.zeros((3, DIM))
    for number in range(400):
        layer.begin_pass(np.random.default_rng(number))
        V, entries = layer.embed(rows)
        thinned = np.zeros((3, D))
        for i, (start, count) in enumerate(zip(entries.starts, entries.counts, strict=True)):
            at = slice(start, start + count)
            thinned[i, entries.ids[at]] = entries.values[at]
        is_kept = thinned != 0
        np.testing.assert_allclose(thinned, np.where(is_kept, X[rows] / 0.75, 0.0))
        np.testing.assert_allclose(V, thinned @ E, atol=1e-13)
        kept += is_kept[0]
        total += V
    used = X[2] != 0
    assert used.sum() > 3
    np.testing.assert_allclose(kept[used] / 400, 0.75, atol=0.1)
    np.testing.assert_allclose(total / 400, X[rows] @ E, atol=0.3)
    gradient = np.random.default_rng(0).normal(size=(3, DIM))
    gradient /= 2 * np.linalg.norm(gradient, axis=1, keepdims=True)
    embedded = layer.embed(rows)
    layer.backward(embedded, gradient, 0.5)
    moved = before - E
    ids = embedded.entries.ids[
        embedded.entries.starts[0] : embedded.entries.starts[0] + embedded.entries.counts[0]
    ]
    left_out = np.setdiff1d(np.flatnonzero(used), ids)
    left_out = [f for f in left_out if X[0, f] == 0]
    assert not moved[left_out].any()
    assert moved[ids].all()


def test_rows_that_move_are_returned_once():
    dtype, values = np.float32, np.zeros((6, 2), np.float32)
    rows = MovingRows(values)
    entries = Entries(
        np.array([0, 3]),
        np.array([2, 2]),
        np.array([4, 1, 9, 1, 3], np.int32),
        np.array([1, 2, np.nan, 3, 4], dtype),
    )
    for k in (1, 2):  # nothing stays behind of the first call
        moved, lengths = rows.step(entries, np.array([[1, 0], [0, 1]], dtype), 0.5)
        assert sorted(moved.tolist()) == [1, 3, 4]
        expected = np.zeros((6, 2))
        expected[[1, 3, 4]] = [[-1, -1.5], [0, -2], [-0.5, 0]]
        np.testing.assert_array_equal(values, k * expected)
        np.testing.assert_allclose(lengths, np.linalg.norm(expected[moved], axis=1))


class Noting:
    """Exact gradients; notes what it is asked for."""

    looks_ahead = True

    def __init__(self):
        self.exact = Exact(SetLoss.of(LABEL_SET_LOSSES["softmax"]()))
        self.searched, self.seen = [], []

    def search(self, W, V, team):
        self.searched.append(V.copy())
        return Candidates(np.arange(len(V), dtype=np.int32)[:, None], V[:, :1], np.ones(len(V)))

    def of(self, W, batch, found, team):
        self.seen.append((batch.V.copy(), found.labels[:, 0].tolist(), found.scores[:, 0].copy()))
        return self.exact.of(W, batch, None, team)

    def moved(self, rows, lengths):
        pass


def steps_of(layer, W, sets, method, rows, batch_size, rate):
    with Team(1) as team:
        return list(take_steps(layer, MovingRows(W), sets, method, rows, batch_size, rate, team))


def layers(X, E):
    return IdentityLayer(DenseRows(X)), HiddenLayer(csr_rows(X), MovingRows(E))


@pytest.mark.parametrize("is_hidden", [False, True])
def test_mini_batches_together_are_those_one_by_one(is_hidden):
    rows, rates, ends = np.array([5, 0, 7, 1, 6, 2, 4]), [0.5, 0.3, 0.2], []
    for cuts in ([7], [3, 6, 7], [6, 7]):
        X, E, W, sets = make(scale=1.0)
        if not is_hidden:
            W = np.zeros((K, D))
        layer, rate, losses = layers(X, E)[is_hidden], iter(rates).__next__, []
        for first, last in zip([0, *cuts], cuts, strict=False):
            steps = steps_of(layer, W, sets, Noting(), rows[first:last], 3, rate)
            losses += [step.loss for step in steps]
        ends.append((W, E, np.array(losses)))
    for other in ends[1:]:
        for a, b in zip(ends[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("is_hidden", [False, True])
def test_intercepts_take_steps_at_their_own_rate(is_hidden, objective):
    X, E, W, sets = make()
    W = W if is_hidden else np.random.default_rng(1).normal(size=(K, D))
    b = np.random.default_rng(2).normal(size=K)
    rows, rate = np.array([5, 0, 7, 1]), 0.3
    V = X[rows] @ E if is_hidden else X[rows]
    queries, both = np.column_stack([V, np.ones(4)]), np.column_stack([W, b])
    expected = slope(lambda w: objective("softmax", queries, w, sets, rows), both)
    moving = MovingRows(both.copy(), intercept_rate=0.4)
    np.testing.assert_allclose(moving.queries(V), queries)
    layer = layers(X, E)[is_hidden]
    method = Exact(SetLoss.of(LABEL_SET_LOSSES["softmax"]()))
    with Team(1) as team:
        list(take_steps(layer, moving, sets, method, rows, 4, lambda: rate, team))
    np.testing.assert_allclose(moving.vectors, W - rate * expected[:, :-1], atol=1e-6)
    np.testing.assert_allclose(moving.values[:, -1], b - 0.4 * rate * expected[:, -1], atol=1e-6)


def test_sums_of_rows_leave_intercepts_out():
    values = np.random.default_rng(0).normal(size=(K, DIM + 1))
    entries = Entries(np.array([0]), np.array([2]), np.array([2, 0], np.int32), np.array([1.0, -2]))
    sums = MovingRows(values, intercept_rate=1.0).sums(entries)
    np.testing.assert_allclose(sums, [values[2, :-1] - 2 * values[0, :-1]], atol=1e-14)
    assert sums.flags.c_contiguous

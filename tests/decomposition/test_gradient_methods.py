"""Ways to the gradient: exact, sampled, searched and coupled, and threads that share a batch."""

import functools

import numpy as np
import pytest

from sklearn_xc._parallel.threads import Team
from sklearn_xc.decomposition.gradients import GRADIENTS, MessagePassing, SearchedGradient, protocol
from sklearn_xc.decomposition.gradients.message_passing import Coupled
from sklearn_xc.decomposition.gradients.protocol import GradientTask, RowBatch, SetLoss
from sklearn_xc.decomposition.gradients.searched import FollowingIndex, Searched
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin
from sklearn_xc.search import INDEXES, Candidates

MU = 2.0
N, K, DIM = 7, 60, 6

OTHER_LOSSES = sorted({*LABEL_SET_LOSSES} - {"margin"})


def make(dtype=np.float64, seed=0):
    """Return W and a batch with one to four labels per instance."""
    rng = np.random.default_rng(seed)
    W, V = (rng.normal(size=(n, DIM)).astype(dtype) for n in (K, N))
    sizes = 1 + np.arange(N) % 4
    positives = [rng.choice(K, size, replace=False) for size in sizes]
    indptr = np.cumsum([0, *sizes])
    weight = rng.uniform(0.2, 3.0, N)
    return W, RowBatch(V, indptr, np.concatenate(positives).astype(np.int32), weight)


def set_loss(name):
    return SetLoss.of(MaxMargin(MU) if name == "margin" else LABEL_SET_LOSSES[name]())


def as_dense(gradient):
    dense = np.zeros((N, K))
    for i, m in enumerate(gradient.counts):
        assert len(set(gradient.labels[i, :m].tolist())) == m
        assert gradient.values[i, :m].all()
        dense[i, gradient.labels[i, :m]] = gradient.values[i, :m]
    return gradient.losses, dense


#: All gradients by name, and others, each with what it searches.
KINDS = {
    **{name: (gradient, "exact") for name, gradient in GRADIENTS.items()},
    "estimates": (SearchedGradient, "product"),
    "coupled": (functools.partial(MessagePassing, n_blocks=2), "exact"),
}


def method_of(name, loss, W, n_candidates=K):
    """Return a method that was built on W."""
    gradient, index = KINDS[name]
    task = GradientTask(set_loss(loss), INDEXES[index], n_candidates, DIM)
    method = gradient().start(task)
    method.build(W)
    return method


def gradient_of(method, W, batch, n_workers=1):
    with Team(n_workers) as team:
        return method.of(W, batch, method.search(W, batch.V, team), team)


@pytest.fixture
def exact_gradient(label_set_loss):
    """Return a function that gives losses and gradients by all scores, one instance at a time."""

    def find(loss, W, batch):
        losses, dense = np.empty(N), np.zeros((N, K))
        for i in range(N):
            own = batch.positives[batch.indptr[i] : batch.indptr[i + 1]].tolist()
            labels = own + [k for k in range(K) if k not in own]
            scores = W[labels].astype(np.float64) @ batch.V[i].astype(np.float64)
            value, gradient, _ = label_set_loss(loss, scores, len(own), MU)
            losses[i] = batch.weight[i] * value
            dense[i, labels] = batch.weight[i] * gradient
        return losses, dense

    return find


@pytest.mark.parametrize(
    ("name", "dtype", "loss"),
    [
        *((name, np.float64, "margin") for name in ("exact", "mips", "sampled")),
        *((name, np.float64, loss) for name in ("exact", "sampled") for loss in OTHER_LOSSES),
        *((name, np.float32, "margin") for name in ("exact", "mips")),
    ],
)
def test_all_labels_give_the_exact_gradient(name, dtype, loss, exact_gradient):
    W, batch = make(dtype)
    found = as_dense(gradient_of(method_of(name, loss, W), W, batch))
    tol = 1e-12 if dtype == np.float64 else 2e-5
    for a, b in zip(found, exact_gradient(loss, W, batch), strict=True):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize(
    ("name", "loss"),
    [("sampled", "margin"), *(("mips", loss) for loss in LABEL_SET_LOSSES)],
)
def test_some_labels_give_the_gradient_of_those(name, loss, label_set_loss):
    W, batch = make()
    found = gradient_of(method_of(name, loss, W, 10), W, batch)
    losses, dense = as_dense(found)
    if name == "mips":
        considered = np.argsort(-(batch.V @ W.T), axis=1)[:, :10]
    else:
        rng = np.random.default_rng((0, 1, 0))
        considered = np.tile(rng.choice(K, 10, replace=False, shuffle=False), (N, 1))
    for i in range(N):
        own = batch.positives[batch.indptr[i] : batch.indptr[i + 1]].tolist()
        labels = own + [k for k in considered[i] if k not in own]
        value, gradient, _ = label_set_loss(loss, W[labels] @ batch.V[i], len(own), MU)
        assert losses[i] == pytest.approx(batch.weight[i] * value, rel=1e-12)
        np.testing.assert_allclose(dense[i, labels], batch.weight[i] * gradient, atol=1e-12)
        assert not dense[i, np.setdiff1d(np.arange(K), labels)].any()


@pytest.mark.parametrize("name", ["sampled", "exact", "estimates", "coupled"])
def test_threads_change_no_bit(name, monkeypatch):
    W, batch = make(np.float32)
    expected = gradient_of(method_of(name, "margin", W, 10), W, batch)
    monkeypatch.setattr(protocol, "LEAST_WORK", 1)
    for n_workers in (3, 16):  # more than there are instances
        found = gradient_of(method_of(name, "margin", W, 10), W, batch, n_workers)
        assert found.counts.tobytes() == expected.counts.tobytes()
        assert found.losses.tobytes() == expected.losses.tobytes()
        for i, m in enumerate(expected.counts):
            assert found.labels[i, :m].tobytes() == expected.labels[i, :m].tobytes()
            assert found.values[i, :m].tobytes() == expected.values[i, :m].tobytes()


class RightIndex:
    """Estimates that are right, and who asked for how many."""

    has_exact_scores = False

    def __init__(self, W):
        self.W, self.asked = W, []

    def query(self, V, n_candidates):
        self.asked.append((len(V), n_candidates))
        scores = V @ self.W.T
        labels = np.argsort(-scores, axis=1)[:, :n_candidates].astype(np.int32)
        counts = np.full(len(V), n_candidates)
        return Candidates(labels, np.take_along_axis(scores, labels, axis=1), counts)


@pytest.mark.parametrize(("loss", "n_workers"), [("margin", 2), ("triplet", 1)])
def test_what_is_retrieved_at_first_makes_no_difference(
    loss, n_workers, exact_gradient, monkeypatch
):
    monkeypatch.setattr(protocol, "LEAST_WORK", 1)
    W, batch = make()
    expected = exact_gradient(loss, W, batch)
    shares = []
    for share in (0.01, 0.1, 0.4, 1.0):
        index = RightIndex(W)
        method = Searched(set_loss(loss), K, FollowingIndex(index), 0, share)
        for a, b in zip(as_dense(gradient_of(method, W, batch, n_workers)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        n_first = int(np.ceil(share * K))
        assert {n for _, n in index.asked} <= {min(K, n_first * 4**more) for more in range(4)}
        shares.append(method.first_share)
    assert index.asked == [(N, K)] if n_workers == 1 else sorted(index.asked) == [(3, K), (4, K)]
    assert shares[0] > 0.01
    assert shares[-1] <= 1.0


class ToldIndex:
    """Remembers what it is told."""

    def __init__(self, has_exact_scores):
        self.has_exact_scores = has_exact_scores

    def build(self, W, first, last, seed):
        self.rows = []

    def update(self, rows):
        self.rows += rows.tolist()


def watched(has_exact_scores):
    index = FollowingIndex(ToldIndex(has_exact_scores))
    index.build(np.full((K, DIM), 2.0), 0, 4, 0)  # rows of length 4
    return index


def test_indexes_are_told_which_rows_moved():
    first, second = watched(True), watched(True)
    rows, lengths = np.array([4, 2], np.int32), np.zeros(2)
    Searched(set_loss("margin"), 5, first).moved(rows, lengths)
    assert first.index.rows == [4, 2]
    coupled = Coupled(set_loss("margin"), 5, [first, second], 1)
    coupled.moved(rows[:1], lengths[:1])
    assert first.index.rows == [4, 2, 4]
    assert second.index.rows == [4]


def test_an_index_of_estimates_is_told_of_rows_that_have_drifted_a_tenth_of_their_length():
    watch = watched(False)
    rows = np.array([4, 2], np.int32)
    for _ in range(7):  # row 4 goes 0.15 a move, row 2 goes 0.3: more than 0.4 after 3 and 2 moves
        watch.moved(rows, np.array([0.15, 0.3]))
    assert watch.index.rows == [2, 4, 2, 4, 2]


@pytest.mark.parametrize("absent", ["zero", "left_out"])
@pytest.mark.parametrize("threshold", [None, 0.7])
def test_absent_labels_and_thresholds_of_algorithm_2(
    absent, threshold, algorithm_2, label_set_loss
):
    W, batch = make()
    how = {"absent": absent, "threshold": threshold, "n_blocks": 2, "n_rounds": 2}
    task = GradientTask(set_loss("margin"), INDEXES["exact"], 4, DIM)
    method = MessagePassing(**how).start(task)
    method.build(W)
    losses, dense = as_dense(gradient_of(method, W, batch, n_workers=2))
    halves = np.array_split(np.arange(DIM), 2)
    for i, own in enumerate(np.split(batch.positives, batch.indptr[1:-1])):
        z = np.array([W[:, part] @ batch.V[i, part] for part in halves])
        found = np.argsort(-z, axis=1)[:, :4]
        if threshold is not None:
            found = [np.flatnonzero(abs(row) > threshold) for row in z]
        sets = [{*own, *of_block} for of_block in found]
        others = (set(range(K)) if absent == "zero" else set.union(*sets)) - {*own}
        labels = [*own, *sorted(others)]
        loss_of = functools.partial(label_set_loss, "margin", n_positive=len(own), smoothing=MU)
        _, _, value, gradient = algorithm_2(loss_of, z, sets, labels, 1e-3, 2)
        assert losses[i] == pytest.approx(batch.weight[i] * value, rel=1e-12)
        np.testing.assert_allclose(dense[i, labels], batch.weight[i] * gradient, atol=1e-12)
        dense[i, labels] = 0
    assert not dense.any()


@pytest.mark.parametrize(
    ("absent", "gradient"),
    [("left_out", [-1, 1, 0, 0, 0, 0]), ("zero", [-1, 0, 0.25, 0.25, 0.25, 0.25])],
)
def test_absent_labels_beat_those_with_negative_scores(absent, gradient):
    """By all scores it is [-1, 8, 5, 2, 0, 0] / 15; either way one label is found, twice."""
    scores = np.array([-3, -1.4, -1.6, -1.8, -2.2, -2.2])
    W, ones = np.tile(scores[:, None] / 2, 2), np.ones((1, 2))
    batch = RowBatch(ones, np.array([0, 1]), np.zeros(1, np.int32), np.ones(1))
    task = GradientTask(SetLoss.of(MaxMargin(1.0)), INDEXES["exact"], 1, 2)
    for kind, expected in (
        (GRADIENTS["exact"](), np.array([-15, 8, 5, 2, 0, 0]) / 15),
        (MessagePassing(n_blocks=2, absent=absent), gradient),
    ):
        method = kind.start(task)
        method.build(W)
        found = gradient_of(method, W, batch)
        dense = np.zeros(6)
        dense[found.labels[0, : found.counts[0]]] = found.values[0, : found.counts[0]]
        np.testing.assert_allclose(dense, expected, atol=1e-12)

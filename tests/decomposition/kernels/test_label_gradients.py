"""Gradients over labels that were found, and over all, against the losses of all scores."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_xc.decomposition.kernels.label_gradients import _FIRST_LABELS, label_gradient_kernels
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin

MU = 0.7
DIM = 4

each_loss = pytest.mark.parametrize("loss", LABEL_SET_LOSSES)


def make(n=5, n_labels=90, n_positive=2, seed=0, shift=0.0, scale=1.0):
    """Return W, V and positives whose scores are `scale` times normal numbers plus `shift`."""
    rng = np.random.default_rng(seed)
    W = scale * rng.normal(size=(n_labels, DIM))
    V = rng.normal(size=(n, DIM))
    W[:, -1], V[:, -1] = shift, 1.0
    positives = [rng.choice(n_labels, n_positive, replace=False).astype(np.int32) for _ in range(n)]
    return SimpleNamespace(
        W=W,
        V=V,
        scores=V @ W.T,
        sets=positives,
        n=n,
        n_labels=n_labels,
        indptr=np.cumsum([0, *map(len, positives)]),
        positives=np.concatenate(positives),
        weight=rng.uniform(0.2, 3.0, n),
    )


def empty(n, room):
    return (
        np.full((n, room), -7, np.int32),
        np.full((n, room), np.nan),
        np.full(n, -7),
        np.full(n, np.nan),
    )


def as_dense(data, out):
    """Return the losses and the gradients by all scores; no gradient is 0, no label is twice."""
    labels, values, counts, losses = out
    dense = np.zeros((data.n, data.n_labels))
    for i in range(data.n):
        own = labels[i, : counts[i]]
        assert len(set(own.tolist())) == counts[i]
        assert values[i, : counts[i]].all()
        dense[i, own] = values[i, : counts[i]]
    return losses, dense


def expected_over(data, label_set_loss, loss, considered):
    """Return the losses and gradients over the positives and the labels of each instance's list."""
    losses, dense = np.empty(data.n), np.zeros((data.n, data.n_labels))
    for i, own in enumerate(data.sets):
        others = [k for k in considered[i] if k not in own]
        labels = [*own, *others]
        value, gradient, _ = label_set_loss(loss, data.scores[i, labels], len(own), MU)
        losses[i] = data.weight[i] * value
        dense[i, labels] = data.weight[i] * gradient
    return losses, dense


def kernels_of(name):
    """Return the kernels of a loss, and its parameters."""
    loss = MaxMargin(MU) if name == "margin" else LABEL_SET_LOSSES[name]()
    return label_gradient_kernels(loss.gradient, loss.support_floor), loss.parameters


def search(data, loss, found, scores, is_exact, n_found=None, wants_more=None):
    n_found = np.full(data.n, found.shape[1]) if n_found is None else np.asarray(n_found)
    most = int(np.diff(data.indptr).max())
    out = empty(data.n, found.shape[1] + most)
    wants_more = np.empty(data.n, np.bool_) if wants_more is None else wants_more
    kernels, parameters = kernels_of(loss)
    batch = data.V, data.indptr, data.positives, data.weight
    candidates = found.astype(np.int32), scores, n_found
    kernels.searched(data.W, batch, candidates, is_exact, parameters, tuple(out), wants_more)
    return as_dense(data, out)


def best(data, n_candidates, estimates=None):
    """Return the labels with the largest scores or estimates, and these, best first."""
    scores = data.scores if estimates is None else estimates
    found = np.argsort(-scores, axis=1, kind="stable")[:, :n_candidates]
    return found, np.take_along_axis(scores, found, axis=1)


def over_all(data, loss):
    out = empty(data.n, data.n_labels)
    kernels, parameters = kernels_of(loss)
    kernels.dense(data.scores.copy(), data.indptr, data.positives, data.weight, parameters, *out)
    return as_dense(data, out)


def assert_same(found, expected, tol=1e-12):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=tol)


@each_loss
@pytest.mark.parametrize(
    ("shift", "n_positive", "scale"), [(-30.0, 1, 0.1), (0.0, 4, 3.0), (30.0, 4, 0.1)]
)
def test_over_all(loss, shift, n_positive, scale, label_set_loss):
    data = make(n_positive=n_positive, shift=shift, scale=scale)
    expected = expected_over(data, label_set_loss, loss, [range(90)] * 5)
    assert_same(over_all(data, loss), expected, tol=1e-10)
    assert (np.abs(expected[1]).max(axis=1) > 1e-3).any()


@pytest.mark.parametrize("scale", [1e17, 1e300])
@pytest.mark.parametrize("loss", ["margin", "triplet"])
def test_over_all_where_a_margin_is_less_than_the_rounding_of_scores(loss, scale, label_set_loss):
    """The best of the others is a violation all the same: one of as much as it leads."""
    data = make(scale=scale)
    losses, gradients = over_all(data, loss)
    for i, own in enumerate(data.sets):
        others = np.setdiff1d(np.arange(90), own)
        best = others[data.scores[i, others].argmax()]
        lead = data.scores[i, best] - data.scores[i, own].min()
        assert lead > 0
        assert gradients[i, best] >= data.weight[i]
        assert losses[i] >= 0.99 * data.weight[i] * lead


@each_loss
@pytest.mark.parametrize(("n_positive", "n_candidates"), [(4, 1), (1, 20), (4, 90)])
def test_exact_scores_of_what_was_found(loss, n_positive, n_candidates, label_set_loss):
    """Positives are among the candidates, and count once."""
    data = make(n_positive=n_positive)
    rng = np.random.default_rng(1)
    found = np.stack([rng.choice(90, n_candidates, replace=False) for _ in range(5)])
    found[:, 0] = [own[0] for own in data.sets]
    found[1, 0] = 89 if 89 not in data.sets[1] else 88
    found = np.array([[k if k not in row[:t] else -1 for t, k in enumerate(row)] for row in found])
    n_found = [(row >= 0).sum() for row in found]
    found = np.array([[*row[row >= 0], *row[row < 0]] for row in found])  # the rest is padding
    scores = np.where(found < 0, -np.inf, np.take_along_axis(data.scores, found, axis=1))
    result = search(data, loss, found, scores, True, n_found)
    considered = [row[row >= 0].tolist() for row in found]
    assert_same(result, expected_over(data, label_set_loss, loss, considered))
    if n_candidates == 90 and min(n_found) == 90:
        assert_same(result, over_all(data, loss))


class TestEstimates:
    @each_loss
    def test_exact_scores_take_their_place(self, loss, label_set_loss):
        """With estimates far too high no candidate is passed over."""
        data = make()
        found, scores = best(data, 90)
        result = search(data, loss, found, np.full_like(scores, 1e6), False)
        assert_same(result, expected_over(data, label_set_loss, loss, [range(90)] * 5))

    @pytest.mark.parametrize("loss", ["margin", "triplet"])
    @pytest.mark.parametrize(
        ("error", "scale", "shift", "n_positive"),
        [(0.0, 0.05, 0.0, 40), (-5.0, 4.0, -20.0, 1), (5.0, 4.0, -20.0, 40), (5.0, 0.05, 0.0, 1)],
    )
    def test_no_label_with_a_gradient_is_missed(
        self, loss, error, scale, shift, n_positive, label_set_loss
    ):
        """Estimates with a constant error are corrected by it."""
        data = make(n_labels=500, n_positive=n_positive, scale=scale, shift=shift)
        found, scores = best(data, 500)
        result = search(data, loss, found, scores + error, False)
        assert_same(result, expected_over(data, label_set_loss, loss, [range(500)] * 5), tol=1e-10)

    @pytest.mark.parametrize("loss", ["margin", "triplet"])
    def test_it_stops_early(self, loss):
        """A gradient behind the stop, where estimates are wrong, is not seen."""
        data = make(n=1, n_labels=500, n_positive=1)
        own = data.sets[0][0]
        data.W[:, :] = 0.0
        data.V[0] = [1.0, 0.0, 0.0, 0.0]
        data.W[own, 0] = 100.0
        others = np.array([k for k in range(500) if k != own])
        data.W[others[-1], 0] = 101.0
        scores = -np.arange(499.0)[None]  # the truth is 0, except for the last
        losses, gradients = search(data, loss, others[None], scores, False)
        assert not losses.any()
        assert not gradients.any()
        # Were it the first to be scored, it would be seen.
        losses, _ = search(data, loss, others[None, ::-1].copy(), scores, False)
        assert losses[0] > 0

    @pytest.mark.parametrize("loss", ["margin", "triplet"])
    def test_the_spread_of_the_errors_keeps_it_going(self, loss, label_set_loss):
        """The best label of all has an estimate that is too low."""
        data = make(n=1, n_labels=100, n_positive=1)
        own = data.sets[0][0]
        others = np.array([k for k in range(100) if k != own])
        data.W[:, :], data.V[0] = 0.0, [1.0, 0.0, 0.0, 0.0]
        # Estimates are 0: errors are 0.56 on average, too little, with a deviation of 0.83.
        data.W[others, 0] = np.where(np.arange(99) % 5, 1.0, -1.0)
        late = others[_FIRST_LABELS + 5]
        data.W[late, 0], data.W[own, 0] = 5.0, 1.01
        data.scores = data.V @ data.W.T
        result = search(data, loss, others[None], np.zeros((1, 99)), False)
        assert result[1][0, late] > 0
        assert_same(result, expected_over(data, label_set_loss, loss, [range(100)]))
        # Without errors among the first there is no reason to look further.
        data.W[others[:_FIRST_LABELS], 0] = 0.0
        losses, _ = search(data, loss, others[None], np.zeros((1, 99)), False)
        assert losses[0] == 0

    def test_nothing_more_is_wanted_of_exact_scores_or_an_empty_search(self):
        data, wants_more = make(), np.ones(5, np.bool_)
        search(data, "margin", *best(data, 3), True, None, wants_more)
        assert not wants_more.any()
        wants_more[:] = True
        search(data, "margin", *best(data, 3), False, np.zeros(5, np.int64), wants_more)
        assert not wants_more.any()

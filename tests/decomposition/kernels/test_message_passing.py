"""Message passing between blocks: against algorithm 2 in numpy, and how fast it converges."""

from typing import NamedTuple

import numpy as np
import pytest

from sklearn_xc.decomposition.kernels.message_passing import message_passing_kernel
from sklearn_xc.decomposition.losses import LABEL_SET_LOSSES, MaxMargin

MU = 0.5

each_loss = pytest.mark.parametrize("loss", LABEL_SET_LOSSES)


class Batch(NamedTuple):
    """Scores `z` (B, n, K) of a batch, of which each block retrieves its largest.

    `positives` is a list of labels for each instance, `retrieved` a list for each (block, instance)
    and `width` what they are padded to.
    """

    z: np.ndarray
    positives: list
    retrieved: list
    width: int

    def arguments(self, dtype=np.float64):
        """Return the arguments of ``couple`` up to the positive scores."""
        n_blocks, n, _ = self.z.shape
        labels = np.full((n_blocks, n, self.width), -1, np.int32)
        scores = np.full(labels.shape, -np.inf, dtype)
        counts = np.zeros((n_blocks, n), np.int64)
        for j in range(n_blocks):
            for i, found in enumerate(self.retrieved[j]):
                counts[j, i] = len(found)
                labels[j, i, : len(found)] = found
                scores[j, i, : len(found)] = self.z[j, i, found]
        indptr = np.cumsum([0, *map(len, self.positives)])
        positives = np.concatenate([np.asarray(p, np.int32) for p in self.positives])
        rows = np.repeat(np.arange(n), np.diff(indptr))
        own = indptr, positives, self.z[:, rows, positives].copy()
        return (labels, scores, counts), own


def make_batch(seed=0, n=5, n_labels=30, n_blocks=3, width=6, n_positive=2, shift=0.0, scale=1.0):
    """Draw a batch in which each block retrieves the `width` largest of its scores."""
    rng = np.random.default_rng(seed)
    z = scale * rng.normal(size=(n_blocks, n, n_labels)) + shift
    positives = [rng.choice(n_labels, n_positive, replace=False).tolist() for _ in range(n)]
    best = np.argsort(-z, axis=2)[:, :, :width]
    return Batch(z, positives, best.tolist(), width)


def kernel_of(name, smoothing):
    """Return the kernel of a loss, and its parameters."""
    loss = MaxMargin(smoothing) if name == "margin" else LABEL_SET_LOSSES[name]()
    return message_passing_kernel(loss.gradient), loss.parameters


def couple(loss, batch, tau=1e-3, n_rounds=1, smoothing=MU, dtype=np.float64, weight=None):
    """Return the loss and the gradient, a dict from labels, of each instance."""
    arguments = batch.arguments(dtype)
    n_blocks, n, _ = batch.z.shape
    cap = n_blocks * batch.width + max(map(len, batch.positives))
    labels, gradients = np.full((n, cap), -7, np.int32), np.full((n, cap), np.nan)
    counts, losses = np.full(n, -7, np.int64), np.full(n, np.nan)
    weight = np.ones(n) if weight is None else weight
    kernel, parameters = kernel_of(loss, smoothing)
    out = labels, gradients, counts, losses
    kernel(*arguments, weight, parameters, tau, n_rounds, out)
    found = [
        dict(zip(row[:m].tolist(), g[:m].tolist(), strict=True))
        for row, g, m in zip(labels, gradients, counts, strict=True)
    ]
    return losses, found


def labels_of(batch, i):
    """Return the labels that each block keeps for an instance, and their union, positives first."""
    sets = [set(block[i]) | set(batch.positives[i]) for block in batch.retrieved]
    return sets, batch.positives[i] + sorted(set.union(*sets) - set(batch.positives[i]))


@each_loss
@pytest.mark.parametrize(
    ("shift", "n_positive", "tau", "n_rounds"),
    [(-4.0, 2, -1.0, 4), (-1.0, 1, 0.0, 1), (0.0, 4, 0.2, 4), (3.0, 3, 1e-3, 0)],
)
def test_agrees_with_algorithm_2(
    algorithm_2, label_set_loss, loss, shift, n_positive, tau, n_rounds
):
    """Shifted down, labels which a block did not retrieve beat those which it did."""
    batch = make_batch(n_positive=n_positive, shift=shift)
    losses, gradients = couple(loss, batch, tau, n_rounds)
    for i in range(5):
        sets, union = labels_of(batch, i)
        _, _, value, gradient = algorithm_2(
            lambda s: label_set_loss(loss, s, n_positive, MU),
            *(batch.z[:, i], sets, union, tau, n_rounds),
        )
        assert losses[i] == pytest.approx(value, rel=1e-12)
        found = [gradients[i].get(k, 0.0) for k in union]
        np.testing.assert_allclose(found, gradient, atol=1e-12)
        assert set(gradients[i]) <= set(union)
        assert all(gradients[i].values())
        leading = [k for k in batch.positives[i] if k in gradients[i]]
        assert list(gradients[i])[: len(leading)] == leading


def strong_smoothness(loss, n_positive, mu):
    """Return the mu of a loss whose gradient has the Lipschitz constant 1 / mu.

    The Hessian of the softmax loss is the covariance of a draw from p, whose norm is at most 1/2,
    once for each positive. The paper's mu = 1 is for one positive, and not the best there is.
    """
    return mu if loss == "margin" else 2 / n_positive


@pytest.mark.parametrize("loss", ["margin", "softmax"])
@pytest.mark.parametrize(("n_positive", "tau"), [(1, 0.05), (4, 0.0)])
def test_theorem_2(algorithm_2, label_set_loss, loss, n_positive, tau):
    """The bound that follows from the recursion (13); the printed one is 0 at t = 1."""
    batch = make_batch(n=1, n_positive=n_positive, scale=0.5)
    n_blocks = len(batch.z)
    z, *_ = algorithm_2(
        lambda s: label_set_loss(loss, s, n_positive, MU),
        *(batch.z[:, 0], *labels_of(batch, 0), tau, 0),
    )
    best = z.mean(axis=0) - z
    least = label_set_loss(loss, z.sum(axis=0), n_positive, MU)[0]
    gaps, bounds = [], []
    for t in range(1, 40):
        gaps.append(couple(loss, batch, tau, t)[0][0] - least)
        smooth = 2 * n_blocks * (best**2).sum() / strong_smoothness(loss, n_positive, MU) / (t + 2)
        bounds.append(smooth + tau * abs(best).sum())
    assert min(gaps) >= -1e-12
    assert (np.array(gaps) <= bounds).all()
    start = couple(loss, batch, tau, 0)[0][0] - least
    assert gaps[-1] < max(0.1 * start, tau * abs(best).sum())


@each_loss
def test_one_block_is_the_loss_of_what_it_retrieved(label_set_loss, loss):
    """All scores are negative: labels that were not retrieved are absent, and not 0."""
    batch = make_batch(n_blocks=1, shift=-8.0)
    losses, gradients = couple(loss, batch, n_rounds=3)
    for i, positives in enumerate(batch.positives):
        known = positives + [k for k in batch.retrieved[0][i] if k not in positives]
        value, gradient, _ = label_set_loss(loss, batch.z[0, i, known], 2, MU)
        assert losses[i] == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose([gradients[i].get(k, 0.0) for k in known], gradient, atol=1e-14)
        assert set(gradients[i]) <= set(known)
        filled = np.append(batch.z[0, i, known], np.zeros(30 - len(known)))
        assert label_set_loss(loss, filled, 2, MU)[0] > value + 1


def uneven_batch():
    """Return a batch with short lists, empty ones, no positives, and positives retrieved."""
    batch = make_batch(n=6, width=8)
    retrieved = [
        [found[: (3 * i + j + 2) % 9] for i, found in enumerate(block)]
        for j, block in enumerate(batch.retrieved)
    ]
    for j in range(3):
        retrieved[j][2] = []
    positives = batch.positives
    positives[1] = []
    positives[3] = [retrieved[0][3][0], 29, retrieved[2][3][-1]]
    positives[5] = list(range(30))
    return batch._replace(positives=positives, retrieved=retrieved)


@each_loss
def test_uneven_lists(algorithm_2, label_set_loss, loss):
    batch = uneven_batch()
    losses, gradients = couple(loss, batch, n_rounds=2)
    assert losses[1] == 0
    assert gradients[1] == {}
    for i in (0, 2, 3, 4, 5):
        m = len(batch.positives[i])
        sets, union = labels_of(batch, i)
        _, _, value, gradient = algorithm_2(
            lambda s, m=m: label_set_loss(loss, s, m, MU), batch.z[:, i], sets, union, 1e-3, 2
        )
        assert losses[i] == pytest.approx(value, rel=1e-12, abs=1e-12)
        found = [gradients[i].get(k, 0.0) for k in union]
        np.testing.assert_allclose(found, gradient, atol=1e-12)

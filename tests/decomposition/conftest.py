"""What the tests of decomposition share: estimators that train fast, and losses in plain numpy."""

import numpy as np
import pytest
from scipy.special import log_softmax

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.decomposition import training


def _margin(z, n_positive, mu):
    """Return the smoothed max-margin loss and its gradient, by bisection.

    With a threshold t the negatives have ``(z_j + 1 - t)_+ / mu`` and the positives
    ``-(t - z_k)_+ / mu``, where both have the same sum; if that is above 1, each side has a
    threshold of its own with the sum 1.
    """
    p, v = z[:n_positive], z[n_positive:] + 1.0

    def level(excess):
        low, high = min(z) - mu - 2.0, max(z) + mu + 2.0
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return low

    def above(t):
        return np.maximum(v - t, 0) / mu

    def below(t):
        return np.maximum(t - p, 0) / mu

    t = level(lambda t: above(t).sum() - below(t).sum())
    if above(t).sum() > 1:
        t_n, t_p = level(lambda t: above(t).sum() - 1), level(lambda t: 1 - below(t).sum())
    else:
        t_n = t_p = t
    a = np.concatenate([-below(t_p), above(t_n)])
    return a @ np.concatenate([p, v]) - 0.5 * mu * a @ a, a


def _softmax(z, n_positive, mu):
    log_p = log_softmax(z)
    gradient = n_positive * np.exp(log_p)
    gradient[:n_positive] -= 1
    return -log_p[:n_positive].sum(), gradient


def _triplet(z, n_positive, mu):
    hits = z[None, n_positive:] - z[:n_positive, None] + 1
    gradient = np.concatenate([-(hits > 0).sum(axis=1), (hits > 0).sum(axis=0)]).astype(float)
    return np.maximum(hits, 0).sum(), gradient


_LOSSES = {"margin": _margin, "softmax": _softmax, "triplet": _triplet}


def _slow_loss(loss, scores, own, mu):
    """Return the loss of all scores of an instance with labels `own`, and its gradient."""
    own = list(own)
    order = own + [k for k in range(len(scores)) if k not in own]
    value, gradient = _LOSSES[loss](np.asarray(scores, np.float64)[order], len(own), mu)
    out = np.empty(len(scores))
    out[order] = gradient
    return value, out


def _algorithm_2(loss_of, z, sets, labels, tau, n_rounds):
    """Return z~, Lambda, the loss and the gradient of some labels by algorithm 2, line by line.

    `z` (n_blocks, n_labels) are all scores, `sets` the labels that each block keeps, positives
    included; `labels` take part, positives first: with a score of 0 where a block keeps them not.
    """
    n_blocks = len(z)
    kept = np.array([[z[j, k] * (k in sets[j]) for k in labels] for j in range(n_blocks)])
    messages = np.zeros_like(kept)

    def evaluate():
        found = [loss_of(n_blocks * row) for row in kept + messages]
        return np.mean([value for value, *_ in found]), np.array([g for _, g, *_ in found])

    for t in range(1, n_rounds + 1):
        active = (abs(evaluate()[1]) > tau).any(axis=0)
        aim = kept.sum(axis=0) / n_blocks - kept
        step = 2 / (t + 2)
        messages[:, active] = (step * aim + (1 - step) * messages)[:, active]
    value, gradients = evaluate()
    return kept, messages, value, gradients.mean(axis=0)


def _make(loss="margin", sampled_epochs=0.2, average=True, **parameters):
    training._SAMPLED_EPOCHS, training._POWER = sampled_epochs, 4 if average else np.inf
    own = {
        "gradient": "exact",
        "embedding_dim": 6,
        "learning_rate": 1.0,
        "max_iter": 3,
        "dropout": 0.0,
        "random_state": 0,
    }
    return DecompMIPSClassifier(loss, **{**own, **parameters})


@pytest.fixture(autouse=True)
def _constants():
    """Restore what ``make`` has set."""
    before = training._SAMPLED_EPOCHS, training._POWER
    yield
    training._SAMPLED_EPOCHS, training._POWER = before


@pytest.fixture(scope="session")
def make():
    """Return a function that makes an estimator: exact gradients, few epochs, a hidden layer of 6.

    Two constants of training can be given as well, and hold until the next estimator is made:
    `sampled_epochs`, and ``average=False`` for the weights of the last step.
    """
    return _make


@pytest.fixture(scope="session")
def algorithm_2():
    """Return a function of the scores of an instance by block: greedy message passing."""
    return _algorithm_2


@pytest.fixture(scope="session")
def slow_loss():
    """Return a function of a loss by name, all scores, the labels that hold and the smoothing."""
    return _slow_loss

"""U-max and implicit steps in plain numpy and scipy, one instance at a time.

Written as one writes them down from the paper [1]_: they are the slow twin that compiled steps are
timed against.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import lambertw


def umax_steps(
    X: Any,
    y: np.ndarray,
    W: np.ndarray,
    u: np.ndarray,
    order: np.ndarray,
    rate: float,
    n_negatives: int,
    delta: float,
    rng: np.random.Generator,
) -> None:
    """Make a step of algorithm 2 for each instance of `order`.

    Parameters
    ----------
    X : csr_array of shape (n, n_features)
        Instances.
    y : ndarray of int of shape (n,)
        Classes.
    W : ndarray of shape (n_classes, n_features)
        Weights, changed in place.
    u : ndarray of float64 of shape (n,)
        Normalisers, changed in place.
    order : ndarray of int
        Instances of the steps.
    rate : float
        Learning rate times n.
    n_negatives : int
        Classes sampled at each step.
    delta : float
        Threshold of the lift.
    rng : numpy.random.Generator
        Source of the classes.
    """
    n_classes = len(W)
    for i in order:
        start, stop = X.indptr[i], X.indptr[i + 1]
        features, values = X.indices[start:stop], X.data[start:stop]
        drawn = rng.choice(n_classes - 1, n_negatives, replace=False)
        drawn += drawn >= y[i]
        own = W[y[i], features] @ values
        scores = W[np.ix_(drawn, features)] @ values - own
        proven = np.log1p(np.exp(scores).sum())
        if u[i] < proven - delta:
            u[i] = proven
        p = rate * (n_classes - 1) / n_negatives * np.exp(scores - u[i])
        W[np.ix_(drawn, features)] -= np.outer(p, values)
        W[y[i], features] += p.sum() * values
        u[i] -= rate * (1 - np.exp(-u[i])) - p.sum()


def implicit_steps(
    X: Any,
    y: np.ndarray,
    W: np.ndarray,
    u: np.ndarray,
    order: np.ndarray,
    rate: float,
    rng: np.random.Generator,
) -> None:
    """Make a step of algorithm 1 for each instance of `order`; see ``umax_steps``.

    As printed, with Brent's method and Lambert's W: it overflows where exp(rate) does.
    """
    n_classes = len(W)
    for i in order:
        start, stop = X.indptr[i], X.indptr[i + 1]
        features, values = X.indices[start:stop], X.data[start:stop]
        k = rng.integers(n_classes - 1)
        k += k >= y[i]
        q = (W[k, features] - W[y[i], features]) @ values
        gamma = 0.5 / (values @ values)
        factor = rate * (n_classes - 1) / gamma
        old = u[i]

        def slope(v: float, factor: float = factor, q: float = q, g: float = gamma, o=old) -> float:
            a = lambertw(factor * np.exp(q - v)).real
            return rate - rate * np.exp(-v) + (v - o) - g * a

        if slope(old) < 0:
            bound = lambertw(rate * np.exp(rate - old) * (1 + (n_classes - 1) * np.exp(q))).real
            low, high = old, old + bound - rate
        else:
            exponent = q - rate / gamma
            bound = lambertw(
                rate * np.exp(rate - old) * (1 + (n_classes - 1) * np.exp(exponent))
            ).real
            low, high = old + bound - rate, old
        u[i] = brentq(slope, low - 1e-6, high + 1e-6)
        move = gamma * lambertw(factor * np.exp(q - u[i])).real
        W[k, features] -= move * values
        W[y[i], features] += move * values

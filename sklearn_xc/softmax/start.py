"""Initial weights: a multiple of the shrunken means of the classes.

A class starts at ``eta * sum_i x_i / (n_k + c)`` over its n_k instances, which costs one pass over
X. Both eta and c minimise the log-loss of a few hundred training instances, each left out of the
sums of its own classes, so that it is an estimate for new instances.

Class means are longer for frequent classes already. With intercepts at the log frequencies, the
log-loss is low, but frequent classes come first too often. So intercepts start at a quarter of
them, or at all of them if means with a quarter are no better than guessing.
"""

import numpy as np

from sklearn_xc._input.data import read_only
from sklearn_xc._weights.class_weights import ClassWeights
from sklearn_xc.softmax.kernels.epoch import add_class_sums
from sklearn_xc.softmax.pairs import log_losses_of_intercept
from sklearn_xc.softmax.problem import SoftmaxProblem, typical_weight
from sklearn_xc.softmax.state import SoftmaxState

#: Values of c to try.
_PRIORS = (1.0, 3.0, 10.0, 30.0, 100.0)
#: Instances whose log-loss decides; fewer if they have more scores than this, but not below the
#: least.
_ROWS = 512
_SCORES = 2**21
_FEWEST_ROWS = 32
#: Parts of the log frequencies for the intercepts: the first that is better than guessing.
_SHARES = (0.25, 1.0)
_MAX_STEPS = 40
_TOLERANCE = 1e-3


def start_at_means(
    problem: SoftmaxProblem, state: SoftmaxState, seed: int, n_jobs: int | None
) -> None:
    """Move weights from 0 to the means of the classes, and all u to the log-loss that they have.

    Intercepts, if there are, may move from the log frequencies to a part of them.

    Parameters
    ----------
    problem : SoftmaxProblem
        The data.
    state : SoftmaxState
        With weights of 0; unchanged if the means are no better.
    seed : int
        Of the choice of instances.
    n_jobs : int or None
        Threads.
    """
    X, K = problem.instances, problem.n_classes
    observed = problem.weight / typical_weight(problem.weight)
    add_class_sums(X.arrays, problem.rows, problem.classes, read_only(observed), state.V)
    mass = np.bincount(problem.classes, observed, minlength=K)
    n_rows = min(_ROWS, max(_FEWEST_ROWS, _SCORES // K))
    by_content = problem.rows[np.sort(np.unique(problem.rows, return_index=True)[1])]
    chosen = np.random.default_rng((seed, 2**32 + 2)).permutation(by_content)[:n_rows]
    place = np.full(X.shape[0], -1)
    place[chosen] = np.arange(len(chosen))
    pairs = np.flatnonzero(place[problem.rows] >= 0)
    at, classes = place[problem.rows[pairs]], problem.classes[pairs]
    weight = observed[pairs]
    guesses = log_losses_of_intercept(state.intercept, classes)
    least = 0.999 * float(np.average(guesses, weights=weight))
    try:
        sums = ClassWeights(state.V).scores(X.take(chosen), n_jobs)
    except FloatingPointError:  # too large for the means to be of use
        sums = np.full((len(chosen), K), np.nan)
    without = sums[at, classes] - weight * problem.squared_norms[problem.rows[pairs]]
    shares = _SHARES if state.intercept.any() else (1.0,)
    for share in shares if np.isfinite(without).all() else ():
        offset = share * state.intercept
        best_loss = least
        best_scale = None
        for prior in _PRIORS:
            means = sums / (mass + prior).astype(sums.dtype)
            means[at, classes] = without / (np.maximum(mass[classes] - weight, 0.0) + prior)
            eta, loss = best_multiple(means, at, classes, weight, offset)
            if eta > 0 and loss < best_loss:
                best_loss = loss
                best_scale = eta / (mass + prior)
        if best_scale is not None:
            state.scale[:], state.intercept[:], state.u[:] = best_scale, offset, best_loss
            return
    state.V[:] = 0


def best_multiple(
    scores: np.ndarray,
    at: np.ndarray,
    classes: np.ndarray,
    weight: np.ndarray,
    offset: np.ndarray,
) -> tuple[float, float]:
    """Return the factor on scores with the lowest log-loss of pairs, and that log-loss.

    The factor is 0 if no positive one lowers the log-loss. An `offset` of shape (n_classes,) is
    added to the scores. The log-loss is convex in the factor: Newton's method between bounds, from
    0.
    """
    scores = scores - scores.max(axis=1, keepdims=True)
    largest = float(np.abs(scores).max())
    if not 0.0 < largest < np.inf:
        return 0.0, np.inf
    unit = 2.0 ** np.floor(np.log2(largest))
    scores /= scores.dtype.type(unit)
    offset = (offset - offset.max()).astype(scores.dtype)
    own = scores[at, classes].astype(np.float64)
    own_offset = offset[classes].astype(np.float64)
    weight = weight / weight.sum()
    low, high, eta = 0.0, np.inf, 0.0
    powers = np.empty_like(scores)
    for _ in range(_MAX_STEPS):
        np.multiply(scores, scores.dtype.type(eta), out=powers)
        powers += offset
        np.exp(powers, out=powers)
        totals = powers.sum(axis=1, dtype=np.float64)
        powers *= scores
        mean = powers.sum(axis=1, dtype=np.float64) / totals
        powers *= scores
        square = powers.sum(axis=1, dtype=np.float64) / totals
        found = eta / unit, float(weight @ (np.log(totals)[at] - eta * own - own_offset))
        slope = float(weight @ (mean[at] - own))
        curvature = float(weight @ (square - mean**2)[at])
        low, high = (low, eta) if slope > 0 else (eta, high)
        new = eta - slope / curvature if curvature > 0 else np.inf
        if new > 4.0 * eta > 0:  # far from the optimum the parabola says little
            new = 4.0 * eta
        if not low < new < high:
            new = 0.5 * (low + high)
        if not abs(new - eta) > _TOLERANCE * eta or new == np.inf:
            break
        eta = new
    return found

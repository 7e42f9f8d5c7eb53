"""Where a fit starts: at a multiple of the shrunken means of the classes.

A class begins at ``eta * sum_i x_i / (n_k + c)`` over its n_k instances, which costs one pass over
X. Both numbers minimise the log-loss of a few hundred training instances, each with itself left out
of the sums of its own classes: so that it is an estimate for new instances.

Beside means, intercepts at the log frequencies count what is frequent twice: the log-loss is low,
but frequent classes come first too often. A quarter of them is left, or all where means beside a
quarter are no better than guessing.
"""

import numpy as np

from sklearn_xc._data import read_only
from sklearn_xc.kernels.rows.class_sums import add_class_sums
from sklearn_xc.softmax.factor import best_factor
from sklearn_xc.softmax.pairs import log_losses_of_intercept
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem, usual_weight
from sklearn_xc.solvers.softmax_sgd import SoftmaxState
from sklearn_xc.weights.class_weights import ClassWeights

#: Values of c to try.
_PRIORS = (1.0, 3.0, 10.0, 30.0, 100.0)
#: Instances whose log-loss decides, and scores of theirs at most, for at least so many instances.
_ROWS, _SCORES, _FEWEST_ROWS = 512, 2**21, 32
#: Of the log frequencies, in the intercepts: the first that is better than guessing.
_SHARES = (0.25, 1.0)


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
        With weights of 0. It is left as it is where the means are no better than these.
    seed : int
        Of the choice of instances.
    n_jobs : int or None
        Threads.
    """
    X, K = problem.instances, problem.n_classes
    observed = problem.weight / usual_weight(problem.weight)
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
        offset, best_loss, best_scale = share * state.intercept, least, None
        for prior in _PRIORS:
            means = sums / (mass + prior).astype(sums.dtype)
            means[at, classes] = without / (np.maximum(mass[classes] - weight, 0.0) + prior)
            eta, loss = best_factor(means, at, classes, weight, offset)
            if eta > 0 and loss < best_loss:
                best_loss, best_scale = loss, eta / (mass + prior)
        if best_scale is not None:
            state.scale[:], state.intercept[:], state.u[:] = best_scale, offset, best_loss
            return
    state.V[:] = 0

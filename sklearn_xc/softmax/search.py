"""``learning_rate="auto"``: the best of seven powers of ten on a tenth of the data.

Source: section 4.1 of [1]_; differs in that small data are not cut below a thousand pairs.

References
----------
.. [1] F. Fagan and G. Iyengar, "Unbiased scalable softmax optimization", arXiv:1803.08577, 2018.
"""

from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed

from sklearn_xc.parallel.interrupt import StopFlag
from sklearn_xc.parallel.memory import available_bytes
from sklearn_xc.parallel.threads import count_threads
from sklearn_xc.softmax.training import train
from sklearn_xc.solvers.schedule import Schedule
from sklearn_xc.solvers.softmax_problem import SoftmaxProblem
from sklearn_xc.solvers.softmax_sgd import SgdSettings, SoftmaxState
from sklearn_xc.weights.class_weights import ClassWeights

#: Learning rates to try, for each pair of a step.
GRID = 10.0 ** np.arange(-3, 4)
_SHARE = 0.1
_FEWEST = 1000


def search_rate(
    problem: SoftmaxProblem,
    start: SoftmaxState,
    settings: SgdSettings,
    decay: float | str,
    max_iter: int,
    rates: np.ndarray,
    log_loss: Callable[[ClassWeights, SoftmaxProblem], float],
    n_jobs: int | None,
    show: Callable[[float, float], None] | None = None,
) -> float:
    """Return the learning rate whose trial ends with the lowest log-loss.

    Parameters
    ----------
    problem : SoftmaxProblem
        All data; a tenth of the pairs, drawn by the seed, is trained on.
    start : SoftmaxState
        Of all data, where each trial starts; not changed.
    settings, decay, max_iter
        Of the fit: a trial has as many epochs.
    rates : ndarray of shape (n_rates,)
        Learning rates, in units of 1 / (total weight).
    log_loss : callable
        Gives the log-loss of weights, for the data of the trials.
    n_jobs : int or None
        Trials at a time; fewer where their weights would not fit into half of the free memory.
    show : callable, default=None
        Called with each rate and the log-loss of its trial, inf if it diverged.

    Returns
    -------
    float
        In units of 1 / (total weight).

    Raises
    ------
    FloatingPointError
        If all trials diverge.
    """
    n = problem.n_pairs
    size = min(n, max(_FEWEST, int(np.ceil(_SHARE * n))))
    chosen = np.sort(np.random.default_rng(settings.seed).permutation(n)[:size])
    part = problem.take(chosen)

    stop = StopFlag()

    def trial(rate: float) -> float:
        state = start.copy_of(chosen)
        try:
            schedule = Schedule(rate, decay)
            W, b, _ = train(part, state, settings, schedule, max_iter, n_jobs=1, stop=stop)
            loss = np.inf if stop.is_set() else log_loss(ClassWeights(W, intercept=b), part)
        except FloatingPointError:
            return np.inf
        return loss if np.isfinite(loss) else np.inf

    free = available_bytes()
    fitting = 1 if free is None else max(1, int(free / 2) // max(1, start.V.nbytes))
    workers = min(count_threads(n_jobs), fitting)
    try:
        losses = Parallel(n_jobs=workers, require="sharedmem")(
            delayed(trial)(rate) for rate in rates
        )
    except BaseException:  # an interrupt is heard by this thread alone
        stop.set()
        raise
    if show is not None:
        for rate, loss in zip(rates, losses, strict=True):
            show(float(rate), float(loss))
    if not np.isfinite(losses).any():
        raise FloatingPointError("no learning rate of the search converges")
    return float(rates[int(np.argmin(losses))])

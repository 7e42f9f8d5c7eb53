"""The one way in which estimators draw seeds."""

from typing import Any

from sklearn.utils import check_random_state


def draw_seed(random_state: Any) -> int:
    """Return a seed from `random_state`, as scikit-learn reads it: int, RandomState or None.

    All that is random in a fit follows from one such number, by ``numpy.random.default_rng((seed,
    what))``, so that nothing depends on the number of threads or on what else was drawn.
    """
    return int(check_random_state(random_state).randint(2**31 - 1))

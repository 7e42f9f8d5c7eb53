"""Seeds of estimators."""

from typing import Any

from sklearn.utils import check_random_state


def draw_seed(random_state: Any) -> int:
    """Return a seed from `random_state`: int, RandomState or None, as in scikit-learn.

    All random numbers of a fit come from ``numpy.random.default_rng((seed, key))``, independent of
    the number of threads and of other draws.
    """
    return int(check_random_state(random_state).randint(2**31 - 1))

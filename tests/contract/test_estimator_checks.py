"""scikit-learn's own checks; the registry says which are expected to fail, and why."""

import pytest
from registry import ENTRIES
from sklearn.utils.estimator_checks import parametrize_with_checks

CHECKED = [entry.bare(**parameters) for entry in ENTRIES.values() for parameters in entry.checked]


def unmet(estimator):
    return dict(next(e.unmet for e in ENTRIES.values() if e.estimator is type(estimator)))


# The checks' tiny problems have tiny weights.
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
# Some have features of any scale, on which U-max has no good learning rate, or two rows to judge
# rates by, and estimators say so.
@pytest.mark.filterwarnings(
    "ignore:.*(is too high|the last rate|was still falling):sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks(CHECKED, expected_failed_checks=unmet)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

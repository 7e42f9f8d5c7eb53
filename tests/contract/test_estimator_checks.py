"""scikit-learn's own checks; the registry says which are expected to fail, and why."""

import pytest
from registry import ENTRIES
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

#: One of each class, and those whose further parameters have other code trained.
FIRST = [one.bare(**one.checked[0]) for one in ENTRIES.values() if one.checked]
FURTHER = [(n, parameters) for n, one in ENTRIES.items() for parameters in one.checked[1:]]

# The checks' tiny problems have tiny weights.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning"),
    # Some have features of any scale, on which U-max has no good learning rate, or two rows to
    # judge rates by, and estimators say so.
    pytest.mark.filterwarnings(
        "ignore:.*(is too high|the last rate|was still falling)"
        ":sklearn.exceptions.ConvergenceWarning"
    ),
]


def unmet(estimator):
    return dict(next(e.unmet for e in ENTRIES.values() if e.estimator is type(estimator)))


@parametrize_with_checks(FIRST, expected_failed_checks=unmet)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("name", "parameters"), FURTHER, ids=[name for name, _ in FURTHER])
def test_with_further_parameters(name, parameters):
    """The first check that fails is raised."""
    check_estimator(ENTRIES[name].bare(**parameters), on_skip=None)

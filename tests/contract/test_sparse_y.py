"""The checks of a sparse y for others' estimators, to the bit, on ours."""

import pytest
from registry import ENTRIES

from sklearn_xc.testing import sparse_checks_generator

CASES = [
    pytest.param(name, check, id=f"{name}-{check.func.__name__}")
    for name, entry in ENTRIES.items()
    for _, check in sparse_checks_generator(entry.make(), rtol=0.0)
]


@pytest.mark.parametrize(("name", "check"), CASES)
# A few epochs end where they began, the checks' problems have tiny weights.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.RecallWarning")
def test_sparse_targets(name, check, monkeypatch):
    entry, parameters = ENTRIES[name], {}
    if check.func.__name__ == "check_no_dense_array":
        # Bounded pieces of scores, here smaller than all scores of so few rows.
        monkeypatch.setattr("sklearn_xc.weights.class_weights._SCORES_PER_TASK", 2**20)
        if entry.many_labels is None:
            pytest.skip("draws and clusters all labels: minutes")
        parameters = entry.many_labels
    check(entry.make(**parameters))

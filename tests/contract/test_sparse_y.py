"""The checks of a sparse y on every estimator, to the bit."""

import pytest
from checks import CHECKS
from registry import ENTRIES


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
# A few epochs end where they began, the checks' problems have tiny weights.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.PruningWarning")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.RecallWarning")
def test_sparse_targets(name, check, monkeypatch):
    entry, parameters = ENTRIES[name], {}
    if check.__name__ == "check_no_dense_array":
        # Bounded pieces of scores, here smaller than all scores of so few rows.
        monkeypatch.setattr("sklearn_xc._weights.class_weights._SCORES_PER_TASK", 2**20)
        if entry.many_labels is None:
            pytest.skip("draws and clusters all labels: minutes")
        parameters = entry.many_labels
    check(name, entry.make(**parameters))

"""The experiment on saved models runs, and opens each kind in each number of processes."""

import sys

import pytest

from asv_bench.library import saved_models


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.UnseenLabelWarning")
def test_it_runs():
    rows = saved_models.main(labels=40, processes=(1, 2), samples=600, features=300)
    kinds = ["save", "joblib, mapped", "joblib", "pickle"]
    assert [(row["kind"], row["n_processes"]) for row in rows] == [
        (kind, n) for kind in kinds for n in (1, 2)
    ]
    assert all(row["open_ms"] > 0 and row["row_ms"] > 0 for row in rows)

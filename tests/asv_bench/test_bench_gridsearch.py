import pytest

from asv_bench.library import gridsearch


def check_row(row):
    assert row["n_labels"] == 400
    assert 0 < row["n_distinct"] <= row["n_used"] + 1
    assert 20 < row["imports_mib"] <= row["data_mib"] <= row["peak_mib"]
    assert row["wall_s"] >= row["refit_s"] > 0
    assert row["best_C"] in (0.3, 1.0)
    assert 0 <= row["P@1"] <= 100


@pytest.mark.slow
def test_search_runs_in_a_fresh_process(capsys):
    ballast = bytearray(3 * 2**28)
    ballast[:: 2**12] = b"1" * (3 * 2**16)  # touched, so that this process holds it
    (row,) = gridsearch.main(labels=400, samples=120, features=80, estimators=("OvALinearXC",))
    del ballast
    check_row(row)
    assert row["peak_mib"] < 768
    printed = capsys.readouterr().out
    assert "peak MiB" in printed
    assert "120 rows x 80 features" in printed


@pytest.mark.parametrize("estimator", gridsearch.ESTIMATORS)
def test_row_of_each_estimator(estimator):
    row = gridsearch.measure_search(estimator, 400, 120, 80)
    check_row(row)
    assert row["estimator"] == estimator

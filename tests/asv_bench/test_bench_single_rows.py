import pytest

from asv_bench.library import single_rows


@pytest.mark.filterwarnings("ignore")
def test_a_row_for_each_system(capsys):
    systems = ["one-vs-all", "NGAME, product"]
    rows = single_rows.main(sets=["tate"], size="1/16", systems=systems, rows=20)
    assert [row["estimator"] for row in rows] == systems
    assert all(0 < row["p50"] <= row["p99"] and row["batch"] > 0 for row in rows)
    assert "p99 ms" in capsys.readouterr().out

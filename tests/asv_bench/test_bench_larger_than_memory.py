"""X, then the model, several times as large as ``max_memory``."""

import sys

import pytest

from asv_bench.library import larger_than_memory


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_fit_and_a_model_larger_than_memory(capsys):
    rows = larger_than_memory.main(times=10, model_budget=20, model_labels=20_000)
    assert not [row["error"] for row in rows if row.get("error")]
    by_what = {row["what"]: row for row in rows}
    assert len(by_what) == 6
    assert by_what["fit"]["x_mib"] == pytest.approx(320, rel=0.01)
    assert by_what["fit, save"]["model_mib"] > 5 * 20
    for what in ("fit", "fit, save", "open, answer"):
        row, free = by_what[what], by_what[f"{what} without a limit"]
        assert row["model"] == free["model"]
        assert row["anonymous_mib"] < 1.4 * row["budget_mib"]
    assert by_what["fit, save without a limit"]["anonymous_mib"] > 100
    assert "20,000 labels of two rows each" in capsys.readouterr().out

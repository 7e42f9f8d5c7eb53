"""The example of a server answers, and its experiment runs."""

import pytest

pytestmark = pytest.mark.slow
for name in ("fastapi", "uvicorn"):
    pytest.importorskip(name, reason=f"{name} is not installed")


def test_it_runs(capsys):
    from asv_bench.library import serving

    rows = serving.main(clients=(1, 4), requests=40, rows=2_000, starts=2)
    assert [row["n_requests"] for row in rows] == [40, 40]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in rows)
    assert "to its first answer: median" in capsys.readouterr().out

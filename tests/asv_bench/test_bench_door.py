import pytest

from asv_bench.library import door
from sklearn_xc import _checks, _sparse_input


@pytest.mark.slow
def test_each_call_has_its_share(capsys):
    check = _checks.check_sparse
    rows = door.main(n_train_rows=60, repeats=1, n_many=40)
    calls = {row["call"]: row for row in rows}
    assert set(calls) == {
        "OvALinearXC.fit", "SoftmaxUMax.fit, 2 epochs", "predict_topk, 40 rows", "precision_at_k",
        "dump_xmc_file", "load_xmc_file", "predict_topk, 1 row",
    }  # fmt: skip
    for row in rows:
        assert 0 <= row["checks_ms"] < row["ms"]
    assert calls["OvALinearXC.fit"]["checks_ms"] > 0
    assert _checks.check_sparse is check is _sparse_input.check_sparse
    assert "checks, ms" in capsys.readouterr().out

"""What checkpoints cost, on small data: a row for each estimator."""

import os
from types import SimpleNamespace

import pytest

from asv_bench.library import checkpoints
from sklearn_xc.datasets import make_xc_classification


@pytest.mark.skipif(os.name != "posix", reason="forks")
@pytest.mark.filterwarnings("ignore")
def test_a_row_for_each_estimator(monkeypatch, capsys):
    X, Y = make_xc_classification(n_samples=300, n_features=100, n_labels=80, random_state=0)
    split = SimpleNamespace(X_train=X, Y_train=Y)
    monkeypatch.setattr(checkpoints, "load_set", lambda name, data: split)
    (row,) = checkpoints.main(sets=["made"], estimators=["OvALinearXC"], turns=1, rows=250)
    assert (row["set"], row["estimator"]) == ("made", "OvALinearXC")
    assert row["plain_s"] > 0
    assert row["cpu_ratio"] > 0
    assert row["mib"] > 0
    assert "MiB kept" in capsys.readouterr().out

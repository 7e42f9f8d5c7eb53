"""Sizes of compact models."""

import sys

import pytest

from asv_bench.common.data import SETS, SplitSet
from asv_bench.library import model_size
from sklearn_xc.datasets import make_xc_classification


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_a_row_for_either_model(monkeypatch, tmp_path):
    X, Y = make_xc_classification(
        n_samples=300, n_features=200, n_labels=60, random_state=0, return_X_y=True
    )
    made = SplitSet("bibtex", X[:200], Y[:200], X[200:], Y[200:])
    monkeypatch.setitem(SETS, "bibtex", lambda name, data, dtype: made)
    for _ in range(2):  # the second time the model is there
        big, small = model_size.main(None, sets=["bibtex"], n_rows=20, models=tmp_path)
        assert (big["model"], small["model"]) == ("float", "compact")
        assert small["mib"] < big["mib"]
        assert small["weight_bytes"] < big["weight_bytes"] / 2
        assert abs(small["p1"] - big["p1"]) < 0.1
        assert small["row_ms"] > 0
        assert big["batch_ms"] > 0

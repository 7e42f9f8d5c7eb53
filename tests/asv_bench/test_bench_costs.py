import pytest

from asv_bench.library import costs

FEW = {"n_samples": 200, "n_features": 3000, "n_labels": 20, "nnz_per_row": 5}


def test_a_row_for_each_size_beside_the_base(monkeypatch, capsys):
    seen = []

    def in_this_process(function, name, sizes, repeats):
        seen.append(sizes)
        return function(name, sizes, repeats)

    monkeypatch.setattr(costs, "in_fresh_process", in_this_process)
    rows = costs.main(estimators=["ImplicitSoftmaxSGD"], repeats=1, base=FEW)
    assert [row["larger"] for row in rows] == [
        "(base)", "instances", "features", "labels", "non-zeros a row",
    ]  # fmt: skip
    assert seen[0] == FEW
    for size, sizes in zip(FEW, seen[1:], strict=True):
        assert sizes == FEW | {size: 4 * FEW[size]}
    base, *others = rows
    assert base["time_ratio"] == base["model_ratio"] == 1.0
    for row in others:
        assert row["time_ratio"] == row["cpu_s"] / base["cpu_s"]
        assert row["model_ratio"] == row["model_mib"] / base["model_mib"]
    # Dense weights of a softmax: classes times features, and of neither instances nor non-zeros.
    features, labels = others[1], others[2]
    assert features["model_mib"] > 2 * base["model_mib"]
    assert labels["model_mib"] > 2 * base["model_mib"]
    assert "four times the" in capsys.readouterr().out


def test_an_error_names_the_estimator(monkeypatch):
    monkeypatch.setattr(costs, "in_fresh_process", lambda *_: {"error": "ValueError: no"})
    with pytest.raises(RuntimeError, match="OvALinearXC: ValueError: no"):
        costs.main(estimators=["OvALinearXC"])

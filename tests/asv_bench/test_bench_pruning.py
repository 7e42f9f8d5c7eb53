from asv_bench.one_vs_all import pruning


def test_each_threshold_is_compared_with_the_first(capsys):
    rows = pruning.main(sets=["tate"], prune=[0.0, 0.01, 2.0], n_train_rows=150)
    whole, little, nothing = rows
    assert whole["weights"] > little["weights"] > 100 * nothing["weights"]
    assert [row["warns"] for row in rows] == ["no", "no", "yes"]
    assert whole["lost"] == "0.00, 0.00, 0.00"
    assert float(nothing["lost"].split(",")[0]) > 1
    assert 0 < whole["p5"] < whole["p1"] < 100
    assert "lost: P@1, P@5, F1" in capsys.readouterr().out

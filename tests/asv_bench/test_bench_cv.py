import numpy as np
import pytest

from asv_bench.one_vs_all import cv
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification


@pytest.fixture(scope="module")
def made_data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    X, Y = make_xc_classification(
        n_samples=300, n_features=80, n_labels=12, nnz_per_row=10, random_state=0
    )
    (folder / "bibtex").mkdir()
    dump_xmc_file(folder / "bibtex" / "bibtex_train.txt.gz", X[:200], Y[:200])
    dump_xmc_file(folder / "bibtex" / "bibtex_test.txt.gz", X[200:], Y[200:])
    return folder


def test_a_row_per_system(made_data, capsys):
    rows = cv.main(made_data, sets=("bibtex",), folds=3, Cs=5)
    assert [row["system"] for row in rows] == list(cv.SYSTEMS)
    by_system = {row["system"]: row for row in rows}
    for row in rows:
        assert row["n_labels"] == 12
        assert row["scores"].shape == (3, 5)
        assert row["ratio"] == row["cpu_s"] / rows[0]["cpu_s"]
        apart = np.abs(row["scores"] - rows[0]["scores"])
        assert row["points"] == 100 * np.nanmax(apart) <= 8
        assert row["scored"] == np.isfinite(row["scores"]).sum()
        assert row["fits"] > 1
        if row["system"] != "OvALinearXCCV":
            assert row["scored"] == 15
            assert row["score"] == 100 * row["scores"].mean(axis=0).max()
        assert 0 < row["P@1"] <= 100
    np.testing.assert_array_equal(by_system["loop"]["scores"], by_system["GridSearchCV"]["scores"])
    assert by_system["loop"]["P@1"] == by_system["GridSearchCV"]["P@1"]
    printed = capsys.readouterr().out
    assert "bibtex: 3 folds, 5 values of C, 12 labels (200 x 80)" in printed
    assert "ratio to OvALinearXCCV" in printed
    assert "default fits" in printed


def test_fewer_labels_and_systems(made_data):
    (row,) = cv.main(
        made_data, sets=("bibtex",), labels=5, folds=2, Cs=3, systems=("OvALinearXCCV",)
    )
    assert row["n_labels"] == 5
    assert row["scores"].shape == (2, 3)

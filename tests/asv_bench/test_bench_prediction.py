import importlib.util

import numpy as np
import pytest

from asv_bench.__main__ import main
from asv_bench.one_vs_all import prediction
from sklearn_xc.datasets import dump_xmc_file, make_xc_classification


@pytest.fixture(scope="module")
def made_data(tmp_path_factory):
    """Return a folder with made data under the name of a real set."""
    folder = tmp_path_factory.mktemp("data")
    X, Y = make_xc_classification(
        n_samples=300, n_features=80, n_labels=60, nnz_per_row=10, random_state=0
    )
    (folder / "bibtex").mkdir()
    dump_xmc_file(folder / "bibtex" / "bibtex_train.txt.gz", 3 * X[:200], Y[:200])
    dump_xmc_file(folder / "bibtex" / "bibtex_test.txt.gz", 3 * X[200:], Y[200:])
    return folder


SYSTEMS = ["predict_topk", "scipy + argpartition"]
if importlib.util.find_spec("sparse_dot_topn") is not None:
    SYSTEMS.insert(1, "sparse_dot_topn")


def test_every_system_finds_the_same(made_data, capsys):
    rows = prediction.main(made_data, sets=("bibtex",), ks=(1, 3, 999), n_rows=40, prune=0)
    assert sorted({row["k"] for row in rows}) == [1, 3, 60]
    for k in (1, 3, 60):
        own = [row for row in rows if row["k"] == k]
        assert [(row["system"], row["at_once"]) for row in own] == [
            *((system, at_once) for system in SYSTEMS for at_once in (1, 40)),
        ]
        for row in own:
            assert row["rows_per_s"] > 0
            assert ("ms_median" in row) == (row["at_once"] == 1)
            assert row["recall"] == 1
            if row["system"] == SYSTEMS[-1]:
                assert row["ratio"] == 1
    printed = capsys.readouterr().out
    assert "60 labels" in printed
    assert "ms/row p99" in printed


def test_rows_are_counted_on_the_command_line(made_data, capsys):
    options = ["--sets", "bibtex", "--n-train-rows", "150", "--n-rows", "7", "--ks", "2"]
    assert main(["prediction", "--data", str(made_data), *options]) == 0
    printed = capsys.readouterr().out
    assert "trained on 150 rows" in printed


def test_recall_counts_ties_alike(made_data, monkeypatch):
    """A system that returns the worst labels is seen to do so."""
    systems = prediction._systems

    def with_one_that_fails(model, k):
        def worst(X):
            labels, scores = model.predict_topk(X, 60)
            return labels[:, -k:], scores[:, -k:]

        yield "worst", lambda X: X, worst
        yield from systems(model, k)

    monkeypatch.setattr(prediction, "_systems", with_one_that_fails)
    rows = prediction.main(made_data, sets=("bibtex",), ks=(2,), n_rows=10)
    assert rows[0]["system"] == "worst"
    assert rows[0]["recall"] < 0.1
    assert np.isfinite([row["ratio"] for row in rows]).all()

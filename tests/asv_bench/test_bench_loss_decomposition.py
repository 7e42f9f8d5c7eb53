"""The figures and theorems of loss decomposition, at a small size."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from asv_bench.common.data import SplitSet
from asv_bench.common.report import Report
from asv_bench.decomposition import paper, theorems
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.gradients import MessagePassing


def test_part_multiclass(tmp_path, capsys):
    report = Report("loss_decomposition", out=tmp_path)
    rows = paper.main(
        parts=("multiclass",), levels=2, per_class=4, rates=(1.0, 0.1), budget=0.02, report=report
    )
    assert list(dict.fromkeys(row["key"] for row in rows)) == list(paper.METHODS)
    for key in paper.METHODS:
        curve = [row for row in rows if row["key"] == key]
        assert len(curve) == 5  # of the better rate
        assert len({row["learning_rate"] for row in curve}) == 1
        assert curve[-1]["epochs"] >= curve[0]["epochs"] > 0
        for row in curve:
            assert 0 <= row["test"] <= 1
            assert 0 <= row["train"] <= 1
    margin = next(row for row in rows[::-1] if row["key"] == "margin")
    assert margin["speed"] in (1, None)
    out = capsys.readouterr().out
    assert "Table 1" in out
    assert "hierarchy of 100 classes: the end of each curve" in out
    assert (tmp_path / "decomposition_multiclass.png").is_file()


def test_part_multilabel(tmp_path, monkeypatch, capsys):
    X, Y = make_xc_classification(260, 80, 40, random_state=0)
    split = SplitSet("yso_finna_en", X[:200], csr_array(Y[:200]), X[200:], csr_array(Y[200:]))
    monkeypatch.setattr(paper, "load_set", lambda name, data, cache: split)
    report = Report("loss_decomposition", out=tmp_path)
    rows = paper.main(
        parts=("multilabel",), methods=("margin", "printed"), budget=0.02, report=report
    )
    assert [row["key"] for row in rows] == ["margin"] * 5 + ["printed"] * 5
    assert "Table 2" in capsys.readouterr().out
    assert (tmp_path / "decomposition_multilabel.png").is_file()


def test_parameters_are_those_of_the_paper():
    printed = paper.parameters_of("printed", "multilabel", 5000, 0.3)
    assert printed["gradient"] == MessagePassing(1, 4)
    assert printed["loss"].smoothing == 5
    assert printed["learning_rate"] == pytest.approx(1.5)
    assert printed["n_candidates"] == 50
    assert printed["index"].n_clusters == 100
    assert paper.parameters_of("softmax", "multiclass", 5000, 3.0)["learning_rate"] == 3


def test_a_rate_that_diverges_is_no_curve(monkeypatch, capsys):
    monkeypatch.setattr(paper, "follow", lambda *_: [])
    rows = paper.main(parts=("multiclass",), levels=1, methods=("margin",))
    assert rows == []
    assert "diverged" in capsys.readouterr().out


@pytest.fixture(scope="module")
def promised():
    return paper.main(parts=("theorems",), levels=2, per_class=4, instances=3, report=Report())


def test_theorem_1(promised):
    equal, least = (row["value"] for row in promised if "value" in row)
    assert equal < 1e-9
    assert least > -1e-9


def test_theorem_2(promised):
    rows = [row for row in promised if "gap" in row]
    assert [row["rounds"] for row in rows] == [*theorems.ROUNDS] * 2
    for row in rows:
        assert -1e-9 < row["gap"] <= row["bound"]
        assert row["worst"] <= 1
        if row["tau"] == 0:
            assert row["left"] == pytest.approx(row["left_all"])
        else:
            assert row["left"] >= row["left_all"] - 1e-12


def test_messages_that_add_up_to_nothing_raise_the_objective():
    blocks = theorems.Blocks(np.random.default_rng(0).standard_normal((3, 20)))
    whole, gradient = theorems.loss_of(blocks.scores.sum(axis=0))
    value, gradients = blocks.objective(blocks.targets)
    assert value == pytest.approx(whole)
    np.testing.assert_allclose(gradients, np.tile(gradient, (3, 1)), atol=1e-9)
    assert blocks.objective(np.zeros((3, 20)))[0] >= whole

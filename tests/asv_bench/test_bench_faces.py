"""The experiment with made faces, at a small size."""

import numpy as np
import pytest
from scipy.special import logsumexp

from asv_bench.__main__ import main
from asv_bench.common.report import Report
from asv_bench.decomposition import faces

SMALL = {"n_classes": 60, "dim": 12, "per_class": 4, "spread": 0.1, "n_test": 80}
OPTIONS = {"classes": (60,), "dim": (12,), "per_class": (4,), "spread": (0.1,), "held_out": (80,)}


@pytest.fixture(scope="module")
def made():
    return faces.make_faces(**SMALL)


def test_faces_have_norm_1_and_nuisance_directions(made):
    assert made.X_train.shape == (240, 12)
    assert made.X_test.shape == (80, 12)
    assert made.X_train.dtype == made.own.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made.X_train, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(np.bincount(made.y_train), np.full(60, 4))
    np.testing.assert_allclose(made.own.T @ made.own, np.eye(9), atol=1e-5)
    # Means differ where classes do, and hardly elsewhere.
    means = made.X_train.reshape(60, 4, 12).mean(axis=1)
    along = np.square(means @ made.own).sum() / 9
    across = (np.square(means).sum() - 9 * along) / 3
    assert along > 3 * across
    plain, best = (row["accuracy"] for row in faces.nearest_means(made))
    assert best > plain > 1 / 60


def test_accuracy_and_loss_are_those_of_all_scores(monkeypatch):
    rng = np.random.default_rng(0)
    V, W, b = rng.normal(size=(11, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    y = rng.integers(0, 7, 11)
    monkeypatch.setattr(faces, "_TOGETHER", 30)
    accuracy, loss = faces.judge(V, W, b, y, with_loss=True)
    scores = V @ W.T + b
    assert accuracy == np.mean(scores.argmax(axis=1) == y)
    assert loss == pytest.approx(np.mean(logsumexp(scores, axis=1) - scores[np.arange(11), y]))
    assert faces.judge(V, W, b, y) == (accuracy, None)


def test_each_method_has_its_curve(tmp_path, monkeypatch, capsys):
    options = {**OPTIONS, "parts": ("progress",), "budget": (0.02,)}
    rows = faces.main(**options, report=Report("faces", out=tmp_path))
    keys = list(dict.fromkeys(row["key"] for row in rows))
    assert keys == ["nearest_mean", "best_mean", *faces.METHODS]
    for row in rows:
        assert 0 <= row["accuracy"] <= 1
        if row["key"] in faces.METHODS:
            assert (row["loss"] is None) == row["key"].startswith("triplet")
    assert (tmp_path / "faces.png").is_file()
    assert "At the end of each curve, 60 classes" in capsys.readouterr().out
    # A run that was stopped goes on from what is kept.
    monkeypatch.setattr(faces, "follow", None)
    assert faces.main(**options, report=Report("faces", out=tmp_path)) == rows


def test_an_epoch_is_as_long_as_it_would_be_at_the_last_speed():
    points = [{"cpu_s": 2.0, "epochs": 0.5}, {"cpu_s": 8.0, "epochs": 0.75}]
    first, second = faces.with_speed("exact", points)
    assert first["epoch_s"] is None
    assert second == {**first, **points[1], "epoch_s": pytest.approx(24.0)}


def test_large_sets_have_fewer_methods(monkeypatch):
    monkeypatch.setattr(faces, "_MANY", 50)
    few = {"methods": ("mips", "decomp_mips"), "budget": (0.01,)}
    rows = faces.main(**{**OPTIONS, **few, "parts": ("progress",)})
    assert {row["key"] for row in rows} - {"nearest_mean", "best_mean"} == {"decomp_mips"}


def test_a_curve_that_diverges_ends(made):
    task = {**SMALL, "key": "decomp_mips", "rate_factor": 3e37, "budget": 1.0}
    assert not list(faces.follow(made, task | {"candidates": 20, "sampled_epochs": 0.1}))


def test_metrics_beside_each_other_with_defaults(monkeypatch):
    few = (
        [made.X_train, made.X_test, made.y_train, made.y_test]
        if (made := faces.make_faces(8, 12, 9, 0.1, n_test=40))
        else []
    )
    monkeypatch.setattr(faces, "small_sets", lambda: [("faces", few)])
    rows = faces.measure_defaults(Report())
    assert [row["loss"] for row in rows] == list(faces.LOSSES)
    for row in rows:
        assert all(row[metric] > 0.5 for metric in faces.METRICS)


def test_on_the_command_line(tmp_path):
    options = ["--parts", "progress", "--classes", "40", "50", "--dim", "8", "--budget", "0.01"]
    options += ["--methods", "decomp_mips", "--held-out", "20", "--markdown"]
    assert main(["faces", *options, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "faces.md").read_text().count("| inner product, decomp_mips") == 2 * (1 + 4)
    assert len((tmp_path / "faces.jsonl").read_text().splitlines()) == 2

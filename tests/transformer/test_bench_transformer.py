"""The experiment on transformers, at a small size."""

import gzip
import lzma

import numpy as np
import pytest
from tiny import WORDS

from asv_bench.__main__ import main
from asv_bench.common.report import Report
from asv_bench.embedding import transformer

N_LABELS = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with titles of one label each; a word of four tells it."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    (folder / "yso_finna_en").mkdir()
    for part, n in (("train", 260), ("test", 60)):
        with lzma.open(folder / "yso_finna_en" / f"{part}.tsv.xz", "wt") as file:
            # Nothing is known of the last label but its name.
            for label in rng.integers(0, N_LABELS - (part == "train"), n):
                words = [WORDS[label], *rng.choice(WORDS[N_LABELS:], 3)]
                file.write(f"{' '.join(words)}\t{label}\n")
    with gzip.open(folder / "yso_finna_en" / "labels.tsv.gz", "wt") as file:
        file.write("label\turi\tname\n")
        file.writelines(f"{i}\tu{i}\t{WORDS[i]}\n" for i in range(N_LABELS))
    return folder


def test_systems_are_compared(data, folders, tmp_path, capsys):
    options = {"parts": ("frozen",), "sets": ("yso_finna_en",), "model": folders["bert"]}
    report = Report("transformer", out=tmp_path / "out")
    rows = transformer.main(data, **options, cache=tmp_path, report=report)
    assert [row["system"] for row in rows] == list(transformer.SYSTEMS)
    found = {row["system"]: row for row in rows}
    for row in rows:
        assert 0 <= row["P@1"] <= 100
        assert row["cpu_s"] > row["embed_s"] >= 0
    assert found["one-vs-all"]["P@1"] > 80
    assert found["one-vs-all"]["unseen"] == 0
    assert found["frozen"]["P@1"] > found["frozen, no features"]["P@1"] - 10
    assert found["frozen"]["embed_s"] > 0
    assert found["bag"]["embed_s"] == 0
    assert "260 training texts, 20 labels, 60 test texts" in capsys.readouterr().out
    # A run that was stopped goes on from what is kept.
    assert transformer.main(data, **options, cache=tmp_path, report=report) == rows


def test_mini_batches_are_compared(data, folders, monkeypatch):
    options = {"parts": ("tuned",), "sets": ("yso_finna_en",), "model": folders["bert"]}
    rows = transformer.main(data, **options, few=200, epochs=3, batch_size=16, seeds=1, rate=1e-3)
    assert [row["system"] for row in rows] == list(transformer.TUNINGS)
    frozen, at_random, ngame = rows
    assert np.isnan(frozen["hits"])
    assert np.isnan(frozen["violations"])
    assert 0 < at_random["hits"] <= 1
    assert 0 < ngame["hits"] <= 1
    assert min(at_random["embedding P@1"], ngame["embedding P@1"]) > frozen["embedding P@1"]


def test_hits_are_counted():
    """Two mini-batches of two instances; of each the eleven other labels are scored."""

    class State:
        positives = (np.arange(5), np.array([0, 1, 2, 3]))

        def instances(self):
            return np.eye(4, 12)

        def labels(self):
            Z = np.eye(12)
            Z[1, 0] = 0.9  # label 1 is near instance 0, label 11 near none
            Z[11] = -1
            return Z

    # Ten of eleven wrong labels are the hardest: all but label 11; each has its neighbour's.
    found = transformer._hits([np.array([0, 1]), np.array([2, 3])], State())
    assert found == pytest.approx(4 / 40)


def test_costs(folders):
    encoder = {"model": folders["bert"], "precision": "float32"}
    for what in ("embedding", "training", "training, checkpointed"):
        row = transformer._cost_of_texts(what, 8, encoder, 1)
        assert row["cpu_s"] > 0
        assert row["mib"] >= 0
    row = transformer._cost_of_labels(50, encoder, 1)
    assert row["what"] == "2 epochs of 50 classifiers, 100 texts"
    assert row["cpu_s"] > 0


def test_by_the_command_line(folders, capsys, monkeypatch):
    monkeypatch.setattr(
        transformer, "_in_a_process", lambda name, *given: getattr(transformer, name)(*given)
    )
    main(["transformer", "--parts", "cost", "--lengths", "8", "--labels", "30",
          "--model", folders["bert"]])  # fmt: skip
    printed = capsys.readouterr().out
    assert "training, checkpointed" in printed
    assert "2 epochs of 30 classifiers, 60 texts" in printed

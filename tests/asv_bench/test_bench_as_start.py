"""Word vectors as a start of other models, at a small size."""

import gzip
import lzma

import numpy as np
import pytest

from asv_bench.__main__ import main
from asv_bench.common.report import Report
from asv_bench.embedding.label_texts import load_labelled_set
from asv_bench.skip_gram import as_start
from sklearn_xc.metrics import propensity

#: Words that mean one of four labels each.
MEANING = [[f"{name}{i}" for i in range(6)] for name in ("sea", "sky", "war", "tea")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with titles of one label each, of whose six words they have four."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    (folder / "yso_finna_en").mkdir()
    for part, n in (("train", 300), ("test", 60)):
        with lzma.open(folder / "yso_finna_en" / f"{part}.tsv.xz", "wt") as file:
            for label in rng.integers(0, 4, n):
                file.write(f"{' '.join(rng.choice(MEANING[label], 4))}\t{label}\n")
    with gzip.open(folder / "yso_finna_en" / "labels.tsv.gz", "wt") as file:
        file.write("label\turi\tname\n")
        file.writelines(f"{i}\tu{i}\t{words[0]}\n" for i, words in enumerate(MEANING))
    return folder


def test_starts_are_compared(data, tmp_path, capsys, monkeypatch):
    options = {
        "sets": ("yso_finna_en",), "starts": (as_start.RANDOM, as_start.OWN), "sizes": (40, 160),
        "seeds": 2, "dim": 8, "test": 50,
    }  # fmt: skip
    report, cache = Report("vectors_as_start", out=tmp_path / "out"), tmp_path / "cache"
    rows = as_start.main(data, **options, cache=cache, report=report)
    assert [(row["n"], row["seed"]) for row in rows[::6]] == [(40, 0), (40, 1), (160, 0), (160, 1)]
    assert [(row["model"], row["start"]) for row in rows[:6]] == [
        (model, start) for model in as_start.MODELS for start in options["starts"]
    ]
    for row in rows:
        assert row["n_test"] == 50
        assert row["cpu_s"] > 0
        assert 50 < row["P@1"] <= 100
        # One label each, and propensities that hardly differ.
        assert row["PSP@1"] == pytest.approx(row["P@1"], abs=5)
    printed = capsys.readouterr().out
    assert "vectors of 24 words of yso_finna_en in " in printed
    assert "24 of 24 features have one" in printed
    assert "means of 2 draws of training rows" in printed
    # A run that was stopped goes on from what is kept, with the vectors of before.
    monkeypatch.setattr(as_start, "DecompMIPSSkipGram", None)
    again = as_start.main(data, **options, cache=cache, report=report)
    assert again == rows


def test_rows_are_drawn(data):
    labelled = load_labelled_set("yso_finna_en", data)
    one, same, other = (as_start._Rows.drawn(labelled, 40, seed, 30) for seed in (0, 0, 1))
    assert (one.X - same.X).nnz == 0
    assert (one.X - other.X).nnz > 0
    assert (one.X_test - other.X_test).nnz == 0
    counts = labelled.Y_train.sum(axis=0)
    np.testing.assert_allclose(one.propensities, propensity(counts, 300))
    found = one.start("seen words", {"seen words": np.ones((24, 3), np.float32)})
    np.testing.assert_array_equal(found.any(axis=1), (one.X != 0).sum(axis=0) > 0)
    assert one.start("random", {}) is None
    everything = as_start._Rows.drawn(labelled, 10**6, 0, 10**6)
    assert (everything.X.shape[0], everything.X_test.shape[0]) == (300, 60)


def test_gains_are_over_the_random_start_of_the_same_rows(capsys):
    rows = [
        {"model": "ngame", "n": 10, "start": start, "seed": seed, "cpu_s": 1.0, "n_test": 5,
         "dim": 3, "P@1": at_1, "PSP@1": 2 * at_1}
        for start, values in (("random", (10.0, 30.0)), ("own texts", (11.0, 33.0)))
        for seed, at_1 in enumerate(values)
    ]  # fmt: skip
    as_start._show(rows, "made", Report())
    line = next(line for line in capsys.readouterr().out.splitlines() if "own texts" in line)
    assert line.split()[-7:] == ["22.00", "+2.00", "1.41", "44.00", "+4.00", "2.83", "1.0"]


def test_on_the_command_line(data, tmp_path):
    options = ["--sets", "yso_finna_en", "--starts", "random", "--models", "decomposition"]
    sizes = ["--sizes", "30", "--seeds", "1", "--dim", "4", "--test", "20"]
    out = ["--out", str(tmp_path), "--markdown"]
    assert main(["vectors_as_start", "--data", str(data), *options, *sizes, *out]) == 0
    assert "| DecompMIPSClassifier |" in (tmp_path / "vectors_as_start.md").read_text()

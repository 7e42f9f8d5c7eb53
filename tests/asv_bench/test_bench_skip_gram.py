"""The experiments with word vectors, at a small size."""

import gzip
import lzma
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from asv_bench.__main__ import main
from asv_bench.common.report import Report
from asv_bench.common.runs import row_or_error
from asv_bench.skip_gram import cooccurrence, corpora, objective, similarity
from sklearn_xc import DecompMIPSSkipGram
from sklearn_xc.skip_gram import count_contexts

COLOURS, ANIMALS = ["red", "green", "blue", "grey"], ["cat", "dog", "cow", "hen"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder with made files under the names of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (folder / "corpus").mkdir()
    with zipfile.ZipFile(folder / "corpus" / "brown.zip", "w") as archive:
        for name in ("ca02", "ca01"):
            lines = [
                " ".join(f"{word.title()}/nn" for word in rng.permutation(words)) + f" ./. {name}/x"
                for words in (COLOURS, ANIMALS) * 60
            ]
            archive.writestr(f"brown/{name}", "\n\n\t".join(lines))
        archive.writestr("brown/README", "Not/at a/at text/nn")
    for part in ("valid", "test"):
        with gzip.open(folder / "corpus" / f"wikitext2_{part}.txt.gz", "wt") as file:
            file.write(" \n = Red Cat = \n \n and/or , <unk> \n")
    (folder / "yso_finna_en").mkdir()
    with lzma.open(folder / "yso_finna_en" / "train.tsv.xz", "wt") as file:
        file.write("A cat's red\u2028hat : 3 dogs\t1 2\nThe end\t3\n")
    (folder / "english_wordnet").mkdir()
    with gzip.open(folder / "english_wordnet" / "hypernym_train.tsv.gz", "wt") as file:
        file.write("synset\tmembers\tdefinition\n1-v\tbreathe, respire\tdraw air\n")
    similarities = folder / "wordsim" / "data" / "word-sim"
    similarities.mkdir(parents=True)
    words = COLOURS + ANIMALS
    pairs = [(a, b) for i, a in enumerate(words) for b in words[:i]]
    lines = [f"{a.title()}\t{b}\t{int(a in COLOURS) == int(b in COLOURS)}" for a, b in pairs]
    lines = [line.replace("True", "9.5").replace("False", "1e0") for line in lines]
    for name in corpora.SIMILARITY_SETS:
        few = lines[:3] if name == "MC-30" else [*lines, "cat\tunseen\t4"]
        (similarities / f"EN-{name}.txt").write_text("\n".join(few) + "\n")
    with gzip.open(folder / "wordsim" / "questions-words.txt.gz", "wt") as file:
        file.write(": colours\nRed green Blue grey\nred green blue unseen\n")
    return folder


def test_brown_is_without_tags_and_wikitext_follows(data):
    sentences = corpora.read_corpus("brown_wikitext", data)
    assert len(sentences) == 2 * 120 + 2 * 2
    assert sorted(sentences[0]) == sorted([*COLOURS, ".", "ca01"])
    assert sentences[120][-1] == "ca02"
    assert sentences[-2:] == [["=", "red", "cat", "="], ["and/or", ",", "<unk>"]]


def test_titles_and_glosses_are_words(data):
    assert corpora.read_corpus("yso_titles", data) == [
        ["a", "cat's", "red", "hat", "3", "dogs"], ["the", "end"]
    ]  # fmt: skip
    assert corpora.read_corpus("wordnet_glosses", data) == [["breathe", "respire", "draw", "air"]]


def test_judgements_are_lower_case(data):
    sets = corpora.read_similarities(data)
    assert tuple(sets) == corpora.SIMILARITY_SETS
    judged = sets["RG-65"]
    assert (judged.a[0], judged.b[0], judged.scores[0]) == ("green", "red", 9.5)
    assert corpora.read_analogies(data) == [
        ["red", "green", "blue", "grey"], ["red", "green", "blue", "unseen"]
    ]  # fmt: skip


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_missing_files_are_named(folder):
    with pytest.raises(FileNotFoundError, match=r"corpus/brown\.zip is needed"):
        corpora.read_corpus("brown_wikitext", folder)
    with pytest.raises(ValueError, match="expected one of brown_wikitext, yso_titles"):
        corpora.read_corpus("brown", folder)


def test_made_counts_have_clusters():
    counts = corpora.made_counts(1000, seed=3)
    assert counts.shape == (1000, 1000)
    assert abs(counts - counts.T).max() == 0
    assert counts.sum() == 2 * 300 * 1000
    assert np.all(np.diff(counts.sum(axis=1).reshape(10, -1).sum(axis=1)) < 0)
    # A cluster of 100 words of 1,000 has more than half of each word's pairs.
    of_word = counts[[500]].toarray().ravel()
    shares = counts.sum(axis=1) / counts.sum()
    own = of_word / of_word.sum() > 3 * shares
    assert 20 < own.sum() < 200
    assert of_word[own].sum() > 0.5 * of_word.sum()


def test_a_made_text_has_the_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "_DRAWN", 1000)
    corpora.write_made_text(tmp_path / "made.txt", 2345, 50)
    lines = [line.split() for line in (tmp_path / "made.txt").read_text().splitlines()]
    assert sum(map(len, lines)) == 2345
    assert max(map(len, lines)) == 20
    words, counts = np.unique(np.concatenate(lines), return_counts=True)
    assert len(words) <= 50
    assert words[counts.argmax()] == "w0"


# Similarities


def test_ours_without_gensim(data, capsys, monkeypatch):
    monkeypatch.setattr(similarity, "MIN_COUNT", 1)
    monkeypatch.setattr(similarity, "SUBSAMPLE", None)
    rows = similarity.main(data, epochs=(), iterations=(20,), dim=8, seeds=2)
    assert [(row["seed"], row["vectors"]) for row in rows] == [
        (0, "input"), (0, "sum"), (1, "input"), (1, "sum"),
    ]  # fmt: skip
    for row in rows:
        assert row["n_pairs"]["RG-65"] == 28
        assert row["n_pairs"]["MC-30"] == 3
        assert row["n_questions"] == 1
        assert row["cpu_s"] > 0
        rhos = [rho for name, rho in row["rho"].items() if name != "MC-30"]
        assert row["mean"] == pytest.approx(np.mean(rhos))
        assert row["by_pairs"] == pytest.approx(np.mean(rhos))
        assert row["mean"] > 0.5
    printed = capsys.readouterr().out
    assert "RG-65 (28)" in printed
    assert "left out for fewer than 10 known pairs: MC-30 (3)" in printed
    assert "mean and standard deviation (sd) of 2 runs" in printed


def test_beside_gensim(data, tmp_path, monkeypatch):
    pytest.importorskip("gensim")
    options = {"epochs": (1,), "iterations": (2,), "dim": 4, "seeds": 1}
    rows = similarity.main(data, **options, report=Report("word_similarity", out=tmp_path))
    assert [(row["system"], row["vectors"]) for row in rows] == [
        ("gradient=sampled", "input"), ("gradient=sampled", "sum"),
        ("gensim, negative=5", "input"), ("gensim, negative=5", "sum"),
        ("gensim, negative=15", "input"), ("gensim, negative=15", "sum"),
        ("gensim, hs", "input"),
    ]  # fmt: skip
    assert len({row["n_words"] for row in rows}) == 1
    # A run that was stopped goes on from what is kept.
    monkeypatch.setattr(similarity, "_measure", None)
    again = similarity.main(data, **options, report=Report("word_similarity", out=tmp_path))
    assert str(again) == str(rows)  # NaN is not equal to itself


def test_missing_gensim_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(similarity, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install gensim"):
        similarity.main(None)


def test_parameters_of_ours():
    text = "alpha=30, fit_intercept=False,gradient=decomp_mips,max_memory=1GB"
    assert similarity._parameters(text) == {
        "alpha": 30, "fit_intercept": False, "gradient": "decomp_mips", "max_memory": "1GB",
    }  # fmt: skip


# The objective


def test_the_objective_falls(data, tmp_path, capsys):
    report = Report("skip_gram_objective", out=tmp_path)
    rows = objective.main(
        corpora=("made",), words=300, scored=300, iterations=3, dim=6, report=report
    )
    assert [row["key"] for row in rows[::3]] == list(objective.METHODS)
    for first in range(0, len(rows), 3):
        own = rows[first : first + 3]
        assert [row["n_iter"] for row in own] == [1, 2, 3]
        assert own[2]["cpu_s"] == pytest.approx(sum(row["last_s"] for row in own))
        if own[0]["key"] != "printed":
            assert own[2]["objective"] < own[0]["objective"]
    by_key = {row["key"]: row["objective"] for row in rows}
    for key in ("sampled", "decomp_mips", "mips"):
        assert by_key[key] == pytest.approx(by_key["exact"], abs=0.05)
    assert (tmp_path / "skip_gram_objective.png").is_file()
    assert "exact objective of all words" in capsys.readouterr().out


@pytest.mark.parametrize("method", ["exact", "decomp_mips", "printed"])
def test_iterations_one_by_one_are_a_fit(method):
    counts = corpora.made_counts(200)
    *_, last = objective.follow(method, counts, counts, 5, 3, np.inf)
    model = DecompMIPSSkipGram(
        5, max_iter=3, random_state=np.random.RandomState(0), **objective.METHODS[method][0]
    ).fit(counts)
    # What is drawn is other, where anything is.
    tolerance = 1e-6 if method == "exact" else 0.02
    assert last["objective"] == pytest.approx(model.objective(counts), rel=tolerance)


def test_a_budget_ends_a_method():
    counts = corpora.made_counts(50)
    assert len(list(objective.follow("exact", counts, counts, 3, 9, 0.0))) == 1


def test_a_sample_of_words_has_the_objective_of_all():
    counts = corpora.made_counts(400)
    model = DecompMIPSSkipGram(8, max_iter=2, random_state=0).fit(counts)
    whole, of_all = objective.sample_of_words(counts, 400)
    assert whole is counts
    assert of_all == "all words"
    judged, of_words = objective.sample_of_words(counts, 300)
    assert of_words.startswith("300 words drawn by their counts, ")
    sums = judged.sum(axis=1)
    assert sums.sum() == pytest.approx(300)
    np.testing.assert_allclose(sums, sums.round(), rtol=1e-5)
    # The mean over words as they were drawn.
    scores = model.input_vectors_ @ model.output_vectors_.T + model.intercept_
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    shares = sp.diags_array(1 / counts.sum(axis=1)) @ counts
    losses = -(shares.toarray() * log_p).sum(axis=1)
    assert model.objective(judged) == pytest.approx(np.average(losses, weights=sums), rel=1e-5)
    drawn = np.std(losses) / np.sqrt(300)
    assert model.objective(judged) == pytest.approx(model.objective(counts), abs=4 * drawn)


# Counting


def test_a_call_is_measured(tmp_path):
    path = tmp_path / "made.txt"
    corpora.write_made_text(path, 20_000, 100)
    counted = count_contexts(path, window=2)
    for as_lists in (False, True):
        row = cooccurrence.measure_counting(path, as_lists, 2, None, 1)
        assert row["n_tokens"] == counted.frequencies.sum() == 20_000
        assert (row["n_words"], row["nnz"]) == (len(counted.words), len(counted.counts))
        assert row["grown_mib"] >= 0
        assert row["result_mib"] * 2**20 >= 8 * row["nnz"] > 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_each_source_is_measured(data, capsys):
    rows = cooccurrence.main(data, tokens=20_000, words=100)
    assert [(row["corpus"], row["source"]) for row in rows] == [
        ("brown_wikitext", "a file"), ("brown_wikitext", "lists"), ("made", "a file"),
    ]  # fmt: skip
    a_file, lists, made = rows
    assert a_file["n_tokens"] == lists["n_tokens"]
    assert (a_file["n_words"], a_file["nnz"]) == (lists["n_words"], lists["nnz"])
    assert made["n_tokens"] == 20_000
    for row in rows:
        assert row["grown_mib"] >= 0
        assert row["result_mib"] * 2**20 >= 8 * row["nnz"]
        assert row["tokens_per_s"] == pytest.approx(row["n_tokens"] / row["wall_s"])
    assert "distinct pairs" in capsys.readouterr().out


def test_a_call_that_fails_is_no_row(data, monkeypatch):
    monkeypatch.setattr(cooccurrence, "in_fresh_process", row_or_error)
    with pytest.raises(RuntimeError, match="file: ValueError"):
        cooccurrence.main(data, sources=("file",), window=10**6)


def test_on_the_command_line(tmp_path):
    out = ["--out", str(tmp_path), "--markdown"]
    options = ["--corpora", "made", "--words", "120", "--iterations", "1", "--dim", "3"]
    assert main(["skip_gram_objective", *options, "--methods", "sampled", *out]) == 0
    assert "| sampled" in (tmp_path / "skip_gram_objective.md").read_text()

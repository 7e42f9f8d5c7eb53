"""The table comes back with two more columns, the same as from Python."""

import csv
import io
import json
import lzma
from pathlib import Path

import pytest

import sklearn_xc
from sklearn_xc import topk_names
from sklearn_xc.command_line import tables


def rows_of(text, **form):
    return list(csv.DictReader(io.StringIO(text, newline=""), **form))


def best_of(model, rows, k):
    return topk_names(sklearn_xc.load(model), [row["text"] for row in rows], k, return_scores=True)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(tables, "_CHUNK_ROWS", 7)


@pytest.mark.parametrize("name", ["out.tsv", "out.csv.xz"])
def test_all_columns_come_back_with_labels(run, model, others, made, tmp_path, name):
    out = tmp_path / name
    code, stdout, err = run("tag", model, others, "-k", 3, "--out", out)
    assert (code, stdout, err) == (0, "", f"40 rows to {out}\n")
    content = lzma.decompress(out.read_bytes()) if name.endswith("xz") else out.read_bytes()
    found = rows_of(content.decode(), delimiter="\t" if "tsv" in name else ",")
    given = rows_of(Path(others).read_text())
    added = {"predicted_labels": "", "predicted_scores": ""}
    assert [row | added for row in found] == [row | added for row in given]
    for row, best in zip(found, best_of(model, made(40, seed=1), 3), strict=True):
        assert row["predicted_labels"].split(";") == [name for name, _ in best]
        assert row["predicted_scores"] == ";".join(f"{score:.4g}" for _, score in best)


def test_no_label_is_a_formula_of_a_spreadsheet(run, tmp_path):
    table, model, out = (str(tmp_path / name) for name in ("t.csv", "model", "out.csv"))
    names = tmp_path / "names.txt"
    names.write_text("=cmd|x")
    rows = "soup,=cmd|x;-2\nbread,bread\n" * 9
    Path(table).write_text(f"text,tags\n{rows}ale,\n")
    asked = ["--text", "text", "--labels", "tags", "--separator", ";", "--out", model]
    code, _, err = run("fit", table, *asked)
    assert code == 0
    assert err.count("labels of 1 rows of y are missing (row 18 first)") == 1
    assert err.count("note:") == 1
    assert sklearn_xc.load(model).classes_.tolist() == ["-2", "=cmd|x", "bread"]
    run("tag", model, table, "-k", 1, "--candidates", names, "--out", out)
    assert rows_of(Path(out).read_text())[0]["predicted_labels"] == "'=cmd|x"
    assert tables.names_of("'=cmd|x;-2", ";") == ["=cmd|x", "-2"]


def test_json_lines_and_standard_output(run, model, tmp_path, made, as_jsonl):
    rows = made(10, seed=1)
    table = as_jsonl(tmp_path / "t.jsonl", rows)
    code, out, err = run("tag", model, table, "--quiet", "-k", 2)
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    for row, given, best in zip(found, rows, best_of(model, rows, 2), strict=True):
        assert list(row) == [*given, "predicted_labels", "predicted_scores"]
        assert row["tags"] == given["tags"]
        assert row["predicted_labels"] == [name for name, _ in best]
        assert row["predicted_scores"] == pytest.approx([score for _, score in best], rel=1e-3)
    out = tmp_path / "o.csv"
    assert run("tag", model, table, "--quiet", "--separator", "+", "--out", out)[0] == 0
    found = rows_of(out.read_text())
    assert [json.loads(row["tags"]) for row in found] == [row["tags"] for row in rows]
    assert all(row["predicted_labels"].count("+") == 3 for row in found)


@pytest.fixture
def vague(tmp_path, made, as_jsonl):
    """Return a table of texts that say little, and these."""
    rows = [{"text": row["text"].split()[0]} for row in made(40, seed=5)]
    rows += [{"text": "stock sugar"}, {"text": "nothing known"}]
    return as_jsonl(tmp_path / "vague.jsonl", rows), [row["text"] for row in rows]


def labels_of(run, *arguments):
    code, out, _ = run("tag", *arguments)
    assert code == 0
    return [json.loads(line)["predicted_labels"] for line in out.splitlines()]


def test_predicted_labels_and_a_threshold(run, refused, model, vague):
    table, texts = vague
    fitted = sklearn_xc.load(model)
    ranked = topk_names(fitted, texts, 4, return_scores=True)
    answers = fitted.predict(texts)
    expected = [
        [name for name, _ in row if name in names]
        for row, names in zip(ranked, answers, strict=True)
    ]
    assert labels_of(run, model, table, "--predicted") == expected
    assert labels_of(run, model, table, "--predicted", "-k", 1) == [row[:1] for row in expected]
    assert labels_of(run, model, table, "--threshold", -0.5) == [
        [name for name, score in row if score >= -0.5] for row in ranked
    ]
    error = refused("tag", model, table, "--predicted", "--threshold", 0)
    assert "not allowed with" in error


def test_probabilities(run, train, vague, tmp_path):
    asked = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", 1, "--quiet"]
    path = tmp_path / "m"
    assert run("fit", train, *asked, "--probabilities", "--out", path) == (0, "", "")
    table, texts = vague
    fitted = sklearn_xc.load(path)
    chances = fitted.predict_proba(texts).toarray()
    _, out, _ = run("tag", path, table, "-k", 3, "--quiet")
    places = {name: place for place, name in enumerate(fitted.classes_)}
    for line, own, best in zip(
        out.splitlines(), chances, topk_names(fitted, texts, 3), strict=True
    ):
        row = json.loads(line)
        assert row["predicted_labels"] == best
        expected = [own[places[name]] for name in best]
        assert row["predicted_probabilities"] == pytest.approx(expected, rel=1e-3)
    found = labels_of(run, path, table, "--threshold", 0.3)
    assert [set(row) for row in found] == [set(fitted.classes_[own >= 0.3]) for own in chances]


@pytest.mark.parametrize("kind", [["-k", 4], ["--predicted"]])
def test_candidates_and_labels_to_exclude(run, model, vague, tmp_path, kind):
    table, _ = vague
    some = tmp_path / "some.txt"
    some.write_text("soup\n\nale \nsoop\n")
    whole = labels_of(run, model, table, *kind)
    assert labels_of(run, model, table, *kind, "--candidates", some) == [
        [name for name in row if name in ("soup", "ale")] for row in whole
    ]
    assert labels_of(run, model, table, *kind, "--exclude", some) == [
        [name for name in row if name not in ("soup", "ale")] for row in whole
    ]


def test_a_file_without_a_known_name(refused, model, others, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("soop\n")
    error = refused("tag", model, others, "--candidates", names)
    assert f"--candidates {names}: no line is the name of a label" in error


def test_what_is_refused(refused, run, model, others, tmp_path):
    assert "expected a name in .csv" in refused("tag", model, others, "--out", "t.parquet")
    out = tmp_path / "tagged.csv"
    assert run("tag", model, others, "--out", out)[0] == 0
    before = out.read_bytes()
    says = refused("tag", model, out, "--out", out)
    assert "has a column predicted_labels or predicted_scores already" in says
    assert out.read_bytes() == before
    assert "No such file" in refused("tag", model, "missing.csv")
    assert "Models are made by: sklearn-xc fit" in refused("tag", tmp_path, others)


def test_a_table_with_a_header_alone(run, model, tmp_path):
    (tmp_path / "t.csv").write_text("text\n")
    code, out, _ = run("tag", model, tmp_path / "t.csv")
    assert (code, out) == (0, "text,predicted_labels,predicted_scores\n")

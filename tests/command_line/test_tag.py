"""The table comes back with two more columns, the same as from Python."""

import csv
import io
import json
import lzma
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import sklearn_xc
from sklearn_xc import TextClassifierXC, topk_names
from sklearn_xc.command_line import tables
from sklearn_xc.command_line import tag as tag_module


def rows_of(text, **form):
    return list(csv.DictReader(io.StringIO(text, newline=""), **form))


def expected(model, rows, k):
    return topk_names(sklearn_xc.load(model), [row["text"] for row in rows], k, return_scores=True)


def test_all_columns_come_back_with_labels(run, model, others, made, tmp_path):
    out = tmp_path / "out.csv"
    code, stdout, err = run("tag", model, others, "-k", 3, "--out", out)
    assert (code, stdout) == (0, "")
    assert re.fullmatch(rf"40 rows to {out} \[.* s, .* rows/s\]\n", err)
    found, given = rows_of(out.read_text()), rows_of(Path(others).read_text())
    assert [row | {"predicted_labels": "", "predicted_scores": ""} for row in given] == [
        row | {"predicted_labels": "", "predicted_scores": ""} for row in found
    ]
    for row, best in zip(found, expected(model, made(40, seed=1), 3), strict=True):
        assert row["predicted_labels"].split(";") == [name for name, _ in best]
        assert row["predicted_scores"] == ";".join(f"{score:.4g}" for _, score in best)


def test_json_lines_and_standard_output(run, model, tmp_path, made, as_jsonl):
    rows = made(10, seed=1)
    table = as_jsonl(tmp_path / "t.jsonl", rows)
    code, out, err = run("tag", model, table, "--quiet", "-k", 2)
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    for row, given, best in zip(found, rows, expected(model, rows, 2), strict=True):
        assert list(row) == [*given, "predicted_labels", "predicted_scores"]
        assert row["predicted_labels"] == [name for name, _ in best]
        assert row["predicted_scores"] == pytest.approx([score for _, score in best], rel=1e-3)
    code, out, _ = run("tag", model, table, "--quiet", "--out-format", "tsv", "--separator", "+")
    found = rows_of(out, delimiter="\t")
    assert [json.loads(row["tags"]) for row in found] == [row["tags"] for row in rows]
    assert all(row["predicted_labels"].count("+") == 3 for row in found)


@pytest.mark.parametrize("k", [None, 1])
def test_only_labels_past_a_score(run, model, others, made, k):
    most = [] if k is None else ["-k", k]
    code, out, _ = run("tag", model, others, "--threshold", 0, "--quiet", *most)
    assert code == 0
    texts = [row["text"] for row in made(40, seed=1)]
    best = topk_names(sklearn_xc.load(model), texts, 4, return_scores=True)
    past = [[name for name, score in row if score >= 0] for row in best]
    for row, names in zip(rows_of(out), past, strict=True):
        found = set(filter(None, row["predicted_labels"].split(";")))
        assert found <= set(names) if k else found == set(names)
        assert k is None or len(found) <= k


@pytest.fixture
def vague(tmp_path, made, as_jsonl):
    """Return a table of texts that say little, and these."""
    rows = [{"text": row["text"].split()[0]} for row in made(40, seed=5)]
    rows += [{"text": "stock sugar"}, {"text": "nothing known"}]
    return as_jsonl(tmp_path / "vague.jsonl", rows), [row["text"] for row in rows]


def test_labels_past_the_tuned_thresholds(run, refused, model, vague):
    table, texts = vague
    code, out, _ = run("tag", model, table, "--predicted", "--quiet")
    assert code == 0
    found = [json.loads(line) for line in out.splitlines()]
    fitted = sklearn_xc.load(model)
    sizes = set()
    for row, names, best in zip(
        found, fitted.predict(texts), topk_names(fitted, texts, 4, return_scores=True), strict=True
    ):
        scores = dict(best)
        assert row["predicted_labels"] == sorted(names, key=scores.get, reverse=True)
        expected = sorted((scores[name] for name in names), reverse=True)
        assert row["predicted_scores"] == pytest.approx(expected, rel=1e-3)
        sizes.add(len(names))
    assert len(sizes) > 1
    code, out, _ = run("tag", model, table, "--predicted", "-k", 1, "--quiet")
    assert [json.loads(line)["predicted_labels"] for line in out.splitlines()] == [
        row["predicted_labels"][:1] for row in found
    ]
    error = refused("tag", model, table, "--predicted", "--threshold", 0)
    assert "not allowed with" in error


def test_more_predicted_labels_than_usual_are_all_there(run, tmp_path, as_jsonl):
    """There are 130 labels on each row, and `top_k` is raised."""
    names = [f"l{i}" for i in range(130)]
    table = as_jsonl(tmp_path / "t.jsonl", [{"text": f"w{i % 3}", "tags": names} for i in range(9)])
    asked = ["--text", "text", "--labels", "tags", "--jobs", 1, "--quiet", "--no-thresholds"]
    asked += ["--set", "classifier__top_k=200", "--out", tmp_path / "m"]
    assert run("fit", table, *asked) == (0, "", "")
    code, out, _ = run("tag", tmp_path / "m", table, "--predicted", "--quiet")
    assert code == 0
    assert set(json.loads(out.splitlines()[0])["predicted_labels"]) == set(names)


def test_probabilities(run, refused, train, vague, tmp_path):
    asked = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", 1, "--quiet"]
    path = tmp_path / "m"
    assert run("fit", train, *asked, "--probabilities", "--out", path) == (0, "", "")
    table, texts = vague
    fitted = sklearn_xc.load(path)
    chances = fitted.predict_proba(texts).toarray()
    code, out, _ = run("tag", path, table, "-k", 3, "--quiet")
    assert code == 0
    rows = [json.loads(line) for line in out.splitlines()]
    places = {name: place for place, name in enumerate(fitted.classes_)}
    for row, own, best in zip(rows, chances, topk_names(fitted, texts, 3), strict=True):
        assert list(row) == ["text", "predicted_labels", "predicted_probabilities"]
        assert row["predicted_labels"] == best
        expected = [own[places[name]] for name in best]
        assert row["predicted_probabilities"] == pytest.approx(expected, rel=1e-3)
    _, out, _ = run("tag", path, table, "--threshold", 0.3, "--quiet")
    found = [set(json.loads(line)["predicted_labels"]) for line in out.splitlines()]
    assert found == [set(fitted.classes_[own >= 0.3]) for own in chances]
    _, out, _ = run("tag", path, table, "--predicted", "--quiet")
    found = [set(json.loads(line)["predicted_labels"]) for line in out.splitlines()]
    assert found == [set(fitted.classes_[own > 0.5]) for own in chances]
    assert "gives probabilities, from 0 to 1" in refused("tag", path, table, "--threshold", 3)


@pytest.mark.parametrize("kind", [["-k", 4], ["--predicted"], ["--threshold", -0.5]])
def test_only_some_labels(run, model, vague, tmp_path, kind):
    table, _ = vague
    some = tmp_path / "some.txt"
    some.write_text("soup\n\nale \nsoop\n")

    def tags(*more):
        code, out, err = run("tag", model, table, *kind, *more, "--out-format", "jsonl")
        assert code == 0
        return [json.loads(line)["predicted_labels"] for line in out.splitlines()], err

    whole, _ = tags()
    assert any(set(row) & {"soup", "ale"} for row in whole)
    found, err = tags("--candidates", some)
    assert found == [[name for name in row if name in ("soup", "ale")] for row in whole]
    assert "does not know 1 of 3 names, such as 'soop'. Did you mean 'soup'?" in err
    found, _ = tags("--exclude", some)
    assert found == [[name for name in row if name not in ("soup", "ale")] for row in whole]


def test_k_of_some_labels_are_given(run, model, vague, tmp_path):
    (tmp_path / "some.txt").write_text("soup\nale\ncake\n")
    asked = ["--candidates", tmp_path / "some.txt", "-k", 3, "--quiet"]
    _, out, _ = run("tag", model, vague[0], *asked)
    for line in out.splitlines():
        assert sorted(json.loads(line)["predicted_labels"]) == ["ale", "cake", "soup"]


def test_files_of_names_that_do_not_do(refused, model, others, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("soop\n")
    asked = ["tag", model, others, "--quiet", "--candidates", names]
    assert "knows none of these, such as 'soop'. Did you mean 'soup'?" in refused(*asked)
    names.write_text("\n")
    assert "The file is empty." in refused(*asked)
    assert "not allowed with" in refused(*asked, "--exclude", names)
    assert "there is no such file" in refused(*asked[:4], "--exclude", tmp_path / "no.txt")


class TestLabelsThatARowHasAlready:
    @pytest.mark.parametrize("kind", [["-k", 2], ["--predicted"], ["--threshold", -0.5]])
    def test_they_are_not_given_again(self, run, model, others, made, kind, monkeypatch):
        monkeypatch.setattr(
            tag_module, "in_chunks", lambda table, columns: tables.in_chunks(table, columns, 7)
        )
        asked = ["tag", model, others, *kind, "--out-format", "jsonl"]
        code, out, err = run(*asked, "--exclude-column", "tags")
        assert code == 0
        assert "note:" not in err
        found = [json.loads(line)["predicted_labels"] for line in out.splitlines()]
        own = [row["tags"] for row in made(40, seed=1)]
        assert not any(set(row) & set(tags) for row, tags in zip(found, own, strict=True))
        fitted, texts = sklearn_xc.load(model), [row["text"] for row in made(40, seed=1)]
        if kind[0] == "-k":
            assert found == topk_names(fitted, texts, 2, exclude=own)
        else:
            _, out, _ = run(*asked)
            whole = [json.loads(line)["predicted_labels"] for line in out.splitlines()]
            assert found == [
                [name for name in row if name not in tags]
                for row, tags in zip(whole, own, strict=True)
            ]

    def test_names_as_in_python(self, run, train, vague, tmp_path, as_jsonl):
        """Lists, cells with nothing, and names that the model does not know; probabilities too."""
        path = tmp_path / "m"
        asked = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", 1]
        assert run("fit", train, *asked, "--probabilities", "--out", path)[0] == 0
        own = [["soup", "pie"], [], ["ale "], "cake; bread;tart", None, ["soup", "bread", "ale"]]
        names = [["soup", "pie"], [], ["ale"], ["cake", "bread", "tart"], [], own[-1]]
        texts = vague[1][: len(own)]
        rows = [{"text": text, "has": some} for text, some in zip(texts, own, strict=True)]
        table = as_jsonl(tmp_path / "t.jsonl", [*rows, {"text": texts[0]}])
        code, out, err = run("tag", path, table, "--exclude-column", "has", "-k", 4)
        assert code == 0
        found = [json.loads(line)["predicted_labels"] for line in out.splitlines()]
        assert found == topk_names(
            sklearn_xc.load(path), [*texts, texts[0]], 4, exclude=[*names, []]
        )
        notes = [line for line in err.splitlines() if line.startswith("note:")]
        assert notes == [
            "note: column 'has': the model does not know 2 of 9 names to exclude, such as 'pie'."
        ]
        again = run("tag", path, table, "--exclude-column", "has", "-k", 4, "--quiet")
        assert again == (0, out, "")

    def test_a_column_without_a_known_name(self, run, model, tmp_path, as_jsonl):
        table = as_jsonl(tmp_path / "t.jsonl", [{"text": "broth", "has": "soup+ale"}])
        asked = ["tag", model, table, "--exclude-column", "has"]
        _, _, err = run(*asked)
        assert (
            "note: column 'has': the model does not know 1 of 1 names to exclude, such as "
            "'soup+ale'. Did you mean 'soup'? Is it the right column, and ';' its --separator?\n"
        ) in err
        _, out, err = run(*asked, "--separator", "+", "-k", 4)
        assert "note:" not in err
        assert sorted(json.loads(out)["predicted_labels"]) == ["bread", "cake"]

    def test_numbers_as_labels(self, run, tmp_path, as_csv):
        plain = TextClassifierXC().fit(["soup broth", "bread", "ale"] * 6, [3, 5, 8] * 6)
        plain.save(tmp_path / "m")
        table = as_csv(
            tmp_path / "t.csv", [{"text": "soup", "has": "5"}, {"text": "ale", "has": ""}]
        )
        asked = ["tag", tmp_path / "m", table, "--text", "text", "--exclude-column", "has"]
        code, out, err = run(*asked, "-k", 3)
        assert code == 0
        assert "note:" not in err
        found = [sorted(row["predicted_labels"].split(";")) for row in rows_of(out)]
        assert found == [["3", "8"], ["3", "5", "8"]]

    def test_what_does_not_do(self, refused, model, others, tmp_path):
        asked = ["tag", model, others, "--quiet", "--exclude-column"]
        error = refused(*asked, "tag")
        assert "there is no column 'tag' (--exclude-column). Did you mean 'tags'?" in error
        for other in ("--exclude", "--candidates"):
            assert "not allowed with" in refused(*asked, "tags", other, tmp_path / "names.txt")


def test_a_model_of_a_matrix_predicts_no_names(refused, run, others, tmp_path):
    plain = TextClassifierXC().fit(["soup broth", "bread"] * 6, np.eye(2, dtype=int)[[0, 1] * 6])
    plain.save(tmp_path / "m")
    asked = ["tag", tmp_path / "m", others, "--text", "text", "--quiet"]
    assert "fitted on a matrix of labels" in refused(*asked, "--predicted", "--out", tmp_path / "o")
    assert run(*asked)[0] == 0


def test_chunks_do_not_show(run, model, others, monkeypatch):
    whole = run("tag", model, others, "--quiet")
    monkeypatch.setattr(
        tag_module, "in_chunks", lambda table, columns: tables.in_chunks(table, columns, 7)
    )
    assert run("tag", model, others, "--quiet") == whole


def test_a_compressed_output(run, model, others, tmp_path):
    _, plain, _ = run("tag", model, others, "--quiet")
    assert run("tag", model, others, "--quiet", "--out", tmp_path / "o.csv.xz")[0] == 0
    assert lzma.decompress((tmp_path / "o.csv.xz").read_bytes()).decode() == plain


def test_a_tagged_table_is_tagged_again(run, model, others, tmp_path):
    out = tmp_path / "o.csv"
    run("tag", model, others, "--quiet", "--out", out)
    code, _, err = run("tag", model, out, "--out", out)
    assert code == 0
    assert "the new ones are predicted_labels_2, predicted_scores_2" in err
    for row in rows_of(out.read_text()):
        assert row["predicted_labels"] == row["predicted_labels_2"]


def test_progress_is_shown_on_a_terminal_alone(run, model, others, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sklearn_xc.command_line.progress._EVERY_S", 0.0)
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert run("tag", model, others)[0] == 0
    assert re.search(r"\r40 rows, [\d,]+ rows/s, 100%, 0:00 left\r +\r40 rows", shown.getvalue())
    monkeypatch.setattr(sys, "stderr", quiet := Terminal())
    assert run("tag", model, others, "--quiet")[0] == 0
    assert quiet.getvalue() == ""


def test_an_error_leaves_nothing_that_looks_whole(refused, model, tmp_path, others):
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    table.write_text("text\nsoup\n" + 'broth\n"open\n')
    assert "line 4: a double quote is opened" in refused("tag", model, table, "--out", out)
    assert not out.exists()
    out.write_text("older")
    assert "line 4" in refused("tag", model, table, "--out", out)
    assert out.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.csv", "t.csv"]
    assert "there is no folder" in refused("tag", model, others, "--out", tmp_path / "x" / "o")
    assert "is a folder" in refused("tag", model, others, "--out", tmp_path)
    assert "Parquet is not written" in refused("tag", model, others, "--out", tmp_path / "o.pq")


def test_columns_of_the_fit_must_be_there(refused, model, tmp_path):
    (tmp_path / "t.csv").write_text("body\nsoup\n")
    error = refused("tag", model, tmp_path / "t.csv")
    assert error == (
        f"sklearn-xc tag: {tmp_path / 't.csv'}: there is no column 'text' (--text). The first "
        "line, taken for the header, names: body. Take one of these (--text COLUMN), or put a "
        "header first.\n"
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "a clear soup," + "long " * 99 + "\nbread,dough\n",
            "there is no column 'text' (--text). The first line, taken for the header, names: "
            "a clear soup, long long long long long long long long long long long long.... Take "
            "one of these (--text COLUMN), or put a header first.",
        ),
        (
            "number,texts\n1,soup\n",
            "there is no column 'text' (--text). Did you mean 'texts'? The first line, taken for "
            "the header, names: number, texts. Take one of these (--text COLUMN), or put a header "
            "first.",
        ),
        (
            '{"body": "soup"}\n{"id": 3}\n',
            "there is no column 'text' (--text). The first rows have the keys: body, id. Take one "
            "of these (--text COLUMN).",
        ),
        (
            "soup,soup\nale,bread\n",
            "the first line, taken for the header, names 2 columns, and 'soup' more than once. "
            "Give each column a name of its own, or put a header first.",
        ),
    ],
)
def test_standard_input_without_the_column(refused, model, monkeypatch, content, says):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert refused("tag", model, "-") == f"sklearn-xc tag: standard input: {says}\n"


def test_a_key_that_comes_late_has_no_column(refused, run, model, tmp_path, as_jsonl):
    table = as_jsonl(tmp_path / "t.jsonl", [{"text": "soup"}] * 1000 + [{"text": "ale", "x": 1}])
    error = refused("tag", model, table, "--out", tmp_path / "o.csv")
    assert "the key 'x', which the first thousand rows have not" in error
    code, out, _ = run("tag", model, table)
    assert code == 0
    assert json.loads(out.splitlines()[-1])["x"] == 1


def test_what_is_no_model(refused, others, tmp_path, model):
    (tmp_path / "m").write_bytes(b"\x80\x04")
    assert "is a file, a saved model is a folder. Was it" in refused("tag", tmp_path / "m", others)
    assert "there is no meta.json in it. Models are made by: sklearn-xc fit" in refused(
        "tag", tmp_path, others
    )
    error = refused("tag", model.replace("tags.model", "tag.model"), others)
    assert "there is no such file. Did you mean 'tags.model'?" in error


def test_another_estimator_is_no_model(refused, others, tmp_path):
    sklearn_xc.OvALinearXC().save(tmp_path / "m")
    error = refused("tag", tmp_path / "m", others)
    assert "holds no fitted TextClassifierXC. Got OvALinearXC." in error


def test_a_model_of_python_must_be_told_the_columns(run, refused, others, tmp_path, model):
    plain = sklearn_xc.load(model)
    del plain.command_line_
    plain.save(tmp_path / "m")
    assert "--text COLUMN: which column holds the texts?" in refused("tag", tmp_path / "m", others)
    assert run("tag", tmp_path / "m", others, "--text", "text", "--quiet") == run(
        "tag", model, others, "--quiet"
    )

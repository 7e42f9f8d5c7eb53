"""Tables become the model that Python makes of them."""

import os
import re

import joblib
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from sklearn_xc import OvALinearXC, TextClassifierXC
from sklearn_xc.command_line.cells import names_of, text_of

ASKED = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", 1]


def test_the_model_is_that_of_python(model, made):
    ours = joblib.load(model)
    assert isinstance(ours, TextClassifierXC)
    assert ours.command_line_ == {"text": ["text"], "labels": "tags", "separator": ";"}
    rows = made(120)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    theirs = TextClassifierXC(vectorizer, OvALinearXC(), min_count=2)
    theirs.fit([row["text"] for row in rows], [row["tags"] for row in rows])
    new = [row["text"] for row in made(20, seed=2)]
    for one, other in zip(ours.predict_topk(new, 3), theirs.predict_topk(new, 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_printed(run, train, tmp_path):
    out = tmp_path / "m"
    code, stdout, err = run("fit", train, *ASKED, "--holdout", 0.2, "--out", out)
    assert (code, stdout) == (0, "")
    assert f"{train}: 120 rows, 4 labels, 1." in err
    held = re.search(r"24 rows held out, trained on the other 96 .*: (.*)\n", err)
    values = dict(part.split(" ") for part in held[1].split(", "))
    assert list(values) == ["P@1", "P@3", "P@5", "R@5", "PSP@1"]
    assert values["P@1"] == values["R@5"] == "100.0%"
    assert re.search(r"trained ova on 120 rows, 4 labels .*\nwrote .*: [\d.]+ kB\n$", err)
    assert run("fit", train, *ASKED, "--out", out, "--quiet") == (0, "", "")


def test_several_columns_and_parameters(run, train, tmp_path):
    out = tmp_path / "m"
    more = ["--text", "title", "--set", "classifier__C=2", "--set", "vectorizer__ngram_range=(1,2)"]
    assert run("fit", train, *ASKED, *more, "--out", out, "--quiet")[0] == 0
    model = joblib.load(out)
    assert (model.classifier_.C, model.vectorizer_.ngram_range) == (2, (1, 2))
    assert {"hot", "soup"} & set(model.vectorizer_.vocabulary_) == {"hot"}
    assert model.command_line_["text"] == ["text", "title"]


def test_lists_in_json_lines(run, tmp_path, made, as_jsonl, model):
    table = as_jsonl(tmp_path / "t.jsonl", made(120))
    asked = ["--text", "text", "--labels", "tags", "--jobs", 1, "--out", tmp_path / "m"]
    assert run("fit", table, *asked, "--quiet") == (0, "", "")
    one, other = joblib.load(tmp_path / "m"), joblib.load(model)
    assert (one.classifier_.coef_ != other.classifier_.coef_).nnz == 0


def test_one_label_each(run, refused, tmp_path, made, as_csv, train):
    rows = [row | {"tags": row["tags"][:1]} for row in made(60)]
    table = as_csv(tmp_path / "t.csv", rows)
    asked = [*ASKED, "--estimator", "softmax", "--out", tmp_path / "m"]
    assert run("fit", table, *asked, "--quiet", "--holdout", 0.5) == (0, "", "")
    answer = joblib.load(tmp_path / "m").predict([row["text"] for row in rows])
    assert answer.shape == (60,)
    out = tmp_path / "out.csv"
    assert run("tag", tmp_path / "m", table, "--out", out, "-k", 1, "--quiet") == (0, "", "")
    assert run("evaluate", tmp_path / "m", table)[0] == 0
    error = refused("fit", train, *asked)
    assert "takes one label for each row, and a row has 2: " in error


def test_texts_of_labels(run, refused, tmp_path, train):
    texts = tmp_path / "labels.tsv"
    texts.write_text("name\twhat\nsoup\tbroth\nbread\tdough\nale\thops\ncake\tsugar\npie\tplum\n")
    asked = [*ASKED, "--out", tmp_path / "m", "--label-texts", texts]
    columns = ["--label-name", "name", "--label-text", "what"]
    assert "ova does not read texts of labels. Add --estimator ngame" in refused(
        "fit", train, *asked
    )
    ngame = [*asked, "--estimator", "ngame"]
    assert "--label-name COLUMN --label-text COLUMN" in refused("fit", train, *ngame)
    fast = ["--set", "classifier__max_iter=2", "--quiet"]
    assert run("fit", train, *ngame, *columns, *fast) == (0, "", "")
    assert joblib.load(tmp_path / "m").classes_.tolist() == ["ale", "bread", "cake", "soup", "pie"]
    error = refused("fit", train, *ASKED, "--out", tmp_path / "m", *columns)
    assert "are columns of --label-texts TABLE" in error


def test_columns_that_are_not_there(refused, train, tmp_path):
    asked = ["--separator", ";", "--out", tmp_path / "m"]
    error = refused("fit", train, "--text", "Texts", "--labels", "tags", *asked)
    assert "there is no column 'Texts' (--text). Did you mean 'text'?" in error
    assert "Columns: id, title, text, tags." in error
    error = refused("fit", train, "--text", "text", "--labels", "subjects", *asked)
    assert "there is no column 'subjects' (--labels). Columns:" in error
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,tags\n", "the table has no rows"),
        ("text,tags\na,\nb, \n", "no row has a label: column 'tags' is empty"),
        ("text,tags\n,a\n,a\n", "no row has a text: 'text' is empty"),
        ("text,tags\nx,a\ny,b\n", "no label is in 2 rows or more; the most frequent, 'a', is in 1"),
    ],
)
def test_tables_with_nothing_to_learn(refused, tmp_path, content, says):
    (tmp_path / "t.csv").write_text(content)
    assert says in refused("fit", tmp_path / "t.csv", *ASKED, "--out", tmp_path / "m")


def test_notes(run, train, tmp_path, made, as_csv):
    asked = ["--text", "text", "--labels", "tags", "--jobs", 1, "--out", tmp_path / "m"]
    code, _, err = run("fit", train, *asked)
    assert code == 0
    assert "were taken as one label each. If they hold several, add --separator ';'." in err
    table = as_csv(tmp_path / "t.csv", [*made(50), *[row | {"tags": []} for row in made(4)]], "|")
    code, _, err = run("fit", table, *asked, "--separator", ";")
    assert code == 0
    assert "note: 4 of 54 rows have no label: left out." in err
    assert "no cell of 'tags' holds ';', and many hold '|'" in err
    assert err.count("note:") == 2


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("classifier__c=1", "no parameter 'classifier__c'. Did you mean 'classifier__C'?"),
        ("C", "expected NAME=VALUE"),
        ("classifier__C=-1", "C"),
        ("classifier__loss=hing", "loss"),
    ],
)
def test_parameters_that_do_not_do(refused, train, tmp_path, setting, says):
    asked = [*ASKED, "--out", tmp_path / "m", "--set", setting]
    assert says in refused("fit", train, *asked)
    assert not (tmp_path / "m").exists()


def test_places_where_no_model_can_be(refused, train, tmp_path):
    assert "there is no folder" in refused("fit", train, *ASKED, "--out", tmp_path / "no" / "m")
    assert "is a folder" in refused("fit", train, *ASKED, "--out", tmp_path)
    assert "written to a file" in refused("fit", train, *ASKED, "--out", "-")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk(refused, train):
    error = refused("fit", train, *ASKED, "--quiet", "--out", "/dev/full")
    assert error == "sklearn-xc fit: /dev/full: the disk is full.\n"


@pytest.mark.parametrize(
    ("cell", "separator", "names"),
    [
        ("a; b ;;a", ";", ["a", "b"]),
        ("a; b", None, ["a; b"]),
        (["a ", "b", None, 3], ";", ["a", "b", "3"]),
        (None, ";", []),
        (float("nan"), ";", []),
        (3.0, None, ["3"]),
        ("", None, []),
    ],
)
def test_names_in_a_cell(cell, separator, names):
    assert names_of(cell, separator) == names


def test_texts_of_several_cells():
    row = {"a": "one", "b": None, "c": 2, "d": ["x", "é"], "e": ""}
    assert text_of(row, ["a", "b", "c", "d", "e", "f"]) == 'one 2 ["x", "é"]'

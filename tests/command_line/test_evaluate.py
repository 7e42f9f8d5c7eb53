"""The numbers are those of the metrics in Python, and of scikit-learn."""

import json

import numpy as np
import pytest
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

import sklearn_xc
from sklearn_xc.metrics import TopKScorer


@pytest.fixture
def hard(tmp_path, made, as_jsonl):
    """Return a table, and its rows: texts that say little, and names that training has not seen."""
    rows = made(60, seed=3)
    for i, row in enumerate(rows):
        row["text"] = row["text"].split()[0]
        row["tags"] = [*row["tags"], *["pie"] * (i % 3 == 0), *["tart"] * (i % 5 == 0)]
    rows[1]["tags"] = []
    return as_jsonl(tmp_path / "hard.jsonl", rows), rows


def test_the_numbers_are_those_of_python(run, model, hard):
    table, rows = hard
    code, out, err = run("evaluate", model, table, "--json")
    assert (code, err) == (0, "note: 1 of 60 rows have no label.\n")
    found = json.loads(out)
    assert found["rows"] == 60
    fitted = sklearn_xc.load(model)
    texts, names = [row["text"] for row in rows], [row["tags"] for row in rows]
    scorer = TopKScorer((1, 3, 5), ("precision", "recall", "ndcg", "psp"))
    expected = scorer(fitted, texts, names)
    both = MultiLabelBinarizer().fit([*names, fitted.classes_])
    for average in ("micro", "macro"):
        expected[f"{average}-F1"] = f1_score(
            both.transform(names),
            both.transform(fitted.predict(texts)),
            average=average,
            zero_division=np.nan,
        )
    assert found["metrics"] == pytest.approx(expected, abs=1e-12)


def test_the_report_in_plain_text(run, model, others):
    code, out, _ = run("evaluate", model, others)
    lines = out.splitlines()
    assert (code, lines[0], lines[2].split()) == (0, "40 rows", ["k=1", "k=3", "k=5"])
    assert lines[3].split()[:2] == ["P@k", "100.0%"]
    assert [line.split()[0] for line in lines[8:]] == ["micro-F1", "macro-F1"]


def test_other_columns_than_those_of_the_fit(run, refused, model, tmp_path, made, as_jsonl):
    rows = [{"body": row["text"], "names": "/".join(row["tags"])} for row in made(20, seed=1)]
    table = as_jsonl(tmp_path / "t.jsonl", rows)
    assert "no column 'text'" in refused("evaluate", model, table)
    assert "no column 'tags'" in refused("evaluate", model, table, "--text", "body")
    asked = ["--text", "body", "--labels", "names", "--separator", "/", "--json"]
    assert json.loads(run("evaluate", model, table, *asked)[1])["metrics"]["P@1"] == 1.0


def test_a_page_of_html(run, model, others, tmp_path):
    code, out, _ = run("evaluate", model, others, "--report", tmp_path / "page.html")
    assert (code, out.splitlines()[0]) == (0, "40 rows")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "100.0%" in page

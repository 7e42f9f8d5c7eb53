"""Tables become the model that Python makes of them."""

import re

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import sklearn_xc
from sklearn_xc import OvALinearXC, TextClassifierXC, ThresholdTuner, TopKCalibrator

ASKED = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", 1]


@pytest.mark.parametrize(
    ("option", "classifier"),
    [
        ([], ThresholdTuner(OvALinearXC(), random_state=0)),
        (["--no-thresholds"], OvALinearXC()),
        (["--probabilities"], TopKCalibrator(OvALinearXC(), random_state=0)),
    ],
)
def test_the_model_is_that_of_python(run, train, made, tmp_path, option, classifier):
    code, _, err = run("fit", train, *ASKED, *option, "--out", tmp_path / "m")
    assert code == 0
    assert re.search(r"trained ova on 120 rows, 4 labels .*\nwrote .*m\n$", err)
    ours = sklearn_xc.load(tmp_path / "m")
    assert ours.command_line_ == {"text": ["text"], "labels": "tags", "separator": ";"}
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    rows = made(120)
    theirs = TextClassifierXC(vectorizer, classifier, min_count=2)
    theirs.fit([row["text"] for row in rows], [row["tags"] for row in rows])
    assert type(ours.classifier_) is type(classifier)
    new = [row["text"].split()[0] for row in made(40, seed=2)]
    for one, other in zip(ours.predict_topk(new, 3), theirs.predict_topk(new, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert ours.predict(new) == theirs.predict(new)


def test_parameters_have_names_of_their_part(run, train, tmp_path):
    def fitted(*settings, more=()):
        asked = [part for setting in settings for part in ("--set", setting)]
        out = tmp_path / "m"
        assert run("fit", train, *ASKED, *more, *asked, "--out", out, "--quiet") == (0, "", "")
        return sklearn_xc.load(out)

    settings = ("vectorizer__ngram_range=(1,2)", "classifier__C=2", "thresholds__objective=count")
    model = fitted(*settings, more=["--text", "title"])
    tuner = model.classifier_
    assert (model.vectorizer_.ngram_range, tuner.estimator_.C, tuner.objective) == (
        (1, 2),
        2,
        "count",
    )
    assert model.command_line_["text"] == ["text", "title"]
    more = ["--probabilities"]
    calibrator = fitted("probabilities__n_groups=1", "classifier__C=2", more=more).classifier_
    assert (calibrator.n_groups, calibrator.estimator_.C) == (1, 2)


def test_lists_in_json_lines(run, tmp_path, made, as_jsonl, model):
    table = as_jsonl(tmp_path / "t.jsonl", made(120))
    asked = ["--text", "text", "--labels", "tags", "--jobs", 1, "--out", tmp_path / "m"]
    assert run("fit", table, *asked, "--quiet") == (0, "", "")
    one, other = sklearn_xc.load(tmp_path / "m").classifier_, sklearn_xc.load(model).classifier_
    assert (one.estimator_.coef_ != other.estimator_.coef_).nnz == 0


def test_one_label_each(run, refused, tmp_path, made, as_jsonl, train):
    rows = [row | {"tags": row["tags"][:1]} for row in made(60)]
    table = as_jsonl(tmp_path / "t.jsonl", rows)
    asked = [*ASKED, "--estimator", "softmax", "--out", tmp_path / "m"]
    assert run("fit", table, *asked, "--quiet")[0] == 0
    answer = sklearn_xc.load(tmp_path / "m").predict([row["text"] for row in rows])
    assert answer.shape == (60,)
    out = tmp_path / "out.csv"
    assert run("tag", tmp_path / "m", table, "--out", out, "--predicted")[0] == 0
    assert run("evaluate", tmp_path / "m", table)[::2] == (0, "")
    assert "softmax takes one label for each row. Got ['" in refused("fit", train, *asked)


def test_texts_of_labels(run, refused, tmp_path, train):
    texts = tmp_path / "labels.tsv"
    texts.write_text("name\twhat\nsoup\tbroth\nbread\tdough\nale\thops\ncake\tsugar\npie\tplum\n")
    asked = [*ASKED, "--out", tmp_path / "m", "--label-texts", texts]
    columns = ["--label-name", "name", "--label-text", "what"]
    assert "reads no texts of labels. Add --estimator ngame" in refused("fit", train, *asked)
    ngame = [*asked, "--estimator", "ngame"]
    assert "needs --label-name COLUMN and --label-text" in refused("fit", train, *ngame)
    fast = ["--set", "classifier__max_iter=2", "--quiet"]
    assert run("fit", train, *ngame, *columns, *fast) == (0, "", "")
    names = sklearn_xc.load(tmp_path / "m").classes_.tolist()
    assert names == ["ale", "bread", "cake", "soup", "pie"]


def test_rare_labels_are_counted(run, tmp_path, as_jsonl):
    rows = [{"text": f"w{i % 3}", "tags": ["any", f"t{i}"]} for i in range(12)]
    table = as_jsonl(tmp_path / "t.jsonl", [*rows, {"text": "w0", "tags": ["t0"]}])
    _, _, err = run("fit", table, *ASKED, "--no-thresholds", "--out", tmp_path / "m")
    assert "13 rows, 2 labels" in err
    assert "11 labels in fewer than 2 rows were left out" in err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,tag\nx,a\n", "there is no column 'tags' (--labels). The table has: text, tag. Did"),
        ("text,tags\n", "no row has a label in column 'tags'"),
        ("text,tags\nx,a\ny,b\n", "no label is in 2 rows or more"),
        ("text,tags\nx,\"['a', 'b']\"\ny,['a']\n", "column 'tags' must hold names. Got lists that"),
    ],
)
def test_tables_with_nothing_to_learn(refused, tmp_path, content, says):
    table = tmp_path / "t"
    table.write_text(content)
    assert says in refused("fit", table, *ASKED, "--out", tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("classifier__c=1", "no parameter 'classifier__c'. Did you mean 'classifier__C'?"),
        ("thresholds__per=every", "per"),
        ("C", "expected NAME=VALUE"),
    ],
)
def test_wrong_parameters(refused, train, tmp_path, setting, says):
    asked = [*ASKED, "--out", tmp_path / "m", "--set", setting]
    assert says in refused("fit", train, *asked)
    assert not (tmp_path / "m").exists()


def test_places_where_no_model_can_be(refused, train, tmp_path):
    assert "there is no folder" in refused("fit", train, *ASKED, "--out", tmp_path / "no" / "m")
    (tmp_path / "notes.txt").write_text("mine")
    assert "'notes.txt'" in refused("fit", train, *ASKED, "--out", tmp_path)

"""Tables become the model that Python makes of them."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import sklearn_xc
from sklearn_xc import OvALinearXC, TextClassifierXC, TopKCalibrator
from sklearn_xc.command_line.cells import names_of, text_of
from sklearn_xc.command_line.estimators import make_model

ASKED = ["--text", "text", "--labels", "tags", "--separator", ";", "--jobs", 1]


def test_the_model_is_that_of_python(model, made):
    ours = sklearn_xc.load(model)
    assert isinstance(ours, TextClassifierXC)
    assert ours.command_line_ == {"text": ["text"], "labels": "tags", "separator": ";"}
    rows = made(120)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    theirs = TextClassifierXC(vectorizer, min_count=2)  # by default thresholds are tuned
    theirs.fit([row["text"] for row in rows], [row["tags"] for row in rows])
    assert_same(ours, theirs, made)


def assert_same(ours, theirs, made):
    new = [row["text"].split()[0] for row in made(40, seed=2)]
    for one, other in zip(ours.predict_topk(new, 3), theirs.predict_topk(new, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert ours.predict(new) == theirs.predict(new)


@pytest.mark.parametrize(
    ("option", "classifier"),
    [
        ("--no-thresholds", OvALinearXC()),
        ("--probabilities", TopKCalibrator(OvALinearXC(), random_state=0)),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning")
def test_what_is_around_the_classifier(run, train, made, tmp_path, option, classifier):
    code, _, err = run("fit", train, *ASKED, option, "--out", tmp_path / "m")
    assert code == 0
    assert "wrote" in err
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    theirs = TextClassifierXC(vectorizer, classifier, min_count=2)
    rows = made(120)
    theirs.fit([row["text"] for row in rows], [row["tags"] for row in rows])
    ours = sklearn_xc.load(tmp_path / "m")
    assert type(ours.classifier_) is type(classifier)
    assert_same(ours, theirs, made)


def test_compact(run, refused, train, model, tmp_path):
    assert run("fit", train, *ASKED, "--compact", "--out", tmp_path / "small")[0] == 0
    weights = [
        sum(one.stat().st_size for one in folder.glob("*weights*.npy"))
        for folder in (tmp_path / "small", Path(model))
    ]
    assert weights[0] < weights[1]
    known = sklearn_xc.load(model).classifier_.estimator_.compact()
    ours = sklearn_xc.load(tmp_path / "small").classifier_.estimator_
    assert (ours.coef_ != known.coef_).nnz == 0
    asked = [*ASKED, "--compact", "--estimator", "softmax", "--out", tmp_path / "m"]
    assert "--compact: is for weights of one-vs-all, that is" in refused("fit", train, *asked)


def test_thresholds_and_probabilities_exclude_each_other(refused, train, tmp_path):
    asked = [*ASKED, "--out", tmp_path / "m", "--no-thresholds", "--probabilities"]
    assert "not allowed with" in refused("fit", train, *asked)


def test_parameters_have_names_of_their_part(run, train, tmp_path):
    def fitted(*settings, more=()):
        asked = [part for setting in settings for part in ("--set", setting)]
        out = tmp_path / "m"
        assert run("fit", train, *ASKED, *more, *asked, "--out", out, "--quiet") == (0, "", "")
        return sklearn_xc.load(out).classifier_

    tuner = fitted("classifier__C=2", "classifier__top_k=7", "thresholds__objective=macro_f1")
    assert (tuner.estimator_.C, tuner.estimator_.top_k) == (2, 7)
    assert (tuner.objective, tuner.top_k) == ("macro_f1", 100)
    tuner = fitted("classifier__estimator__C=3", "classifier__per=all")  # as in Python
    assert (tuner.estimator_.C, tuner.per) == (3, "all")
    cv = ["--estimator", "ova-cv"]
    tuner = fitted("classifier__cv=2", "classifier__Cs=2", "thresholds__cv=0.3", more=cv)
    assert (tuner.estimator_.cv, len(tuner.estimator_.Cs_), tuner.cv) == (2, 2, 0.3)
    calibrator = fitted("probabilities__n_groups=1", "classifier__C=2", more=["--probabilities"])
    assert (calibrator.n_groups, calibrator.estimator_.C) == (1, 2)
    assert fitted("classifier__C=2", more=["--no-thresholds"]).C == 2


@pytest.mark.parametrize("estimator", ["ngame", "stacking"])
def test_thresholds_of_their_own_are_not_tuned_again(estimator):
    model = make_model(
        estimator, [], decisions="thresholds", separator=";", min_count=1, label_texts=None,
        n_jobs=2, seed=3,
    )  # fmt: skip
    assert not hasattr(model.classifier, "estimator")
    assert (model.classifier.n_jobs, model.classifier.random_state) == (2, 3)


def test_what_is_printed(run, train, tmp_path):
    out = tmp_path / "m"
    code, stdout, err = run("fit", train, *ASKED, "--holdout", 0.2, "--out", out)
    assert (code, stdout) == (0, "")
    assert f"{train}: 120 rows, 4 labels, 1." in err
    held = re.search(r"24 rows held out, trained on the other 96 .*: (.*)\n", err)
    values = dict(part.split(" ") for part in held[1].split(", "))
    assert list(values) == ["P@1", "P@3", "P@5", "R@5", "PSP@1", "micro-F1", "macro-F1"]
    assert values["P@1"] == values["R@5"] == "100.0%"
    assert re.search(r"trained ova on 120 rows, 4 labels .*\nwrote .*: [\d.]+ kB\n$", err)
    assert run("fit", train, *ASKED, "--out", out, "--quiet") == (0, "", "")


def test_several_columns_and_parameters(run, train, tmp_path):
    out = tmp_path / "m"
    more = ["--text", "title", "--set", "classifier__C=2", "--set", "vectorizer__ngram_range=(1,2)"]
    assert run("fit", train, *ASKED, *more, "--out", out, "--quiet")[0] == 0
    model = sklearn_xc.load(out)
    assert (model.classifier_.estimator_.C, model.vectorizer_.ngram_range) == (2, (1, 2))
    assert {"hot", "soup"} & set(model.vectorizer_.vocabulary_) == {"hot"}
    assert model.command_line_["text"] == ["text", "title"]


def test_lists_in_json_lines(run, tmp_path, made, as_jsonl, model):
    table = as_jsonl(tmp_path / "t.jsonl", made(120))
    asked = ["--text", "text", "--labels", "tags", "--jobs", 1, "--out", tmp_path / "m"]
    assert run("fit", table, *asked, "--quiet") == (0, "", "")
    one, other = sklearn_xc.load(tmp_path / "m").classifier_, sklearn_xc.load(model).classifier_
    assert (one.estimator_.coef_ != other.estimator_.coef_).nnz == 0
    np.testing.assert_array_equal(one.thresholds_, other.thresholds_)


def test_one_label_each(run, refused, tmp_path, made, as_csv, train):
    rows = [row | {"tags": row["tags"][:1]} for row in made(60)]
    table = as_csv(tmp_path / "t.csv", rows)
    asked = [*ASKED, "--estimator", "softmax", "--out", tmp_path / "m"]
    assert run("fit", table, *asked, "--quiet", "--holdout", 0.5) == (0, "", "")
    answer = sklearn_xc.load(tmp_path / "m").predict([row["text"] for row in rows])
    assert answer.shape == (60,)
    out = tmp_path / "out.csv"
    assert run("tag", tmp_path / "m", table, "--out", out, "-k", 1, "--quiet") == (0, "", "")
    assert run("evaluate", tmp_path / "m", table)[0] == 0
    error = refused("fit", train, *asked)
    assert "takes one label for each row, and a row has 2: " in error
    table = as_csv(tmp_path / "t.csv", [*rows, rows[0] | {"tags": []}])
    assert "takes one label for each row, and 1 rows have none: remove" in refused(
        "fit", table, *asked
    )


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
    assert sklearn_xc.load(tmp_path / "m").classes_.tolist() == [
        "ale",
        "bread",
        "cake",
        "soup",
        "pie",
    ]
    error = refused("fit", train, *ASKED, "--out", tmp_path / "m", *columns)
    assert "are columns of --label-texts TABLE" in error


def test_rare_labels_are_counted_and_can_be_kept(run, tmp_path, as_csv):
    rows = [{"text": f"w{i % 3}", "tags": ["any", f"t{i}"]} for i in range(12)]
    table = as_csv(tmp_path / "t.csv", [*rows, {"text": "w0", "tags": ["t0"]}])
    asked = [*ASKED, "--no-thresholds", "--out", tmp_path / "m"]
    code, out, err = run("fit", table, *asked)
    assert (code, out) == (0, "")
    assert f"{table}: 13 rows, 2 labels, 1.9 labels per row" in err
    notes = [line for line in err.splitlines() if "--min-count" in line]
    assert notes == [
        "note: 11 of 13 labels are in fewer than 2 rows: left out. --min-count 1 keeps them."
    ]
    assert sklearn_xc.load(tmp_path / "m").classes_.tolist() == ["any", "t0"]
    code, _, err = run("fit", table, *asked, "--min-count", 1)
    assert "--min-count" not in err
    assert len(sklearn_xc.load(tmp_path / "m").classes_) == 13
    assert run("fit", table, *asked, "--quiet") == (0, "", "")


def test_columns_that_are_not_there(refused, train, tmp_path):
    asked = ["--separator", ";", "--out", tmp_path / "m"]
    error = refused("fit", train, "--text", "Texts", "--labels", "tags", *asked)
    assert "there is no column 'Texts' (--text). Did you mean 'text'?" in error
    assert "The first line, taken for the header, names: id, title, text, tags." in error
    error = refused("fit", train, "--text", "text", "--labels", "subjects", *asked)
    assert "there is no column 'subjects' (--labels). The first line" in error
    assert "Take one of these (--labels COLUMN), or put a header first." in error
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("text,tags\n", "the table has no rows"),
        ("text,tags\na,\nb, \n", "no row has a label: column 'tags' is empty"),
        ("text,tags\n,a\n,a\n", "no row has a text: 'text' is empty"),
        ("text,tags\nx,a\ny,b\n", "no label is in 2 rows or more; the most frequent, 'a', is in 1"),
        ("text,tags\nx,\"['a', 'b']\"\ny,['a']\n", "column 'tags' must hold names. Got lists that"),
        ('{"text": "x", "tags": {"a": 1}}\n', 'a list of names. Got {"a": 1}.'),
        ('{"text": "x", "tags": ["a", ["b"]]}\n', 'a list of names. Got ["b"].'),
    ],
)
def test_tables_with_nothing_to_learn(refused, tmp_path, content, says):
    table = tmp_path / "t"
    table.write_text(content)
    assert says in refused("fit", table, *ASKED, "--out", tmp_path / "m")


def test_notes(run, train, tmp_path, made, as_csv):
    asked = ["--text", "text", "--labels", "tags", "--jobs", 1, "--out", tmp_path / "m"]
    code, _, err = run("fit", train, *asked)
    assert code == 0
    assert "were taken as one label each. If they hold several, add --separator ';'." in err
    table = as_csv(tmp_path / "t.csv", [*made(50), *[row | {"tags": []} for row in made(4)]], "|")
    code, _, err = run("fit", table, *asked, "--separator", ";")
    assert code == 0
    assert "note: 4 of 54 rows have no label, row 51 first. If" in err
    assert "trained ova on 54 rows" in err
    assert "no cell of 'tags' holds ';', and many hold '|'" in err
    assert "labels are in fewer than 2 rows: left out. --min-count 1 keeps them." in err
    assert err.count("note:") == 3


def sentences(n):
    """Return so many sentences, all different."""
    words = ["how", "can", "one", "keep", "a", "broth", "from", "going", "cloudy"]
    rng = np.random.default_rng(0)
    return [f"{' '.join(rng.choice(words, 9))} {i}" for i in range(n)]


@pytest.fixture
def questions(tmp_path, as_csv):
    """Return a table of questions with one or two tags each."""
    tags = (["soup"], ["bread", "oven"], ["ale"])
    rows = [
        {"id": f"No. {i}", "question": text, "tags": tags[i % 3]}
        for i, text in enumerate(sentences(30))
    ]
    return as_csv(tmp_path / "q.csv", rows)


@pytest.mark.parametrize("more", [["--separator", ";"], ["--quiet"]])
def test_swapped_columns(refused, questions, tmp_path, more):
    asked = ["--text", "tags", "--labels", "question", *more, "--out", tmp_path / "m"]
    error = refused("fit", questions, *asked)
    assert "column 'question' looks like texts, not like labels: 100% of what it holds is" in error
    assert "Are --text and --labels swapped? Try --text question --labels tags." in error
    assert not (tmp_path / "m").exists()


def test_sentences_beside_longer_texts_are_no_labels(refused, tmp_path, as_csv):
    rows = [{"text": " ".join([text] * 3), "answer": text + " or so"} for text in sentences(20)]
    table = as_csv(tmp_path / "t.csv", rows)
    error = refused("fit", table, "--text", "text", "--labels", "answer", "--out", tmp_path / "m")
    assert "looks like texts" in error
    assert "Which column holds such names (--labels)?" in error


def test_notes_on_columns_that_may_be_the_wrong_ones(run, refused, questions, tmp_path, as_csv):
    out = ["--jobs", 1, "--out", tmp_path / "m"]
    asked = ["--text", "question", "--labels", "id", "--min-count", 1, "--no-thresholds"]
    code, _, err = run("fit", questions, *asked, *out)
    assert code == 0
    assert "note: 100% of the labels in 'id' are in one row alone, such as 'No. 0'" in err
    assert "no label is in 2 rows or more" in refused("fit", questions, *asked[:4], *out)
    rows = [{"word": f"w{i % 4}", "kind": f"of kind {i % 4}"} for i in range(40)]
    table = as_csv(tmp_path / "t.csv", rows)
    code, _, err = run("fit", table, "--text", "word", "--labels", "kind", *out)
    assert code == 0
    assert "note: labels of 'kind' are longer than the texts on average, such as 'of kind 0'" in err
    assert "Try --text kind --labels word." in err
    rows = [{"title": f"about {'abc'[i % 3]}", "tags": ["any", "abc"[i % 3]]} for i in range(40)]
    table = as_csv(tmp_path / "t.csv", rows)
    swapped = ["--text", "tags", "--labels", "title", "--separator", ";"]
    code, _, err = run("fit", table, *swapped, *out)
    assert code == 0
    assert "note: ';' (--separator) stands in many texts, and in no cell of 'title'." in err
    assert err.count("swapped") == 1
    right = ["--text", "question", "--labels", "tags", "--separator", ";"]
    code, _, err = run("fit", questions, *right, *out)
    assert code == 0
    assert "note:" not in err


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("classifier__c=1", "no parameter 'classifier__c'. Did you mean 'classifier__C'?"),
        ("threshold__per=all", "Did you mean 'thresholds__per'? There are: classifier__C, "),
        ("thresholds__per=every", "per"),
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
    (tmp_path / "notes.txt").write_text("mine")
    error = refused("fit", train, *ASKED, "--out", tmp_path)
    assert "holds files that are no part of a model, such as 'notes.txt'" in error
    error = refused("fit", train, *ASKED, "--out", tmp_path / "notes.txt")
    assert "is a file. A model is saved as a folder" in error
    assert "cannot go to standard output" in refused("fit", train, *ASKED, "--out", "-")


def test_a_full_disk(refused, train, tmp_path, full_disk):
    with full_disk(after=0):
        error = refused("fit", train, *ASKED, "--quiet", "--out", tmp_path / "m")
    assert error.endswith("m: the disk is full.\n")
    assert not (tmp_path / "m").exists()


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
        ("'=1+1; '-ism;'s;=a", ";", ["=1+1", "'-ism", "'s", "=a"]),
    ],
)
def test_names_in_a_cell(cell, separator, names):
    assert names_of(cell, separator) == names


def test_texts_of_several_cells():
    row = {"a": "one", "b": None, "c": 2, "d": ["x", "é"], "e": ""}
    assert text_of(row, ["a", "b", "c", "d", "e", "f"]) == 'one 2 ["x", "é"]'

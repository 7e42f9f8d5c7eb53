"""A report on one model: against the metrics, for all kinds of models, and escaped."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from sklearn_xc import OvALinearXC, TextClassifierXC, topk
from sklearn_xc.datasets import make_xc_classification
from sklearn_xc.inspection import report
from sklearn_xc.metrics import TopKScorer

X, Y = make_xc_classification(
    n_samples=300, n_features=200, n_labels=30, random_state=0, return_X_y=True
)
TEXTS = ["hot <b>soup</b> broth", "bread | dough", "broth ladle", "dough yeast"] * 20
NAMES = [["<script>", "a|b"], ["bread"], ["<script>"], ["bread", "a|b"]] * 20


@pytest.fixture(scope="module")
def model():
    return OvALinearXC().fit(X[:200], Y[:200])


@pytest.fixture(scope="module")
def tagged():
    model = TextClassifierXC(classifier=OvALinearXC()).fit(TEXTS, NAMES)
    true = [["bread"], *NAMES[1:39], ["unknown"]]
    return report(model, TEXTS[:40], true, name="<i> a|b", random_state=0)


def test_metrics_are_those_of_the_scorer_and_of_sklearn(model):
    table = report(model, X[200:], Y[200:], random_state=0).tables["Metrics"]
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"]))[:-1].all()
    found = dict(zip(table["metric"], table["value"], strict=True))
    scorer = TopKScorer((1, 3, 5), ("precision", "ndcg", "psp", "recall", "reciprocal_rank"))
    expected = {n: v for n, v in scorer(model, X[200:], Y[200:]).items() if n in found}
    P = model.predict(X[200:])
    for average in ("micro", "macro"):
        expected[f"{average}-F1"] = f1_score(Y[200:], P, average=average, zero_division=np.nan)
    assert found == pytest.approx(expected)


def test_most_confused_are_those_of_a_loop(model):
    table = report(model, X[200:], Y[200:], random_state=0).tables["Most confused"]
    best, times = topk(model, X[200:], 5)[0], {}
    for row, (label, *_) in enumerate(best):
        true = Y[[200 + row]].indices
        for other in np.setdiff1d(true, best[row]) if label not in true else ():
            times[label, other] = times.get((label, other), 0) + 1
    assert table["times"][0] == max(times.values())
    for row in table.itertuples(index=False):
        assert times[row[0], row[1]] == row[2]


def test_names_and_texts_are_escaped(tagged, tmp_path):
    page = tagged.to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page
    card = tagged.to_markdown()
    for tag in ("<script>", "<b>", "<i>"):
        assert tag not in page
    assert "&lt;script&gt;" in page
    assert "right" in tagged.tables["Examples"][""].tolist()
    assert "<script>" not in card.split("---")[2]
    assert "a\\|b" in card


def test_the_card_has_its_metrics_in_the_front_matter(tagged):
    line = tagged.to_markdown().split("model-index: ")[1].split("\n")[0]
    value = json.loads(line)[0]["results"][0]["metrics"][0]["value"]
    assert value == round(tagged.tables["Metrics"]["value"][0], 4)


def test_rows_that_do_not_match_are_refused(model):
    with pytest.raises(ValueError, match="Got 200 rows of X"):
        report(model, X[:200], Y[200:])


@pytest.mark.parametrize("kind", ["pipeline of names", "foreign classes"])
def test_other_models(kind):
    names = np.array([row[0] for row in NAMES])
    inner = OvALinearXC() if kind == "pipeline of names" else LogisticRegression()
    found = report(make_pipeline(TfidfVectorizer(), inner).fit(TEXTS, names), TEXTS, names)
    metrics = found.tables["Metrics"].set_index("metric")["value"]
    assert metrics["P@1"] == pytest.approx(metrics["micro-F1"])
    assert ("Labels by training frequency" in found.tables) == (kind != "foreign classes")
    assert "<svg" in found._repr_html_()

"""Two models compared: against the metrics and plain loops, labels matched by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest, false_discovery_control
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from sklearn_xc import OvALinearXC, TextClassifierXC, topk
from sklearn_xc.inspection import compare_models
from sklearn_xc.metrics import get_scorer, paired_bootstrap, propensity, psp_at_k

WORDS = {
    "soup": "broth ladle simmer stock",
    "bread": "dough yeast crust knead",
    "ale": "hops malt brew barrel",
    "cake": "sugar icing sponge tin",
    "pie": "lid filling",
}


def made(n, seed):
    """Return texts, some words of which are those of other labels, and one or two names of each."""
    rng = np.random.default_rng(seed)
    texts, names = [], []
    for _ in range(n):
        some = rng.choice(list(WORDS), size=rng.integers(1, 3), replace=False).tolist()
        shown = [rng.choice(list(WORDS)) if rng.random() < 0.3 else name for name in some]
        texts.append(
            " ".join(word for name in shown for word in rng.choice(WORDS[name].split(), 2))
        )
        names.append(some)
    return texts, names


TRAIN, NAMES = made(80, 0)
NEW, TRUE = made(60, 1)
TRUE[3] = [*TRUE[3], "tart"]  # that no training row has


@pytest.fixture(scope="module")
def models():
    """Return a model of few rows that does not know all labels, and one of many."""
    few = [row for row in range(14) if "pie" not in NAMES[row]]
    small, large = (
        TextClassifierXC(CountVectorizer(), OvALinearXC(prune=0)).fit(
            [TRAIN[row] for row in rows], [NAMES[row] for row in rows]
        )
        for rows in (few, range(80))
    )
    return small, large


@pytest.fixture(scope="module")
def found(models):
    return compare_models(*models, NEW, TRUE, k=2, names=("few", "many"), random_state=0)


def rows_of(table):
    return table.to_dict("records")


def test_metrics(found, models):
    rows = {row["metric"]: row for row in rows_of(found.metrics)}
    assert list(rows) == ["P@1", "P@2", "nDCG@2", "R@2", "PSP@1", "PSP@2"]
    for name in ("P@1", "P@2", "nDCG@2", "R@2"):
        values = [get_scorer(name)(model, NEW, TRUE) for model in models]
        assert [rows[name]["a"], rows[name]["b"]] == pytest.approx(values)
    for row in rows.values():
        assert row["difference"] == pytest.approx(row["b"] - row["a"])
        assert row["low"] <= row["difference"] <= row["high"]
    large = models[1]
    weights, Y = propensity(large.label_counts_, 80), large.encode_targets(TRUE)
    value = psp_at_k(Y, topk(large, NEW, 2)[0], 2, propensities=weights)
    assert rows["PSP@2"]["b"] == pytest.approx(value)
    places = {name: at for at, name in enumerate(large.classes_)}
    own, other = (topk(model, NEW, 2)[0] for model in models)
    own = np.array([[places[models[0].classes_[at]] for at in row] for row in own])
    drawn = paired_bootstrap(Y, own, other, metric="P@2", random_state=1)
    interval = rows["P@2"]["low"], rows["P@2"]["high"]
    assert interval == pytest.approx((drawn.low, drawn.high), abs=0.01)


def test_labels_and_groups(found, models):
    a, b = (
        {
            (row, model.classes_[at])
            for row, best in enumerate(topk(model, NEW, 2)[0])
            for at in best
        }
        & {(row, name) for row, names in enumerate(TRUE) for name in names}
        for model in models
    )
    rows = rows_of(found.labels)
    assert sorted(row["label"] for row in rows) == sorted({*WORDS, "tart"})
    gains = [row["found_b"] - row["found_a"] for row in rows]
    assert gains == sorted(gains, reverse=True)
    for row in rows:
        name = row["label"]
        assert row["n_true"] == sum(name in names for names in TRUE)
        assert row["n_train"] == sum(name in names for names in NAMES)
        assert row["found_a"] == sum(hit[1] == name for hit in a)
        assert row["found_b"] == sum(hit[1] == name for hit in b)
        only_a, only_b = (sum(hit[1] == name for hit in hits) for hits in (a - b, b - a))
        p = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
        assert row["p_value"] == pytest.approx(p)
    tested = [row for row in rows if row["p_value"] < 1]
    rates = false_discovery_control([row["p_value"] for row in tested])
    assert [row["q_value"] for row in tested] == pytest.approx(rates.tolist())
    for group in rows_of(found.groups):
        here = [row for row in rows if group["lower"] <= row["n_train"] <= group["upper"]]
        n_true = sum(row["n_true"] for row in here)
        assert (group["n_labels"], group["n_true"]) == (len(here), n_true)
        assert group["a"] == pytest.approx(sum(row["found_a"] for row in here) / n_true)
        assert group["b"] == pytest.approx(sum(row["found_b"] for row in here) / n_true)


def test_text_and_picture(found):
    assert str(found).startswith("a: few, b: many, 60 instances\n\nmetric ")
    ax = found.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == found.metrics["metric"].tolist()
    assert ax.get_xlabel() == "many minus few (percentage points)"


def test_classes_in_another_order_and_any_form_of_y():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    Y = (X[:, :4] + rng.normal(size=(90, 4)) > 0.5).astype(int)
    names, order = list("abcd"), [2, 0, 3, 1]
    first = OvALinearXC(label_names=names).fit(X[:60], Y[:60])
    second = OvALinearXC(C=0.1, label_names=[names[i] for i in order]).fit(X[:60], Y[:60, order])
    lists = [[names[label] for label in np.flatnonzero(row)] for row in Y[60:]]
    by_name = compare_models(first, second, X[60:], lists, k=2, random_state=0)
    by_column = compare_models(
        first, second, X[60:], sp.csr_array(Y[60:]), k=2, classes=names, random_state=0
    )
    assert by_name.metrics.equals(by_column.metrics)
    with pytest.raises(ValueError, match="Pass classes, the names of y's columns"):
        compare_models(first, second, X[60:], Y[60:])
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    one, other = LogisticRegression().fit(X[:60], y[:60]), OvALinearXC().fit(X[:60], y[:60])
    found = compare_models(one, other, X[60:], y[60:], k=1, random_state=0)
    assert found.metrics["a"][0] == pytest.approx(one.score(X[60:], y[60:]))
    with pytest.raises(ValueError, match="labels are matched by name"):
        compare_models(one, OvALinearXC().fit(X[:60], Y[:60]), X[60:], y[60:])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "k must be an integer of at least 1. Got 0"),
        ({"confidence": 1}, "confidence must be between 0 and 1. Got 1"),
        ({"names": ("a", "a")}, r"names must be two different texts. Got \('a', 'a'\)"),
        ({"X": NEW[:5]}, "X must have 60 rows, as many as y. Got 5"),
        ({"y": [[]] * 60}, "y must have true labels. Got none in 60 rows"),
    ],
)
def test_errors(changed, message, models):
    arguments = {"X": NEW, "y": TRUE, **changed}
    with pytest.raises(ValueError, match=f"^compare_models: {message}"):
        compare_models(*models, **arguments)
    with pytest.raises(TypeError, match="model_b must be a fitted classifier"):
        compare_models(models[0], CountVectorizer(), NEW, TRUE)

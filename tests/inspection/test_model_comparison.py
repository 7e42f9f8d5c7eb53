"""Two models side by side: numbers of the metrics and of loops, labels by name, safe pages."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest, false_discovery_control
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from sklearn_xc import OvALinearXC, TextClassifierXC, topk
from sklearn_xc.inspection import ModelComparison, compare_models
from sklearn_xc.inspection.comparison.measures import Difference, false_discovery_rates
from sklearn_xc.metrics import paired_bootstrap, propensity, psp_at_k
from sklearn_xc.metrics.scorers import get_scorer
from sklearn_xc.model_selection import GridSearchCV

WORDS = {
    "soup": "broth ladle simmer stock", "bread": "dough yeast crust knead",
    "ale": "hops malt brew barrel", "cake": "sugar icing sponge tin", "pie": "lid filling",
}  # fmt: skip


def made(n, seed):
    """Return texts, some words of which are those of other labels, and one or two names of each."""
    rng = np.random.default_rng(seed)
    texts, names = [], []
    for _ in range(n):
        some = rng.choice(list(WORDS), size=rng.integers(1, 3), replace=False).tolist()
        said = [rng.choice(list(WORDS)) if rng.random() < 0.3 else name for name in some]
        texts.append(" ".join(word for name in said for word in rng.choice(WORDS[name].split(), 2)))
        names.append(some)
    return texts, names


TRAIN, NAMES = made(80, 0)
NEW, TRUE = made(60, 1)
TRUE[3] = [*TRUE[3], "tart"]  # that no training row has


def tagger(n, **options):
    return TextClassifierXC(
        CountVectorizer(**options), OvALinearXC(prune=0, C=0.5)
    ).fit(TRAIN[:n], NAMES[:n])  # fmt: skip


@pytest.fixture(scope="module")
def models():
    """Return a model of few rows that does not know all labels, and one of many."""
    few = [row for row in range(14) if "pie" not in NAMES[row]]
    small = TextClassifierXC(CountVectorizer(), OvALinearXC(prune=0))
    small.fit([TRAIN[row] for row in few], [NAMES[row] for row in few])
    return small, tagger(80)


@pytest.fixture(scope="module")
def found(models):
    return compare_models(*models, NEW, TRUE, k=2, names=("few", "many"), random_state=0)


class TestNumbers:
    def test_metrics(self, found, models):
        by_name = {one.name: one for one in found.metrics}
        expected = ["P@1", "P@2", "nDCG@2", "R@2", "PSP@1", "PSP@2", "micro-F1", "macro-F1"]
        assert list(by_name) == expected
        for name in expected[:4]:
            scorer, one = get_scorer(name), by_name[name]
            for model, value in zip(models, (one.a, one.b), strict=True):
                assert value == pytest.approx(scorer(model, NEW, TRUE), abs=1e-12)
        for one in found.metrics:
            assert one.difference == pytest.approx(one.b - one.a, abs=1e-12)
            assert one.low <= one.difference <= one.high
            assert one.is_clear == (one.low > 0 or one.high < 0)

    def test_intervals_are_those_of_the_paired_bootstrap(self, found, models):
        Y = models[1].encode_targets(TRUE)
        places = {name: at for at, name in enumerate(models[1].classes_)}
        own, other = (topk(model, NEW, 2)[0] for model in models)
        own = np.array([[places[models[0].classes_[at]] for at in row] for row in own])
        # The name that no model knows counts in the recall of its row, and in no precision.
        drawn = paired_bootstrap(Y, own, other, metric="P@2", random_state=1)
        (one,) = (one for one in found.metrics if one.name == "P@2")
        assert (one.low, one.high) == pytest.approx((drawn.low, drawn.high), abs=0.01)

    def test_propensities_are_those_of_the_larger_counts(self, found, models):
        large = models[1]
        weights = propensity(large.label_counts_, 80)
        value = psp_at_k(
            large.encode_targets(TRUE), topk(large, NEW, 2)[0], 2, propensities=weights
        )
        (one,) = (one for one in found.metrics if one.name == "PSP@2")
        assert one.b == pytest.approx(value, abs=1e-12)

    def test_f1(self, found, models):
        all_names = sorted({*WORDS, "tart"})
        true = np.array([[name in row for name in all_names] for row in TRUE])
        for which, model in enumerate(models):
            named = np.array([[name in row for name in all_names] for row in model.predict(NEW)])
            micro, macro = found.metrics[-2:]
            assert micro[1 + which] == pytest.approx(f1_score(true, named, average="micro"))
            assert macro[1 + which] == pytest.approx(
                f1_score(true, named, average="macro", zero_division=np.nan)
            )

    def hits_of(self, models):
        """Return for each model the set of (row, name) that are true and among the two best."""
        sets = []
        for model in models:
            best = topk(model, NEW, 2)[0]
            sets.append(
                {(row, model.classes_[at]) for row in range(len(NEW)) for at in best[row]}
                & {(row, name) for row, names in enumerate(TRUE) for name in names}
            )
        return sets

    def test_labels(self, found, models):
        a, b = self.hits_of(models)
        table = found.to_frames()["labels"].set_index("label")
        assert sorted(table.index) == sorted({*WORDS, "tart"})
        for name, row in table.iterrows():
            assert row.n_true == sum(name in names for names in TRUE)
            assert row.n_train == sum(name in names for names in NAMES)
            assert row.found_a == sum(hit[1] == name for hit in a)
            assert row.only_a == sum(hit[1] == name for hit in a - b)
            assert row.only_b == sum(hit[1] == name for hit in b - a)
            n = row.only_a + row.only_b
            p = binomtest(int(row.only_a), int(n)).pvalue if n else 1.0
            assert row.p_value == pytest.approx(p)
            named = sum(name in models[1].classes_[topk(models[1], [text], 2)[0][0]]
                        for text in NEW)  # fmt: skip
            assert row.named_b == named
        tested = table.p_value < 1
        np.testing.assert_allclose(
            table.q_value[tested], false_discovery_control(table.p_value[tested])
        )
        assert np.all(table.q_value[~tested] == 1)
        order = found.labels.best_gains(9, 1)
        change = (found.labels.only_b - found.labels.only_a)[order]
        assert np.all(change > 0)
        assert np.all(np.diff(change) <= 0)

    def test_groups(self, models):
        found = compare_models(*models, NEW, TRUE, k=2, n_groups=2, random_state=0)
        a, b = self.hits_of(models)
        assert found.groups[0].upper == 0
        assert sum(one.n_true for one in found.groups) == sum(map(len, TRUE))
        for one in found.groups:
            names = {name for name in {*WORDS, "tart"}
                     if one.lower <= sum(name in row for row in NAMES) <= one.upper}  # fmt: skip
            n_true = sum(name in names for row in TRUE for name in row)
            assert one.n_true == n_true
            for value, hits in ((one.recall.a, a), (one.recall.b, b)):
                assert value == pytest.approx(sum(hit[1] in names for hit in hits) / n_true)

    def test_cases(self, found, models):
        firsts = [topk(model, NEW, 1)[0][:, 0] for model in models]
        right = [
            np.array([model.classes_[at] in names for at, names in zip(first, TRUE, strict=True)])
            for model, first in zip(models, firsts, strict=True)
        ]
        only = (int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum()))
        assert found.n_right_alone == only
        assert min(only) > 0
        assert [case.right for case in found.cases] == sorted(
            (case.right for case in found.cases), reverse=True
        )
        for case in found.cases:
            assert right[case.right][case.row]
            assert not right[1 - case.right][case.row]
            assert case.instance == NEW[case.row]
            assert sorted(case.truth) == sorted(TRUE[case.row])
            assert [one.label for one in case.answers[1]] == models[1].classes_[
                topk(models[1], [NEW[case.row]], 2)[0][0]
            ].tolist()
            wrong = models[1 - case.right]
            assert case.explanations[0][0] == "its wrong label"
            for _, made_of in case.explanations:
                expected = wrong.explain(NEW[case.row], made_of.label, n_features=6)
                assert str(made_of) == str(expected)
            if case.right_label not in wrong.classes_:
                assert case.notes == ["'pie' is not among the labels of TextClassifierXC."]
            else:
                assert len(case.explanations) == 2

    def test_it_can_be_repeated(self, found, models):
        again = compare_models(*models, NEW, TRUE, k=2, names=("few", "many"), random_state=0)
        assert json.dumps(again.to_dict()) == json.dumps(found.to_dict())

    def test_the_other_way_round(self, found, models):
        other = compare_models(*models[::-1], NEW, TRUE, k=2, random_state=0)
        for one, reverse in zip(found.metrics, other.metrics, strict=True):
            assert (one.a, one.b, one.difference) == pytest.approx(
                (reverse.b, reverse.a, -reverse.difference)
            )
        assert other.n_right_alone == found.n_right_alone[::-1]


def test_false_discovery_rates_of_nothing():
    assert false_discovery_rates(np.ones(3)).tolist() == [1, 1, 1]
    np.testing.assert_allclose(
        false_discovery_rates(np.array([0.01, 1.0, 0.04, 0.03])), [0.03, 1, 0.04, 0.04]
    )


@pytest.fixture(scope="module")
def indicator():
    names = sorted(WORDS)
    Y = np.array([[name in row for name in names] for row in NAMES]).astype(int)
    T = np.array([[name in row for name in names] for row in TRUE]).astype(int)
    vectorizer = TfidfVectorizer().fit(TRAIN)
    return vectorizer.transform(TRAIN), Y, vectorizer.transform(NEW), T, names


class TestLabelsAreMatchedByName:
    def test_classes_in_another_order(self, indicator):
        X, Y, Z, T, names = indicator
        one = OvALinearXC(label_names=names).fit(X, Y)
        turned = OvALinearXC(label_names=names[::-1]).fit(X, Y[:, ::-1])
        lists = [[name for name in row if name in WORDS] for row in TRUE]
        for y, classes in ((lists, None), (T, names), (pd.DataFrame(T, columns=names), None)):
            found = compare_models(one, turned, Z, y, classes=classes, k=2, random_state=0)
            assert all(metric.difference == pytest.approx(0) for metric in found.metrics)
            assert found.n_right_alone == (0, 0)
        with pytest.raises(ValueError, match=r"different classes_, .* Pass classes"):
            compare_models(one, turned, Z, T)

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.coo_matrix])
    def test_indicators_and_foreign_models(self, indicator, container):
        X, Y, Z, T, names = indicator
        ours = OvALinearXC(prune=0).fit(X, container(Y))
        foreign = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
        found = compare_models(ours, foreign, Z, container(T), k=2, random_state=0, n_examples=1)
        (first, *_) = found.metrics
        expected = T[np.arange(60), topk(foreign, Z, 1)[0][:, 0]].mean()
        assert first.b == pytest.approx(expected)
        assert found.n_trained == (80, None)
        named = compare_models(
            ours, foreign, Z, container(T), classes=names, k=2, random_state=0, n_examples=1
        )
        assert named.label_names == names
        assert named.metrics == found.metrics
        notes = [note for case in found.cases if case.right == 0 for note in case.notes]
        assert set(notes) <= {"OneVsRestClassifier does not explain its scores."}

    def test_one_class_each(self, indicator):
        X, _, Z, _, _ = indicator
        y, true = ([row[0] for row in rows] for rows in (NAMES, TRUE))
        few = [row for row in range(80) if y[row] != "pie"]
        ours = OvALinearXC(prune=0).fit(X[few], [y[row] for row in few])
        foreign = LogisticRegression().fit(X, y)
        found = compare_models(ours, foreign, Z, true, k=2, random_state=0)
        assert [one.name for one in found.metrics] == ["P@1", "P@2", "nDCG@2", "R@2",
                                                       "PSP@1", "PSP@2"]  # fmt: skip
        assert found.metrics[0].a == pytest.approx(ours.score(Z, true))
        assert found.metrics[0].b == pytest.approx(foreign.score(Z, true))
        numbers = {name: at * 7 for at, name in enumerate(WORDS)}
        by_number = [
            model.fit(X, [numbers[name] for name in y])
            for model in (OvALinearXC(prune=0), LogisticRegression())
        ]
        again = compare_models(*by_number, Z, [numbers[name] for name in true], k=2)
        assert again.metrics[0].b == found.metrics[0].b
        with pytest.raises(ValueError, match=r"names of one kind, .* Got texts in y such as"):
            compare_models(*by_number, Z, true)

    def test_a_tagger_against_a_pipeline_a_search_and_a_forest(self, models, indicator):
        _, Y, _, _, names = indicator
        pipeline = make_pipeline(TfidfVectorizer(), OvALinearXC(label_names=names, prune=0))
        pipeline.fit(TRAIN, Y)
        found = compare_models(models[1], pipeline, NEW, TRUE, k=2, random_state=0)
        made_of = [case.explanations for case in found.cases if case.right == 0]
        assert made_of
        assert all(isinstance(name, str) for _, one in made_of[0] for name in one.features)
        search = GridSearchCV(
            TextClassifierXC(CountVectorizer(), OvALinearXC(prune=0)), {"classifier__C": [0.5]},
            cv=2,
        ).fit(TRAIN, NAMES)  # fmt: skip
        same = compare_models(models[1], search, NEW, TRUE, k=2, random_state=0)
        assert [one.difference for one in same.metrics] == pytest.approx([0] * 8)
        forest = make_pipeline(CountVectorizer(), RandomForestClassifier(5, random_state=0))
        T = np.array([[name in row for name in names] for row in TRUE]).astype(int)
        forest.fit(TRAIN, Y)
        compared = compare_models(pipeline, forest, NEW, T, k=2, random_state=0)
        assert compared.label_names == names

    def test_texts_of_names(self):
        rows = [";".join(row) for row in NAMES]
        a, b = (
            TextClassifierXC(CountVectorizer(), OvALinearXC(prune=0), separator=";").fit(
                TRAIN[:n], rows[:n]
            )
            for n in (40, 80)
        )
        found = compare_models(a, b, NEW, [";".join(row) for row in TRUE], k=2, random_state=0)
        lists = compare_models(a, b, NEW, TRUE, k=2, random_state=0)
        assert found.metrics == lists.metrics


class Tags(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


class TestReports:
    def test_text(self, found):
        lines = str(found).splitlines()
        assert max(map(len, lines)) <= 100
        assert lines[0] == "few (TextClassifierXC) against many (TextClassifierXC), on 60 instances"
        assert found.verdict.split(".")[0] in " ".join(line.strip() for line in lines)
        assert repr(found) == str(found)
        assert any(line.startswith("P@1 ") for line in lines)
        assert "Labels that gain most with many" in str(found)

    @pytest.mark.parametrize(
        ("intervals", "says"),
        [
            ([(1, 2), (1, 2)], "B is better than A in x0 and x1, by more than luck."),
            ([(1, 2), (-1, 2)], "B is better than A in x0, by more than luck. x1 does not differ"),
            ([(-1, 2), (-1, 2), (-2, -1)], "A is better than B in x2, by more than luck. The oth"),
            ([(1, 2), (-2, -1)], "Neither is better in all: B is better in x0, A in x1, each"),
            ([(-1, 2)], "x0 does not differ by more than luck: no reason to prefer either."),
            ([(-1, 2), (0, 2)], "No metric differs by more than luck: no reason to prefer eithe"),
        ],
    )
    def test_verdicts(self, found, intervals, says):
        metrics = [
            Difference(f"x{at}", 0.5, 0.5, 0.0, low, high, 0.5)
            for at, (low, high) in enumerate(intervals)
        ]
        other = ModelComparison(**{**vars(found), "metrics": metrics, "names": ("A", "B")})
        assert other.verdict.startswith(says)

    @pytest.mark.parametrize(("confidence", "n"), [(0.95, "20"), (0.999, "1,000")])
    def test_both_reports_say_what_chance_does(self, found, confidence, n):
        other = ModelComparison(**{**vars(found), "confidence": confidence})
        text = " ".join(str(other).split())
        assert f"about one metric in {n} is marked so by chance." in text
        assert f"about one metric in {n} is marked so by chance." in other._repr_html_()
        assert "marked * where the interval leaves out 0" in text
        assert "bold where the interval leaves out 0" in other._repr_html_()

    def test_rows_are_plain_and_counts_have_commas(self, found):
        cases = [dataclasses.replace(case, row=123456) for case in found.cases]
        other = ModelComparison(**{**vars(found), "cases": cases, "n": 654321})
        for report in (str(other), other._repr_html_()):
            assert "123456" in report
            assert "123,456" not in report
            assert "654,321 instances" in report

    def test_a_page_holds_what_is_in_texts_as_texts(self, tmp_path):
        bad = "<script>alert('x')</script> & \"q\""
        names = [[f"{name} <b>{bad}"] for row in NAMES for name in row[:1]]
        texts = [f"{text} <img src=http://example.org/{bad}" for text in TRAIN]
        a, b = (
            TextClassifierXC(CountVectorizer(token_pattern=r"\S+"), OvALinearXC(prune=0)).fit(
                texts[:n], names[:n]
            )
            for n in (12, 80)
        )
        found = compare_models(a, b, texts, names, k=2, names=(f"a{bad}", f"b{bad}"))
        assert found.cases
        found.to_html(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        for html in (page, found._repr_html_()):
            reader = Tags()
            reader.feed(html)
            assert not reader.tags & {"script", "img", "link", "iframe", "object", "form"}
            assert not reader.attributes & {"src", "href", "srcset", "data", "onclick", "onload"}
            assert "alert('x')" in "".join(reader.texts)
            assert not re.search(r"url\(|@import", html)
        assert page.startswith("<!doctype html>")
        assert "viewport" in page

    def test_pages_are_replaced_when_complete(self, found, tmp_path):
        with pytest.raises(FileNotFoundError):
            found.to_html(tmp_path / "nowhere" / "page.html")
        found.to_html(tmp_path / "page.html")
        found.to_html(str(tmp_path / "page.html"))
        assert [path.name for path in tmp_path.iterdir()] == ["page.html"]

    def test_for_programs(self, found):
        plain = json.loads(json.dumps(found.to_dict()))
        assert plain["names"] == ["few", "many"]
        assert plain["metrics"][0]["difference"] == found.metrics[0].difference
        changes = [one["only_b"] - one["only_a"] for one in plain["labels"]]
        assert changes == sorted(changes, reverse=True)
        assert plain["cases"][0]["answers"]["many"][0]["is_true"]
        frames = found.to_frames()
        assert frames["metrics"]["name"].tolist() == [one.name for one in found.metrics]
        assert len(frames["groups"]) == len(found.groups)

    def test_features_where_there_are_no_texts(self):
        vectorizer = TfidfVectorizer().fit(TRAIN)
        X, Z = vectorizer.transform(TRAIN), vectorizer.transform(NEW)
        names = sorted(WORDS)
        Y = np.array([[name in row for name in names] for row in NAMES]).astype(int)
        T = np.array([[name in row for name in names] for row in TRUE]).astype(int)
        a, b = (OvALinearXC(prune=0).fit(X[:n], Y[:n]) for n in (20, 80))
        words = vectorizer.get_feature_names_out()
        options = {"k": 2, "random_state": 0, "n_examples": 2}
        found = compare_models(a, b, Z, T, feature_names=words, **options)
        for case in found.cases:
            shown = {part.split(" (")[0] for part in case.instance.split(", ")}
            assert shown <= set(NEW[case.row].split())
        dense = compare_models(a, b, Z.toarray(), T, feature_names=words, **options)
        assert str(dense).split("drawn")[0] == str(found).split("drawn")[0]
        by_text = compare_models(a, b, Z, T, texts=NEW, **options)
        assert [case.instance for case in by_text.cases] == [
            NEW[case.row] for case in by_text.cases
        ]
        frame = pd.DataFrame(Z.toarray(), columns=words)
        models = [
            OvALinearXC(prune=0).fit(pd.DataFrame(X[:n].toarray(), columns=words), Y[:n])
            for n in (20, 80)
        ]
        assert " = " in compare_models(*models, frame, T, **options).cases[0].instance


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"k": 0}, "compare_models: k must be an integer of at least 1"),
        ({"n_examples": -1}, "n_examples must be an integer of at least 0"),
        ({"n_labels": 1.5}, "n_labels must be an integer of at least 0"),
        ({"n_groups": 0}, "n_groups must be an integer of at least 1"),
        ({"n_resamples": 5}, "n_resamples must be an integer of at least 100"),
        ({"confidence": 1}, "confidence must be between 0 and 1. Got 1"),
        ({"metrics": ["P@1", "MAP"]}, "metrics must be names such as 'P@1', .* Got 'MAP'"),
        ({"metrics": "Cov@1"}, "metrics must be names such as .* Got 'Cov@1'"),
        ({"metrics": []}, "metrics must be at least one name"),
        ({"names": ("a",)}, "names must be two texts"),
        ({"names": ("a", "a")}, "names must be two different texts"),
        ({"X": NEW[:5]}, "X must have 60 rows, as many as y. Got 5"),
        ({"X": "soup"}, "X must be a list of texts. Got one text"),
        ({"texts": NEW[:5]}, "texts must have 60 rows, as many as y. Got 5"),
        ({"y": [[]] * 60}, "y must have true labels. Got none in 60 rows"),
        ({"y": np.ones((60, 3), int)}, "y must have a column for each of the . labels of model_a"),
        ({"y": np.ones((60, 2), int), "classes": ["a"]}, "classes must be 2 names"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_what_is_refused(models, changed, message):
    arguments = {"X": NEW, "y": TRUE} | changed
    with pytest.raises(ValueError, match=message):
        compare_models(*models, arguments.pop("X"), arguments.pop("y"), **arguments)


def test_models_that_are_none(models):
    with pytest.raises(TypeError, match="CountVectorizer without classes_"):
        compare_models(models[0], CountVectorizer().fit(TRAIN), NEW, TRUE)
    single = LogisticRegression().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="micro-F1 needs models whose predict gives label sets"):
        compare_models(single, single, np.eye(3), [0, 1, 2], metrics=["micro-F1"], k=1)
    with pytest.raises(ValueError, match="PSP@1 needs a model with label_counts_"):
        compare_models(single, single, np.eye(3), [0, 1, 2], metrics=["PSP@1"], k=1)

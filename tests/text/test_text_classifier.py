"""Texts and names in, names out: in folds, searches and pickles, label texts without a leak."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier as Forest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.model_selection import cross_validate as sklearn_cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer
from sklearn.utils import estimator_html_repr

from sklearn_xc import (
    ImplicitSoftmaxSGD,
    NGAMEEmbeddingXC,
    OvALinearXC,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
    topk,
    topk_names,
)
from sklearn_xc.exceptions import UnknownLabelWarning, UnseenLabelWarning
from sklearn_xc.metrics import get_scorer
from sklearn_xc.model_selection import cross_validate

WORDS = {
    "soup": "broth ladle simmer stock",
    "bread": "dough yeast crust knead",
    "ale": "hops malt brew barrel",
    "cake": "sugar icing sponge tin",
}


def made(n, seed=0):
    """Return n texts, and the names of one or two labels of each."""
    rng = np.random.default_rng(seed)
    texts, names = [], []
    for _ in range(n):
        some = rng.choice(list(WORDS), size=rng.integers(1, 3), replace=False).tolist()
        words = [word for name in some for word in rng.choice(WORDS[name].split(), 2)]
        texts.append(" ".join([*words, rng.choice(["hot", "cold", "old"])]))
        names.append(some)
    return texts, names


TEXTS, NAMES = made(120)
NEW, NEW_NAMES = made(40, 1)


@pytest.fixture(scope="module")
def tagger():
    return TextClassifierXC().fit(TEXTS, NAMES)


def test_names_come_back(tagger):
    assert tagger.classes_.tolist() == sorted(WORDS)
    answer = tagger.predict(NEW)
    assert [set(row) for row in answer] == [set(row) for row in NEW_NAMES]
    assert tagger.score(NEW, NEW_NAMES) == 1.0
    best = topk_names(tagger, NEW, k=9)
    assert all(len(row) == 4 for row in best)
    assert all(row[0] in names for row, names in zip(best, NEW_NAMES, strict=True))
    pairs = topk_names(tagger, NEW, k=1, return_scores=True)
    np.testing.assert_allclose([row[0][1] for row in pairs], topk(tagger, NEW, 1)[1][:, 0])


def test_it_is_the_parts_by_hand(tagger):
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    binarizer = MultiLabelBinarizer(sparse_output=True)
    model = OvALinearXC().fit(vectorizer.fit_transform(TEXTS), binarizer.fit_transform(NAMES))
    for one, other in zip(
        tagger.predict_topk(NEW, 3), model.predict_topk(vectorizer.transform(NEW), 3), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(tagger.label_counts_, model.label_counts_)
    assert tagger.n_samples_fit_ == 120
    decision = tagger.decision_function(NEW)
    assert (decision != model.decision_function(vectorizer.transform(NEW))).nnz == 0


def test_names_in_one_text(tagger):
    joined = pd.Series([" ; ".join(row) for row in NAMES])
    model = TextClassifierXC(separator=";").fit(pd.Series(TEXTS), joined)
    assert model.predict(NEW) == tagger.predict(NEW)
    assert model.score(NEW, [";".join(row) for row in NEW_NAMES]) == 1.0


def test_one_class_each():
    classes = [row[0] for row in NAMES]
    model = TextClassifierXC(classifier=ImplicitSoftmaxSGD(random_state=0)).fit(TEXTS, classes)
    answer = model.predict(NEW)
    assert answer.shape == (40,)
    assert set(answer) <= set(WORDS)
    np.testing.assert_allclose(model.predict_proba(NEW).sum(axis=1), 1, rtol=1e-5)
    assert not hasattr(TextClassifierXC(), "predict_proba")


@pytest.mark.parametrize("container", [sp.csr_matrix, pd.DataFrame])
def test_an_indicator_comes_back_as_it_came(tagger, container):
    binarizer = MultiLabelBinarizer()
    Y = container(binarizer.fit_transform(NAMES))
    model = TextClassifierXC().fit(TEXTS, Y)
    answer = model.predict(NEW)
    assert sp.issparse(answer) == sp.issparse(Y)
    expected = binarizer.transform(tagger.predict(NEW))
    np.testing.assert_array_equal(answer.toarray() if sp.issparse(answer) else answer, expected)
    assert model.score(TEXTS, Y) == tagger.score(TEXTS, NAMES)


def test_a_name_that_fit_has_not_seen_counts_as_missed(tagger):
    strange = [[*row, "tea"] for row in NEW_NAMES]
    assert tagger.score(NEW, strange) == 1.0
    with pytest.warns(UnknownLabelWarning, match=r"none of the 1 names is known: 'tea'\.$"):
        assert tagger.score(NEW, [["tea"]] * 40) == 0.0
    recall = get_scorer("R@5")
    expected = np.mean([len(row) / (len(row) + 1) for row in NEW_NAMES])
    np.testing.assert_allclose(recall(tagger, NEW, strange), expected)


def test_scorers_of_scikit_learn_take_names(tagger):
    joined = [";".join(row) for row in NEW_NAMES]
    model = make_pipeline(FunctionTransformer(), TextClassifierXC(separator=";"))
    model.fit(TEXTS, [";".join(row) for row in NAMES])
    scorer = pickle.loads(pickle.dumps(get_scorer("f1_micro")))
    true, named = (tagger.encode_targets(y) for y in (NEW_NAMES[5:], model.predict(NEW[:-5])))
    expected = f1_score(true, named, average="micro")
    assert 0 < expected < 1
    assert scorer(model, NEW[:-5], joined[5:]) == expected
    search = GridSearchCV(model, {"memory": [None]}, scoring=get_scorer("f1_micro"), cv=KFold(2))
    assert search.fit(TEXTS, [";".join(row) for row in NAMES]).best_score_ > 0.9


def test_the_parts_are_displayed(tagger):
    stack = StackingXC([("words", OvALinearXC()), ("none", "drop")], final_estimator=Forest())
    models = {
        "TfidfVectorizer ThresholdTuner OvALinearXC": TextClassifierXC(),
        "CountVectorizer words OvALinearXC none RandomForest": TextClassifierXC(
            CountVectorizer(), stack
        ),
        "TfidfVectorizer ThresholdTuner": tagger,
    }
    for names, model in models.items():
        shown = re.sub("<[^>]+>", " ", estimator_html_repr(model).split("</style>")[-1])
        assert all(name in shown for name in names.split())


def test_folds_and_searches():
    search = GridSearchCV(
        TextClassifierXC(),
        {"vectorizer": [CountVectorizer(), TfidfVectorizer()], "classifier": [OvALinearXC(C=9)]},
        scoring=get_scorer("P@1"),
        cv=3,
    )
    search.fit(TEXTS, NAMES)
    assert search.best_score_ > 0.9
    assert [set(row) for row in search.predict(NEW)] == [set(row) for row in NEW_NAMES]
    assert topk_names(search, NEW, 1) == topk_names(search.best_estimator_, NEW, 1)
    nested = GridSearchCV(
        TextClassifierXC(TfidfVectorizer(), OvALinearXC()),
        {"vectorizer__min_df": [1, 2], "classifier__C": [0.5, 1]},
        cv=2,
    )
    assert nested.fit(TEXTS, NAMES).score(NEW, NEW_NAMES) == 1.0
    scores = cross_validate(TextClassifierXC(), TEXTS, NAMES, scoring=["P@1", "PSP@3"], cv=3)
    np.testing.assert_array_equal(
        scores["test_P@1"], cross_val_score(TextClassifierXC(), TEXTS, NAMES, cv=3)
    )
    joined = [";".join(row) for row in NAMES]
    split = cross_val_score(TextClassifierXC(separator=";"), TEXTS, joined, cv=KFold(3))
    np.testing.assert_array_equal(split, scores["test_P@1"])


def test_words_that_only_label_texts_have_are_learnt():
    label_texts = dict(WORDS) | {"tea": "kettle leaf"}
    classifier = NGAMEEmbeddingXC(max_iter=1, classifier_max_iter=1, random_state=0)
    model = TextClassifierXC(classifier=classifier, label_texts=label_texts)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnseenLabelWarning)
        model.fit(TEXTS, NAMES)
    assert topk_names(model, ["a leaf in the kettle"], k=1) == [["tea"]]
    expected = clone(model.vectorizer_).fit([*TEXTS, *label_texts.values()])
    assert model.vectorizer_.vocabulary_ == expected.vocabulary_
    model.set_params(vectorizer=TfidfVectorizer(min_df=2))
    with pytest.warns(UnseenLabelWarning, match=r"and no known word or feature \('tea'\)"):
        model.fit(TEXTS, NAMES)


def test_label_texts_go_through_the_vectorizer_of_each_fold():
    """A vocabulary of all rows would be wider than that of a fold's."""
    unique = [f"{text} word{i}" for i, text in enumerate(TEXTS)]
    label_texts = dict(WORDS) | {"tea": "kettle leaf word7"}
    ngame = NGAMEEmbeddingXC(max_iter=1, classifier_max_iter=1, random_state=0)
    model = TextClassifierXC(classifier=ngame, label_texts=label_texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = sklearn_cross_validate(
            model, unique, NAMES, cv=3, scoring=get_scorer("P@1"), return_estimator=True
        )
    for fold, (train, _) in zip(found["estimator"], KFold(3).split(unique), strict=True):
        words = fold.vectorizer_.get_feature_names_out()
        known = {word for row in train for word in unique[row].split()}
        known |= {word for text in label_texts.values() for word in text.split()}
        assert set(words) <= known
        held = fold.classifier_.label_features
        assert held.features.shape == (5, len(words))
        expected = fold.vectorizer_.transform(label_texts.values())
        assert (held.features != sp.csr_array(expected)).nnz == 0


def test_a_label_that_only_its_text_knows():
    texts = WORDS | {"pie": "crust pastry rhubarb"}
    ngame = NGAMEEmbeddingXC(random_state=0)
    model = TextClassifierXC(classifier=ngame, label_texts=texts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit([*TEXTS, *["pastry rhubarb"] * 3], [*NAMES, *[["cake"]] * 3])
    assert model.classes_.tolist() == ["ale", "bread", "cake", "soup", "pie"]
    assert model.label_counts_[-1] == 0
    assert "pie" in topk_names(model, ["pastry rhubarb"], 5)[0]
    some = {name: text for name, text in WORDS.items() if name != "ale"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = TextClassifierXC(classifier=ngame, label_texts=pd.Series(some)).fit(TEXTS, NAMES)
    held = part.classifier_.label_features
    assert held.classes.tolist() == ["soup", "bread", "cake", "ale"]
    assert held.features[[3]].nnz == 0


def test_it_explains_one_text_in_any_container(tagger):
    expected = str(tagger.explain("simmer the stock", "soup"))
    for one in (["simmer the stock"], pd.Series(["simmer the stock"], index=[7])):
        assert str(tagger.explain(one, "soup")) == expected
    with pytest.raises(ValueError, match=r"^TextClassifierXC: explain takes one text\. Got 2: "):
        tagger.explain(pd.Series(["simmer the stock", "knead"]), "soup")
    with pytest.raises(ValueError, match=r"Got 'Suop'\. Did you mean 'soup'\?$"):
        tagger.explain("simmer the stock", "Suop")
    with pytest.raises(ValueError, match="X must hold texts"):
        tagger.explain(3, "soup")
    with pytest.raises(NotFittedError):
        TextClassifierXC().explain("simmer", "soup")


@pytest.mark.filterwarnings("ignore::sklearn_xc.exceptions.SmallGroupWarning")
def test_the_explanation_of_a_calibrated_tagger_has_the_probability(tagger):
    calibrated = TopKCalibrator(OvALinearXC(prune=0), cv=2, n_groups=1, random_state=0)
    model = TextClassifierXC(classifier=calibrated).fit(TEXTS, NAMES)
    labels, chances = model.predict_proba_topk(NEW, 4)
    name = model.classes_[labels[5, 3]]
    found = model.explain(NEW[5], name, n_features=2)
    assert found.probability == pytest.approx(chances[5, 3])
    first = f"{name}: score {found.score:+.3f}, probability {chances[5, 3]:.3f}"
    assert str(found).splitlines()[0] == first
    assert tagger.explain(NEW[5], "soup").probability is None


def test_it_is_cloned_and_pickled(tagger):
    copy = pickle.loads(pickle.dumps(tagger))
    assert copy.predict(NEW) == tagger.predict(NEW)
    assert not hasattr(clone(tagger), "classes_")
    parts = clone(TextClassifierXC(TfidfVectorizer(min_df=2), OvALinearXC(C=3), separator="|"))
    assert parts.get_params()["vectorizer__min_df"] == 2
    assert parts.get_params()["classifier__C"] == 3
    parts.set_params(classifier=None, classifier__estimator__C=4)
    assert clone(parts).classifier.estimator.C == 4


@pytest.mark.parametrize(
    ("X", "y", "parameters", "match"),
    [
        ("soup", NAMES, {}, r"X must be a list of texts\. Got one text: put it into a list"),
        (TEXTS, NAMES[:5], {}, r"y has 5 rows and X has 120\.$"),
        (TEXTS, None, {}, r"requires y to be passed, but the target y is None$"),
        (TEXTS, NAMES, {"label_texts": WORDS}, r"label_texts are for a classifier with a param"),
        (TEXTS, NAMES, {"separator": ""}, r"separator must be a text such as ';', or None\. Got"),
        (TEXTS, NAMES, {"vectorizer": 3}, r"'vectorizer' parameter of TextClassifierXC must be"),
    ],
)
def test_bad_input(X, y, parameters, match):
    with pytest.raises(ValueError, match=match):
        TextClassifierXC(**parameters).fit(X, y)


def test_a_forgotten_separator_is_noticed():
    joined = [";".join(row) for row in NAMES]
    with pytest.warns(
        UserWarning, match=r"many hold ';', such as .* pass separator=';'\.$"
    ) as caught:
        TextClassifierXC().fit(TEXTS, joined)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("known", [str, int])
def test_an_integer_stands_for_its_text(known):
    numbers = [[list(WORDS).index(name) + 5 for name in row] for row in NAMES]
    texts = [[str(number) for number in row] for row in numbers]
    tagger = TextClassifierXC().fit(TEXTS, texts if known is str else numbers)
    assert tagger.score(TEXTS, numbers) == tagger.score(TEXTS, texts) > 0.5
    assert (tagger.encode_targets(numbers) != tagger.encode_targets(texts)).nnz == 0
    for name in (5, "5", np.int64(5)):
        assert known(5) not in topk_names(tagger, TEXTS[:1], k=4, exclude=[[name]])[0]
        assert topk_names(tagger, TEXTS[:1], k=4, candidates=[name]) == [[known(5)]]
    with pytest.warns(UnknownLabelWarning, match="none of the 2 names is known") as caught:
        assert tagger.score(NEW[:3], [[98], ["99"][:0], [99]]) == 0
    assert len(caught) == 1


def test_missing_tags_are_none_with_a_warning():
    with pytest.warns(UserWarning, match=r"labels of 2 rows of y are missing \(row 0") as caught:
        tagger = TextClassifierXC().fit(TEXTS, [None, float("nan"), *NAMES[2:]])
    assert len([one for one in caught if "missing" in str(one.message)]) == 1
    assert caught[0].filename == __file__
    empty = TextClassifierXC().fit(TEXTS, [[], [], *NAMES[2:]])
    np.testing.assert_array_equal(tagger.predict_topk(NEW)[1], empty.predict_topk(NEW)[1])


def test_a_parameter_of_the_default_classifier_is_named():
    expected = "classifier__C must be classifier__estimator__C"
    with pytest.raises(ValueError, match=expected):
        TextClassifierXC().set_params(classifier__C=1)
    with pytest.raises(ValueError, match=expected):
        GridSearchCV(TextClassifierXC(), {"classifier__C": [1]}).fit(TEXTS, NAMES)


def test_entries_that_are_not_texts():
    frame = pd.DataFrame({"text": TEXTS, "title": TEXTS})
    with pytest.raises(ValueError, match=r"sequence of 120 texts.* of which Pipeline makes 2 rows"):
        TextClassifierXC(make_pipeline(CountVectorizer())).fit(frame, NAMES)
    with pytest.raises(ValueError, match=r"X must hold texts\. Got None in row 1: .*fillna"):
        TextClassifierXC().fit(["a", None, *TEXTS[2:]], NAMES)
    tokens = TextClassifierXC(CountVectorizer(analyzer=list)).fit([t.split() for t in TEXTS], NAMES)
    assert tokens.score([t.split() for t in NEW], NEW_NAMES) == 1.0


@pytest.mark.parametrize("wrapper", [ThresholdTuner, TopKCalibrator])
def test_wrappers_go_inside(tagger, wrapper):
    name = wrapper.__name__
    says = rf"^{name}: .* Put {name} inside: TextClassifierXC\(vectorizer, {name}\(classifier\)\)\."
    with pytest.raises(TypeError, match=says):
        wrapper(clone(tagger)).fit(TEXTS, NAMES)
    inside = TextClassifierXC(classifier=wrapper(OvALinearXC(), random_state=0))
    assert inside.fit(TEXTS, NAMES).score(NEW, NEW_NAMES) == 1.0

"""Settings of a project, and the model that is made of them: all without Annif."""

import numpy as np
import pytest

import sklearn_xc
from sklearn_xc.integrations.annif import tagging
from sklearn_xc.integrations.annif.settings import (
    ESTIMATORS,
    Settings,
    SettingsError,
    read_settings,
)

PROJECT = {"name": "Tate", "language": "en", "backend": "sklearn_xc", "vocab": "tate", "limit": "9"}
PROJECT |= {"analyzer": "simple", "transform": "limit(5000)", "access": "public"}


def test_a_project_without_settings_has_the_defaults():
    settings = read_settings(PROJECT)
    assert settings == Settings(vectorizer={"min_df": 1})
    model = tagging.make_model(settings)
    assert isinstance(model.classifier, sklearn_xc.TopKCalibrator)
    assert isinstance(model.classifier.estimator, sklearn_xc.OvALinearXC)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("false", False),
        ("none", None),
        ("(1, 2)", (1, 2)),
        ("logistic", "logistic"),
        ("8GB", "8GB"),
        (True, True),
    ],
)
def test_values_are_read_as_python_would(text, value):
    (found,) = read_settings({**PROJECT, "set.name": text}).parameters.values()
    assert (found, type(found)) == (value, type(value))


def test_tables_of_toml_equal_dotted_keys():
    dotted = {"set.C": "2.0", "set.loss": "logistic", "vectorizer.sublinear_tf": "false"}
    tables = {"set": {"C": 2.0, "loss": "logistic"}, "vectorizer": {"sublinear_tf": False}}
    assert read_settings(dotted) == read_settings(tables)
    model = tagging.make_model(read_settings(dotted))
    assert model.get_params()["classifier__estimator__C"] == 2.0
    assert model.get_params()["vectorizer__sublinear_tf"] is False


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"estimator": "OvaLinear"}, r"estimator must be one of OvALinearXC.* Got 'OvaLinear'"),
        ({"calibration": "platt"}, r"calibration must be one of spline, .* Got 'platt'"),
        ({"min_df": "0"}, r"min_df must be a whole number of at least 1\. Got '0'"),
        ({"set": "C=1"}, r"set\.NAME = VALUE .* Got set = 'C=1'"),
        ({"estimater": "SoftmaxUMax"}, r"has no key 'estimater'\. Did you mean 'estimator'\?"),
        ({"set.los": "x"}, r"has no parameter 'los'\. Did you mean 'loss'\?"),
        ({"vectorizer.mindf": "2"}, "TfidfVectorizer has no parameter .* 'min_df'"),
        ({"set.n_jobs": "2"}, r"set\.n_jobs: is set by --jobs of annif train"),
        ({"estimator": "NGAMEEmbeddingXC", "set.label_features": "x"}, "labels of the vocabulary"),
        ({"set.C": "-1"}, r"set: .*C.* Got -1"),
        ({"estimator": "StackingXC", "set.ova__C": "-1"}, r"set: .*C.* Got -1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(keys, problem):
    with pytest.raises(SettingsError, match=problem):
        tagging.make_model(read_settings({**PROJECT, **keys}))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimator_becomes_a_model(estimator):
    model = tagging.make_model(read_settings({"estimator": estimator}), {"u:1": "soup"})
    classifier = model.classifier if estimator == "StackingXC" else model.classifier.estimator
    assert type(classifier).__name__ == estimator
    reads_label_texts = estimator in ("NGAMEEmbeddingXC", "StackingXC")
    assert model.label_texts == ({"u:1": "soup"} if reads_label_texts else None)
    seeds = [v for k, v in model.get_params().items() if k.split("__")[-1] == "random_state"]
    assert set(seeds) <= {0}


TEXTS = [
    "broth ladle simmer",
    "dough yeast crust",
    "hops malt brew",
    "broth dough simmer crust",
] * 8
URIS = [["u:soup"], ["u:bread"], ["u:ale"], ["u:soup", "u:bread"]] * 8
ASKED = ["simmer a broth", "malt and hops and yeast", "nothing known", ""]


@pytest.fixture(scope="module")
def plain():
    """Return a model of one-vs-all without calibration."""
    settings = read_settings({"calibration": "none", "set.C": "1"})
    return tagging.make_model(settings).fit(TEXTS, URIS)


def test_suggestions_are_those_of_the_estimator(plain):
    positions, scores = tagging.suggest(plain, ASKED, k=3)
    expected, margins = plain.predict_topk(ASKED, 3)
    np.testing.assert_array_equal(positions[:2], expected[:2])
    np.testing.assert_allclose(scores[:2], 1 / (1 + np.exp(-margins[:2])), rtol=1e-5)
    assert plain.classes_[positions[:2, 0]].tolist() == ["u:soup", "u:ale"]


def test_documents_without_a_known_word_have_no_suggestion(plain):
    positions, scores = tagging.suggest(plain, ASKED, k=5)
    assert (positions[2:] == -1).all()
    assert (scores[2:] == 0).all()
    assert (positions[:2, 3:] == -1).all()  # there are three subjects


@pytest.mark.filterwarnings("ignore:.* groups of labels have fewer than 30")
def test_calibrated_suggestions_are_probabilities_best_first():
    model = tagging.make_model(read_settings({})).fit(TEXTS, URIS)
    positions, scores = tagging.suggest(model, ASKED[:2], k=3)
    expected, chances = model.classifier_.predict_proba_topk(model.vectorizer_.transform(ASKED), 3)
    for row in (0, 1):
        by_label = dict(zip(expected[row], chances[row], strict=True))
        given = [by_label[label] for label in positions[row]]
        np.testing.assert_allclose(scores[row], given, rtol=1e-6)
        assert given == sorted(given, reverse=True)


def test_scores_that_tie_strictly_fall_in_their_order():
    scores = np.array([[1.5, 1.0, 1.0, 0.25, 0.25, 0.0, 0.0], [0.5, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0]])
    lowered = tagging.strictly_falling(scores)
    assert lowered.dtype == np.float32
    assert (np.diff(lowered[0, :6]) < 0).all()
    assert lowered.max() <= 1
    assert lowered.min() >= 0
    np.testing.assert_allclose(lowered, scores.clip(0, 1), atol=1e-6)
    np.testing.assert_array_equal(lowered[1], scores[1].astype(np.float32))

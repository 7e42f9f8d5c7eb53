"""``TextClassifierXC(warm_start=True)``: a fit to old and new rows starts at the last one."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import sklearn_xc
from sklearn_xc import (
    AutoXC,
    ImplicitSoftmaxSGD,
    OvALinearXC,
    OvALinearXCCV,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
)
from sklearn_xc.ensemble.auto import Trial
from sklearn_xc.one_vs_all import warm_start

HOW = {"cv": 3, "random_state": 0}
SMALL = {"max_iter": 3, "early_stopping": False, "random_state": 0}


def week(n, n_tags, seed):
    """Return texts of which each has words of its tags and one of its own, and the tags."""
    rng = np.random.default_rng(seed)
    tags = [sorted({f"t{i}" for i in rng.integers(0, n_tags, 2)}) for _ in range(n)]
    texts = [
        " ".join([*(f"w{t}{rng.integers(3)} v{rng.integers(9)}" for t in own), f"own{seed}x{i}"])
        for i, own in enumerate(tags)
    ]
    return texts, tags


TEXTS, TAGS = week(300, 8, 0)
NEW_TEXTS, NEW_TAGS = week(20, 10, 1)
ALL = [*NEW_TEXTS, *TEXTS], [*NEW_TAGS, *TAGS]  # no row stays where it was

CLASSIFIERS = {
    "default": None,
    "alone": OvALinearXC(),
    "probabilities": TopKCalibrator(OvALinearXC(), **HOW),
    "pipeline": ThresholdTuner(make_pipeline(Normalizer(), OvALinearXC()), **HOW),
    "stack": StackingXC([("a", OvALinearXC()), ("b", ImplicitSoftmaxSGD(**SMALL))], **HOW),
}


@pytest.fixture
def starts(monkeypatch):
    """A list that gets the ``WarmStart`` of each fit."""
    found, init = [], warm_start.WarmStart.__init__

    def recorded(self, *args):
        init(self, *args)
        found.append(self)

    monkeypatch.setattr(warm_start.WarmStart, "__init__", recorded)
    return found


def tight(classifier):
    """Return a classifier whose one-vs-all models are solved nearly exactly, and not pruned."""
    tagger = TextClassifierXC(classifier=classifier)
    classifier = clone(tagger._default_part("classifier") if classifier is None else classifier)
    own = {"tol": 1e-6, "prune": 0, "C": 0.5}
    for key, part in {"": classifier, **classifier.get_params()}.items():
        if isinstance(part, OvALinearXC):
            classifier.set_params(**{f"{key}__{name}".strip("_"): own[name] for name in own})
    return classifier


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_same_model_as_from_nothing(name, starts):
    words = TfidfVectorizer(sublinear_tf=True)  # float64
    tagger = TextClassifierXC(words, tight(CLASSIFIERS[name]), warm_start=True)
    cold = clone(tagger).fit(*ALL)
    warm = tagger.fit(TEXTS, TAGS)
    assert not starts
    warm.fit(*ALL)
    assert (starts[-1].rows >= 0).any()
    assert warm.classes_.tolist() == cold.classes_.tolist()
    for one, other in zip(warm.predict_topk(TEXTS, 4), cold.predict_topk(TEXTS, 4), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    assert warm.predict(TEXTS) == cold.predict(TEXTS)


def test_words_and_labels_are_matched_by_name(starts):
    tagger = TextClassifierXC(classifier=OvALinearXC(), warm_start=True).fit(TEXTS, TAGS)
    old = tagger.classifier_
    tagger.fit(*ALL)
    (start,) = starts
    known = start.rows >= 0
    assert not known[~np.isin(tagger.classes_, old.classes_)].any()
    np.testing.assert_array_equal(old.classes_[start.rows[known]], tagger.classes_[known])
    label = np.flatnonzero(known)[0]
    problem = type("Problem", (), {"n_features": len(start.features) + 999, "intercept": 1.0})
    point = start.start(None, problem, label, None)
    sparse = start.sparse_starts(None, problem, np.array([label])).toarray()[0]
    np.testing.assert_array_equal(point, sparse)
    assert np.count_nonzero(point[:-1]) == np.count_nonzero(old.coef_[[start.rows[label]]].data)


def test_labels_with_held_out_positives_start_from_nothing_there(starts):
    """The last weights have seen the held-out rows."""
    tagger = TextClassifierXC(classifier=ThresholdTuner(OvALinearXC(), cv=0.02), warm_start=True)
    tagger.set_params(classifier__random_state=0).fit(TEXTS, TAGS).fit(TEXTS, TAGS)
    held_out, last = starts
    assert (last.rows >= 0).all()
    assert 0 < (held_out.rows >= 0).sum() < len(last.rows)


def test_a_loaded_model_goes_on_and_keeps_no_start(tmp_path, starts):
    tagger = TextClassifierXC().fit(TEXTS, TAGS)
    tagger.save(tmp_path / "model")
    loaded = sklearn_xc.load(tmp_path / "model")
    for model in (tagger, loaded):
        model.set_params(warm_start=True).fit(*ALL)
    assert starts
    assert loaded.predict(TEXTS) == tagger.predict(TEXTS)
    loaded.save(tmp_path / "next")
    both = loaded.classifier_.estimator, loaded.classifier_.estimator_
    assert all("_start" not in vars(part) for part in both)


@pytest.mark.parametrize("is_stack", [True, False])
def test_only_what_auto_has_chosen_is_tried_again(is_stack, starts, monkeypatch, tmp_path):
    monkeypatch.setattr(Trial, "is_ahead", lambda one, _: is_stack and " + " in one.name)
    tagger = TextClassifierXC(classifier=AutoXC(cv=0.3, random_state=0), warm_start=True)
    tagger.fit(TEXTS, TAGS)
    chosen = list(tagger.classifier_.named_estimators_)
    assert len(chosen) == 1 + is_stack
    tagger.fit(*ALL)
    assert (starts[-1].rows >= 0).any()
    tagger.save(tmp_path / "model")  # there is no start left, which could not be saved
    tagger = sklearn_xc.load(tmp_path / "model")
    names = tagger.classifier_.fit_report_["name"].tolist()
    assert names == ([*chosen, " + ".join(chosen)] if is_stack else chosen)
    assert list(tagger.classifier_.named_estimators_) == chosen
    before = tagger.predict(TEXTS)
    with (
        pytest.warns(UserWarning, match="too short for one-vs-all"),
        pytest.raises(ValueError, match=r"too short to try one-vs-all.* again\. Got 1e-06 s"),
    ):
        tagger.set_params(classifier__time_budget=1e-6).fit(*ALL)
    assert tagger.predict(TEXTS) == before


def test_an_error_leaves_the_old_model():
    tagger = TextClassifierXC(warm_start=True).fit(TEXTS, TAGS)
    before = tagger.predict(TEXTS)
    with pytest.raises(ValueError, match="C"):
        tagger.set_params(classifier__estimator__C=-1).fit(*ALL)
    assert tagger.predict(TEXTS) == before


@pytest.mark.parametrize(
    "classifier", [OvALinearXCCV([0.1, 1.0], cv=2), ImplicitSoftmaxSGD(warm_start=True, **SMALL)]
)
def test_other_classifiers_are_fitted_from_nothing(classifier, starts):
    tagger = TextClassifierXC(classifier=classifier, warm_start=True)
    cold = clone(tagger).fit(*ALL)
    warm = tagger.fit(TEXTS, TAGS).fit(*ALL)
    np.testing.assert_array_equal(warm.predict_topk(TEXTS, 3), cold.predict_topk(TEXTS, 3))
    assert not starts


@pytest.mark.parametrize(("second", "is_warm"), [("ab", True), ("abc", False), ("ac", False)])
def test_classes(second, is_warm, starts):
    def classes(names):
        return [names[len(own) % len(names) if i % 3 else 0] for i, own in enumerate(TAGS)]

    tagger = TextClassifierXC(warm_start=True).fit(TEXTS, classes("ab"))
    tagger.fit(TEXTS, classes(second))
    assert (starts[0].rows >= 0).any() == is_warm

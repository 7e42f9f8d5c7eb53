"""Held-out rows have no part in the vectorizer: a tagger learns what a Pipeline inside would."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from sklearn_xc import (
    LabelBinarizerXC,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
    load,
    topk,
)

rng = np.random.default_rng(0)
TAGS = [sorted({f"t{i}" for i in rng.integers(0, 6, 2)}) for _ in range(90)]
# A word of its own for each text, as new texts have.
TEXTS = [
    f"{' '.join(f'w{tag} x{rng.integers(9)}' for tag in own)} own{i}" for i, own in enumerate(TAGS)
]
Y = LabelBinarizerXC().fit_transform(TAGS)
HOW = {"cv": 4, "random_state": 3}


def words():
    return TfidfVectorizer(dtype=np.float32)


def stack(first):
    members = [("a", first), ("b", clone(first))]
    return StackingXC(members, **HOW)


AROUND = {
    "thresholds": lambda inner: ThresholdTuner(inner, **HOW),
    "probabilities": lambda inner: TopKCalibrator(inner, **HOW),
    "both": lambda inner: ThresholdTuner(TopKCalibrator(inner, **HOW), **HOW),
    "stack": stack,
}


def learned(model, X):
    """Return what depends on held-out rows."""
    classifier = getattr(model, "classifier_", model)
    found = [*topk(model, X, 4), getattr(classifier, "thresholds_", np.zeros(0))]
    if hasattr(model, "predict_proba_topk"):
        found.append(model.predict_proba_topk(X, 4)[1])
    return found


@pytest.mark.parametrize("name", AROUND)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_as_with_a_pipeline_inside(name, n_jobs):
    around = AROUND[name]
    tagger = TextClassifierXC(words(), around(OvALinearXC()).set_params(n_jobs=n_jobs))
    tagger.fit(TEXTS, TAGS)
    new = ["wt1 x3 unheard", "wt2 wt4", "x5"]
    found = learned(tagger, new)
    wanted = learned(around(make_pipeline(words(), OvALinearXC())).fit(TEXTS, Y), new)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # The test can fail: with all words known to the vectorizer, other things are learned.
    leaky = around(OvALinearXC()).fit(words().fit_transform(TEXTS), Y)
    others = learned(leaky, tagger.vectorizer_.transform(new))
    assert not all(map(np.array_equal, found, others))


def test_what_is_bound_to_columns_keeps_them(tmp_path):
    vectorizer = words().fit([*TEXTS, *{tag for own in TAGS for tag in own}])
    label_texts, names = ["wt0", "wt1", "wt2"], ["t0", "t1", "t2"]
    label_rows = LabelFeatures(vectorizer.transform(label_texts), classes=names)
    kept = [["t0"] if "t0" in own else ["t1"] if "t1" in own else ["t2"] for own in TAGS]
    for ngame in (NGAMEEmbeddingXC(label_features=label_rows, max_iter=1, random_state=0),):
        tuner = ThresholdTuner(ngame, **HOW)
        tagger = TextClassifierXC(FrozenEstimator(vectorizer), tuner).fit(TEXTS, kept)
        plain = clone(tuner).set_params(estimator__label_names=names)
        plain.fit(vectorizer.transform(TEXTS), LabelBinarizerXC().fit_transform(kept))
        np.testing.assert_array_equal(tagger.classifier_.thresholds_, plain.thresholds_)
        tagger.save(tmp_path / str(id(ngame)))
        opened = load(tmp_path / str(id(ngame)))
        assert opened.predict(TEXTS) == tagger.predict(TEXTS)


def test_a_vectorizer_that_no_fold_suits_stays_as_it_is():
    texts = [text for i in range(12) for text in (f"only{i}", f"only{i}")]
    tags = [["a"] if i % 2 else ["b"] for i in range(24)]
    folds = [(np.arange(0, 24, 2), np.arange(1, 24, 2))]  # without a word in two texts
    tuner = ThresholdTuner(OvALinearXC(), cv=folds)
    tagger = TextClassifierXC(TfidfVectorizer(min_df=2), tuner).fit(texts, tags)
    assert np.isfinite(tagger.classifier_.thresholds_).all()

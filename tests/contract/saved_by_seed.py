"""Saves models of all estimators that read texts: ``python saved_by_seed.py FOLDER``."""

import sys
import time
import warnings
from pathlib import Path

if __name__ == "__main__":  # reports hold times: the clocks stand still before any is imported
    for _name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
        setattr(time, _name, lambda: 1.0)

import numpy as np
from rows_as_texts import HAS_TRANSFORMERS, transformer, write_tiny_bert
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline, make_union

from sklearn_xc import (
    DecompMIPSSkipGram,
    ImplicitSoftmaxSGD,
    LabelFeatures,
    NGAMEEmbeddingXC,
    OvALinearXC,
    StackingXC,
    TextClassifierXC,
    ThresholdTuner,
    TopKCalibrator,
)

_rng = np.random.default_rng(0)
_BEGINNINGS = ["soup broth", "bread dough", "soup stock", "bread yeast", "ale malt"] * 12
TEXTS = [
    f"{text} {' '.join(f'word{number}' for number in _rng.zipf(1.3, 20))}" for text in _BEGINNINGS
]
NAMES = [["soup"], ["bread", "oven"], ["soup", "stock"], ["bread"], ["ale"]] * 12


def models():
    """Yield fitted models."""
    words, quick = (
        TfidfVectorizer(stop_words=["the", "of", "a"]),
        {"max_iter": 2, "random_state": 0},
    )
    softmax = make_pipeline(TfidfVectorizer(), ImplicitSoftmaxSGD(**quick))
    ova = make_pipeline(TfidfVectorizer(), OvALinearXC())
    yield TextClassifierXC().fit(TEXTS, NAMES)
    yield TextClassifierXC(make_union(words, CountVectorizer()), OvALinearXC()).fit(TEXTS, NAMES)
    frozen = FrozenEstimator(words.fit(TEXTS))
    names = LabelFeatures(["ale", "bread", "oven", "soup", "stock"])
    rows = LabelFeatures(frozen.transform(names.features))
    tower = NGAMEEmbeddingXC(label_features=rows, **quick)
    yield TextClassifierXC(frozen, tower).fit(TEXTS, NAMES)
    stack = StackingXC([("ova", ova), ("softmax", softmax)], cv=2, random_state=0)
    yield TextClassifierXC(None, stack).fit(TEXTS, NAMES)
    for kind in (ThresholdTuner, TopKCalibrator):
        yield TextClassifierXC(None, kind(ova, cv=2, random_state=0)).fit(TEXTS, NAMES)
    yield DecompMIPSSkipGram(min_count=1, subsample=None, **quick).fit(
        [text.split() for text in TEXTS]
    )
    if HAS_TRANSFORMERS:
        write_tiny_bert()
        tower = NGAMEEmbeddingXC(encoder=transformer(), label_features=names, **quick)
        yield TextClassifierXC(None, tower).fit(TEXTS, NAMES)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    folder.mkdir()
    for number, model in enumerate(models()):
        model.save(folder / f"{number}")

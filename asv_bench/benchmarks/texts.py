"""From texts to names: a text classifier, and the same by a Pipeline and inside a search.

Works of the Tate collection, with one-vs-all of their subjects.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_xc import OvALinearXC, TextClassifierXC, topk, topk_names
from sklearn_xc.metrics import get_scorer

from ._common import tate_texts

N_WORKS, N_NEW = 1_000, 500


def setup_cache():
    """Return texts and names to train on, new texts, and three models that read texts."""
    texts, Y, tags = tate_texts(N_WORKS + N_NEW)
    texts, new = texts[:N_WORKS], texts[N_WORKS:]
    tags, Y = tags[:N_WORKS], Y[:N_WORKS]
    Y = Y[:, np.flatnonzero(Y.sum(axis=0) > 1)]
    pipeline = make_pipeline(TfidfVectorizer(dtype=np.float32), OvALinearXC())
    grid = {"ovalinearxc__C": [0.5]}
    search = GridSearchCV(pipeline, grid, scoring=get_scorer("P@1"), cv=2)
    models = {
        "classifier": TextClassifierXC(classifier=OvALinearXC()).fit(texts, tags),
        "pipeline": pipeline.fit(texts, Y),
        "search": search.fit(texts, Y),
    }
    return texts, tags, new, models


setup_cache.timeout = 900  # with an empty compiler cache


class Fit:
    """Learn 1,000 works with the names of subjects that two works have at least."""

    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, cache):
        self.texts, self.tags = cache[:2]
        self.clf = TextClassifierXC(classifier=OvALinearXC(), min_count=2)
        self.time_fit(cache)

    def time_fit(self, cache):
        self.clf.fit(self.texts, self.tags)


class Answers:
    """Names of 500 texts, of one, and the features behind a name."""

    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache):
        self.new, self.clf = cache[2], cache[3]["classifier"]
        self.name = self.clf.classes_[0]
        for ask in (
            self.time_predict,
            self.time_topk_names,
            self.time_topk_names_of_one,
            self.time_explain,
        ):
            ask(cache)

    def time_predict(self, cache):
        self.clf.predict(self.new)

    def time_topk_names(self, cache):
        topk_names(self.clf, self.new, k=5)

    def time_topk_names_of_one(self, cache):
        topk_names(self.clf, self.new[:1], k=5)

    def time_explain(self, cache):
        self.clf.explain(self.new[0], self.name)


class Topk:
    """The 5 best labels of 500 texts, also from what has no ``predict_topk`` of its own."""

    params = ("classifier", "pipeline", "search")
    param_names = ("model",)

    def setup(self, cache, model):
        self.new, self.model = cache[2], cache[3][model]
        self.time_topk(cache, model)
        self.time_topk_of_candidates(cache, model)

    def time_topk(self, cache, model):
        topk(self.model, self.new, 5)

    def time_topk_of_candidates(self, cache, model):
        """A tenth of the labels may be named."""
        topk(self.model, self.new, 5, candidates=self.model.classes_[::10])

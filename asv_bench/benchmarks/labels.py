"""Labels: names to columns and back, and what is above them. Of 47,119 works with 16,455 subjects.

Lists of names are those of the first 10,000 works.
"""

from sklearn_xc import LabelBinarizerXC, LabelHierarchy
from sklearn_xc.datasets import load_tate_subjects

from ._common import tate_texts

SEPARATOR = ";"


def setup_cache():
    """Return names of 10,000 works, the indicator of all, and all names."""
    tate = load_tate_subjects()
    _, _, tags = tate_texts(10_000)
    return tags, tate.target, tate.target_names


class Binarizer:
    """10,000 lists of names, or texts of names."""

    params = ("lists", "texts")
    param_names = ("form",)
    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache, form):
        self.tags, self.binarizer = cache[0], LabelBinarizerXC()
        if form == "texts":
            self.tags = [SEPARATOR.join(names) for names in self.tags]
            self.binarizer = LabelBinarizerXC(separator=SEPARATOR)
        self.Y = self.binarizer.fit_transform(self.tags)
        self.time_inverse_transform(cache, form)

    def time_fit_transform(self, cache, form):
        self.binarizer.fit_transform(self.tags)

    def time_transform(self, cache, form):
        self.binarizer.transform(self.tags)

    def time_inverse_transform(self, cache, form):
        self.binarizer.inverse_transform(self.Y)


class Hierarchy:
    """Make the tree of the subjects, add what is above labels, and take it away."""

    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache):
        self.tags, self.Y, self.names = cache
        self.hierarchy = LabelHierarchy.from_paths(self.names, separator=" > ")
        self.whole = self.hierarchy.with_ancestors(self.Y)
        self.time_with_ancestors_of_names(cache)
        self.time_deepest(cache)

    def time_from_paths(self, cache):
        LabelHierarchy.from_paths(self.names, separator=" > ").ancestors  # noqa: B018

    def time_with_ancestors(self, cache):
        self.hierarchy.with_ancestors(self.Y)

    def time_with_ancestors_of_names(self, cache):
        self.hierarchy.with_ancestors(self.tags)

    def time_deepest(self, cache):
        self.hierarchy.deepest(self.whole)


class Consistent:
    """No label above its ancestors, in the answers for 10,000 works: 5 labels, or sparse scores."""

    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache):
        _, Y, names = cache
        self.hierarchy = LabelHierarchy.from_paths(names, separator=" > ")
        self.scores = Y[:10_000].astype(float)
        self.scores.data[:] = 1 / (1 + self.scores.indices)
        n, k = 10_000, 5
        self.labels = Y.indices[: n * k].reshape(n, k).astype("int64")
        self.of_labels = 1.0 / (1 + self.labels)
        self.time_topk(cache)
        self.time_scores(cache)

    def time_topk(self, cache):
        self.hierarchy.consistent_topk(self.labels, self.of_labels)

    def time_scores(self, cache):
        self.hierarchy.consistent_scores(self.scores)

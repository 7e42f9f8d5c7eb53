"""Splits for rare labels, and cross-validation with a sparse indicator."""

import numpy as np

from sklearn_xc import OvALinearXC
from sklearn_xc.model_selection import RareLabelSplit, cross_val_topk, cross_validate

from ._common import small_data, tate_data


class Splits:
    """Rows of 20,000 works of the Tate collection, so that no rare subject is lost to training."""

    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup_cache(self):
        return tate_data(20_000)

    def setup(self, data):
        self.X, self.Y = data
        self.time_rare_label_split(data)

    def time_rare_label_split(self, data):
        """Five folds."""
        list(RareLabelSplit(5).split(self.X, self.Y))


class CrossValidation:
    """Two folds of 1,000 instances with the 50 most frequent labels."""

    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self):
        X, Y = small_data()
        frequent = np.argsort(-Y[:1_000].sum(axis=0))[:50]
        self.data, self.clf = (X[:1_000], Y[:1_000, frequent]), OvALinearXC(prune=0)
        self.time_cross_val_topk()

    def time_cross_validate(self):
        cross_validate(self.clf, *self.data, scoring="P@1", cv=2)

    def time_cross_val_topk(self):
        cross_val_topk(self.clf, *self.data, cv=2, k=5)

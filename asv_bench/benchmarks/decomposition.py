"""Training guided by a search: an epoch by gradient, the index that guides it, predictions."""

import numpy as np

from sklearn_xc import DecompMIPSClassifier
from sklearn_xc.datasets import make_hierarchical_classes
from sklearn_xc.search import INDEXES, ExactIndex

N_LABELS, DIM, N_CANDIDATES = 10_000, 128, 100


def made_classes():
    """Return 10,000 classes of 2 dense instances."""
    return make_hierarchical_classes(4, 10, DIM, n_per_class=2, n_test=1_000, random_state=0)


def setup_cache():
    """Return data, and weights that were trained for an epoch."""
    data = made_classes()
    clf = DecompMIPSClassifier(gradient="sampled", learning_rate=0.3, max_iter=1, random_state=0)
    return data, clf.fit(data.X_train, data.y_train).coef_


class Fit:
    """An epoch of 20,000 dense instances."""

    params = ("exact", "sampled", "mips", "decomp_mips")
    param_names = ("gradient",)
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, cache, gradient):
        self.data = cache[0].X_train, cache[0].y_train
        self.clf = DecompMIPSClassifier(
            gradient=gradient,
            n_candidates=N_CANDIDATES,
            learning_rate=0.1,
            max_iter=1,
            random_state=0,
        )
        self.clf.fit(self.data[0][:1000], self.data[1][:1000])  # compiled

    def time_fit(self, cache, gradient):
        self.clf.fit(*self.data)

    def peakmem_fit(self, cache, gradient):
        self.clf.fit(*self.data)


class Index:
    """Build an index of 10,000 rows, move 200 of them, ask it for 100 labels of 10 instances."""

    params = ("spherical",)
    param_names = ("index",)
    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache, index):
        data, W = cache
        self.W = W.copy()
        self.V = np.ascontiguousarray(data.X_test[:10])
        self.rows = np.random.default_rng(0).permutation(N_LABELS)[:200].astype(np.int32)
        self.built = INDEXES[index]()
        self.built.build(self.W)
        self.time_update(cache, index)
        self.time_query(cache, index)

    def time_build(self, cache, index):
        INDEXES[index]().build(self.W)

    def time_update(self, cache, index):
        self.W[self.rows] *= np.float32(1.001)
        self.built.update(self.rows)

    def time_query(self, cache, index):
        self.built.query(self.V, N_CANDIDATES)

    def peakmem_build(self, cache, index):
        INDEXES[index]().build(self.W)

    def track_recall(self, cache, index):
        """Share of the 10 best labels that are among the candidates."""
        exact = ExactIndex()
        exact.build(self.W)
        V = np.ascontiguousarray(cache[0].X_test)
        pairs = zip(
            exact.query(V, 10).labels, self.built.query(V, N_CANDIDATES).labels, strict=True
        )
        return float(np.mean([np.isin(*pair).mean() for pair in pairs]))


class Predict:
    """The 5 best of 10,000 classes for 1,000 dense instances, and for a single one."""

    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache):
        data, _ = cache
        self.X = data.X_test[:1_000]
        clf = DecompMIPSClassifier(gradient="sampled", max_iter=1, random_state=0)
        self.clf = clf.fit(data.X_train, data.y_train)
        self.time_predict_topk(cache)
        self.time_predict_topk_of_one(cache)

    def time_predict_topk(self, cache):
        self.clf.predict_topk(self.X, 5)

    def time_predict_topk_of_one(self, cache):
        self.clf.predict_topk(self.X[:1], 5)

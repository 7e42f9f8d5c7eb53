"""A fitted model: seconds to predict, its size, and its precision on instances it has not seen."""

import pickle

import numpy as np

from sklearn_xc import OvALinearXC

from ._common import made_data, tate_data

N_TEST = 1_000


def setup_cache():
    models = {}
    for name, (X, Y) in {"made": made_data(), "tate": tate_data()}.items():
        clf = OvALinearXC().fit(X[:-N_TEST], Y[:-N_TEST])
        models[name] = clf, X[-N_TEST:], Y[-N_TEST:]
    return models


class Prediction:
    """Predict 1 row, 1,000 rows, or 8,000, which are those 1,000 again and again."""

    params = (["made", "tate"], [1, 1_000, 8_000], [1, 2])
    param_names = ("data", "n_rows", "n_jobs")

    def setup(self, models, name, n_rows, n_jobs):
        self.clf, X, _ = models[name]
        self.clf.set_params(n_jobs=n_jobs)
        self.X = X[np.arange(n_rows) % N_TEST]
        self.clf.predict_topk(X[:1])  # also makes the weights by feature

    def time_predict_topk(self, models, name, n_rows, n_jobs):
        self.clf.predict_topk(self.X, k=5)

    def time_decision_function(self, models, name, n_rows, n_jobs):
        """The 100 best labels of each row, as a sparse array."""
        self.clf.decision_function(self.X)


class Quality:
    """For precision more is better, which ``asv compare`` does not know."""

    params = ("made", "tate")
    param_names = ("data",)

    def setup(self, models, name):
        self.clf, self.X, self.Y = models[name]

    def track_pickle_size(self, models, name):
        return len(pickle.dumps(self.clf))

    def track_weights_per_label(self, models, name):
        return self.clf.coef_.nnz / self.clf.coef_.shape[0]

    def track_precision_at_1(self, models, name):
        return self.clf.score(self.X, self.Y)

    track_pickle_size.unit = "bytes"
    track_weights_per_label.unit = "weights"
    track_precision_at_1.unit = "precision@1"

"""Softmax training: seconds of an epoch, of a search for hard negatives, and peak memory."""

from sklearn_xc import ImplicitSoftmaxSGD, SoftmaxUMax

from ._common import made_data

VARIANTS = {
    "umax": (SoftmaxUMax, {"n_hard_negatives": 0}),
    "implicit": (ImplicitSoftmaxSGD, {"n_negatives": 1, "n_hard_negatives": 0}),
    "hard": (ImplicitSoftmaxSGD, {"n_negatives": 2, "n_hard_negatives": 5}),
}


def setup_cache():
    return made_data()


def fitted(data, variant):
    """Return an estimator after one pass: compiled, with weights."""
    X, Y = data
    estimator, params = VARIANTS[variant]
    clf = estimator(learning_rate=0.1, random_state=0, **params)
    return clf.set_params(max_iter=1).fit(X, Y)


class Epoch:
    """One pass over 10,000 instances with 2,000 labels; for "hard" with a search before it."""

    params = tuple(VARIANTS)
    param_names = ("method",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data, method):
        self.clf = fitted(data, method).set_params(warm_start=True)

    def time_fit(self, data, method):
        self.clf.fit(*data)

    def peakmem_fit(self, data, method):
        self.clf.fit(*data)


class Proba:
    """The exact probabilities of 1,000 rows, their 100 best labels of 2,000, and the 5 best."""

    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data):
        self.clf = fitted(data, "implicit")

    def time_predict_proba(self, data):
        self.clf.predict_proba(data[0][:1000])

    def time_predict_topk(self, data):
        self.clf.predict_topk(data[0][:1000], 5)

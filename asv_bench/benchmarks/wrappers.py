"""Classifiers around trained ones: what is learned from held-out rows, and what an answer costs.

The classifiers inside are trained before, on 3,000 instances with 300 labels, and are asked about
the others: the figures hold these questions, and not the training of what is inside.
"""

from sklearn_xc import ImplicitSoftmaxSGD, OvALinearXC, StackingXC, ThresholdTuner, TopKCalibrator

from ._common import small_data

N_HELD_OUT = 1_000


def around(name, trained):
    """Return a classifier, not fitted, around trained ones."""
    how = {"cv": "prefit", "random_state": 0}
    if name == "stack":
        return StackingXC(list(trained.items()), n_candidates=5, **how)
    of_one = {"thresholds": ThresholdTuner, "calibrator": TopKCalibrator}[name]
    return of_one(trained["ova"], **how)


def setup_cache():
    X, Y = small_data()
    members = {
        "ova": OvALinearXC(),
        "softmax": ImplicitSoftmaxSGD(max_iter=3, learning_rate=0.1, random_state=0),
    }
    known = X[N_HELD_OUT:], Y[N_HELD_OUT:]
    trained = {name: member.fit(*known) for name, member in members.items()}
    return trained, X[:N_HELD_OUT], Y[:N_HELD_OUT]


setup_cache.timeout = 900  # with an empty compiler cache


class Fit:
    """Learn from 1,000 held-out instances."""

    params = ("stack", "thresholds", "calibrator")
    param_names = ("kind",)
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, cache, kind):
        trained, self.X, self.Y = cache
        self.clf = around(kind, trained)
        self.time_fit(cache, kind)

    def time_fit(self, cache, kind):
        self.clf.fit(self.X, self.Y)

    def peakmem_fit(self, cache, kind):
        self.clf.fit(self.X, self.Y)


class Answers:
    """The 5 best labels, and the label sets, of 1,000 instances."""

    params = ("stack", "thresholds", "calibrator")
    param_names = ("kind",)
    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache, kind):
        trained, self.X, Y = cache
        self.clf = around(kind, trained).fit(self.X, Y)
        self.time_predict_topk(cache, kind)
        self.time_predict(cache, kind)

    def time_predict_topk(self, cache, kind):
        self.clf.predict_topk(self.X, 5)

    def time_predict(self, cache, kind):
        self.clf.predict(self.X)


class Probabilities:
    """Calibrated probabilities of 1,000 instances: of the 5 best labels, and of the 100 best."""

    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, cache):
        trained, self.X, Y = cache
        self.clf = around("calibrator", trained).fit(self.X, Y)
        self.time_predict_proba_topk(cache)
        self.time_predict_proba(cache)

    def time_predict_proba_topk(self, cache):
        self.clf.predict_proba_topk(self.X, 5)

    def time_predict_proba(self, cache):
        self.clf.predict_proba(self.X)

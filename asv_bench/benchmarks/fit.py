"""One-vs-all: seconds of training by start vector, loss and threads, of changes, peak memory."""

import copy

import numpy as np

from sklearn_xc import OvALinearXC, OvALinearXCCV

from ._common import made_data, small_data, tate_data, warm_up


def setup_cache():
    data = {"made": made_data(), "tate": tate_data()}
    for loss in ("squared_hinge", "logistic"):
        warm_up(*data["made"], loss=loss)
    return data


class _Fit:
    # Fits take seconds and vary little: three of them, in one process.
    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def prepare(self, X, Y, **params):
        self.X, self.Y, self.clf = X, Y, OvALinearXC(**params)
        warm_up(X, Y, **params)


class Initialisations(_Fit):
    """Fit 500 of the made labels, whose columns are in no order of frequency."""

    params = (["zero", "bias", "ovap", "msi"], [1, 2])
    param_names = ("init", "n_jobs")

    def setup(self, data, init, n_jobs):
        X, Y = data["made"]
        self.prepare(X, Y[:, :500], init=init, n_jobs=n_jobs)

    def time_fit(self, data, init, n_jobs):
        self.clf.fit(self.X, self.Y)


class Logistic(_Fit):
    """Fit 50 of the made labels."""

    def setup(self, data):
        X, Y = data["made"]
        self.prepare(X, Y[:, :50], loss="logistic")

    def time_fit(self, data):
        self.clf.fit(self.X, self.Y)


class Tate(_Fit):
    """Fit 5,000 works of the Tate collection, over 4,000 subjects."""

    params = (1, 2)
    param_names = ("n_jobs",)

    def setup(self, data, n_jobs):
        self.prepare(*data["tate"], n_jobs=n_jobs)

    def time_fit(self, data, n_jobs):
        self.clf.fit(self.X, self.Y)


class Costs(_Fit):
    """Choose C among three on two folds, for the 50 most frequent subjects of 2,000 works."""

    params = ("P@1", "PSP@1")
    param_names = ("scoring",)

    def setup(self, data, scoring):
        X, Y = data["tate"]
        self.X, self.Y = X[:2_000], Y[:2_000, np.argsort(-Y.sum(axis=0))[:50]]
        self.clf = OvALinearXCCV(Cs=[0.1, 0.5, 2.5], cv=2, scoring=scoring, random_state=0)
        self.time_fit(data, scoring)

    def time_fit(self, data, scoring):
        self.clf.fit(self.X, self.Y)


class Changes(_Fit):
    """Of a model of 250 labels and 4,000 instances: the same again, 50 more labels."""

    def setup(self, data):
        self.X, self.Y = small_data()
        self.fitted = OvALinearXC(warm_start=True).fit(self.X[:3_900], self.Y[:3_900, :250])
        self.time_warm_start(data)
        self.time_add_labels(data)

    def time_warm_start(self, data):
        copy.copy(self.fitted).fit(self.X, self.Y[:, :250])

    def time_add_labels(self, data):
        copy.copy(self.fitted).add_labels(self.X[:3_900], self.Y[:3_900, 250:])


class Memory:
    """Peak of the whole process: Python, the imported libraries, both data sets and the fit.

    ``FitlessMemory`` is what it holds before the fit begins.
    """

    params = (["made", "tate"], [1, 2])
    param_names = ("data", "n_jobs")

    def peakmem_fit(self, data, name, n_jobs):
        OvALinearXC(n_jobs=n_jobs).fit(*data[name])


class FitlessMemory:
    def peakmem_imports_and_data(self, data):
        pass

"""Metrics: of the five best labels of 100,000 instances, of label sets, of probabilities."""

import numpy as np
from scipy.sparse import csr_array

from sklearn_xc import LabelHierarchy, OvALinearXC, metrics
from sklearn_xc.metrics import TopKScorer, paired_bootstrap, propensity

from ._common import small_data

N_SAMPLES, N_LABELS = 100_000, 10_000
AT_K = (
    "precision_at_k",
    "recall_at_k",
    "ndcg_at_k",
    "psp_at_k",
    "psndcg_at_k",
    "coverage_at_k",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "macro_f1_at_k",
    "hierarchical_f1_at_k",
)
OF_SETS = ("micro_f1", "macro_f1", "instance_f1", "hierarchical_f1")
OF_PROBABILITIES = ("brier_score", "expected_calibration_error", "calibration_by_frequency")


def indicator(labels, values=1):
    """Return a csr_array with a row for each row of `labels`."""
    labels, indptr = np.sort(labels, axis=1), np.arange(0, labels.size + 1, labels.shape[1])
    values = np.broadcast_to(values, labels.shape).ravel()
    return csr_array((values, labels.ravel(), indptr), shape=(N_SAMPLES, N_LABELS))


def setup_cache():
    """Return what is true, and the best labels: the first and the third of five are right."""
    first = np.random.default_rng(0).integers(N_LABELS, size=(N_SAMPLES, 1))
    topk = np.add(first, [0, 11, 22, 33, 44]) % N_LABELS
    return indicator(np.add(first, [0, 22, 55]) % N_LABELS), topk


def groups():
    """Return a hierarchy: the labels in 100 groups, and these in 10."""
    label, group = np.arange(N_LABELS), np.arange(100)
    children = np.arange(N_LABELS + 100)
    parents = np.concatenate([N_LABELS + label % 100, N_LABELS + 100 + group % 10])
    return LabelHierarchy(np.arange(N_LABELS + 110), np.column_stack([children, parents]))


class AtK:
    """At 1, 3 and 5."""

    params = AT_K
    param_names = ("metric",)

    def setup(self, data, metric):
        self.arguments = {"k": (1, 3, 5)}
        if metric.startswith("ps"):
            self.arguments["propensities"] = propensity(data[0].sum(axis=0), N_SAMPLES)
        self.time_metric(data, metric)

    def time_metric(self, data, metric):
        getattr(metrics, metric)(*data, **self.arguments)


class OfSets:
    """Of the three best labels, as a sparse indicator."""

    params = OF_SETS
    param_names = ("metric",)

    def setup(self, data, metric):
        self.named = indicator(data[1][:, :3])
        self.arguments = {"hierarchy": groups()}
        self.time_metric(data, metric)

    def time_metric(self, data, metric):
        getattr(metrics, metric)(data[0], self.named, **self.arguments)


class OfProbabilities:
    """Of five sparse probabilities for each instance."""

    params = OF_PROBABILITIES
    param_names = ("metric",)

    def setup(self, data, metric):
        chances = np.random.default_rng(0).random((N_SAMPLES, 5))
        self.arguments = [data[0], indicator(data[1], chances)]
        self.time_metric(data, metric)

    def time_metric(self, data, metric):
        getattr(metrics, metric)(*self.arguments, k=5)


class Bootstrap:
    """Compare two rankings of the 100,000 instances, drawn 100 times."""

    params = ("P@1", "nDCG@5")
    param_names = ("metric",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data, metric):
        self.other = data[1][:, ::-1].copy()
        self.time_paired_bootstrap(data, metric)

    def time_paired_bootstrap(self, data, metric):
        paired_bootstrap(*data, self.other, metric=metric, n_resamples=100, random_state=0)


class Scorer:
    """Nine numbers of a model of 300 labels on 1,000 instances, by one prediction."""

    def setup_cache(self):
        X, Y = small_data()
        return OvALinearXC().fit(X[1_000:], Y[1_000:]), X[:1_000], Y[:1_000]

    def setup(self, model):
        self.scorer = TopKScorer(ks=(1, 3, 5))
        self.time_score(model)

    def time_score(self, model):
        self.scorer(*model)

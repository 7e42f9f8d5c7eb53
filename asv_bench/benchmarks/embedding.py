"""Siamese training on mini-batches of near instances: epochs, clusters, embeddings, prediction.

On the made data: 10,000 instances, 2,000 labels that are known by the mean of their instances, and
embeddings of 128 dimensions. All on one thread.
"""

import numpy as np

from sklearn_xc import NGAMEEmbeddingXC
from sklearn_xc._data import as_csr_rows
from sklearn_xc.embedding._encoding import inputs_of
from sklearn_xc.embedding._label_features import mean_rows
from sklearn_xc.embedding._modules import ClassifierModule, SiameseModule
from sklearn_xc.embedding._training import SiameseTraining, TripletLoss
from sklearn_xc.encoders import BagOfEmbeddings
from sklearn_xc.samplers import SAMPLERS, balanced_clusters
from sklearn_xc.samplers.protocol import Positives

from ._common import N_LABELS, made_data

DIM, BATCH_SIZE, N_EPOCHS = 128, 1_600, 10


def setup_cache():
    return made_data()


def inputs(data):
    """Return instances with labels, their labels, and what is known of the labels."""
    X, Y = data
    rows = np.flatnonzero(np.diff(Y.indptr) > 0)
    Y = Y[rows].sorted_indices()
    X = as_csr_rows(X[rows])
    positives = Positives(Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
    return X, positives, mean_rows(X, *positives, N_LABELS)


def started(X):
    """Return an untrained encoder."""
    encoder = BagOfEmbeddings()
    encoder.start(inputs_of(X), DIM, 0)
    return encoder


def fitted(data, n_epochs):
    """Return a fitted estimator."""
    clf = NGAMEEmbeddingXC(
        embedding_dim=DIM, batch_size=BATCH_SIZE, max_iter=n_epochs,
        classifier_max_iter=n_epochs, random_state=0,
    )  # fmt: skip
    return clf.fit(*data)


class Epoch:
    """The first epoch of the encoder (M1) or of the classifiers (M2), with its refresh."""

    params = (("encoder", "classifiers"), ("ngame", "in_batch", "ance"))
    param_names = ("module", "sampler")
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data, module, sampler):
        self.inputs = inputs(data)
        next(self.training(module, sampler))  # compiled
        self.epochs = self.training(module, sampler)

    def training(self, name, sampler):
        X, positives, Z = self.inputs
        encoder = started(X)
        sampler = SAMPLERS[sampler]()
        sampler.start(BATCH_SIZE, N_EPOCHS, seed=0, n_jobs=1)
        keep = "last_seen" in sampler.reads
        module = SiameseModule(encoder, X, Z, DIM, 1, "benchmark", keep)
        if name == "classifiers":
            module = ClassifierModule(module.instances(), module.labels())
        return SiameseTraining(
            module, positives, np.ones(X.shape[0]), sampler,
            TripletLoss(0.3), 0.003, N_EPOCHS, 0, 1, lambda: inputs_of(X),
        ).run()  # fmt: skip

    def time_epoch(self, data, module, sampler):
        next(self.epochs)


class Clusters:
    """Put the embeddings of 10,000 instances into clusters."""

    params = (8, 64, 1_600)
    param_names = ("cluster_size",)
    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data, cluster_size):
        X = inputs(data)[0]
        self.V = started(X).encode(inputs_of(X))
        self.time_balanced_clusters(data, cluster_size)

    def time_balanced_clusters(self, data, cluster_size):
        balanced_clusters(self.V, max(1, len(self.V) // cluster_size), 0, n_jobs=1)


class Encode:
    """Encode 10,000 instances with 50 features each."""

    rounds, repeat, number, warmup_time = 1, 5, 1, 0

    def setup(self, data):
        rows = inputs(data)[0]
        self.X, self.encoder = inputs_of(rows), started(rows)
        self.time_encode(data)

    def time_encode(self, data):
        self.encoder.encode(self.X, n_jobs=1)


class Predict:
    """The 5 best labels of 1,000 instances, and of a single one."""

    params = ("embedding", "classifier", "fused")
    param_names = ("component",)
    rounds, repeat, warmup_time = 1, 5, 0

    def setup(self, data, component):
        self.clf = fitted(data, 1)
        self.X, self.x = data[0][:1_000], data[0][:1]
        self.time_predict_topk(data, component)
        self.time_predict_topk_of_one(data, component)

    def time_predict_topk(self, data, component):
        self.clf.predict_topk(self.X, 5, component=component)

    def time_predict_topk_of_one(self, data, component):
        self.clf.predict_topk(self.x, 5, component=component)


class Fit:
    """Two epochs each of the encoder and the classifiers, fusion, and the threshold."""

    rounds, repeat, number, warmup_time = 1, 3, 1, 0

    def setup(self, data):
        fitted(data, 1)

    def time_fit(self, data):
        fitted(data, 2)

    def peakmem_fit(self, data):
        fitted(data, 2)
